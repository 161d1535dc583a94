/*
 * Failpoints: named places where a test can make the real program die, stop, fail or wait.
 *
 * SLUICE_FAILPOINT=name=action[@n][,name=action[@n]...]; actions: kill (SIGKILL self), stop (SIGSTOP self), error (the
 * place fails with IO), sleep:ms, killpool (kill the supervisor, then self), crash (abort). @n: the n-th passage over
 * the whole pool, once (default 1); @*: every passage. The names are one closed table, so that tests can enumerate it;
 * `sluice version --failpoints` lists it. Compiled out of release builds: PF_FAILPOINT is then SLUICE_OK.
 *
 * SLUICE_FAILPOINT_TRACE=FILE (a file that is there): each passage appends "name n", and each action that is taken
 * "name n action" before it is taken, so that a test knows which places a command passes and that its own was reached.
 *
 * Every volume call is one too: volume.create, .open, .publish, .remove, .make_folder, .remove_folder, .sync_dir,
 * .write, .sync, .lock (before the call); they belong to the same table.
 */
#ifndef PLATFORM_FAILPOINT_H
#define PLATFORM_FAILPOINT_H

#include "platform/fail.h"
#include <stdint.h>

/* X(identifier, "name"). Add new ones here, and nowhere else; keep them grouped by module. */
#define PF_FAILPOINTS(X)                                                                                               \
    X(VOLUME_CREATE, "volume.create")                                                                                  \
    X(VOLUME_OPEN, "volume.open")                                                                                      \
    X(VOLUME_PUBLISH, "volume.publish")                                                                                \
    X(VOLUME_REMOVE, "volume.remove")                                                                                  \
    X(VOLUME_MAKE_FOLDER, "volume.make_folder")                                                                        \
    X(VOLUME_REMOVE_FOLDER, "volume.remove_folder")                                                                    \
    X(VOLUME_SYNC_DIR, "volume.sync_dir")                                                                              \
    X(VOLUME_WRITE, "volume.write")                                                                                    \
    X(VOLUME_SYNC, "volume.sync")                                                                                      \
    X(VOLUME_LOCK, "volume.lock")                                                                                      \
    X(PREFLIGHT_CLASSIFY, "preflight.classify")                                                                        \
    X(PREFLIGHT_CREATE, "preflight.create")                                                                            \
    X(PREFLIGHT_WRITE, "preflight.write")                                                                              \
    X(PREFLIGHT_FILE_SYNC, "preflight.file_sync")                                                                      \
    X(PREFLIGHT_LOCK, "preflight.lock")                                                                                \
    X(PREFLIGHT_EXCLUSIVE, "preflight.exclusive")                                                                      \
    X(PREFLIGHT_REPLACE, "preflight.replace")                                                                          \
    X(PREFLIGHT_DIR_SYNC, "preflight.dir_sync")                                                                        \
    X(PREFLIGHT_MAP, "preflight.map")                                                                                  \
    X(PREFLIGHT_CLEANUP, "preflight.cleanup")                                                                          \
    X(BARRIER_BEFORE, "barrier.before")                                                                                \
    X(BARRIER_AFTER, "barrier.after")                                                                                  \
    X(READ_BEFORE_PIN, "read.before_pin")                                                                              \
    X(PREPARE_AFTER_PIN, "prepare.after_pin")                                                                          \
    X(LOAD_BEFORE_SPOOLING, "load.before_spooling")                                                                    \
    X(LOAD_WHILE_SPOOLING, "load.while_spooling")                                                                      \
    X(LOAD_AFTER_SPOOLING, "load.after_spooling")                                                                      \
    X(LOAD_AFTER_BOUNDARIES, "load.after_boundaries")                                                                  \
    X(LOAD_BEFORE_FRAGMENT, "load.before_fragment")                                                                    \
    X(LOAD_AFTER_SPILL, "load.after_spill")                                                                            \
    X(LOAD_AFTER_FRAGMENT_WRITE, "load.after_fragment_write")                                                          \
    X(LOAD_AFTER_FRAGMENT_SYNC, "load.after_fragment_sync")                                                            \
    X(LOAD_AFTER_TASK_RESULT, "load.after_task_result")                                                                \
    X(LOAD_BEFORE_KEY_CHECK, "load.before_key_check")                                                                  \
    X(LOAD_AFTER_KEY_CHECK, "load.after_key_check")                                                                    \
    X(LOAD_AFTER_REJECTS, "load.after_rejects")                                                                        \
    X(LOAD_AFTER_EDITS, "load.after_edits")                                                                            \
    X(MAINTAIN_AFTER_LIST, "maintain.after_list")                                                                      \
    X(MAINTAIN_AFTER_TASK_RESULT, "maintain.after_task_result")                                                        \
    X(MAINTAIN_AFTER_EDITS, "maintain.after_edits")                                                                    \
    X(PREPARE_AFTER_PLAN, "prepare.after_plan")                                                                        \
    X(GATES_AFTER, "gates.after")                                                                                      \
    X(REVALIDATE_AFTER, "revalidate.after")                                                                            \
    X(ARM_BEFORE_SIDE_FILE, "arm.before_side_file")                                                                    \
    X(ARM_AFTER_SIDE_FILE, "arm.after_side_file")                                                                      \
    X(ARM_BEFORE_FRAME_SYNC, "arm.before_frame_sync")                                                                  \
    X(ARM_AFTER, "arm.after")                                                                                          \
    X(PUBLISH_AFTER_LINE, "publish.after_line")                                                                        \
    X(PUBLISH_AFTER_LOCK, "publish.after_lock")                                                                        \
    X(PUBLISH_AFTER_TAKE, "publish.after_take")                                                                        \
    X(PUBLISH_BEFORE_APPEND, "publish.before_append")                                                                  \
    X(PUBLISH_AFTER_LOG_RECORD_WRITE, "publish.after_log_record_write")                                                \
    X(PUBLISH_AFTER_LOG_RECORD_SYNC, "publish.after_log_record_sync")                                                  \
    X(PUBLISH_AFTER_MARK, "publish.after_mark")                                                                        \
    X(PUBLISH_BEFORE_DECIDE, "publish.before_decide")                                                                  \
    X(PUBLISH_AFTER_DECIDE, "publish.after_decide")                                                                    \
    X(SEGMENT_AFTER_OPENING_SYNC, "segment.after_opening_sync")                                                        \
    X(SEGMENT_AFTER_CURRENT_WRITE, "segment.after_current_write")                                                      \
    X(SEGMENT_AFTER_CURRENT_SYNC, "segment.after_current_sync")                                                        \
    X(FINALIZE_BEFORE_AUDIT, "finalize.before_audit")                                                                  \
    X(FINALIZE_BEFORE_FOLLOW, "finalize.before_follow")                                                                \
    X(FINALIZE_BEFORE_RETIRE, "finalize.before_retire")                                                                \
    X(FINALIZE_AFTER_RETIRE, "finalize.after_retire")                                                                  \
    X(RECOVER_BEFORE_PUBLISH, "recover.before_publish")                                                                \
    X(RECOVER_BEFORE_AUDIT, "recover.before_audit")                                                                    \
    X(RECOVER_AFTER_AUDIT, "recover.after_audit")                                                                      \
    X(RECOVER_AFTER_RETIRE, "recover.after_retire")                                                                    \
    X(BRANCH_AFTER_RECEIPT, "branch.after_receipt")                                                                    \
    X(BRANCH_BEFORE_REF, "branch.before_ref")                                                                          \
    X(BRANCH_AFTER_REF, "branch.after_ref")                                                                            \
    X(BRANCH_BEFORE_REMOVE, "branch.before_remove")                                                                    \
    X(BRANCH_AFTER_REMOVE, "branch.after_remove")                                                                      \
    X(NEW_BRANCH_AFTER_FOLDER, "new_branch.after_folder")                                                              \
    X(NEW_BRANCH_BEFORE_CONFIRM, "new_branch.before_confirm")                                                          \
    X(NEW_BRANCH_AFTER_CONFIRM, "new_branch.after_confirm")                                                            \
    X(NEW_BRANCH_BEFORE_REF, "new_branch.before_ref")                                                                  \
    X(GC_BEFORE_BOUNDARY, "gc.before_boundary")                                                                        \
    X(GC_AFTER_BOUNDARY, "gc.after_boundary")                                                                          \
    X(GC_AFTER_MOVE, "gc.after_move")                                                                                  \
    X(GC_AFTER_LINEAGE, "gc.after_lineage")                                                                            \
    X(GC_AFTER_SEGMENT, "gc.after_segment")                                                                            \
    X(INIT_AFTER_LAYOUT, "init.after_layout")                                                                          \
    X(INIT_BEFORE_PUBLISH, "init.before_publish")                                                                      \
    X(INIT_AFTER_PUBLISH, "init.after_publish")                                                                        \
    X(WORKER_AFTER_START, "worker.after_start")                                                                        \
    X(WORKER_AFTER_TAKE, "worker.after_take")                                                                          \
    X(WORKER_BEFORE_DONE, "worker.before_done")

typedef enum pf_failpoint {
#define PF_FAILPOINT_ENUM(identifier, name) PF_FP_##identifier,
    PF_FAILPOINTS(PF_FAILPOINT_ENUM)
#undef PF_FAILPOINT_ENUM
        PF_FAILPOINT_COUNT
} pf_failpoint;

const char *pf_failpoint_name(pf_failpoint point);
/* Reads SLUICE_FAILPOINT and SLUICE_FAILPOINT_TRACE once; USAGE for an unknown name or action. Call at program start.
 */
sluice_status pf_failpoints_init(sluice_error *err);
/* Passages are counted in these cells (PF_FAILPOINT_COUNT of them, in the shared region) instead of in this process,
 * what was counted before included. NULL takes the counts back; before the cells are unmapped. */
void pf_failpoints_share(uint32_t *counters);
/* Whom killpool kills first (0: nobody). */
void pf_failpoints_pool(int supervisor_pid);
/* From here on this process and its children have no rules. */
void pf_failpoints_forget(void);
/* Told of each passage before any rule strikes (tests, with the simulated disk); NULL: nobody. */
typedef void pf_failpoint_watch(void *context, pf_failpoint point);
void pf_failpoints_watch(pf_failpoint_watch *watch, void *context);
sluice_status pf_failpoint_hit(pf_failpoint point, sluice_error *err);

#if SLUICE_FAILPOINTS
#define PF_FAILPOINT(identifier, err) pf_failpoint_hit(PF_FP_##identifier, (err))
#else
#define PF_FAILPOINT(identifier, err) ((void)(err), SLUICE_OK)
#endif

#endif
