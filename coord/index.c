/*
 * What index does to a table.
 */
#include "coord/maintain_job.h"
#include "platform/check.h"

sluice_status index_choose(maintain_job *job, st_snapshot *base, const st_type_def *type, sluice_error *err)
{
    (void)job;
    (void)base;
    (void)type;
    (void)err;
    return SLUICE_OK;
}

sluice_status index_task(maintain_job *job, uint32_t item, sluice_error *err)
{
    (void)job;
    (void)item;
    return pf_fail(err, SLUICE_INTERNAL, "later");
}

sluice_status index_edit(maintain_job *job, co_write *write, uint32_t first, uint32_t end, st_edit *ret_edit,
                         sluice_error *err)
{
    (void)job;
    (void)write;
    (void)first;
    (void)end;
    (void)ret_edit;
    return pf_fail(err, SLUICE_INTERNAL, "later");
}
