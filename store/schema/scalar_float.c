/*
 * Floats as text (scalar.h): exact both ways and without locale.
 *
 * Reading: short decimals, whose digits and power of ten are both exact floats, take one exact operation (Clinger's
 * fast path: one correctly rounded multiplication or division of exact operands); anything else goes to strtod in the C
 * locale, which rounds correctly. float32 is read as float32, never through a double. Writing: the least number of
 * digits that reads back equal, laid out here, since printf's decimal point follows the locale.
 */
#include "platform/check.h"
#include "store/schema/scalar.h"
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_ON_STACK 128

/* What the grammar found: value = digits * 10^power, unless too long to say. */
typedef struct decimal {
    bool minus, exact; /* exact: `digits` and `power` hold the whole number */
    uint64_t digits;
    int64_t power;
} decimal;

static void add_digit(decimal *ret, unsigned digit, bool fraction)
{
    if (ret->digits > (UINT64_MAX - 9) / 10)
        ret->exact = false;
    else
        ret->digits = ret->digits * 10 + digit;
    ret->power -= fraction;
}

static bool read_decimal(const char *text, size_t length, decimal *ret)
{
    const char *p = text, *end = text + length;
    size_t seen = 0;
    *ret = (decimal){.exact = true};
    if (p < end && *p == '-') {
        ret->minus = true;
        p++;
    }
    for (; p < end && *p >= '0' && *p <= '9'; p++, seen++)
        add_digit(ret, (unsigned)(*p - '0'), false);
    if (p < end && *p == '.')
        for (p++; p < end && *p >= '0' && *p <= '9'; p++, seen++)
            add_digit(ret, (unsigned)(*p - '0'), true);
    if (seen == 0)
        return false;
    if (p < end && (*p == 'e' || *p == 'E')) {
        bool minus = ++p < end && *p == '-';
        int64_t exponent = 0;
        if (p < end && (*p == '-' || *p == '+'))
            p++;
        if (p == end)
            return false;
        for (; p < end && *p >= '0' && *p <= '9'; p++)
            exponent = exponent > 1000000 ? exponent : exponent * 10 + (*p - '0');
        ret->power += minus ? -exponent : exponent;
        if (p[-1] < '0' || p[-1] > '9')
            return false;
    }
    return p == end;
}

/* NaN, Infinity, -Infinity. */
static bool read_word(const char *text, size_t length, double *ret_value)
{
    if (length == 3 && memcmp(text, "NaN", 3) == 0)
        *ret_value = (double)NAN;
    else if (length == 8 && memcmp(text, "Infinity", 8) == 0)
        *ret_value = (double)INFINITY;
    else if (length == 9 && memcmp(text, "-Infinity", 9) == 0)
        *ret_value = -(double)INFINITY;
    else
        return false;
    return true;
}

/* strtod or strtof of a checked decimal in the C locale; *ret_value is infinite beyond the range. */
static bool convert(const char *text, size_t length, bool narrow, double *ret_value)
{
    char on_stack[TEXT_ON_STACK];
    char *copy = length < sizeof(on_stack) ? on_stack : malloc(length + 1);
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    bool done = copy && plain != (locale_t)0;
    if (done) {
        memcpy(copy, text, length);
        copy[length] = '\0';
        *ret_value = narrow ? (double)strtof_l(copy, NULL, plain) : strtod_l(copy, NULL, plain);
    }
    if (plain != (locale_t)0)
        freelocale(plain);
    if (copy != on_stack)
        free(copy);
    return done;
}

st_parse st_parse_f64(const char *text, size_t length, double *ret_value)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    decimal number;
    if (!read_decimal(text, length, &number))
        return read_word(text, length, ret_value) ? ST_PARSE_OK : ST_PARSE_BAD;
    if (number.exact && number.digits <= UINT64_C(1) << 53 && number.power >= -22 && number.power <= 22) {
        double value = (double)number.digits;
        value = number.power < 0 ? value / powers[-number.power] : value * powers[number.power];
        *ret_value = number.minus ? -value : value;
        return ST_PARSE_OK;
    }
    double value = 0;
    if (!convert(text, length, false, &value) || isinf(value))
        return ST_PARSE_RANGE;
    *ret_value = value;
    return ST_PARSE_OK;
}

st_parse st_parse_f32(const char *text, size_t length, float *ret_value)
{
    static const float powers[] = {1e0F, 1e1F, 1e2F, 1e3F, 1e4F, 1e5F, 1e6F, 1e7F, 1e8F, 1e9F, 1e10F};
    decimal number;
    double value = 0;
    if (!read_decimal(text, length, &number)) {
        if (!read_word(text, length, &value))
            return ST_PARSE_BAD;
        *ret_value = (float)value;
        return ST_PARSE_OK;
    }
    if (number.exact && number.digits <= UINT64_C(1) << 24 && number.power >= -10 && number.power <= 10) {
        float narrow = (float)number.digits;
        narrow = number.power < 0 ? narrow / powers[-number.power] : narrow * powers[number.power];
        *ret_value = number.minus ? -narrow : narrow;
        return ST_PARSE_OK;
    }
    if (!convert(text, length, true, &value) || isinf(value))
        return ST_PARSE_RANGE;
    *ret_value = (float)value;
    return ST_PARSE_OK;
}

/* ---- writing ---- */

/* The digits of |value| (non-zero, finite) at this precision, and the power of ten of the first one. */
static size_t take_digits(double value, int precision, char ret_digits[20], int *ret_exponent)
{
    char text[40];
    size_t count = 0;
    int wrote = snprintf(text, sizeof(text), "%.*e", precision - 1, value);
    PF_ASSERT(wrote > 0 && (size_t)wrote < sizeof(text));
    const char *p = text;
    for (; *p != 'e'; p++)
        if (*p >= '0' && *p <= '9') /* passes over the sign and whatever stands for the point */
            ret_digits[count++] = *p;
    *ret_exponent = (int)strtol(p + 1, NULL, 10);
    while (count > 1 && ret_digits[count - 1] == '0')
        count--;
    return count;
}

/* digits[0].digits[1..] * 10^exponent, plain from 1e-5 to 1e16, else with an exponent. */
static size_t lay_out(const char *digits, size_t count, int exponent, char *ret_text)
{
    size_t at = 0;
    if (exponent >= -5 && exponent < 0) {
        memcpy(ret_text, "0.0000", 6);
        at = 1 + (size_t)-exponent;
        memcpy(ret_text + at, digits, count);
        return at + count;
    }
    size_t whole = exponent >= 0 && exponent < 17 ? (size_t)exponent + 1 : 1;
    for (size_t i = 0; i < whole; i++)
        ret_text[at++] = i < count ? digits[i] : '0';
    if (count > whole) {
        ret_text[at++] = '.';
        memcpy(ret_text + at, digits + whole, count - whole);
        at += count - whole;
    } else if (exponent >= 0 && exponent < 17) {
        memcpy(ret_text + at, ".0", 2); /* a whole number that is still seen to be a float */
        at += 2;
    }
    if (exponent < -5 || exponent >= 17) {
        ret_text[at++] = 'e';
        at += st_format_i64(exponent, ret_text + at);
    }
    return at;
}

static size_t format_special(double value, char *ret_text)
{
    const char *word = isnan(value) ? "NaN"
                       : value == 0 ? (signbit(value) ? "-0.0" : "0.0")
                       : value < 0  ? "-Infinity"
                                    : "Infinity";
    size_t length = strlen(word);
    memcpy(ret_text, word, length);
    return length;
}

static size_t format_float(double value, int least, int most, bool narrow, char *ret_text)
{
    char digits[20];
    int exponent = 0;
    size_t count = 0, at = 0;
    if (!isfinite(value) || value == 0)
        return format_special(value, ret_text);
    if (value < 0)
        ret_text[at++] = '-';
    for (int precision = least; precision <= most; precision++) {
        float narrow_again = 0;
        double again = 0;
        count = take_digits(value, precision, digits, &exponent);
        size_t length = lay_out(digits, count, exponent, ret_text + at) + at;
        if (narrow ? st_parse_f32(ret_text, length, &narrow_again) == ST_PARSE_OK && (double)narrow_again == value
                   : st_parse_f64(ret_text, length, &again) == ST_PARSE_OK && again == value)
            return length;
    }
    return lay_out(digits, count, exponent, ret_text + at) + at; /* the greatest precision always reads back equal */
}

size_t st_format_f64(double value, char *ret_text)
{
    return format_float(value, fabs(value) < DBL_MIN ? 1 : DBL_DIG, 17, false,
                        ret_text); /* subnormals have fewer digits */
}

size_t st_format_f32(float value, char *ret_text)
{
    return format_float((double)value, fabsf(value) < FLT_MIN ? 1 : FLT_DIG, 9, true, ret_text);
}
