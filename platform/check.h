/*
 * Assertions and arithmetic.
 *
 * PF_ASSERT states an invariant of our own code, never a property of input or of bytes from disk (those are errors). It
 * stays on in every build but release; PF_ALWAYS stays on everywhere and is for invariants whose breach could damage
 * data. The *_add, *_mul helpers are for numbers that came from disk or input: they return false on overflow.
 */
#ifndef PLATFORM_CHECK_H
#define PLATFORM_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

_Noreturn void pf_assertion_failed(const char *expression, const char *file, int line);

#define PF_ALWAYS(expression) ((expression) ? (void)0 : pf_assertion_failed(#expression, __FILE__, __LINE__))
/* Reached only when `what`, which was to be there, is not: behind a switch over what cannot be anything else. */
#define PF_NEVER(what) pf_assertion_failed(what, __FILE__, __LINE__)
#ifdef NDEBUG
#define PF_ASSERT(expression) ((void)sizeof(expression))
#else
#define PF_ASSERT(expression) PF_ALWAYS(expression)
#endif

static inline bool pf_add_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
    return !__builtin_add_overflow(a, b, ret);
}
static inline bool pf_mul_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
    return !__builtin_mul_overflow(a, b, ret);
}
static inline bool pf_add_size(size_t a, size_t b, size_t *ret)
{
    return !__builtin_add_overflow(a, b, ret);
}
static inline bool pf_mul_size(size_t a, size_t b, size_t *ret)
{
    return !__builtin_mul_overflow(a, b, ret);
}
/* Rounds up to a power-of-two boundary; false on overflow. */
static inline bool pf_align_u64(uint64_t value, uint64_t boundary, uint64_t *ret)
{
    uint64_t sum;
    if (!pf_add_u64(value, boundary - 1, &sum))
        return false;
    *ret = sum & ~(boundary - 1);
    return true;
}

#endif
