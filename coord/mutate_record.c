/*
 * One line of a mutation file: a strict JSON object with the members that its "op" takes.
 */
#include "coord/mutate_job.h"
#include "platform/check.h"
#include "store/schema/nearest.h"
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 65536u /* values in one record */

typedef enum member {
    M_OP,
    M_NODE,
    M_EDGE,
    M_KEY,
    M_FROM,
    M_TO,
    M_ROW_ID,
    M_SET,
    M_IF,
    M_DETACH,
    M_EQUALS,
    M_ABSENT,
    M_PRESENT,
    MEMBERS
} member;
static const char *const members[MEMBERS] = {"op",  "node", "edge",   "key",    "from",   "to",     "_row_id",
                                             "set", "if",   "detach", "equals", "absent", "present"};

#define ALSO(name) (1u << M_##name)
#define NAMING     (ALSO(OP) | ALSO(NODE) | ALSO(EDGE) | ALSO(KEY) | ALSO(FROM) | ALSO(TO))
static const struct {
    const char *name;
    unsigned takes;
} ops[] = {
    [MUT_INSERT] = {"insert", NAMING | ALSO(SET)},
    [MUT_UPSERT] = {"upsert", NAMING | ALSO(SET)},
    [MUT_UPDATE] = {"update", NAMING | ALSO(ROW_ID) | ALSO(SET) | ALSO(IF)},
    [MUT_DELETE] = {"delete", NAMING | ALSO(ROW_ID) | ALSO(IF) | ALSO(DETACH)},
    [MUT_ASSERT] = {"assert", NAMING | ALSO(ROW_ID) | ALSO(EQUALS) | ALSO(ABSENT) | ALSO(PRESENT)},
};

typedef struct reading {
    mut_job *job;
    mut_record *record;
    const st_node *found[MEMBERS];
} reading;

static bool refuse(reading *r, const char *what)
{
    mut_fault(r->job, r->record->number, SLUICE_INPUT_SYNTAX, "%s", what);
    return false;
}

/* What is no member of a mutation is a slip, or a property that stands in the wrong place. */
static void hint_at_member(const reading *r, const st_node *node)
{
    st_nearest nearest;
    st_nearest_begin(&nearest, node->name);
    for (unsigned i = 0; i < MEMBERS; i++)
        st_nearest_offer(&nearest, members[i]);
    if (nearest.best)
        mut_hint(r->job, "did you mean \"%s\"?", nearest.best);
    else
        mut_hint(r->job, "properties stand in \"set\", as in \"set\": {\"%.100s\": ...}", node->name);
}

static bool take_members(reading *r, const st_node *root)
{
    char shown[WK_SHOWN_ROOM];
    if (root->kind != ST_NODE_OBJECT)
        return refuse(r, "a mutation is a JSON object");
    for (const st_node *node = root->first; node; node = node->next) {
        unsigned at = 0;
        while (at < MEMBERS && (strlen(members[at]) != node->name_length || strcmp(members[at], node->name) != 0))
            at++;
        if (at == MEMBERS) {
            mut_fault(r->job, r->record->number, SLUICE_INPUT_SYNTAX, "a mutation has no member %s",
                      wk_shown(node->name, node->name_length, shown));
            hint_at_member(r, node);
            return false;
        }
        r->found[at] = node;
    }
    return true;
}

static bool take_op(reading *r)
{
    const st_node *op = r->found[M_OP];
    char shown[WK_SHOWN_ROOM];
    if (!op || op->kind != ST_NODE_STRING)
        return refuse(r, "\"op\" says what to do: insert, upsert, update, delete or assert");
    unsigned at = 0;
    while (at <= MUT_ASSERT && strcmp(ops[at].name, op->text) != 0)
        at++;
    if (at > MUT_ASSERT) {
        mut_fault(r->job, r->record->number, SLUICE_INPUT_SYNTAX,
                  "there is no op %s, only insert, upsert, update, delete, assert",
                  wk_shown(op->text, op->length, shown));
        return false;
    }
    r->record->op = (mut_op)at;
    for (unsigned i = 0; i < MEMBERS; i++) {
        if (r->found[i] && !(ops[at].takes & (1u << i))) {
            mut_fault(r->job, r->record->number, SLUICE_INPUT_SYNTAX, "%s takes no \"%s\"", ops[at].name, members[i]);
            return false;
        }
    }
    return true;
}

static bool take_type(reading *r)
{
    const st_node *name = r->found[M_NODE] ? r->found[M_NODE] : r->found[M_EDGE];
    char shown[WK_SHOWN_ROOM];
    if (!name || (r->found[M_NODE] && r->found[M_EDGE]) || name->kind != ST_NODE_STRING)
        return refuse(r, "one of \"node\" and \"edge\" names the type");
    r->record->type = mut_type_find(r->job, name->text);
    if (!r->record->type || r->record->type->def->edge != (r->found[M_EDGE] != NULL)) {
        const char *nearest = st_schema_nearest(r->job->schema, name->text);
        mut_fault(r->job, r->record->number, SLUICE_INPUT_SYNTAX, "there is no %s type %s",
                  r->found[M_EDGE] ? "edge" : "node", wk_shown(name->text, name->length, shown));
        if (nearest)
            mut_hint(r->job, "did you mean %s?", nearest);
        return false;
    }
    return true;
}

static bool take_flag(reading *r, member which, bool *ret_flag)
{
    const st_node *node = r->found[which];
    if (!node)
        return true;
    if (node->kind != ST_NODE_BOOL) {
        mut_fault(r->job, r->record->number, SLUICE_INPUT_SYNTAX, "\"%s\" is true or false", members[which]);
        return false;
    }
    *ret_flag = node->boolean;
    return true;
}

static bool take_object(reading *r, member which, const st_node **ret_node)
{
    *ret_node = r->found[which];
    if (!*ret_node || (*ret_node)->kind == ST_NODE_OBJECT)
        return true;
    mut_fault(r->job, r->record->number, SLUICE_INPUT_SYNTAX, "\"%s\" is an object of property names and values",
              members[which]);
    return false;
}

static bool names_key(const reading *r)
{
    const mut_type *type = r->record->type;
    const st_node *set = r->record->set;
    for (uint32_t i = 0; i < type->def->key_count; i++)
        if (!set || !st_node_member(set, type->def->properties[type->def->key[i]].name))
            return false;
    return true;
}

static bool refuse_unnamed(reading *r)
{
    (void)refuse(r, "\"key\" is missing");
    mut_hint(r->job, "\"key\" says which one, as in \"key\": 7%s",
             r->record->type->def->key_count > 1 ? "; of several members a list: [\"a\", 1]" : "");
    return false;
}

static bool refuse_keyless(reading *r)
{
    const st_type_def *def = r->record->type->def;
    char word[PF_WORD_BYTES];
    mut_fault(r->job, r->record->number, SLUICE_INPUT_SYNTAX,
              "%s has no key: its %s are named by \"_row_id\", as in \"_row_id\": 7", def->name,
              def->edge ? "edges" : "nodes");
    if (def->edge)
        mut_hint(r->job, "`sluice scan GRAPH %s --columns _row_id,from,to` shows them", pf_word(word, def->name));
    else
        mut_hint(r->job, "`sluice scan GRAPH %s` shows them", pf_word(word, def->name));
    return false;
}

/* How the object is named: by key (perhaps inside "set"), by ends, by row id, or, to be inserted, not at all. */
static bool check_name(reading *r)
{
    const mut_record *record = r->record;
    const st_type_def *def = record->type->def;
    bool keyless = record->type->key_count == 0, makes = record->op == MUT_INSERT || record->op == MUT_UPSERT;
    bool ends = record->from && record->to;

    if (!def->edge && (record->from || record->to))
        return refuse(r, "a node has no \"from\" and \"to\"");
    if (keyless && record->op == MUT_UPSERT)
        return refuse(r, "upsert finds objects by their key, and the type has none");
    if (keyless && record->op == MUT_INSERT) {
        if (record->key)
            return refuse(r, "the type has no key: the store gives each object a row id");
        return !def->edge || ends || refuse(r, "an edge has \"from\" and \"to\"");
    }
    if (keyless) {
        if (record->from || record->to || (record->key && record->row_id) || (record->key && def->edge) ||
            (!record->key && !record->row_id))
            return refuse_keyless(r);
        return true;
    }
    if (record->row_id)
        return refuse(r, "objects of this type are named by their key, not by \"_row_id\"");
    if (def->edge && !ends)
        return refuse(r, "an edge is named by \"from\" and \"to\"");
    if (def->key_count == 0)
        return !record->key || refuse(r, "edges of this type have no key beside their ends");
    return record->key || (makes && names_key(r)) || refuse_unnamed(r);
}

static bool check_shape(reading *r)
{
    mut_record *record = r->record;
    unsigned asked = (record->op == MUT_ASSERT && record->condition) + record->absent + record->present;

    if (record->op == MUT_UPDATE && (!record->set || record->set->count == 0))
        return refuse(r, "update needs \"set\" with at least one property");
    if (record->op == MUT_ASSERT && asked != 1)
        return refuse(r, "assert needs one of \"equals\", \"absent\": true, \"present\": true");
    if (record->detach && record->type->def->edge)
        return refuse(r, "\"detach\" is for nodes");
    return check_name(r);
}

static bool understand(reading *r)
{
    mut_record *record = r->record;
    record->key = r->found[M_KEY];
    record->from = r->found[M_FROM];
    record->to = r->found[M_TO];
    record->row_id = r->found[M_ROW_ID];
    return take_object(r, M_SET, &record->set) &&
           take_object(r, record->op == MUT_ASSERT ? M_EQUALS : M_IF, &record->condition) &&
           take_flag(r, M_DETACH, &record->detach) && take_flag(r, M_ABSENT, &record->absent) &&
           take_flag(r, M_PRESENT, &record->present) && check_shape(r);
}

static sluice_status note_line(mut_job *job, uint64_t line, sluice_error *err)
{
    if (job->record + 1 >= job->line_room) {
        uint32_t room = job->line_room ? job->line_room * 2 : 64;
        uint64_t *lines = realloc(job->lines, room * sizeof(*lines));
        if (!lines)
            return pf_fail_memory(err);
        job->lines = lines;
        job->line_room = room;
    }
    job->lines[++job->record] = line;
    return SLUICE_OK;
}

/* The next line that is not blank. */
static bool next_line(const mut_job *job, size_t *at, uint64_t *line, const char **ret_text, size_t *ret_length)
{
    while (*at < job->length) {
        const char *text = job->text + *at, *end = memchr(text, '\n', job->length - *at);
        size_t length = end ? (size_t)(end - text) : job->length - *at, used = 0;
        *at += length + (end != NULL);
        ++*line;
        while (used < length && strchr(" \t\r", text[used]) != NULL && text[used] != '\0')
            used++;
        if (used < length) {
            *ret_text = text;
            *ret_length = length;
            return true;
        }
    }
    return false;
}

sluice_status mut_record_next(mut_job *job, size_t *at, uint64_t *line, st_tree **ret_tree, mut_record *ret_record,
                              bool *ret_any, sluice_error *err)
{
    const char *text = NULL, *problem = NULL;
    size_t length = 0;
    uint64_t within = 0;
    sluice_error parse_error = {0};

    *ret_tree = NULL;
    *ret_record = (mut_record){0};
    *ret_any = next_line(job, at, line, &text, &length);
    if (!*ret_any)
        return SLUICE_OK;
    PF_TRY(note_line(job, *line, err));
    ret_record->number = job->record;
    if (job->record > CO_MUTATE_RECORDS_MAX) {
        mut_fault(job, job->record, SLUICE_RESOURCE_LIMIT, "a file has at most %u mutations", CO_MUTATE_RECORDS_MAX);
        return SLUICE_OK;
    }
    sluice_status status = st_tree_parse(text, length, NODES_MAX, ret_tree, &problem, &within, &parse_error);
    if (status == SLUICE_INPUT_SYNTAX || status == SLUICE_RESOURCE_LIMIT) {
        mut_fault(job, job->record, status, "%s", problem ? problem : parse_error.text);
        return SLUICE_OK;
    }
    if (status != SLUICE_OK) {
        if (err)
            *err = parse_error;
        return status;
    }
    reading r = {.job = job, .record = ret_record};
    if (!take_members(&r, st_tree_root(*ret_tree)) || !take_op(&r) || !take_type(&r))
        return SLUICE_OK;
    PF_TRY(mut_type_need(job, ret_record->type, err));
    (void)understand(&r);
    return SLUICE_OK;
}
