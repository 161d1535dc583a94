/*
 * The newest commits of a branch, for the page (see coord/host/host.h). The supervisor reads no graph itself: it asks
 * by a job of its own, `log`, when somebody looks at the page and what is known is older than the graph's last commit
 * or than a while, and keeps what the job said.
 */
#include "coord/host/host.h"
#include <stdlib.h>
#include <string.h>

#define GOOD_FOR_MS 30000 /* commits of others than hosted jobs are seen after so long */
#define NEWEST      "60"

bool host_lineage_is_known(const host_graph *graph, const char *branch)
{
    const host_lineage *known = &graph->lineage;
    return known->branch && !known->job && strcmp(known->branch, branch) == 0 &&
           known->commits == graph->tallies->counts[PF_TALLY_COMMITS] &&
           pf_monotonic_ns() - known->asked_ns < GOOD_FOR_MS * INT64_C(1000000);
}

void host_lineage_ask(host_server *host, host_graph *graph, const char *branch)
{
    host_lineage *known = &graph->lineage;
    pf_buffer option = {0};
    if (known->job || host->draining || !graph->ready || graph->leaving || host_lineage_is_known(graph, branch))
        return;
    char *name = strdup(branch);
    host_job *job = NULL;
    if (name && pf_buffer_append_format(&option, NULL, "--branch=%s%c", branch, '\0') == SLUICE_OK) {
        const char *words[] = {"--all", "-n", NEWEST, (const char *)option.data};
        job = host_job_make_own(host, graph, "log", words, sizeof words / sizeof words[0]);
    }
    pf_buffer_free(&option);
    if (!job) {
        free(name);
        return;
    }
    if (!known->branch || strcmp(known->branch, branch) != 0)
        known->text.length = 0;
    free(known->branch);
    known->branch = name;
    known->commits = graph->tallies->counts[PF_TALLY_COMMITS];
    known->asked_ns = pf_monotonic_ns();
    known->job = job;
    host_job_add(host, job);
}

void host_lineage_ended(host_server *host, host_graph *graph, const host_job *job)
{
    host_lineage *known = &graph->lineage;
    known->job = NULL;
    known->failed = job->failed.code != SLUICE_OK || job->exit != 0;
    known->text.length = 0;
    if (!known->failed)
        (void)pf_buffer_append(&known->text, job->output[0].data, job->output[0].length, NULL); /* else it is shorter */
    host_http_wake(host, graph);
}

void host_lineage_free(host_graph *graph)
{
    pf_buffer_free(&graph->lineage.text);
    free(graph->lineage.branch);
}
