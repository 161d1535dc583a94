/*
 * The allowance of this process (see platform/allowance.h).
 */
#include "platform/allowance.h"
#include "platform/local_socket.h"
#include <string.h>

static pf_allowance allowance;

void pf_allowance_set(const pf_allowance *given)
{
    allowance = given ? *given : (pf_allowance){0};
}

bool pf_allowance_counts(const char *path)
{
    for (const char *const *prefix = allowance.used ? allowance.counted : NULL; prefix && *prefix; prefix++) {
        if (strncmp(path, *prefix, strlen(*prefix)) == 0)
            return true;
    }
    return false;
}

sluice_status pf_allowance_take(uint64_t bytes, sluice_error *err)
{
    if (!allowance.used || __atomic_add_fetch(allowance.used, bytes, __ATOMIC_RELAXED) <= allowance.limit)
        return SLUICE_OK;
    uint64_t used = pf_folder_bytes(allowance.folder);
    bool fits = used <= allowance.limit && bytes <= allowance.limit - used;
    __atomic_store_n(allowance.used, used + (fits ? bytes : 0), __ATOMIC_RELAXED);
    if (fits)
        return SLUICE_OK;
    (void)pf_fail(err, SLUICE_QUOTA, "the graph has %llu bytes of disk and needs %llu more, and may have %llu",
                  (unsigned long long)used, (unsigned long long)bytes, (unsigned long long)allowance.limit);
    pf_hint(err, PF_QUOTA_HINT);
    return SLUICE_QUOTA;
}
