/*
 * The port through which this code takes memory from the heap: every malloc, calloc, realloc, strdup, asprintf, free
 * ... of the modules is one of the functions below. Each source of a module is compiled with this header in front
 * (cmake/modules.cmake), so that none goes past it and the code reads as always.
 *
 * Blocks come from the C library, unless a program gave an allocator (sluice_set_allocator) before the first of them.
 * Libraries that this code stands on allocate by themselves. What the C library allocates for its caller (realpath,
 * getcwd) is copied into a block of the port where it is kept.
 */
#ifndef PLATFORM_ALLOCATION_H
#define PLATFORM_ALLOCATION_H

#include <sluice/hooks.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *pf_malloc(size_t size) __attribute__((malloc, alloc_size(1)));
void *pf_calloc(size_t count, size_t size) __attribute__((malloc, alloc_size(1, 2)));
void *pf_realloc(void *block, size_t size) __attribute__((alloc_size(2)));
void *pf_reallocarray(void *block, size_t count, size_t size) __attribute__((alloc_size(2, 3)));
/* A power of two. Such a block is never given to pf_realloc. */
void *pf_aligned_alloc(size_t alignment, size_t size) __attribute__((malloc, alloc_size(2)));
char *pf_strdup(const char *text) __attribute__((malloc));
char *pf_strndup(const char *text, size_t most) __attribute__((malloc));
int pf_vasprintf(char **ret_text, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));
int pf_asprintf(char **ret_text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void pf_free(void *block);
/* From here on blocks come from there; copied. False: there are blocks already. */
bool pf_allocation_use(const sluice_allocator *allocator);
/* A text that the C library allocated, moved into a block of the port; NULL stays NULL. */
char *pf_adopt_text(char *text);

#ifndef __clang_analyzer__ /* which knows the usual names */
#undef strdup
#undef strndup
#define malloc        pf_malloc
#define calloc        pf_calloc
#define realloc       pf_realloc
#define reallocarray  pf_reallocarray
#define aligned_alloc pf_aligned_alloc
#define strdup        pf_strdup
#define strndup       pf_strndup
#define vasprintf     pf_vasprintf
#define asprintf      pf_asprintf
#define free          pf_free
#endif

#endif
