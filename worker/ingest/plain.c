#include "worker/ingest/plain.h"

#include "platform/check.h"
#include "store/state/layout.h"
#include "worker/ingest/sink.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which columns of a fragment are copied, by their indexes in it. */
typedef struct copied {
    uint32_t *columns;
    uint32_t count;
    st_column_spec *specs; /* borrowed insides */
    st_column *views;
} copied;

static void free_copied(copied *c)
{
    free(c->columns);
    free(c->specs);
    free(c->views);
}

static bool has_column(const copied *c, uint32_t column)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->columns[i] == column)
            return true;
    return false;
}

static sluice_status choose_columns(const st_type_def *type, const st_fragment *fragment, copied *c, sluice_error *err)
{
    uint32_t room = st_fragment_columns(fragment), plan_count = 0;
    wk_run_plan *plans = NULL;

    c->columns = calloc((size_t)room + 1, sizeof *c->columns);
    c->specs = calloc((size_t)room + 1, sizeof *c->specs);
    c->views = calloc((size_t)room + 1, sizeof *c->views);
    if (c->columns == NULL || c->specs == NULL || c->views == NULL)
        return pf_fail_memory(err);
    PF_TRY(wk_run_plans(type, &plans, &plan_count, err));
    for (uint32_t p = 0; p < plan_count; p++) {
        for (uint32_t i = 0; i < plans[p].count; i++) {
            int at = st_layout_find(type, fragment, plans[p].columns[i]);
            if (at < 0 || has_column(c, (uint32_t)at))
                continue;
            c->columns[c->count] = (uint32_t)at;
            c->specs[c->count++] = *st_fragment_spec(fragment, (uint32_t)at);
        }
    }
    free(plans);
    return SLUICE_OK;
}

static sluice_status write_copy(const wk_spool *spool, const st_type_def *type, const st_fragment_info *from,
                                const char *path, st_fragment_info *ret_info, sluice_error *err)
{
    st_fragment *fragment = NULL;
    st_fragment_writer *writer = NULL, *finishing;
    copied c = {0};
    sluice_status status;

    PF_GOTO(status, done, st_fragment_open(spool->volume, type->table, from, &fragment, err));
    PF_GOTO(status, done, choose_columns(type, fragment, &c, err));
    PF_GOTO(status, done, st_fragment_create_at(spool->volume, path, type->table, c.specs, c.count, &writer, err));
    for (uint32_t batch = 0, batches = st_fragment_batches(fragment); batch < batches; batch++) {
        for (uint32_t i = 0; i < c.count; i++)
            PF_GOTO(status, done, st_fragment_column(fragment, batch, c.columns[i], &c.views[i], err));
        PF_GOTO(status, done, st_fragment_write(writer, c.views, st_fragment_batch_rows(fragment, batch), err));
        /* Opened anew, it has let go of what it unpacked. Columns stand where they stood. */
        st_fragment_close(fragment);
        fragment = NULL;
        PF_GOTO(status, done, st_fragment_open(spool->volume, type->table, from, &fragment, err));
    }
    finishing = writer;
    writer = NULL;
    status = st_fragment_finish(finishing, ret_info, err);
done:
    st_fragment_abandon(writer);
    st_fragment_close(fragment);
    free_copied(&c);
    return status;
}

static sluice_status make_copy(const wk_spool *spool, const st_type_def *type, const st_fragment_info *from,
                               const char *name, sluice_error *err)
{
    st_fragment_info info = {0};
    char path[WK_SPOOL_PATH], file[WK_SPOOL_NAME];
    bool first = false;

    (void)snprintf(file, sizeof file, "copy-%016" PRIx64, pf_random_u64());
    wk_spool_path(spool, file, path);
    PF_TRY(write_copy(spool, type, from, path, &info, err));
    (void)snprintf(info.name, sizeof info.name, "%s", file);
    PF_TRY(wk_spool_put(spool, name, &info, sizeof info, &first, err));
    return first ? SLUICE_OK : pf_remove(spool->volume, path, err);
}

sluice_status wk_plain_open(const wk_spool *spool, const st_type_def *type, const st_fragment_info *info,
                            st_fragment **ret_copy, sluice_error *err)
{
    st_fragment_info copy;
    pf_buffer buffer = {0};
    char name[sizeof "plain-" + 20 + sizeof info->name], path[WK_SPOOL_PATH];
    bool found = false;
    sluice_status status;

    (void)snprintf(name, sizeof name, "plain-%" PRIu64 "-%s", type->table, info->name);
    PF_GOTO(status, done, wk_spool_get(spool, name, &buffer, &found, err));
    if (!found) {
        PF_GOTO(status, done, make_copy(spool, type, info, name, err));
        PF_GOTO(status, done, wk_spool_get(spool, name, &buffer, &found, err));
    }
    if (!found || buffer.length != sizeof copy) {
        status = pf_fail(err, SLUICE_INTERNAL, "the copy of a fragment is missing");
        goto done;
    }
    memcpy(&copy, buffer.data, sizeof copy);
    wk_spool_path(spool, copy.name, path);
    status = st_fragment_open_at(spool->volume, path, type->table, &copy, ret_copy, err);
done:
    pf_buffer_free(&buffer);
    return status;
}
