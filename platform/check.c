/*
 * The end of a process whose own invariant broke: say where, and abort (a core, an obituary, and locks that the kernel
 * hands on). Async-signal-safe as far as dprintf is; takes no lock and allocates nothing.
 */
#include "platform/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void pf_assertion_failed(const char *expression, const char *file, int line)
{
    (void)dprintf(STDERR_FILENO, "sluice: assertion failed: %s (%s:%d)\n", expression, file, line);
    abort();
}
