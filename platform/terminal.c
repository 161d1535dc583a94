/*
 * Standard descriptors and the terminal (see platform/terminal.h).
 */
#include "platform/terminal.h"
#include "platform/check.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

void pf_standard_prepare(void)
{
    for (int descriptor = 0; descriptor <= 2; descriptor++) {
        if (fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF)
            continue;
        int opened = open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY);
        PF_ALWAYS(opened == descriptor); /* the lowest free number */
    }
    PF_ALWAYS(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    PF_ALWAYS(signal(SIGXFSZ, SIG_IGN) != SIG_ERR); /* a file at its limit of size is an error, not an end */
}

bool pf_is_terminal(int descriptor)
{
    return isatty(descriptor) == 1;
}

unsigned pf_terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col;
}
