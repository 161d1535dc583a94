/*
 * What graphs did lately, in steps of HOST_SAMPLE_MS, for the page and `top` (see coord/host/host.h): differences of
 * the counters that the metrics show, in a ring for each graph. Latencies are told from the cells of a histogram, so
 * they are as exact as its bounds.
 */
#include "coord/host/host.h"

static void sample_graph(host_graph *graph, uint32_t at)
{
    const pf_tallies *tallies = graph->tallies;
    host_sample *sample = &graph->samples[at];
    host_sample_base *base = &graph->sample_base;
    const host_sample_base now = {.commits = tallies->counts[PF_TALLY_COMMITS],
                                  .conflicts = host_graph_conflicts(graph),
                                  .syncs = tallies->counts[PF_TALLY_FILE_SYNCS],
                                  .took = graph->took};
    *sample = (host_sample){.commits = (uint32_t)(now.commits - base->commits),
                            .conflicts = (uint32_t)(now.conflicts - base->conflicts),
                            .syncs = (uint32_t)(now.syncs - base->syncs),
                            .queued = graph->queued,
                            .running = graph->running};
    for (unsigned i = 0; i < HOST_SECONDS_BUCKETS; i++)
        sample->took[i] = (uint32_t)(now.took.buckets[i] - base->took.buckets[i]);
    sample->took[HOST_SECONDS_BUCKETS] = (uint32_t)(now.took.count - base->took.count);
    *base = now;
}

void host_samples_tick(host_server *host, int64_t now)
{
    if (now < host->next_sample_ns)
        return;
    host->next_sample_ns = now + HOST_SAMPLE_MS * INT64_C(1000000);
    host->sample_at = (host->sample_at + 1) % HOST_SAMPLES;
    for (host_graph *graph = host->graphs; graph; graph = graph->next)
        sample_graph(graph, host->sample_at);
}

void host_sample_get(const host_server *host, const host_graph *only, uint32_t number, host_sample *ret_sample)
{
    uint32_t at = (host->sample_at + 1 + number) % HOST_SAMPLES;
    *ret_sample = (host_sample){0};
    for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
        const host_sample *sample = &graph->samples[at];
        if (only && graph != only)
            continue;
        ret_sample->commits += sample->commits;
        ret_sample->conflicts += sample->conflicts;
        ret_sample->syncs += sample->syncs;
        ret_sample->queued += sample->queued;
        ret_sample->running += sample->running;
        for (unsigned i = 0; i <= HOST_SECONDS_BUCKETS; i++)
            ret_sample->took[i] += sample->took[i];
    }
}

double host_sample_seconds(const host_sample *sample, double share)
{
    uint32_t count = sample->took[HOST_SECONDS_BUCKETS];
    double wanted = share * count, before = 0, lower = 0;
    if (count == 0)
        return 0;
    for (unsigned i = 0; i < HOST_SECONDS_BUCKETS; i++) {
        double until = sample->took[i], upper = host_seconds_bounds[i];
        if (until >= wanted && until > before)
            return lower + (upper - lower) * (wanted - before) / (until - before);
        before = until;
        lower = upper;
    }
    return lower; /* beyond all bounds */
}
