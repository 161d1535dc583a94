/* The reference model (model.h). */
#include "model.h"

#include "platform/fail.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

uint64_t sim_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static unsigned draw(uint64_t *salt, unsigned bound)
{
    *salt = sim_mix(*salt);
    return (unsigned)(*salt >> 8) % bound;
}

static bool has(uint16_t set, int key)
{
    return set >> key & 1u;
}

/* ---- rules ---- */

const char *sim_state_broken(const sim_state *state)
{
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        const sim_node *node = &state->nodes[i];
        uint16_t ends = state->e[i] | state->l[i];
        if (!node->there && ends != 0)
            return "an edge begins at nothing";
        for (unsigned k = 0; k < SIM_KEYS; k++) {
            if (has(ends, (int)k) && !state->nodes[k].there)
                return "an edge ends at nothing";
            if (k != i && node->name != 0 && node->name == state->nodes[k].name)
                return "a unique value stands twice";
        }
        if (state->l[i] & (state->l[i] - 1u))
            return "a node has too many edges";
    }
    return NULL;
}

static void detach(sim_state *state, int key)
{
    state->e[key] = state->l[key] = 0;
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        state->e[i] &= (uint16_t) ~(1u << key);
        state->l[i] &= (uint16_t) ~(1u << key);
    }
}

static bool apply_step(sim_state *state, const sim_step *step)
{
    sim_node *node = &state->nodes[step->a];
    switch (step->kind) {
    case SIM_INSERT:
        if (node->there)
            return false;
        *node = (sim_node){1, (int16_t)step->b, (int16_t)step->c};
        return true;
    case SIM_UPSERT:
        if (!node->there)
            *node = (sim_node){1, 0, SIM_NULL};
        node->v = (int16_t)step->c;
        return true;
    case SIM_SET:
        node->v = (int16_t)(node->there ? step->c : 0);
        return node->there;
    case SIM_NAME:
        node->name = (int16_t)(node->there ? step->b : 0);
        return node->there;
    case SIM_SWAP:
        if (node->there && node->v == step->b)
            node->v = (int16_t)step->c;
        return node->there;
    case SIM_DETACH:
        detach(state, step->a);
        __attribute__((fallthrough));
    case SIM_DELETE: {
        bool there = node->there;
        *node = (sim_node){0, 0, 0};
        return there;
    }
    case SIM_EDGE:
    case SIM_LINK: {
        uint16_t *set = step->kind == SIM_EDGE ? &state->e[step->a] : &state->l[step->a];
        bool there = has(*set, step->b);
        *set |= (uint16_t)(1u << step->b);
        return !there;
    }
    case SIM_UNEDGE: {
        bool there = has(state->e[step->a], step->b);
        state->e[step->a] &= (uint16_t) ~(1u << step->b);
        return there;
    }
    case SIM_ABSENT:
        return !node->there;
    case SIM_IS:
        return node->there && node->v == step->c;
    case SIM_STEP_KINDS:
        break;
    }
    return false;
}

bool sim_apply(sim_state *state, const sim_step *steps, uint32_t count)
{
    bool good = true;
    for (uint32_t i = 0; i < count; i++)
        good = apply_step(state, &steps[i]) && good;
    return good && !sim_state_broken(state);
}

/* ---- mutations ---- */

uint32_t sim_steps_of(uint64_t salt, sim_step ret_steps[SIM_STEPS_MAX])
{
    static const sim_step_kind often[] = {SIM_INSERT, SIM_INSERT, SIM_INSERT, SIM_UPSERT, SIM_UPSERT,
                                          SIM_SET,    SIM_SET,    SIM_NAME,   SIM_SWAP,   SIM_SWAP,
                                          SIM_DELETE, SIM_DETACH, SIM_EDGE,   SIM_EDGE,   SIM_EDGE,
                                          SIM_UNEDGE, SIM_LINK,   SIM_LINK,   SIM_ABSENT, SIM_IS};
    uint32_t wanted = 1 + draw(&salt, 3), count = 0;
    uint16_t used = 0;
    for (uint32_t i = 0; i < wanted; i++) {
        sim_step step = {.kind = often[draw(&salt, sizeof often / sizeof *often)],
                         .a = (int)draw(&salt, SIM_KEYS),
                         .b = (int)draw(&salt, SIM_KEYS),
                         .c = (int)draw(&salt, 4)};
        bool edge = step.kind == SIM_EDGE || step.kind == SIM_UNEDGE || step.kind == SIM_LINK;
        if (has(used, step.a) || (edge && has(used, step.b)))
            continue;
        used |= (uint16_t)(1u << step.a | (edge ? 1u << step.b : 0u));
        if (step.kind == SIM_SWAP)
            step.b %= 4;
        ret_steps[count++] = step;
    }
    return count;
}

static void say(char *text, size_t room, const char *format, ...) PF_PRINTF(3, 4);
static void say(char *text, size_t room, const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text + length, room - length, format, arguments);
    va_end(arguments);
}

static void say_name(char *text, size_t room, int name)
{
    if (name == 0)
        say(text, room, "\"name\":null");
    else
        say(text, room, "\"name\":\"n%d\"", name);
}

static void say_step(const sim_step *s, char *text, size_t room)
{
    switch (s->kind) {
    case SIM_INSERT:
        say(text, room, "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":%d,", s->a);
        say_name(text, room, s->b);
        say(text, room, ",\"v\":%d}}\n", s->c);
        return;
    case SIM_UPSERT:
    case SIM_SET:
        say(text, room, "{\"op\":\"%s\",\"node\":\"P\",\"key\":%d,\"set\":{\"v\":%d}}\n",
            s->kind == SIM_UPSERT ? "upsert" : "update", s->a, s->c);
        return;
    case SIM_NAME:
        say(text, room, "{\"op\":\"update\",\"node\":\"P\",\"key\":%d,\"set\":{", s->a);
        say_name(text, room, s->b);
        say(text, room, "}}\n");
        return;
    case SIM_SWAP:
        say(text, room, "{\"op\":\"update\",\"node\":\"P\",\"key\":%d,\"set\":{\"v\":%d},\"if\":{\"v\":%d}}\n", s->a,
            s->c, s->b);
        return;
    case SIM_DELETE:
    case SIM_DETACH:
        say(text, room, "{\"op\":\"delete\",\"node\":\"P\",\"key\":%d%s}\n", s->a,
            s->kind == SIM_DETACH ? ",\"detach\":true" : "");
        return;
    case SIM_EDGE:
    case SIM_UNEDGE:
    case SIM_LINK:
        say(text, room, "{\"op\":\"%s\",\"edge\":\"%c\",\"from\":%d,\"to\":%d}\n",
            s->kind == SIM_UNEDGE ? "delete" : "insert", s->kind == SIM_LINK ? 'L' : 'E', s->a, s->b);
        return;
    case SIM_ABSENT:
        say(text, room, "{\"op\":\"assert\",\"node\":\"P\",\"key\":%d,\"absent\":true}\n", s->a);
        return;
    case SIM_IS:
        say(text, room, "{\"op\":\"assert\",\"node\":\"P\",\"key\":%d,\"equals\":{\"v\":%d}}\n", s->a, s->c);
        return;
    case SIM_STEP_KINDS:
        return;
    }
}

void sim_steps_text(const sim_step *steps, uint32_t count, char *ret_text, size_t room)
{
    ret_text[0] = '\0';
    for (uint32_t i = 0; i < count; i++)
        say_step(&steps[i], ret_text, room);
}

/* ---- loads ---- */

static unsigned loaded_key(unsigned s, unsigned i)
{
    return (s + i) % SIM_KEYS;
}

static int loaded_name(unsigned key)
{
    return (int)key + 20; /* of its own, but for what mutations call so */
}

void sim_load_text(unsigned s, char type, char *ret_text, size_t room)
{
    ret_text[0] = '\0';
    say(ret_text, room, "%s", type == 'P' ? "id,name,v\n" : type == 'U' ? "id,v\n" : "from,to\n");
    for (unsigned i = 0; i < SIM_LOADED; i++) {
        unsigned key = loaded_key(s, i), next = loaded_key(s, (i + 1) % SIM_LOADED);
        if (type == 'P')
            say(ret_text, room, "%u,n%d,%u\n", key, loaded_name(key), s);
        else if (type == 'U')
            say(ret_text, room, "%u,%u\n", key, s);
        else if (type == 'E' || i == 0)
            say(ret_text, room, "%u,%u\n", key, next);
    }
}

static bool add_loaded_edges(sim_state *state, unsigned s)
{
    bool good = true;
    for (unsigned i = 0; i < SIM_LOADED; i++) {
        unsigned key = loaded_key(s, i), next = loaded_key(s, (i + 1) % SIM_LOADED);
        good = good && !has(state->e[key], (int)next) && !(i == 0 && has(state->l[key], (int)next));
        state->e[key] |= (uint16_t)(1u << next);
        if (i == 0)
            state->l[key] |= (uint16_t)(1u << next);
    }
    return good;
}

bool sim_apply_insert(sim_state *state, unsigned s)
{
    bool good = true;
    for (unsigned i = 0; i < SIM_LOADED; i++) {
        unsigned key = loaded_key(s, i);
        good = good && !state->nodes[key].there;
        state->nodes[key] = (sim_node){1, (int16_t)loaded_name(key), (int16_t)s};
    }
    return add_loaded_edges(state, s) && good && !sim_state_broken(state);
}

bool sim_apply_upsert(sim_state *state, unsigned s)
{
    for (unsigned i = 0; i < SIM_LOADED; i++) {
        sim_node *node = &state->nodes[loaded_key(s, i)];
        if (!node->there)
            *node = (sim_node){1, 0, SIM_NULL};
        node->v = (int16_t)s;
    }
    return true;
}

unsigned sim_toy_key(uint64_t salt, bool blind)
{
    return (unsigned)(salt % SIM_TOY_KEYS) + (blind ? SIM_TOY_KEYS : 0);
}

bool sim_apply_toy(sim_state *state, unsigned key)
{
    bool there = has(state->t, (int)key);
    state->t |= (uint16_t)(1u << key);
    return !there;
}

void sim_apply_overwrite(sim_state *state, unsigned s)
{
    *state = (sim_state){.t = state->t};
    (void)sim_apply_insert(state, s);
}

/* ---- merges ---- */

static bool merge_value(int16_t base, int16_t source, int16_t *target)
{
    bool ours = *target != base, theirs = source != base;
    if (ours && theirs && *target != source)
        return false;
    if (theirs)
        *target = source;
    return true;
}

static bool merge_node(const sim_node *base, const sim_node *source, sim_node *target)
{
    bool same_theirs = memcmp(base, source, sizeof *base) == 0, same_ours = memcmp(base, target, sizeof *base) == 0;
    if (same_theirs || memcmp(source, target, sizeof *base) == 0)
        return true;
    if (same_ours) {
        *target = *source;
        return true;
    }
    if (!source->there || !target->there || !base->there)
        return false;
    return merge_value(base->name, source->name, &target->name) && merge_value(base->v, source->v, &target->v);
}

bool sim_apply_merge(const sim_state *base, const sim_state *source, sim_state *target)
{
    bool good = true;
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        good = merge_node(&base->nodes[i], &source->nodes[i], &target->nodes[i]) && good;
        target->e[i] = (uint16_t)((target->e[i] & ~(base->e[i] & ~source->e[i])) | (source->e[i] & ~base->e[i]));
        target->l[i] = (uint16_t)((target->l[i] & ~(base->l[i] & ~source->l[i])) | (source->l[i] & ~base->l[i]));
    }
    target->t = (uint16_t)((target->t & ~(base->t & ~source->t)) | (source->t & ~base->t));
    return good && !sim_state_broken(target);
}

void sim_state_text(const sim_state *state, char *ret_text, size_t room)
{
    ret_text[0] = '\0';
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        const sim_node *node = &state->nodes[i];
        if (node->there)
            say(ret_text, room, " %u(n%d v%d", i, node->name, node->v);
        else if (state->e[i] | state->l[i])
            say(ret_text, room, " %u(none", i);
        else
            continue;
        say(ret_text, room, " e%03x l%03x)", state->e[i], state->l[i]);
    }
    say(ret_text, room, " t%x", state->t);
}
