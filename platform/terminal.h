/*
 * The three standard descriptors of a command, and the terminal behind them.
 */
#ifndef PLATFORM_TERMINAL_H
#define PLATFORM_TERMINAL_H

#include <stdbool.h>

/* Call first in a program. A standard descriptor that is closed is opened in the wrong direction on the null device, so
 * that its number is never given to a file of ours and using it is an error, not silence. A broken pipe becomes an
 * error of write. */
void pf_standard_prepare(void);
bool pf_is_terminal(int descriptor);
/* Columns of the terminal behind standard error; 80 when unknown. */
unsigned pf_terminal_columns(void);

#endif
