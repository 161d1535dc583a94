/*
 * --memory SIZE, as every command with it takes it (command.h).
 */
#include "platform/memory.h"
#include "cli/command.h"

sluice_status cli_check_memory(const cli_run *run, uint32_t which, sluice_error *err)
{
    const cli_value *memory = cli_option_value(run, which);
    if (memory->given && memory->number == 0)
        return pf_fail(err, SLUICE_USAGE, "--memory is a size such as 512M");
    return SLUICE_OK;
}

sluice_status cli_bound_memory(const cli_run *run, uint32_t which, sluice_error *err)
{
    uint64_t bytes = cli_option_value(run, which)->number;
    PF_TRY(cli_check_memory(run, which, err));
    if (!run->hosted) /* a supervisor's runner has a bound already; a tighter one is this job's alone */
        pf_memory_bound(bytes > 0 ? bytes : pf_memory_available() / 2);
    else if (bytes > 0)
        pf_memory_bound(bytes);
    return SLUICE_OK;
}
