/*
 * An embedded process of the history tests: by the library, in its own process, it reads and writes registers, items
 * and edges of one graph beside others, and writes down what it saw and was told, as JSON Lines on standard output
 * (tests/history/checker.py says what a history is). A line is written in one piece before a write is given away, and
 * one after its answer, so that a kill leaves the truth behind.
 *
 *   actor GRAPH NAME SEED TRANSACTIONS REGISTERS FIRST-ITEM
 */
#include "platform/buffer.h"
#include "platform/clock.h"
#include "platform/ids.h"
#include "store/format/json.h"
#include <sluice/sluice.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REGISTERS_MAX 16
#define VALUE_MAX     16384

typedef struct actor {
    sluice_graph *graph;
    const char *name;
    uint64_t chance;
    int registers;
    int64_t next_item;
    char values[REGISTERS_MAX][VALUE_MAX]; /* as read by this transaction */
    int64_t neighbour;
    pf_buffer lines; /* of the write */
    pf_buffer line;  /* of the history */
    st_json json;
} actor;

static void need(bool holds, const char *what, const sluice_error *err)
{
    if (holds)
        return;
    (void)fprintf(stderr, "actor: %s: %s\n", what, err ? err->text : "");
    exit(1);
}

static uint64_t draw(actor *self, uint64_t below) /* xorshift */
{
    self->chance ^= self->chance << 13;
    self->chance ^= self->chance >> 7;
    self->chance ^= self->chance << 17;
    return self->chance % below;
}

/* ---- history lines ---- */

static void begin_line(actor *self, const char *kind, const char *id)
{
    self->line.length = 0;
    st_json_begin(&self->json, &self->line);
    st_json_object(&self->json);
    st_json_name(&self->json, "t");
    st_json_text(&self->json, kind);
    st_json_name(&self->json, "id");
    st_json_text(&self->json, id);
}

static void put_number(actor *self, const char *name, int64_t number)
{
    st_json_name(&self->json, name);
    st_json_number(&self->json, number);
}

static void put_place(actor *self, const char *name, uint64_t generation, uint32_t index)
{
    st_json_name(&self->json, name);
    st_json_array(&self->json);
    st_json_unsigned(&self->json, generation);
    st_json_unsigned(&self->json, index);
    st_json_array_end(&self->json);
}

static void put_reads(actor *self, unsigned read)
{
    st_json_name(&self->json, "reads");
    st_json_object(&self->json);
    for (int r = 0; r < self->registers; r++) {
        char number[16];
        (void)snprintf(number, sizeof number, "%d", r);
        if (!(read & 1u << r))
            continue;
        st_json_name(&self->json, number);
        st_json_text(&self->json, self->values[r]);
    }
    st_json_object_end(&self->json);
}

static void end_line(actor *self)
{
    sluice_error err = {0};
    st_json_object_end(&self->json);
    need(st_json_end(&self->json, true, &err) == SLUICE_OK, "a line", &err);
    need(fwrite(self->line.data, 1, self->line.length, stdout) == self->line.length && fflush(stdout) == 0, "output",
         NULL);
}

/* ---- reading ---- */

static void read_register(actor *self, sluice_snapshot *snapshot, int number)
{
    sluice_error err = {0};
    char key[16], *json = NULL;
    (void)snprintf(key, sizeof key, "%d", number);
    need(sluice_get(snapshot, "R", key, &json, NULL, &err) == SLUICE_OK && json, "a register", &err);
    const char *value = strstr(json, "\"v\":");
    need(value != NULL, "a register's value", NULL);
    value = strchr(value + 4, '"');
    size_t length = value ? strcspn(value + 1, "\"") : 0;
    need(value && length < VALUE_MAX, "a register's text", NULL);
    memcpy(self->values[number], value + 1, length);
    self->values[number][length] = 0;
    sluice_free(json);
}

/* Calls for each row of a type with its first column, which is an int64, and the array. */
typedef void row_fn(actor *self, const struct ArrowArray *batch, int64_t row);
static void each_row(actor *self, sluice_snapshot *snapshot, const char *type, row_fn *each)
{
    sluice_error err = {0};
    struct ArrowArrayStream stream;
    struct ArrowArray batch;
    need(sluice_scan(snapshot, type, NULL, &stream, &err) == SLUICE_OK, "a scan", &err);
    for (;;) {
        need(stream.get_next(&stream, &batch) == 0, "a batch", NULL);
        if (!batch.release)
            break;
        for (int64_t row = 0; row < batch.length; row++)
            each(self, &batch, batch.offset + row);
        batch.release(&batch);
    }
    stream.release(&stream);
}

static int64_t int64_at(const struct ArrowArray *batch, int column, int64_t row)
{
    const struct ArrowArray *array = batch->children[column];
    return ((const int64_t *)array->buffers[1])[array->offset + row];
}

static void put_item(actor *self, const struct ArrowArray *batch, int64_t row)
{
    const struct ArrowArray *tag = batch->children[1];
    const int32_t *offsets = (const int32_t *)tag->buffers[1] + tag->offset + row;
    char number[32], text[64];
    (void)snprintf(number, sizeof number, "%lld", (long long)int64_at(batch, 0, row));
    (void)snprintf(text, sizeof text, "%.*s", (int)(offsets[1] - offsets[0]),
                   (const char *)tag->buffers[2] + offsets[0]);
    st_json_name(&self->json, number);
    st_json_text(&self->json, text);
}

static void put_edge(actor *self, const struct ArrowArray *batch, int64_t row)
{
    st_json_array(&self->json);
    st_json_number(&self->json, int64_at(batch, 0, row));
    st_json_number(&self->json, int64_at(batch, 1, row));
    st_json_array_end(&self->json);
}

static bool note_neighbour(void *context, const char *type, const char *key, uint32_t depth)
{
    actor *self = context;
    (void)type;
    (void)depth;
    self->neighbour = strtoll(key, NULL, 10);
    return draw(self, 3) != 0;
}

static void look_at_everything(actor *self, const char *id)
{
    sluice_error err = {0};
    sluice_snapshot *snapshot = NULL;
    sluice_place place;
    int64_t begin = pf_monotonic_ns();
    need(sluice_snapshot_open(self->graph, NULL, NULL, &snapshot, &err) == SLUICE_OK, "a snapshot", &err);
    sluice_snapshot_place(snapshot, &place);
    for (int r = 0; r < self->registers; r++)
        read_register(self, snapshot, r);
    begin_line(self, "view", id);
    put_number(self, "begin", begin);
    put_place(self, "at", place.generation, place.index);
    put_reads(self, UINT32_MAX);
    st_json_name(&self->json, "items");
    st_json_object(&self->json);
    each_row(self, snapshot, "I", put_item);
    st_json_object_end(&self->json);
    st_json_name(&self->json, "edges");
    st_json_array(&self->json);
    each_row(self, snapshot, "E", put_edge);
    st_json_array_end(&self->json);
    put_number(self, "end", pf_monotonic_ns());
    end_line(self);
    sluice_snapshot_close(snapshot);
}

/* ---- writing ---- */

static void add_line(actor *self, const char *line)
{
    sluice_error err = {0};
    need(pf_buffer_append(&self->lines, line, strlen(line), &err) == SLUICE_OK, "memory", &err);
}

static void add_assertion(actor *self, int number)
{
    static char line[VALUE_MAX + 128];
    (void)snprintf(line, sizeof line, "{\"op\":\"assert\",\"node\":\"R\",\"key\":%d,\"equals\":{\"v\":\"%s\"}}\n",
                   number, self->values[number]);
    add_line(self, line);
}

/* Words are appended one record after the other, so that one commit has versions in between that nobody may see. */
static void add_words(actor *self, const char *id, int number, int words)
{
    static char value[VALUE_MAX], line[VALUE_MAX + 128];
    (void)snprintf(value, sizeof value, "%s", self->values[number]);
    for (int i = 0; i < words; i++) {
        size_t length = strlen(value);
        (void)snprintf(value + length, sizeof value - length, "%s%s.%d", length ? " " : "", id, i);
        (void)snprintf(line, sizeof line, "{\"op\":\"update\",\"node\":\"R\",\"key\":%d,\"set\":{\"v\":\"%s\"}}\n",
                       number, value);
        add_line(self, line);
    }
}

static void give_away(actor *self, const char *id, const char *operation)
{
    sluice_error err = {0};
    sluice_batch *batch = NULL;
    sluice_receipt receipt = {0};
    sluice_write_options options = {.operation = operation};
    need(sluice_batch_new(&batch, &err) == SLUICE_OK, "a batch", &err);
    need(sluice_batch_json(batch, (const char *)self->lines.data, self->lines.length, &err) == SLUICE_OK, "a batch",
         &err);
    sluice_status status = sluice_commit(self->graph, batch, &options, &receipt, &err);
    sluice_batch_free(batch);
    begin_line(self, "end", id);
    put_number(self, "end", pf_monotonic_ns());
    st_json_name(&self->json, "outcome");
    st_json_text(&self->json, status == SLUICE_OK ? "ok" : err.committed == SLUICE_FALSE ? "fail" : "unknown");
    st_json_name(&self->json, "code");
    st_json_text(&self->json, sluice_status_name(status));
    if (status == SLUICE_OK) {
        need(receipt.committed && receipt.acknowledged, "a receipt", NULL);
        put_place(self, "place", receipt.generation, receipt.index);
    }
    end_line(self);
}

static void put_writes(actor *self, unsigned appended, int words, int inserts, int64_t first, int target,
                       int64_t deleted)
{
    st_json_name(&self->json, "appends");
    st_json_object(&self->json);
    for (int r = 0; r < self->registers; r++) {
        char number[16];
        (void)snprintf(number, sizeof number, "%d", r);
        if (!(appended & 1u << r))
            continue;
        st_json_name(&self->json, number);
        st_json_number(&self->json, words);
    }
    st_json_object_end(&self->json);
    st_json_name(&self->json, "inserts");
    st_json_array(&self->json);
    for (int i = 0; i < inserts; i++) {
        st_json_array(&self->json);
        st_json_number(&self->json, first + i);
        st_json_number(&self->json, target);
        st_json_array_end(&self->json);
    }
    st_json_array_end(&self->json);
    st_json_name(&self->json, "deletes");
    st_json_array(&self->json);
    if (deleted)
        st_json_number(&self->json, deleted);
    st_json_array_end(&self->json);
}

/* Reads some registers at a snapshot; appends to some of them, asserting that they are as read (which makes the
 * transaction one of snapshot isolation), and, when guarded, that all that it read is; some come with items. */
static void read_and_write(actor *self, const char *id)
{
    sluice_error err = {0};
    sluice_snapshot *snapshot = NULL;
    sluice_place place;
    char operation[PF_ID_TEXT], line[160];
    int64_t begin = pf_monotonic_ns(), first = self->next_item;
    unsigned read = 0, appended = 0;
    int words = 1 + (draw(self, 4) == 0), inserts = draw(self, 3) ? 0 : 1 + (int)draw(self, 3);
    int target = (int)draw(self, (uint64_t)self->registers);
    bool guarded = draw(self, 2) == 0;
    pf_id made = pf_id_new();
    pf_id_text(&made, operation);
    while (!read || draw(self, 2))
        read |= 1u << draw(self, (uint64_t)self->registers);
    for (int r = 0; r < self->registers; r++)
        if ((read & 1u << r) && (!appended || draw(self, 3) == 0))
            appended |= 1u << r;

    need(sluice_snapshot_open(self->graph, NULL, NULL, &snapshot, &err) == SLUICE_OK, "a snapshot", &err);
    sluice_snapshot_place(snapshot, &place);
    self->lines.length = 0;
    for (int r = 0; r < self->registers; r++)
        if (read & 1u << r) {
            read_register(self, snapshot, r);
            if (guarded || (appended & 1u << r))
                add_assertion(self, r);
        }
    for (int r = 0; r < self->registers; r++)
        if (appended & 1u << r)
            add_words(self, id, r, words);
    self->neighbour = 0;
    if (draw(self, 4) == 0) {
        (void)snprintf(line, sizeof line, "%d", (int)draw(self, (uint64_t)self->registers));
        need(sluice_neighbors(snapshot, "R", line, NULL, note_neighbour, self, &err) == SLUICE_OK, "neighbours", &err);
    }
    sluice_snapshot_close(snapshot);
    if (self->neighbour) {
        (void)snprintf(line, sizeof line, "{\"op\":\"delete\",\"node\":\"I\",\"key\":%lld,\"detach\":true}\n",
                       (long long)self->neighbour);
        add_line(self, line);
    }
    for (int i = 0; i < inserts; i++) {
        long long item = self->next_item++;
        (void)snprintf(line, sizeof line, "{\"op\":\"insert\",\"node\":\"I\",\"set\":{\"id\":%lld,\"tag\":\"%s\"}}\n",
                       item, id);
        add_line(self, line);
        (void)snprintf(line, sizeof line, "{\"op\":\"insert\",\"edge\":\"E\",\"from\":%d,\"to\":%lld}\n", target, item);
        add_line(self, line);
    }

    begin_line(self, "begin", id);
    st_json_name(&self->json, "op");
    st_json_text(&self->json, operation);
    put_number(self, "begin", begin);
    put_place(self, "at", place.generation, place.index);
    put_reads(self, read);
    put_writes(self, appended, words, inserts, first, target, self->neighbour);
    st_json_name(&self->json, "guarded");
    st_json_bool(&self->json, guarded);
    st_json_name(&self->json, "lines");
    st_json_bytes_text(&self->json, (const char *)self->lines.data, self->lines.length);
    put_number(self, "sent", pf_monotonic_ns());
    end_line(self);
    give_away(self, id, operation);
}

int main(int argc, char **argv)
{
    static actor self;
    sluice_error err = {0};
    char id[64];
    need(argc == 7, "usage: actor GRAPH NAME SEED TRANSACTIONS REGISTERS FIRST-ITEM", NULL);
    self.name = argv[2];
    self.chance = strtoull(argv[3], NULL, 10) | 1;
    self.registers = (int)strtol(argv[5], NULL, 10);
    self.next_item = strtoll(argv[6], NULL, 10);
    need(self.registers > 0 && self.registers <= REGISTERS_MAX, "the number of registers", NULL);
    need(sluice_open(argv[1], SLUICE_WRITE, &self.graph, &err) == SLUICE_OK, "opening", &err);
    for (long number = 0; number < strtol(argv[4], NULL, 10); number++) {
        (void)snprintf(id, sizeof id, "%s.%ld", self.name, number);
        if (draw(&self, 4) == 0)
            look_at_everything(&self, id);
        else
            read_and_write(&self, id);
    }
    sluice_close(self.graph);
    pf_buffer_free(&self.lines);
    pf_buffer_free(&self.line);
    return 0;
}
