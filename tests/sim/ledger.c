/* The ledger (ledger.h). */
#include "ledger.h"

#include "tests/support/test.h"
#include <inttypes.h>
#include <string.h>

#define MANY 10000u /* histories that come to what few come to, too */

/* ---- windows ---- */

static uint32_t print_windows(const sim_counts *counts)
{
    uint32_t missing = 0, reached = 0, explained = 0;
    for (pf_failpoint point = PF_FP_BARRIER_BEFORE; point < PF_FAILPOINT_COUNT; point++) {
        const char *why = sim_plan_why_not(point);
        if (counts->crashed[point] == 0 && !why) {
            print_error("no process ends behind %s (passed %" PRIu64 " times)\n", pf_failpoint_name(point),
                        counts->passed[point]);
            missing++;
        }
        reached += counts->crashed[point] > 0;
        explained += why != NULL;
    }
    print_message("windows: a process ends behind %u of %d, %u explained\n", reached,
                  PF_FAILPOINT_COUNT - PF_FP_BARRIER_BEFORE, explained);
    return missing;
}

/* ---- recovery ---- */

static const char *const rows[SIM_ROWS] = {"published",   "roll-forward", "branch-gone",
                                           "unconfirmed", "invalid",      "quarantined"};
static const char *const row_gaps[SIM_ROWS] = {
    [2] = "a deletion settles its branch's intents first (tests/coord/test_recover.c)",
    [5] = "no death and no power loss makes an unreadable intent (tests/coord/test_recover.c)"};

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
        print_message("%s%s: %" PRIu64 "%s", i ? ", " : "recovered: ", rows[i], counts->rows[i],
                      i + 1 == SIM_ROWS ? "\n" : "");
        if (counts->rows[i] == 0 && !row_gaps[i] && counts->histories >= MANY) {
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
        if (sum == 0 && (answers[i] != SLUICE_CONSTRAINT_CARDINALITY || counts->histories >= MANY)) {
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
    if (counts->repeated == 0 || counts->restarts == 0 || counts->grouped == 0) {
        print_error("%" PRIu64 " answers repeated, %" PRIu64 " plans made again, %" PRIu64 " commits in groups\n",
                    counts->repeated, counts->restarts, counts->grouped);
        missing++;
    }
    return missing;
}

uint32_t sim_ledger_print(const sim_counts *counts)
{
    print_message("%" PRIu64 " histories: %" PRIu64 " calls, %" PRIu64 " commits, %" PRIu64 " deaths, %" PRIu64
                  " power losses, %" PRIu64 " failing, %" PRIu64 " stops, %" PRIu64 " asked again, %" PRIu64
                  " answers repeated, %" PRIu64 " plans made again, %" PRIu64 " snapshots, %" PRIu64
                  " backups, %" PRIu64 " commits behind others in a group\n",
                  counts->histories, counts->calls, counts->commits, counts->deaths, counts->losses, counts->errors,
                  counts->stops, counts->retries, counts->repeated, counts->restarts, counts->snapshots,
                  counts->backups, counts->grouped);
    return print_windows(counts) + print_rows(counts) + print_answers(counts);
}
