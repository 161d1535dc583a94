/*
 * JSON trees (tree.h). Nodes and texts live in one arena of blocks that goes with the tree. Duplicate names are found
 * by sorting each object's names when it closes, so that an object of n members costs n log n.
 */
#include "store/format/tree.h"
#include "platform/check.h"
#include "store/format/tokens.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 16384u

typedef struct block {
    struct block *next;
    size_t used, size;
    _Alignas(16) uint8_t bytes[];
} block;

struct st_tree {
    block *blocks;
    st_node *root;
    uint32_t nodes, max_nodes;
};

static sluice_status arena_take(st_tree *tree, size_t size, void **ret_memory, sluice_error *err)
{
    size_t wanted = (size + 15) & ~(size_t)15;
    block *top = tree->blocks;
    if (!top || top->size - top->used < wanted) {
        size_t room = wanted > BLOCK_BYTES ? wanted : BLOCK_BYTES;
        block *fresh = malloc(sizeof(block) + room);
        if (!fresh)
            return pf_fail_memory(err);
        *fresh = (block){.next = top, .size = room};
        tree->blocks = top = fresh;
    }
    *ret_memory = top->bytes + top->used;
    top->used += wanted;
    memset(*ret_memory, 0, wanted);
    return SLUICE_OK;
}

/* A zero-terminated copy of a token's text, decoded. */
static sluice_status keep_text(st_tree *tree, const st_token *token, const char **ret_text, size_t *ret_length,
                               sluice_error *err)
{
    pf_buffer decoded = {0};
    void *memory = NULL;
    sluice_status status = SLUICE_OK;
    if (token->escaped)
        PF_GOTO(status, done, st_token_decode(token, &decoded, err));
    const void *from = token->escaped ? (const void *)decoded.data : token->text;
    *ret_length = token->escaped ? decoded.length : token->length;
    PF_GOTO(status, done, arena_take(tree, *ret_length + 1, &memory, err));
    if (*ret_length > 0)
        memcpy(memory, from, *ret_length);
    *ret_text = memory;
done:
    pf_buffer_free(&decoded);
    return status;
}

static sluice_status new_node(st_tree *tree, const st_token *token, st_node *parent, st_node **ret_node,
                              sluice_error *err)
{
    void *memory = NULL;
    if (tree->nodes == tree->max_nodes)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a document of more than %u values", (unsigned)tree->max_nodes);
    PF_TRY(arena_take(tree, sizeof(st_node), &memory, err));
    tree->nodes++;
    st_node *node = memory;
    node->line = token->line;
    node->parent = parent;
    switch (token->kind) {
    case ST_TOKEN_OBJECT:
        node->kind = ST_NODE_OBJECT;
        break;
    case ST_TOKEN_ARRAY:
        node->kind = ST_NODE_ARRAY;
        break;
    case ST_TOKEN_STRING:
    case ST_TOKEN_NUMBER:
        node->kind = token->kind == ST_TOKEN_STRING ? ST_NODE_STRING : ST_NODE_NUMBER;
        PF_TRY(keep_text(tree, token, &node->text, &node->length, err));
        break;
    case ST_TOKEN_TRUE:
    case ST_TOKEN_FALSE:
        node->kind = ST_NODE_BOOL;
        node->boolean = token->kind == ST_TOKEN_TRUE;
        break;
    case ST_TOKEN_NULL:
        node->kind = ST_NODE_NULL;
        break;
    case ST_TOKEN_END:
    case ST_TOKEN_OBJECT_END:
    case ST_TOKEN_ARRAY_END:
    case ST_TOKEN_NAME:
        PF_NEVER("a token that begins a value");
    }
    *ret_node = node;
    return SLUICE_OK;
}

static int compare_names(const void *a, const void *b)
{
    const st_node *one = *(const st_node *const *)a, *two = *(const st_node *const *)b;
    size_t shorter = one->name_length < two->name_length ? one->name_length : two->name_length;
    int order = memcmp(one->name, two->name, shorter);
    if (order != 0)
        return order;
    return one->name_length < two->name_length ? -1 : one->name_length > two->name_length;
}

/* Two members of one name: *ret_line is the line of the first that repeats one. */
static sluice_status check_names(const st_node *object, bool *ret_twice, uint64_t *ret_line, sluice_error *err)
{
    *ret_twice = false;
    if (object->kind != ST_NODE_OBJECT || object->count < 2)
        return SLUICE_OK;
    const st_node **members = malloc(object->count * sizeof(*members));
    if (!members)
        return pf_fail_memory(err);
    uint32_t count = 0;
    for (const st_node *member = object->first; member; member = member->next)
        members[count++] = member;
    qsort(members, count, sizeof(*members), compare_names);
    for (uint32_t i = 1; i < count; i++) {
        if (compare_names(&members[i - 1], &members[i]) != 0)
            continue;
        uint64_t line = members[i]->line > members[i - 1]->line ? members[i]->line : members[i - 1]->line;
        if (!*ret_twice || line < *ret_line)
            *ret_line = line;
        *ret_twice = true;
    }
    free(members);
    return SLUICE_OK;
}

typedef struct cursor { /* where the next node is hung in */
    st_node *parent, *last;
} cursor;

static void hang_in(st_tree *tree, cursor *place, st_node *node, const char *name, size_t name_length)
{
    st_node *parent = place->parent;
    if (!parent) {
        tree->root = node;
        return;
    }
    if (parent->kind == ST_NODE_OBJECT) {
        node->name = name;
        node->name_length = name_length;
    }
    if (parent->count == 0)
        parent->first = node;
    else
        place->last->next = node;
    node->position = parent->count++;
    place->last = node;
}

/* Reads the whole document; levels are kept in `stack`, so nothing recurses. */
static sluice_status read_nodes(st_tree *tree, st_tokens *tokens, const char **ret_problem, uint64_t *ret_line,
                                sluice_error *err)
{
    cursor stack[ST_TOKENS_DEPTH + 1] = {{0}};
    const char *name = NULL;
    size_t name_length = 0;
    unsigned depth = 0;
    for (;;) {
        st_token token;
        if (!st_tokens_next(tokens, &token)) {
            *ret_problem = tokens->problem;
            *ret_line = tokens->line;
            return pf_fail(err, SLUICE_INPUT_SYNTAX, "not valid JSON: %s", tokens->problem);
        }
        if (token.kind == ST_TOKEN_END)
            return SLUICE_OK;
        if (token.kind == ST_TOKEN_NAME) {
            PF_TRY(keep_text(tree, &token, &name, &name_length, err));
            continue;
        }
        if (token.kind == ST_TOKEN_OBJECT_END || token.kind == ST_TOKEN_ARRAY_END) {
            bool twice;
            PF_TRY(check_names(stack[depth].parent, &twice, ret_line, err));
            if (twice) {
                *ret_problem = "a name stands twice in one object";
                return pf_fail(err, SLUICE_INPUT_SYNTAX, "not valid JSON: %s", *ret_problem);
            }
            depth--;
            continue;
        }
        st_node *node = NULL;
        PF_TRY(new_node(tree, &token, stack[depth].parent, &node, err));
        hang_in(tree, &stack[depth], node, name, name_length);
        if (node->kind == ST_NODE_OBJECT || node->kind == ST_NODE_ARRAY)
            stack[++depth] = (cursor){.parent = node};
    }
}

sluice_status st_tree_parse(const char *text, size_t length, uint32_t max_nodes, st_tree **ret_tree,
                            const char **ret_problem, uint64_t *ret_line, sluice_error *err)
{
    st_tokens tokens;
    st_tree *tree = calloc(1, sizeof(*tree));
    *ret_problem = NULL;
    *ret_line = 0;
    if (!tree)
        return pf_fail_memory(err);
    tree->max_nodes = max_nodes;
    st_tokens_begin(&tokens, text, length);
    sluice_status status = read_nodes(tree, &tokens, ret_problem, ret_line, err);
    if (status != SLUICE_OK) {
        st_tree_free(tree);
        return status;
    }
    *ret_tree = tree;
    return SLUICE_OK;
}

void st_tree_free(st_tree *tree)
{
    if (!tree)
        return;
    while (tree->blocks) {
        block *next = tree->blocks->next;
        free(tree->blocks);
        tree->blocks = next;
    }
    free(tree);
}

const st_node *st_tree_root(const st_tree *tree)
{
    return tree->root;
}

const st_node *st_node_member(const st_node *object, const char *name)
{
    size_t length = strlen(name);
    PF_ASSERT(object->kind == ST_NODE_OBJECT);
    for (const st_node *member = object->first; member; member = member->next)
        if (member->name_length == length && memcmp(member->name, name, length) == 0)
            return member;
    return NULL;
}

const char *st_node_kind_name(st_node_kind kind)
{
    static const char *const names[] = {"an object", "an array", "a string", "a number", "true or false", "null"};
    return names[kind];
}

static bool is_plain(const char *name)
{
    if (!*name)
        return false;
    for (; *name; name++) {
        unsigned char c = (unsigned char)*name;
        if (c <= ' ' || c == '.' || c == '[' || c == '"' || c == 0x7F)
            return false;
    }
    return true;
}

void st_node_path(const st_node *node, char *ret_path, size_t size)
{
    const st_node *way[ST_TOKENS_DEPTH + 2];
    size_t count = 0, at = 0;
    ret_path[0] = '\0';
    for (; node->parent; node = node->parent)
        way[count++] = node;
    while (count > 0 && at < size) {
        const st_node *step = way[--count];
        const char *dot = at ? "." : "";
        int wrote;
        if (!step->name)
            wrote = snprintf(ret_path + at, size - at, "[%u]", (unsigned)step->position);
        else if (is_plain(step->name))
            wrote = snprintf(ret_path + at, size - at, "%s%s", dot, step->name);
        else
            wrote = snprintf(ret_path + at, size - at, "%s\"%s\"", dot, step->name);
        at += wrote > 0 ? (size_t)wrote : 0;
    }
}
