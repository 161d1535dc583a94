/*
 * Answers to `status` that are given again for a moment, so that however many requests come, they are made at most once
 * per user in HOST_KEPT_MS, but for one case: nobody is shown less than he was told. A client that has had an answer
 * about a job, or has just connected, gets no answer that was made before what it knows (host->changes counts what
 * happens). Only rights are no matter of moments: with a new configuration everything is forgotten.
 */
#include "coord/host/host.h"

static host_kept *find(host_server *host, const host_client *client, bool detail)
{
    host_kept *oldest = &host->kept[0];
    for (unsigned i = 0; i < HOST_KEPT; i++) {
        host_kept *kept = &host->kept[i];
        if (kept->made && kept->user == client->peer.user && kept->detail == detail)
            return kept;
        if (!kept->made || (oldest->made && kept->made_ns < oldest->made_ns))
            oldest = kept;
    }
    oldest->made = false;
    return oldest;
}

const pf_buffer *host_status_kept(host_server *host, const host_client *client, bool detail)
{
    host_kept *kept = find(host, client, detail);
    int64_t now = pf_monotonic_ns();
    st_json json;
    if (kept->made && kept->changes >= client->told && now - kept->made_ns < HOST_KEPT_MS * INT64_C(1000000))
        return &kept->text;
    pf_buffer_free(&kept->text);
    st_json_begin(&json, &kept->text);
    st_json_object(&json);
    host_status_put(&json, host, client, detail);
    st_json_object_end(&json);
    kept->made = st_json_end(&json, false, NULL) == SLUICE_OK;
    kept->user = client->peer.user;
    kept->detail = detail;
    kept->changes = host->changes;
    kept->made_ns = now;
    host->renderings++;
    return kept->made ? &kept->text : NULL;
}

void host_status_forget(host_server *host)
{
    for (unsigned i = 0; i < HOST_KEPT; i++) {
        pf_buffer_free(&host->kept[i].text);
        host->kept[i] = (host_kept){0};
    }
}
