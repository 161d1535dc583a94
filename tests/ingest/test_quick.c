/* Rows that are taken quickly are those that the usual way would have made, and so are the faults. */
#include "table.h"
#include "tests/support/csv_reference.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

static const char schema[] =
    "{\"nodes\":{\"N\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\",\"i\":\"int32?\",\"u\":\"uint64\",\"f\":"
    "\"float64\","
    "\"g\":\"float32\",\"s\":\"string?\",\"b\":\"bool\",\"d\":\"date\",\"t\":\"timestamp?\",\"y\":\"bytes\"}}}}";
static const char heading[] = "id,i,u,f,g,s,b,d,t,y,x:IGNORE\n";

/* Values of each column, good ones and, more seldom, bad ones; "" stands for a random one of digits. */
static const char *const values[11][12] = {
    {"", "", "0", "-1", "12345678", "123456789", "1234567812345678", "9223372036854775807", "-9223372036854775808",
     "9223372036854775808", "00000000000000000000007", "1234567a"},
    {"", "0", "-5", "2147483647", "-2147483648", "2147483648", "99999999", "1:345678", "/1", " 1", "1 ", "-"},
    {"", "0", "18446744073709551615", "18446744073709551616", "-0", "-1", "7", "77777777", "1", "2", "3", "4"},
    {"", "0.5", "300.929085", "12345678.12345678", "1234567.12345678", "0.1", "-0.25", "1e10", ".5", "5.", "NaN",
     "1.2.3"},
    {"", "0.5", "300.929085", "1e-3", "Infinity", "-0", "3.4e38", "1e39", "16777217", "0.1", "7", "x"},
    {"", "a", "abcdefgh", "abcdefghi",
     "gr\xc3\xbc\xc3\x9f"
     "e",
     "\xe4\xb8\xad\xe6\x96\x87 text of some length", "\xc3",
     "\xff"
     "abcdefgh",
     " ", "0123456789abcdef", "it's", "a;b"},
    {"true", "false", "true", "false", "true", "false", "true", "false", "TRUE", "1", "true", "false"},
    {"2022-09-05", "1970-01-01", "0001-01-01", "2024-02-29", "2023-02-29", "2022-9-5", "1999-12-31", "2000-01-01",
     "2001-01-01", "2002-01-01", "2003-01-01", "x"},
    {"2022-09-05 06:40:49", "2022-09-05T06:40:49Z", "2022-09-05", "1970-01-01 00:00:00.000001", "2022-09-05 25:00:00",
     "2022-09-05T06:40:49+02:00", "2022-09-05", "2022-09-05", "2022-09-05", "2022-09-05", "2022-09-05", "now"},
    {"", "AAAA", "AA==", "AAA=", "A", "QUJD", "QUJDRA==", "AAAA", "AAAA", "AAAA", "AAAA", "AB=="},
    {"", "left out", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"},
};

static size_t put_value(uint64_t *seed, unsigned column, char *to)
{
    const char *value = values[column][ref_random(seed) % (ref_random(seed) % 6 ? 8 : 12)];
    size_t length = strlen(value), digits = ref_random(seed) % 20;

    if (length == 0 && ref_random(seed) % 8) {
        for (size_t i = 0; i < digits; i++)
            to[i] = (char)('0' + ref_random(seed) % 10);
        return digits;
    }
    if (ref_random(seed) % 40 == 0) { /* quoted: never quick */
        to[0] = '"';
        memcpy(to + 1, value, length);
        to[length + 1] = '"';
        return length + 2;
    }
    memcpy(to, value, length);
    return length;
}

static void rows_and_faults_are_those_of_the_usual_way(void **state)
{
    enum { ROWS = 60, ROOM = ROWS * 11 * 48 };
    uint64_t seed = 11;

    (void)state;
    for (unsigned round = 0; round < 40; round++) {
        static char text[ROOM];
        size_t length = sizeof heading - 1;
        memcpy(text, heading, length);
        for (unsigned row = 0; row < ROWS; row++) {
            unsigned columns = ref_random(&seed) % 30 ? 11 : (unsigned)(ref_random(&seed) % 13);
            for (unsigned c = 0; c < columns; c++) {
                length += put_value(&seed, c % 11, text + length);
                text[length++] = ',';
            }
            if (columns)
                length--;
            text[length++] = '\n';
            if (ref_random(&seed) % 20 == 0)
                text[length++] = '\n';
        }
        if (round & 1)
            text[ref_random(&seed) % (length - sizeof heading) + sizeof heading - 1] =
                (char)(round & 2 ? 0 : ref_random(&seed));
        table_request request = {.schema = schema,
                                 .type = "N",
                                 .text = text,
                                 .length = length,
                                 .piece = round % 3 ? 0 : 1 + ref_random(&seed) % 300};
        char *quick = table_read(&request);
        request.dialect.null_token = "<never there>"; /* no record is then taken quickly */
        char *usual = table_read(&request);
        assert_string_equal(quick, usual);
        free(quick);
        free(usual);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_faults_are_those_of_the_usual_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
