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

static void add(host_sample *to, const host_sample *sample)
{
    to->commits += sample->commits;
    to->conflicts += sample->conflicts;
    to->syncs += sample->syncs;
    to->queued += sample->queued;
    to->running += sample->running;
    for (unsigned i = 0; i <= HOST_SECONDS_BUCKETS; i++)
        to->took[i] += sample->took[i];
}

void host_sample_get(const host_server *host, const host_graph *only, uint32_t number, uint32_t count,
                     host_sample *ret_sample)
{
    *ret_sample = (host_sample){0};
    for (uint32_t i = number; i < number + count; i++) {
        uint32_t at = (host->sample_at + 1 + i) % HOST_SAMPLES;
        if (only)
            add(ret_sample, &only->samples[at]);
        for (const host_graph *graph = only ? NULL : host->graphs; graph; graph = graph->next)
            add(ret_sample, &graph->samples[at]);
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
