/*
 * Nearest names (nearest.h): edit distance with swaps of neighbours, letters without regard to case; near is what
 * differs in at most a third of the wanted name, or goes on where at least three letters of it end.
 */
#include "store/schema/nearest.h"
#include <string.h>

#define LONGEST 255u

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][LONGEST + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b_length; j++)
        last[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        now[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            char x = lower(a[i - 1]), y = lower(b[j - 1]);
            now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y)
                now[j] = least(now[j], before[j - 2] + 1);
        }
        size_t *oldest = before;
        before = last;
        last = now;
        now = oldest;
    }
    return last[b_length];
}

void st_nearest_begin(st_nearest *nearest, const char *wanted)
{
    size_t length = strlen(wanted);
    *nearest = (st_nearest){.wanted = wanted, .distance = length > 3 ? length / 3 + 1 : least(length, 2)};
}

void st_nearest_offer(st_nearest *nearest, const char *name)
{
    size_t length = strlen(name), wanted = strlen(nearest->wanted);
    if (length > LONGEST || wanted > LONGEST)
        return;
    size_t found = distance(nearest->wanted, wanted, name, length);
    if (wanted >= 3 && found > 1 && strncmp(nearest->wanted, name, wanted) == 0)
        found = 1;
    if (found < nearest->distance) {
        nearest->distance = found;
        nearest->best = name;
    }
}
