/*
 * Integers, booleans, base64, dates and timestamps as text (scalar.h); floats are in scalar_float.c.
 */
#include "store/schema/scalar.h"
#include "platform/check.h"
#include <string.h>

#define DAY_US INT64_C(86400000000)

/* ---- integers ---- */

/* Digits alone: ST_PARSE_BAD when there are none or something else stands among them. */
static st_parse parse_digits(const char *text, size_t length, uint64_t *ret_value)
{
    uint64_t value = 0;
    bool over = false;
    if (length == 0)
        return ST_PARSE_BAD;
    for (size_t i = 0; i < length; i++) {
        unsigned digit = (unsigned)(unsigned char)text[i] - '0';
        if (digit > 9)
            return ST_PARSE_BAD;
        if (i < 19) /* 19 digits always fit */
            value = value * 10 + digit;
        else
            over = over || !pf_mul_u64(value, 10, &value) || !pf_add_u64(value, digit, &value);
    }
    *ret_value = value;
    return over ? ST_PARSE_RANGE : ST_PARSE_OK;
}

st_parse st_parse_u64(const char *text, size_t length, uint64_t *ret_value)
{
    bool minus = length > 0 && text[0] == '-';
    uint64_t value = 0;
    st_parse parse = parse_digits(text + minus, length - minus, &value);
    if (parse != ST_PARSE_OK)
        return parse;
    if (minus && value != 0)
        return ST_PARSE_RANGE;
    *ret_value = value;
    return ST_PARSE_OK;
}

st_parse st_parse_i64(const char *text, size_t length, int64_t *ret_value)
{
    bool minus = length > 0 && text[0] == '-';
    uint64_t value = 0;
    st_parse parse = parse_digits(text + minus, length - minus, &value);
    if (parse != ST_PARSE_OK)
        return parse;
    if (value > (uint64_t)INT64_MAX + minus)
        return ST_PARSE_RANGE;
    *ret_value = minus ? (int64_t)(0 - value) : (int64_t)value;
    return ST_PARSE_OK;
}

st_parse st_parse_i32(const char *text, size_t length, int32_t *ret_value)
{
    int64_t value = 0;
    st_parse parse = st_parse_i64(text, length, &value);
    if (parse == ST_PARSE_OK && (value < INT32_MIN || value > INT32_MAX))
        return ST_PARSE_RANGE;
    if (parse == ST_PARSE_OK)
        *ret_value = (int32_t)value;
    return parse;
}

st_parse st_parse_bool(const char *text, size_t length, bool *ret_value)
{
    if (length == 4 && memcmp(text, "true", 4) == 0)
        *ret_value = true;
    else if (length == 5 && memcmp(text, "false", 5) == 0)
        *ret_value = false;
    else
        return ST_PARSE_BAD;
    return ST_PARSE_OK;
}

size_t st_format_u64(uint64_t value, char *ret_text)
{
    char reversed[20];
    size_t length = 0;
    do {
        reversed[length++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    for (size_t i = 0; i < length; i++)
        ret_text[i] = reversed[length - 1 - i];
    return length;
}

size_t st_format_i64(int64_t value, char *ret_text)
{
    if (value >= 0)
        return st_format_u64((uint64_t)value, ret_text);
    ret_text[0] = '-';
    return 1 + st_format_u64(0 - (uint64_t)value, ret_text + 1);
}

/* ---- base64 ---- */

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

st_parse st_parse_base64(const char *text, size_t length, uint8_t *ret_bytes, size_t *ret_length)
{
    size_t padding = 0, wrote = 0;
    if (length % 4 != 0)
        return ST_PARSE_BAD;
    while (padding < 2 && padding < length && text[length - 1 - padding] == '=')
        padding++;
    for (size_t at = 0; at < length; at += 4) {
        size_t missing = at + 4 == length ? padding : 0;
        uint32_t word = 0;
        for (size_t i = 0; i < 4; i++) {
            int value = i < 4 - missing ? base64_value(text[at + i]) : 0;
            if (value < 0)
                return ST_PARSE_BAD;
            word = word << 6 | (uint32_t)value;
        }
        if ((missing == 1 && (word & 0xFF)) || (missing == 2 && (word & 0xFFFF)))
            return ST_PARSE_BAD; /* bits that no byte would show: two texts would be one value */
        for (size_t i = 0; i < 3 - missing; i++)
            ret_bytes[wrote++] = (uint8_t)(word >> (16 - 8 * i));
    }
    *ret_length = wrote;
    return ST_PARSE_OK;
}

size_t st_format_base64(const void *bytes, size_t length, char *ret_text)
{
    const uint8_t *from = bytes;
    size_t wrote = 0;
    for (size_t at = 0; at < length; at += 3) {
        size_t have = length - at < 3 ? length - at : 3;
        uint32_t word = (uint32_t)from[at] << 16 | (have > 1 ? (uint32_t)from[at + 1] << 8 : 0) |
                        (have > 2 ? (uint32_t)from[at + 2] : 0);
        for (size_t i = 0; i < 4; i++)
            ret_text[wrote++] = i <= have ? base64_digits[word >> (18 - 6 * i) & 63] : '=';
    }
    return wrote;
}

/* ---- dates and timestamps: the proleptic Gregorian calendar, days from 1970-01-01 ---- */

static int64_t days_from_civil(int64_t year, unsigned month, unsigned day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    unsigned year_of_era = (unsigned)(year - era * 400);
    unsigned day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + (int64_t)day_of_era - 719468;
}

static void civil_from_days(int64_t days, int64_t *ret_year, unsigned *ret_month, unsigned *ret_day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    unsigned day_of_era = (unsigned)(days - era * 146097);
    unsigned year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned shifted = (5 * day_of_year + 2) / 153;
    *ret_day = day_of_year - (153 * shifted + 2) / 5 + 1;
    *ret_month = shifted < 10 ? shifted + 3 : shifted - 9;
    *ret_year = (int64_t)year_of_era + era * 400 + (*ret_month <= 2);
}

static unsigned days_in_month(int64_t year, unsigned month)
{
    static const uint8_t days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

typedef struct text_reader {
    const char *at, *end;
} text_reader;

static bool take_digits(text_reader *reader, size_t count, unsigned *ret_value)
{
    uint64_t value;
    if ((size_t)(reader->end - reader->at) < count || parse_digits(reader->at, count, &value) != ST_PARSE_OK)
        return false;
    reader->at += count;
    *ret_value = (unsigned)value;
    return true;
}

static bool take_char(text_reader *reader, char c)
{
    if (reader->at == reader->end || *reader->at != c)
        return false;
    reader->at++;
    return true;
}

static st_parse take_date(text_reader *reader, int64_t *ret_days)
{
    bool minus = take_char(reader, '-');
    size_t digits = 0;
    unsigned magnitude, month, day;
    while (reader->at + digits < reader->end && reader->at[digits] >= '0' && reader->at[digits] <= '9')
        digits++;
    if (digits < 4 || digits > 7 || !take_digits(reader, digits, &magnitude) || !take_char(reader, '-') ||
        !take_digits(reader, 2, &month) || !take_char(reader, '-') || !take_digits(reader, 2, &day))
        return ST_PARSE_BAD;
    int64_t year = minus ? -(int64_t)magnitude : (int64_t)magnitude;
    if ((minus && magnitude == 0) || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return ST_PARSE_BAD;
    *ret_days = days_from_civil(year, month, day);
    return ST_PARSE_OK;
}

st_parse st_parse_date(const char *text, size_t length, int32_t *ret_days)
{
    text_reader reader = {text, text + length};
    int64_t days = 0;
    st_parse parse = take_date(&reader, &days);
    if (parse != ST_PARSE_OK || reader.at != reader.end)
        return ST_PARSE_BAD;
    if (days < INT32_MIN || days > INT32_MAX)
        return ST_PARSE_RANGE;
    *ret_days = (int32_t)days;
    return ST_PARSE_OK;
}

/* ".123": up to six digits count, what follows must be zeros. */
static bool take_fraction(text_reader *reader, unsigned *ret_us)
{
    unsigned us = 0, digits = 0;
    for (; reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9'; reader->at++, digits++) {
        unsigned digit = (unsigned)(*reader->at - '0');
        if (digits < 6)
            us = us * 10 + digit;
        else if (digit != 0)
            return false;
    }
    if (digits == 0)
        return false;
    for (; digits < 6; digits++)
        us *= 10;
    *ret_us = us;
    return true;
}

static bool take_time(text_reader *reader, int64_t *ret_us)
{
    unsigned hour, minute, second = 0, us = 0;
    if (!take_digits(reader, 2, &hour) || !take_char(reader, ':') || !take_digits(reader, 2, &minute))
        return false;
    if (take_char(reader, ':')) {
        if (!take_digits(reader, 2, &second))
            return false;
        if (take_char(reader, '.') && !take_fraction(reader, &us))
            return false;
    }
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    *ret_us = ((int64_t)hour * 3600 + minute * 60 + second) * 1000000 + us;
    return true;
}

static bool take_zone(text_reader *reader, int64_t *ret_offset_us)
{
    unsigned hours, minutes = 0;
    *ret_offset_us = 0;
    if (reader->at == reader->end || take_char(reader, 'Z') || take_char(reader, 'z'))
        return true;
    bool minus = *reader->at == '-';
    if ((!take_char(reader, '+') && !take_char(reader, '-')) || !take_digits(reader, 2, &hours))
        return false;
    if ((take_char(reader, ':') || reader->at < reader->end) && !take_digits(reader, 2, &minutes))
        return false;
    if (hours > 23 || minutes > 59)
        return false;
    *ret_offset_us = ((int64_t)hours * 3600 + minutes * 60) * (minus ? -1000000 : 1000000);
    return true;
}

st_parse st_parse_timestamp(const char *text, size_t length, int64_t *ret_us)
{
    text_reader reader = {text, text + length};
    int64_t days = 0, time = 0, offset = 0, us;
    if (take_date(&reader, &days) != ST_PARSE_OK)
        return ST_PARSE_BAD;
    if (take_char(&reader, 'T') || take_char(&reader, 't') || take_char(&reader, ' ')) {
        if (!take_time(&reader, &time) || !take_zone(&reader, &offset))
            return ST_PARSE_BAD;
    }
    if (reader.at != reader.end)
        return ST_PARSE_BAD;
    /* The day is multiplied last but one, so that the least timestamp is reached without passing beyond it. */
    time -= offset;
    if (days < 0) {
        days++;
        time -= DAY_US;
    }
    if (__builtin_mul_overflow(days, DAY_US, &us) || __builtin_add_overflow(us, time, &us))
        return ST_PARSE_RANGE;
    *ret_us = us;
    return ST_PARSE_OK;
}

static size_t put_padded(uint64_t value, size_t width, char *ret_text)
{
    char digits[ST_SCALAR_TEXT_MAX];
    size_t length = st_format_u64(value, digits), zeros = length < width ? width - length : 0;
    memset(ret_text, '0', zeros);
    memcpy(ret_text + zeros, digits, length);
    return zeros + length;
}

static size_t put_date(int64_t days, char *ret_text)
{
    int64_t year;
    unsigned month, day;
    size_t at = 0;
    civil_from_days(days, &year, &month, &day);
    if (year < 0)
        ret_text[at++] = '-';
    at += put_padded((uint64_t)(year < 0 ? -year : year), 4, ret_text + at);
    ret_text[at++] = '-';
    at += put_padded(month, 2, ret_text + at);
    ret_text[at++] = '-';
    return at + put_padded(day, 2, ret_text + at);
}

size_t st_format_date(int32_t days, char *ret_text)
{
    return put_date(days, ret_text);
}

size_t st_format_timestamp(int64_t us, char *ret_text)
{
    int64_t days = us / DAY_US - (us % DAY_US < 0), within = us % DAY_US + (us % DAY_US < 0 ? DAY_US : 0);
    uint64_t seconds = (uint64_t)within / 1000000, fraction = (uint64_t)within % 1000000;
    size_t at = put_date(days, ret_text);
    ret_text[at++] = 'T';
    at += put_padded(seconds / 3600, 2, ret_text + at);
    ret_text[at++] = ':';
    at += put_padded(seconds / 60 % 60, 2, ret_text + at);
    ret_text[at++] = ':';
    at += put_padded(seconds % 60, 2, ret_text + at);
    if (fraction > 0) {
        bool milli = fraction % 1000 == 0;
        ret_text[at++] = '.';
        at += put_padded(milli ? fraction / 1000 : fraction, milli ? 3 : 6, ret_text + at);
    }
    ret_text[at++] = 'Z';
    return at;
}
