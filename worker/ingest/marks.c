#include "worker/ingest/marks.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static void mark_plainly(const wk_mark_bytes *of, const uint8_t *bytes, size_t blocks, wk_marks *ret_marks)
{
    for (size_t b = 0; b < blocks; b++, bytes += WK_MARKS_BLOCK) {
        wk_marks marks = {0};
        for (unsigned i = 0; i < WK_MARKS_BLOCK; i++) {
            uint64_t bit = UINT64_C(1) << i;
            marks.lines |= bytes[i] == '\n' ? bit : 0;
            marks.ends |= bytes[i] == '\n' || bytes[i] == of->delimiter ? bit : 0;
            marks.odd |= bytes[i] == '\r' || bytes[i] == of->quote || bytes[i] == of->escape ? bit : 0;
        }
        ret_marks[b] = marks;
    }
}

#if defined(__x86_64__)

static inline uint64_t bits_of(__m128i a)
{
    return (uint64_t)(unsigned)_mm_movemask_epi8(a);
}

static void mark_by_16(const wk_mark_bytes *of, const uint8_t *bytes, size_t blocks, wk_marks *ret_marks)
{
    const __m128i line = _mm_set1_epi8('\n'), cr = _mm_set1_epi8('\r');
    const __m128i delimiter = _mm_set1_epi8((char)of->delimiter), quote = _mm_set1_epi8((char)of->quote);
    const __m128i escape = _mm_set1_epi8((char)of->escape);

    for (size_t b = 0; b < blocks; b++, bytes += WK_MARKS_BLOCK) {
        wk_marks marks = {0};
        for (unsigned i = 0; i < WK_MARKS_BLOCK; i += 16) {
            __m128i part = _mm_loadu_si128((const __m128i *)(const void *)(bytes + i));
            __m128i lines = _mm_cmpeq_epi8(part, line);
            __m128i odd = _mm_or_si128(_mm_cmpeq_epi8(part, cr), _mm_cmpeq_epi8(part, quote));
            marks.lines |= bits_of(lines) << i;
            marks.ends |= bits_of(_mm_or_si128(lines, _mm_cmpeq_epi8(part, delimiter))) << i;
            marks.odd |= bits_of(_mm_or_si128(odd, _mm_cmpeq_epi8(part, escape))) << i;
        }
        ret_marks[b] = marks;
    }
}

__attribute__((target("avx2"))) static void mark_by_32(const wk_mark_bytes *of, const uint8_t *bytes, size_t blocks,
                                                       wk_marks *ret_marks)
{
    const __m256i line = _mm256_set1_epi8('\n'), cr = _mm256_set1_epi8('\r');
    const __m256i delimiter = _mm256_set1_epi8((char)of->delimiter), quote = _mm256_set1_epi8((char)of->quote);
    const __m256i escape = _mm256_set1_epi8((char)of->escape);

    for (size_t b = 0; b < blocks; b++, bytes += WK_MARKS_BLOCK) {
        wk_marks marks = {0};
        for (unsigned i = 0; i < WK_MARKS_BLOCK; i += 32) {
            __m256i part = _mm256_loadu_si256((const __m256i *)(const void *)(bytes + i));
            __m256i lines = _mm256_cmpeq_epi8(part, line);
            __m256i ends = _mm256_or_si256(lines, _mm256_cmpeq_epi8(part, delimiter));
            __m256i odd = _mm256_or_si256(_mm256_cmpeq_epi8(part, cr), _mm256_cmpeq_epi8(part, quote));
            odd = _mm256_or_si256(odd, _mm256_cmpeq_epi8(part, escape));
            marks.lines |= (uint64_t)(uint32_t)_mm256_movemask_epi8(lines) << i;
            marks.ends |= (uint64_t)(uint32_t)_mm256_movemask_epi8(ends) << i;
            marks.odd |= (uint64_t)(uint32_t)_mm256_movemask_epi8(odd) << i;
        }
        ret_marks[b] = marks;
    }
}

#endif

unsigned wk_marks_ways(wk_marks_fn *ret_ways[WK_MARKS_WAYS])
{
    unsigned count = 0;

    ret_ways[count++] = mark_plainly;
#if defined(__x86_64__)
    ret_ways[count++] = mark_by_16;
    if (__builtin_cpu_supports("avx2"))
        ret_ways[count++] = mark_by_32;
#endif
    return count;
}

wk_marks_fn *wk_marks_choose(void)
{
    wk_marks_fn *ways[WK_MARKS_WAYS];
    unsigned count = wk_marks_ways(ways);
    wk_marks_fn *best = ways[count - 1];
    return best;
}
