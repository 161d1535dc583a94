/* The ledger (ledger.h). */
#include "ledger.h"

#include "tests/support/test.h"
#include <inttypes.h>
#include <string.h>

/* ---- windows ---- */

typedef struct gap {
    pf_failpoint point;
    const char *why;
} gap;

static const char spooled[] = "input is a file, which is read where it lies";
static const char groups[] = "there is no region, so nobody publishes in a group (tests/coord/test_group_deaths.c)";
static const gap gaps[] = {
    {PF_FP_LOAD_BEFORE_SPOOLING, spooled},
    {PF_FP_LOAD_WHILE_SPOOLING, spooled},
    {PF_FP_LOAD_AFTER_SPOOLING, spooled},
    {PF_FP_LOAD_AFTER_SPILL, "too few rows to spill (tests/matrix)"},
    {PF_FP_LOAD_AFTER_REJECTS, "no load skips rows (tests/load/test_skip_crash.c)"},
    {PF_FP_ARM_BEFORE_SIDE_FILE, "no plan is too large for its slot (tests/matrix)"},
    {PF_FP_ARM_AFTER_SIDE_FILE, "no plan is too large for its slot (tests/matrix)"},
    {PF_FP_PUBLISH_AFTER_LINE, groups},
    {PF_FP_PUBLISH_AFTER_TAKE, groups},
    {PF_FP_PUBLISH_BEFORE_DECIDE, groups},
    {PF_FP_PUBLISH_AFTER_DECIDE, groups},
    {PF_FP_INIT_AFTER_LAYOUT, "the graph is there (tests/graph/test_init.c)"},
    {PF_FP_INIT_BEFORE_PUBLISH, "the graph is there (tests/graph/test_init.c)"},
    {PF_FP_INIT_AFTER_PUBLISH, "the graph is there (tests/graph/test_init.c)"},
    {PF_FP_WORKER_AFTER_START, "jobs run in one process (tests/pool)"},
    {PF_FP_WORKER_AFTER_TAKE, "jobs run in one process (tests/pool)"},
    {PF_FP_WORKER_BEFORE_DONE, "jobs run in one process (tests/pool)"},
};

const char *sim_ledger_why_not(pf_failpoint point)
{
    if (point < PF_FP_BARRIER_BEFORE)
        return "a call of the volume, counted as such, or the check of a real file system";
    for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++)
        if (gaps[i].point == point)
            return gaps[i].why;
    return NULL;
}

static uint32_t print_windows(const sim_counts *counts)
{
    uint32_t missing = 0, reached = 0;
    for (pf_failpoint point = PF_FP_BARRIER_BEFORE; point < PF_FAILPOINT_COUNT; point++) {
        const char *why = sim_ledger_why_not(point);
        if (counts->crashed[point] == 0 && !why) {
            print_error("no process ends behind %s (passed %" PRIu64 " times)\n", pf_failpoint_name(point),
                        counts->passed[point]);
            missing++;
        }
        reached += counts->crashed[point] > 0;
    }
    print_message("windows: a process ends behind %u of %d, %zu explained\n", reached,
                  PF_FAILPOINT_COUNT - PF_FP_BARRIER_BEFORE, sizeof gaps / sizeof *gaps);
    return missing;
}

/* ---- recovery ---- */

static const char *const rows[SIM_ROWS] = {"published",   "roll-forward", "branch-gone",
                                           "unconfirmed", "invalid",      "quarantined"};
static const char *const row_gaps[SIM_ROWS] = {[5] = "no death and no power loss makes an unreadable intent"};

void sim_ledger_recovered(sim_counts *counts, const char *kind, const char *classification)
{
    (void)kind;
    for (uint32_t i = 0; i < SIM_ROWS; i++)
        if (strcmp(rows[i], classification) == 0)
            counts->rows[i]++;
}

static uint32_t print_rows(const sim_counts *counts)
{
    uint32_t missing = 0;
    for (uint32_t i = 0; i < SIM_ROWS; i++) {
        print_message("recovered, %s: %" PRIu64 "\n", rows[i], counts->rows[i]);
        if (counts->rows[i] == 0 && !row_gaps[i]) {
            print_error("no recovery finds an intent %s\n", rows[i]);
            missing++;
        }
    }
    return missing;
}

/* ---- answers ---- */

static const sluice_status answers[] = {SLUICE_OK,
                                        SLUICE_WRITE_CONFLICT,
                                        SLUICE_READ_SET_CHANGED,
                                        SLUICE_LIVE_WRITER_CONTENTION,
                                        SLUICE_KEY_CONFLICT,
                                        SLUICE_CONSTRAINT_UNIQUE,
                                        SLUICE_CONSTRAINT_ENDPOINT,
                                        SLUICE_CONSTRAINT_CARDINALITY,
                                        SLUICE_NOT_FOUND,
                                        SLUICE_ALREADY_EXISTS,
                                        SLUICE_MERGE_CONFLICT,
                                        SLUICE_WRITER_BUSY,
                                        SLUICE_IO,
                                        SLUICE_NO_SPACE,
                                        SLUICE_QUOTA,
                                        SLUICE_SUSPECT,
                                        SLUICE_RECOVERY_REQUIRED};

static uint32_t print_answers(const sim_counts *counts)
{
    uint32_t missing = 0;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        uint64_t sum = 0;
        for (uint32_t kind = 0; kind < SIM_OP_KINDS; kind++)
            sum += counts->outcomes[kind][answers[i]];
        print_message("%s%s: %" PRIu64, i ? ", " : "answers: ", sluice_status_name(answers[i]), sum);
        if (sum == 0) {
            print_error("no client is told %s\n", sluice_status_name(answers[i]));
            missing++;
        }
    }
    print_message("\n");
    for (uint32_t kind = 0; kind < SIM_OP_KINDS; kind++) {
        if (counts->outcomes[kind][SLUICE_OK] == 0) {
            print_error("no %s ends well\n", sim_kind_name((sim_kind)kind));
            missing++;
        }
    }
    if (counts->repeated == 0 || counts->restarts == 0) {
        print_error("%" PRIu64 " answers repeated, %" PRIu64 " plans made again\n", counts->repeated, counts->restarts);
        missing++;
    }
    return missing;
}

uint32_t sim_ledger_print(const sim_counts *counts)
{
    print_message("%" PRIu64 " histories: %" PRIu64 " calls, %" PRIu64 " commits, %" PRIu64 " deaths, %" PRIu64
                  " power losses, %" PRIu64 " failing, %" PRIu64 " stops, %" PRIu64 " asked again, %" PRIu64
                  " answers repeated, %" PRIu64 " plans made again, %" PRIu64 " snapshots, %" PRIu64 " backups\n",
                  counts->histories, counts->calls, counts->commits, counts->deaths, counts->losses, counts->errors,
                  counts->stops, counts->retries, counts->repeated, counts->restarts, counts->snapshots,
                  counts->backups);
    return print_windows(counts) + print_rows(counts) + print_answers(counts);
}
