/*
 * Memory from the heap: the C library's, or the program's (see platform/allocation.h).
 *
 * Which of the two is decided once, by the first block: from then on it cannot change, since a block has to go back
 * where it came from.
 */
#include "platform/allocation.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#undef malloc
#undef calloc
#undef realloc
#undef aligned_alloc
#undef free

static sluice_allocator given; /* allocate NULL: the C library's */
static atomic_bool used;

static bool by_program(void)
{
    if (!atomic_load_explicit(&used, memory_order_relaxed))
        atomic_store_explicit(&used, true, memory_order_relaxed);
    return given.allocate != NULL;
}

bool pf_allocation_use(const sluice_allocator *allocator)
{
    if (atomic_load_explicit(&used, memory_order_relaxed) || given.allocate)
        return false;
    given = *allocator;
    return true;
}

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

static void *take(size_t size, size_t alignment)
{
    void *block = given.allocate(given.context, size > 0 ? size : 1, alignment);
    return block ? block : no_memory();
}

void *pf_malloc(size_t size)
{
    return by_program() ? take(size, _Alignof(max_align_t)) : malloc(size);
}

void *pf_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (!by_program())
        return calloc(count, size);
    if (__builtin_mul_overflow(count, size, &bytes))
        return no_memory();
    void *block = take(bytes, _Alignof(max_align_t));
    return block ? memset(block, 0, bytes) : NULL;
}

void *pf_realloc(void *block, size_t size)
{
    if (!by_program())
        return realloc(block, size);
    if (!block)
        return take(size, _Alignof(max_align_t));
    void *larger = given.reallocate(given.context, block, size > 0 ? size : 1);
    return larger ? larger : no_memory();
}

void *pf_reallocarray(void *block, size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? no_memory() : pf_realloc(block, bytes);
}

void *pf_aligned_alloc(size_t alignment, size_t size)
{
    return by_program() ? take(size, alignment) : aligned_alloc(alignment, size);
}

static char *copy_text(const char *text, size_t length)
{
    char *copy = pf_malloc(length + 1);
    if (!copy)
        return NULL;
    copy[length] = '\0';
    return memcpy(copy, text, length);
}

char *pf_strdup(const char *text)
{
    return copy_text(text, strlen(text));
}

char *pf_strndup(const char *text, size_t most)
{
    return copy_text(text, strnlen(text, most));
}

int pf_vasprintf(char **ret_text, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    *ret_text = length < 0 ? NULL : pf_malloc((size_t)length + 1);
    return *ret_text ? vsnprintf(*ret_text, (size_t)length + 1, fmt, args) : -1;
}

int pf_asprintf(char **ret_text, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int length = pf_vasprintf(ret_text, fmt, args);
    va_end(args);
    return length;
}

void pf_free(void *block)
{
    if (!given.allocate)
        free(block);
    else if (block)
        given.release(given.context, block);
}

char *pf_adopt_text(char *text)
{
    char *copy = text ? pf_strdup(text) : NULL;
    free(text);
    return copy;
}
