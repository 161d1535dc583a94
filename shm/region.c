/*
 * Building, checking and ending the shared region (see shm/region.h, shm/layout.h).
 *
 * Crash rule: the builder is the supervisor; if it dies, its workers die with it and the memory goes with the last of
 * them.
 */
#include "shm/region.h"
#include "platform/check.h"
#include "platform/digest.h"
#include "shm/gate_table.h"
#include "shm/publish_queue.h"
#include "shm/tasks.h"
#include <string.h>

uint64_t shm_layout_hash(void)
{
    static const uint32_t facts[] = {
        SHM_ABI,
        SHM_PHASES_MAX,
        SHM_RESULT_MAX,
        SHM_EDIT_WORDS,
        SHM_OBITUARIES,
        PF_FAILPOINT_COUNT,
        sizeof(pthread_mutex_t),
        alignof(pthread_mutex_t),
        sizeof(lk_latch),
        offsetof(lk_latch, holds),
        sizeof(shm_header),
        offsetof(shm_header, layout),
        offsetof(shm_header, epoch),
        offsetof(shm_header, state),
        offsetof(shm_header, cancelled),
        offsetof(shm_header, sections),
        sizeof(shm_section_entry),
        sizeof(shm_failpoints),
        sizeof(shm_slot),
        offsetof(shm_slot, random),
        offsetof(shm_slot, stage),
        offsetof(shm_slot, refusals),
        sizeof(shm_progress),
        offsetof(shm_progress, task_rows),
        sizeof(sluice_error),
        sizeof(shm_error_cell),
        sizeof(shm_result),
        sizeof(shm_obituary),
        offsetof(shm_obituary, wait_status),
        sizeof(shm_intent),
        offsetof(shm_intent, words),
        sizeof(shm_tasks),
        offsetof(shm_tasks, intent),
        offsetof(shm_tasks, sequence),
        offsetof(shm_tasks, conductor),
        offsetof(shm_tasks, conductor_relapses),
        offsetof(shm_tasks, run),
        offsetof(shm_tasks, run_failed_cell),
        offsetof(shm_tasks, phases),
        offsetof(shm_tasks, tasks),
        sizeof(shm_gate),
        offsetof(shm_gate, orphaned),
        offsetof(shm_gate, sequence),
        sizeof(shm_gates),
        offsetof(shm_gates, gates),
        sizeof(shm_holder),
        offsetof(shm_holder, held_count),
        offsetof(shm_holder, held),
        sizeof(shm_publish_entry),
        offsetof(shm_publish_entry, place),
        offsetof(shm_publish_entry, sequence),
        SHM_ANSWER_MAX,
        sizeof(shm_publish),
        offsetof(shm_publish, entries),
    };
    return pf_xxh64_of(facts, sizeof facts);
}

/* The sections of a configuration, one behind the other; returns the region's length. */
static uint64_t lay_out(const shm_config *config, shm_section_entry sections[SHM_SECTION_COUNT])
{
    uint64_t lines_of_holds = (config->holds * sizeof(shm_word) + SHM_LINE - 1) / SHM_LINE;
    uint64_t lines_of_tasks = (config->tasks * sizeof(shm_word) + SHM_LINE - 1) / SHM_LINE;
    uint64_t lines_of_slice = ((uint64_t)SHM_ANSWER_MAX + config->slice + SHM_LINE - 1) / SHM_LINE;
    const uint64_t shape[SHM_SECTION_COUNT][2] = {
        [SHM_FAILPOINTS] = {1, sizeof(shm_failpoints)},
        [SHM_SLOTS] = {config->workers, sizeof(shm_slot)},
        [SHM_PROGRESS] = {config->workers, sizeof(shm_progress)},
        [SHM_ERRORS] = {config->workers + 1, sizeof(shm_error_cell)},
        [SHM_RESULT] = {1, sizeof(shm_result)},
        [SHM_OBITUARY_RING] = {SHM_OBITUARIES, sizeof(shm_obituary)},
        [SHM_TASKS] = {1, sizeof(shm_tasks) + lines_of_tasks * SHM_LINE},
        [SHM_GATES] = {1, sizeof(shm_gates) + config->gates * sizeof(shm_gate)},
        [SHM_HOLDERS] = {config->workers, sizeof(shm_holder) + lines_of_holds * SHM_LINE},
        [SHM_PUBLISH] = {1, sizeof(shm_publish) + config->workers * sizeof(shm_publish_entry)},
        [SHM_ARENA] = {config->workers, lines_of_slice * SHM_LINE},
    };
    uint64_t offset = sizeof(shm_header);
    for (unsigned i = 0; i < SHM_SECTION_COUNT; i++) {
        sections[i] = (shm_section_entry){.offset = offset, .count = shape[i][0], .stride = shape[i][1]};
        offset += shape[i][0] * shape[i][1];
    }
    return offset;
}

static void *section(const shm_region *region, shm_section which)
{
    return (uint8_t *)region->memory.address + region->header->sections[which].offset;
}

static void find_sections(shm_region *region)
{
    region->failpoints = section(region, SHM_FAILPOINTS);
    region->slots = section(region, SHM_SLOTS);
    region->progress = section(region, SHM_PROGRESS);
    region->errors = section(region, SHM_ERRORS);
    region->result = section(region, SHM_RESULT);
    region->obituaries = section(region, SHM_OBITUARY_RING);
    region->tasks = section(region, SHM_TASKS);
    region->gates = section(region, SHM_GATES);
    region->holders = section(region, SHM_HOLDERS);
    region->publish = section(region, SHM_PUBLISH);
    region->arena = section(region, SHM_ARENA);
    region->holder_stride = region->header->sections[SHM_HOLDERS].stride;
}

sluice_status shm_region_make(const shm_config *config, shm_region *ret_region, sluice_error *err)
{
    shm_section_entry sections[SHM_SECTION_COUNT];
    shm_region region = {.config = *config, .latch_wait_ms = SHM_SUPERVISOR_LATCH_MS};
    if (config->workers == 0 || config->workers > SHM_WORKERS_MAX || config->tasks == 0 || config->gates == 0 ||
        config->holds == 0 || config->tasks > 1u << 24 || config->gates > 1u << 20 || config->holds > 1u << 16 ||
        config->slice > 1u << 24)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a pool has 1 to %u workers", SHM_WORKERS_MAX);
    uint64_t length = lay_out(config, sections);
    PF_TRY(pf_shared_memory_make(length, &region.memory, err)); /* zeroed: every table's empty state */
    region.header = region.memory.address;
    memcpy(region.header->magic, SHM_MAGIC, sizeof region.header->magic);
    region.header->abi = SHM_ABI;
    region.header->section_count = SHM_SECTION_COUNT;
    region.header->layout = shm_layout_hash();
    region.header->length = length;
    pf_random_bytes(region.header->epoch.bytes, sizeof region.header->epoch.bytes);
    region.header->supervisor = (uint64_t)pf_pid();
    memcpy(region.header->sections, sections, sizeof sections);
    find_sections(&region);
    shm_tasks_init(&region);
    shm_gates_init(&region);
    shm_publish_init(&region);
    atomic_store(&region.header->state, SHM_READY);
    *ret_region = region;
    return SLUICE_OK;
}

void shm_region_free(shm_region *region)
{
    pf_shared_memory_free(&region->memory);
}

bool shm_region_check(const shm_region *region)
{
    shm_section_entry sections[SHM_SECTION_COUNT];
    const shm_header *header = region->header;
    uint64_t length = lay_out(&region->config, sections);
    return memcmp(header->magic, SHM_MAGIC, sizeof header->magic) == 0 && header->abi == SHM_ABI &&
           header->section_count == SHM_SECTION_COUNT && header->layout == shm_layout_hash() &&
           header->length == length && region->memory.length == length &&
           memcmp(header->sections, sections, sizeof sections) == 0;
}

shm_state shm_region_state(const shm_region *region)
{
    return (shm_state)atomic_load(&region->header->state);
}

void shm_region_poison(shm_region *region)
{
    uint32_t ready = SHM_READY;
    atomic_compare_exchange_strong(&region->header->state, &ready, SHM_POISONED);
}

void shm_region_end(shm_region *region)
{
    uint32_t ready = SHM_READY;
    atomic_compare_exchange_strong(&region->header->state, &ready, SHM_ENDING);
    shm_wake_all(region);
}

void shm_region_cancel(shm_region *region)
{
    atomic_store(&region->header->cancelled, 1);
    shm_wake_all(region);
}

bool shm_region_is_cancelled(const shm_region *region)
{
    return atomic_load(&region->header->cancelled) != 0;
}

/* A futex word is an atomic of the same size and place as the plain word that the kernel looks at. */
static const uint32_t *futex_word(const _Atomic uint32_t *sequence)
{
    _Static_assert(sizeof(_Atomic uint32_t) == sizeof(uint32_t), "an atomic word is a plain word");
    const void *address = sequence;
    return address;
}

void shm_wake(_Atomic uint32_t *sequence)
{
    atomic_fetch_add(sequence, 1);
    pf_futex_wake_all(futex_word(sequence));
}

uint32_t shm_sequence(const _Atomic uint32_t *sequence)
{
    return atomic_load(sequence);
}

void shm_wait(const _Atomic uint32_t *sequence, uint32_t seen, pf_deadline deadline)
{
    pf_futex_wait(futex_word(sequence), seen, deadline);
}

void shm_wake_all(shm_region *region)
{
    shm_wake(&region->tasks->sequence);
    for (uint32_t i = 0; i < region->config.gates; i++) {
        if (region->gates->gates[i].used != 0)
            shm_wake(&region->gates->gates[i].sequence);
    }
    for (uint32_t i = 0; i < region->config.workers; i++)
        shm_wake(&region->publish->entries[i].sequence);
}

sluice_status shm_latch_take(shm_region *region, lk_latch *latch, lk_rank rank, lk_latch_repair_fn *repair,
                             sluice_error *err)
{
    lk_latch_result result = lk_latch_take(latch, rank, PF_AT_ONCE, repair, region); /* without a look at the clock */
    if (result == LK_TIMEOUT)
        result = lk_latch_take(latch, rank, pf_deadline_in_ms(region->latch_wait_ms), repair, region);
    switch (result) {
    case LK_HELD:
    case LK_HELD_AFTER_DEATH:
        if (shm_region_state(region) != SHM_POISONED)
            return SLUICE_OK;
        lk_latch_release(latch, rank);
        break;
    case LK_TIMEOUT:
        return pf_fail(err, SLUICE_TIMEOUT, "a latch of the shared region stayed busy for %lld ms",
                       (long long)region->latch_wait_ms);
    case LK_POISONED:
        shm_region_poison(region);
        break;
    }
    return pf_fail(err, SLUICE_FENCED, "the shared region is damaged and was given up");
}
