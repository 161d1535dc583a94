/*
 * The `sluice` program: an allocator to its liking, and the words of the command line.
 */
#include "cli/words.h"
#include "platform/terminal.h"

#if SLUICE_JEMALLOC
/* Read by the allocator when it starts. Every process here is of one thread; and a bound of memory (platform/memory.h)
 * counts what is mapped, so nothing is mapped ahead or kept mapped for later. */
const char *malloc_conf = "narenas:1,retain:false";
#endif

int main(int argc, char **argv)
{
    pf_standard_prepare();
    return cli_run_words(argc > 1 ? argv[1] : NULL, argv + 2, argc > 2 ? (uint32_t)(argc - 2) : 0, NULL, NULL);
}
