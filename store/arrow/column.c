/*
 * Column specifications: deep copies and their release.
 */
#include "store/arrow/column.h"

#include <stdlib.h>

static sluice_status copy_flat(const st_column_spec *from, st_column_spec *ret_to, sluice_error *err)
{
    *ret_to = (st_column_spec){.type = from->type, .nullable = from->nullable, .property = from->property};
    ret_to->name = strdup(from->name);
    return ret_to->name ? SLUICE_OK : pf_fail_memory(err);
}

sluice_status st_column_spec_copy(const st_column_spec *from, st_column_spec *ret_to, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    st_column_spec copy;

    if (from->child_count > ST_KEY_MEMBERS_MAX || (from->type == ST_STRUCT) != (from->child_count > 0)) {
        *ret_to = (st_column_spec){0};
        return pf_fail(err, SLUICE_INTERNAL, "a struct column needs 1 to %d members", ST_KEY_MEMBERS_MAX);
    }
    PF_GOTO(status, failed, copy_flat(from, &copy, err));
    if (from->child_count) {
        copy.children = calloc(from->child_count, sizeof *copy.children);
        if (!copy.children) {
            status = pf_fail_memory(err);
            goto failed;
        }
    }
    for (uint32_t i = 0; i < from->child_count; i++) {
        if (from->children[i].type == ST_STRUCT) {
            status = pf_fail(err, SLUICE_INTERNAL, "a member of a struct column is a struct");
            goto failed;
        }
        copy.child_count = i + 1;
        PF_GOTO(status, failed, copy_flat(&from->children[i], &copy.children[i], err));
    }
    *ret_to = copy;
    return SLUICE_OK;
failed:
    st_column_spec_free(&copy);
    *ret_to = (st_column_spec){0};
    return status;
}

void st_column_spec_free(st_column_spec *spec)
{
    for (uint32_t i = 0; i < spec->child_count; i++)
        free(spec->children[i].name); /* members have no members */
    free(spec->children);
    free(spec->name);
    *spec = (st_column_spec){0};
}
