/*
 * changes: what happened on a branch behind a cursor, as JSON Lines or Arrow; with --follow also what happens from now
 * on.
 *
 * Interrupts and a reader that goes away are events here, also while a reader is slow: standard output is written to
 * only when it takes something. A reader that is slow is waited for, and nothing is collected in memory meanwhile but
 * the batch that waits. At the end standard error says behind which event what was written ends.
 */
#include "cli/changes_arrow.h"
#include "cli/error.h"
#include "cli/output.h"
#include "platform/watch.h"
#include <stdio.h>
#include <string.h>

enum { CHANGES_SINCE, CHANGES_FOLLOW, CHANGES_FORMAT, CHANGES_BRANCH, CHANGES_OPTIONS };
static const cli_option changes_options[CHANGES_OPTIONS] = {
    [CHANGES_SINCE] = {"since", 0, CLI_TEXT, "CURSOR",
                       "a cursor, or a commit, generation, checkpoint, time or head (default: the beginning)"},
    [CHANGES_FOLLOW] = {"follow", 'f', CLI_FLAG, NULL, "wait for more, until interrupted"},
    [CHANGES_FORMAT] = {"format", 0, CLI_CHOICE, "jsonl|arrow", "what to write (default: jsonl)"},
    [CHANGES_BRANCH] = {"branch", 0, CLI_TEXT, "B", "the branch to read (default: main)"},
};

#define PENDING_BYTES ((size_t)64 * 1024)
#define PIECE         4096u /* a pipe that takes something takes that much without waiting */
enum { TAG_OUTPUT = 1, TAG_NOTIFY };

typedef struct outflow {
    cli_run *run;
    bool follow;
    st_feed *feed;
    pf_watch *watch;
    pf_notify *notify;
    bool waits;       /* standard output can be waited for: no regular file */
    bool interrupted; /* what is pending is written if that needs no waiting; then it ends */
    bool cut;         /* standard output takes no more */
    uint64_t notices; /* of something that was written to the branch */
    pf_buffer pending;
    cli_changes_arrow *arrow;
    char added[ST_CURSOR_TEXT], told[ST_CURSOR_TEXT]; /* behind what is pending; behind what was written */
} outflow;

/* Takes one event, in time. *ret_kind NONE: there was none. *ret_room: standard output takes something. */
static sluice_status take_event(outflow *flow, pf_deadline deadline, pf_event_kind *ret_kind, bool *ret_room,
                                sluice_error *err)
{
    pf_event event;
    PF_TRY(pf_watch_next(flow->watch, deadline, &event, err));
    bool output = event.kind == PF_EVENT_DESCRIPTOR && event.tag == TAG_OUTPUT;
    *ret_kind = event.kind;
    *ret_room = output && event.writable;
    if (event.kind == PF_EVENT_INTERRUPT) {
        flow->interrupted = true;
    } else if (output && event.readable) {
        flow->cut = flow->run->reader_gone = true;
    } else if (event.kind == PF_EVENT_DESCRIPTOR && event.tag == TAG_NOTIFY) {
        pf_notify_take(flow->notify);
        flow->notices++;
    }
    return SLUICE_OK;
}

static sluice_status write_piece(outflow *flow, const uint8_t *bytes, size_t length, sluice_error *err)
{
    sluice_error local = {0};
    sluice_status status = pf_output_write(flow->run->out, bytes, length, &local);
    if (status == SLUICE_OK)
        status = pf_output_flush(flow->run->out, &local);
    if (status != SLUICE_OK && pf_output_is_unread(flow->run->out)) {
        flow->cut = flow->run->reader_gone = true;
        return SLUICE_OK;
    }
    if (status != SLUICE_OK && err)
        *err = local;
    return status;
}

static sluice_status write_pending(outflow *flow, sluice_error *err)
{
    size_t done = 0;
    while (done < flow->pending.length && !flow->cut) {
        size_t piece = flow->pending.length - done;
        pf_event_kind kind;
        bool room;
        PF_TRY(take_event(flow, flow->waits && !flow->interrupted ? PF_FOREVER : PF_AT_ONCE, &kind, &room, err));
        if (flow->waits && !room) {
            flow->cut |= flow->interrupted && kind == PF_EVENT_NONE; /* nobody reads what is there */
            continue;
        }
        if (flow->waits && piece > PIECE)
            piece = PIECE;
        PF_TRY(write_piece(flow, flow->pending.data + done, piece, err));
        done += piece;
    }
    return SLUICE_OK;
}

/* Hands on what is pending. */
static sluice_status push(outflow *flow, sluice_error *err)
{
    int fd = pf_output_descriptor(flow->run->out);
    if (flow->waits)
        pf_watch_descriptor_change(flow->watch, fd, TAG_OUTPUT, false, true);
    sluice_status status = write_pending(flow, err);
    if (flow->waits)
        pf_watch_descriptor_change(flow->watch, fd, TAG_OUTPUT, false, false);
    if (status == SLUICE_OK && !flow->cut) {
        flow->pending.length = 0;
        memcpy(flow->told, flow->added, sizeof flow->told);
    }
    return status;
}

static bool ends(const outflow *flow)
{
    return flow->interrupted || flow->cut;
}

static sluice_status take_change(void *context, const st_feed_event *event, sluice_error *err)
{
    outflow *flow = context;
    bool full = event->kind == ST_FEED_COMMIT && flow->follow;
    if (flow->arrow) {
        bool batch = false;
        PF_TRY(cli_changes_arrow_add(flow->arrow, event, &batch, err));
        full |= batch;
        if (full)
            PF_TRY(cli_changes_arrow_batch(flow->arrow, err));
    } else {
        PF_TRY(st_feed_line(event, &flow->pending, err));
        PF_TRY(pf_buffer_append(&flow->pending, "\n", 1, err));
        full |= flow->pending.length >= PENDING_BYTES;
    }
    (void)snprintf(flow->added, sizeof flow->added, "%s", event->cursor);
    if (full)
        PF_TRY(push(flow, err));
    return ends(flow) ? pf_fail(err, SLUICE_CANCELLED, "interrupted") : SLUICE_OK;
}

/* Everything that is there now. What came before a failure is handed on, too; the failure is what is answered. */
static sluice_status look(outflow *flow, sluice_error *err)
{
    sluice_error failure = {0};
    sluice_status status = st_feed_read(flow->feed, take_change, flow, &failure);
    if (status == SLUICE_CANCELLED && ends(flow))
        status = SLUICE_OK;
    else if (status != SLUICE_OK && err)
        *err = failure;
    sluice_error *later = status == SLUICE_OK ? err : NULL;
    sluice_status pushed = flow->arrow ? cli_changes_arrow_batch(flow->arrow, later) : SLUICE_OK;
    if (pushed == SLUICE_OK)
        pushed = push(flow, later);
    return status == SLUICE_OK ? pushed : status;
}

/* A look, and a further one whenever something was written since it began: nothing is missed in between. */
static sluice_status follow(outflow *flow, sluice_error *err)
{
    while (!ends(flow)) {
        uint64_t before = flow->notices;
        pf_event_kind kind;
        bool room;
        PF_TRY(look(flow, err));
        while (!ends(flow) && flow->notices == before)
            PF_TRY(take_event(flow, PF_FOREVER, &kind, &room, err));
    }
    return SLUICE_OK;
}

static sluice_status watch_branch(outflow *flow, sluice_error *err)
{
    PF_TRY(st_feed_watch(flow->feed, &flow->notify, err));
    return pf_watch_descriptor(flow->watch, pf_notify_descriptor(flow->notify), TAG_NOTIFY, true, false, err);
}

static sluice_status watch_output(outflow *flow, sluice_error *err)
{
    sluice_error local = {0};
    int fd = pf_output_descriptor(flow->run->out);
    sluice_status status = pf_watch_descriptor(flow->watch, fd, TAG_OUTPUT, false, false, &local);
    flow->waits = status == SLUICE_OK;
    if (status == SLUICE_OK || status == SLUICE_PERMISSION) /* a regular file always takes everything */
        return SLUICE_OK;
    if (err)
        *err = local;
    return status;
}

static sluice_status tell(outflow *flow, sluice_error *err)
{
    PF_TRY(push(flow, err)); /* the schema of Arrow */
    PF_TRY(flow->follow ? follow(flow, err) : look(flow, err));
    if (flow->arrow && !flow->cut) {
        PF_TRY(cli_changes_arrow_end(flow->arrow, err));
        PF_TRY(push(flow, err));
    }
    return flow->interrupted && !flow->follow ? pf_fail(err, SLUICE_CANCELLED, "interrupted") : SLUICE_OK;
}

static sluice_status run_changes(cli_run *run, sluice_error *err)
{
    const cli_value *format = cli_option_value(run, CHANGES_FORMAT);
    outflow flow = {.run = run, .follow = cli_option_value(run, CHANGES_FOLLOW)->given};
    st_graph *graph = NULL;
    sluice_status status;
    PF_GOTO(status, done, st_graph_open(run->arguments.operands[0], PF_READ, &graph, err));
    PF_GOTO(status, done,
            st_feed_open(graph, cli_text_or(run, CHANGES_BRANCH, NULL), cli_text_or(run, CHANGES_SINCE, NULL),
                         &flow.feed, err));
    st_feed_cursor(flow.feed, flow.told);
    memcpy(flow.added, flow.told, sizeof flow.added);
    PF_GOTO(status, done, pf_watch_open(&flow.watch, err));
    PF_GOTO(status, done, watch_output(&flow, err));
    if (flow.follow)
        PF_GOTO(status, done, watch_branch(&flow, err));
    if (format->given && format->number == 1)
        PF_GOTO(status, done, cli_changes_arrow_begin(&flow.pending, &flow.arrow, err));
    status = tell(&flow, err);
done:
    if (flow.feed)
        cli_note("cursor %s", flow.told);
    cli_changes_arrow_free(flow.arrow);
    pf_buffer_free(&flow.pending);
    pf_watch_close(flow.watch);
    pf_notify_close(flow.notify);
    st_feed_close(flow.feed);
    st_graph_close(graph);
    return status;
}

const cli_command cli_changes = {.name = "changes",
                                 .operands = "GRAPH",
                                 .summary =
                                     "Tell what changed on a branch behind a cursor, row by row and commit by commit.",
                                 .options = changes_options,
                                 .option_count = CHANGES_OPTIONS,
                                 .least = 1,
                                 .most = 1,
                                 .effect = CLI_READS,
                                 .run = run_changes};
