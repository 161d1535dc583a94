/* Coroutines and their scheduler (fiber.h). */
#include "fiber.h"

#include "platform/check.h"
#include "platform/sim.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define STACK ((size_t)4 << 20)
#else
#define STACK ((size_t)1 << 20)
#endif
#define GUARD ((size_t)4096)

typedef enum state { READY, SLEEPS, WAITS, STOPPED, ENDED } state;

typedef struct fiber {
    ucontext_t context;
    void *stack; /* of the mapping, guard first */
    void *fake;  /* the sanitizer's */
    void (*run)(void *context);
    void *argument;
    state state;
    int64_t until_ns;    /* SLEEPS, WAITS */
    uint64_t until_step; /* STOPPED */
} fiber;

struct fibers {
    fiber items[FIBERS_MAX];
    uint32_t count, current;
    ucontext_t main;
    void *main_fake;
    const void *main_bottom;
    size_t main_size;
    uint64_t random, step, limit;
    fiber_turns turns;
    uint32_t listed; /* switches of the list that are behind us */
    fiber_switch *made;
    uint32_t made_count, made_room;
    bool late;
};

static void *spare[FIBERS_MAX]; /* stacks of earlier histories */
static fibers *entering;        /* makecontext passes only ints */

static uint64_t next_random(fibers *all)
{
    uint64_t z = all->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void *stack_take(void)
{
    for (uint32_t i = 0; i < FIBERS_MAX; i++) {
        void *stack = spare[i];
        spare[i] = NULL;
        if (stack)
            return stack;
    }
    void *stack = mmap(NULL, GUARD + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    PF_ALWAYS(stack != MAP_FAILED);
    PF_ALWAYS(mprotect(stack, GUARD, PROT_NONE) == 0);
    return stack;
}

static void stack_give(void *stack)
{
    for (uint32_t i = 0; i < FIBERS_MAX; i++) {
        if (!spare[i]) {
            spare[i] = stack;
            return;
        }
    }
    PF_ALWAYS(munmap(stack, GUARD + STACK) == 0);
}

/* ---- switching ---- */

static void finish_switch(fibers *all, void *fake, bool from_main)
{
#if defined(__SANITIZE_ADDRESS__)
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(fake, &bottom, &size);
    if (from_main) {
        all->main_bottom = bottom;
        all->main_size = size;
    }
#else
    (void)all, (void)fake, (void)from_main;
#endif
}

static void enter(void)
{
    fibers *all = entering;
    fiber *self = &all->items[all->current];

    finish_switch(all, NULL, true);
    self->run(self->argument);
    all->step++; /* so that no two switches are at one step */
    self->state = ENDED;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(NULL, all->main_bottom, all->main_size);
#endif
    (void)swapcontext(&self->context, &all->main);
    abort(); /* an ended one is never entered again */
}

static void to_main(fibers *all)
{
    fiber *self = &all->items[all->current];
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&self->fake, all->main_bottom, all->main_size);
#endif
    PF_ALWAYS(swapcontext(&self->context, &all->main) == 0);
    finish_switch(all, self->fake, true);
}

static void to_fiber(fibers *all, uint32_t index)
{
    fiber *next = &all->items[index];
    all->current = index;
    entering = all;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&all->main_fake, (char *)next->stack + GUARD, STACK);
#endif
    PF_ALWAYS(swapcontext(&all->main, &next->context) == 0);
    finish_switch(all, all->main_fake, false);
}

/* ---- who is next ---- */

static bool is_ready(fibers *all, uint32_t index)
{
    fiber *one = &all->items[index];
    if (one->state == SLEEPS || one->state == WAITS) {
        if (pf_sim_world_now() >= one->until_ns)
            one->state = READY;
    } else if (one->state == STOPPED && all->step >= one->until_step) {
        one->state = READY;
    }
    return one->state == READY;
}

static uint32_t ready_ones(fibers *all, uint32_t *ret)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < all->count; i++)
        if (is_ready(all, i))
            ret[count++] = i;
    return count;
}

/* All wait: who stands still and would be the first to go on does, else time does, or the other way round. False:
 * nothing can ever happen. */
static bool wake_some(fibers *all)
{
    int64_t first = INT64_MAX;
    fiber *stopped = NULL;
    bool waited_for = false;
    for (uint32_t i = 0; i < all->count; i++)
        waited_for = waited_for || ((all->items[i].state == SLEEPS || all->items[i].state == WAITS) &&
                                    all->items[i].until_ns != INT64_MAX);
    for (uint32_t i = 0; i < all->count; i++) {
        fiber *one = &all->items[i];
        if (one->state == STOPPED && !(one->until_step % 2 && waited_for)) {
            if (!stopped || one->until_step < stopped->until_step)
                stopped = one;
        } else if ((one->state == SLEEPS || one->state == WAITS) && one->until_ns < first) {
            first = one->until_ns;
        }
    }
    if (stopped)
        stopped->state = READY;
    else if (first != INT64_MAX)
        pf_sim_world_advance(first);
    return stopped || first != INT64_MAX;
}

static void note_switch(fibers *all, uint32_t to)
{
    if (all->made_count == all->made_room) {
        all->made_room = all->made_room ? 2 * all->made_room : 64;
        all->made = realloc(all->made, all->made_room * sizeof *all->made);
        PF_ALWAYS(all->made);
    }
    all->made[all->made_count++] = (fiber_switch){(uint32_t)all->step, to};
}

/* The list's switch of this step, or FIBERS_MAX. */
static uint32_t listed_switch(fibers *all)
{
    while (all->listed < all->turns.count && all->turns.items[all->listed].step < all->step)
        all->listed++;
    if (all->listed < all->turns.count && all->turns.items[all->listed].step == all->step)
        return all->turns.items[all->listed].to;
    return FIBERS_MAX;
}

static bool is_wanted(fibers *all)
{
    if (all->late)
        return false;
    return all->turns.listed ? listed_switch(all) < FIBERS_MAX : next_random(all) % all->turns.one_in == 0;
}

static uint32_t choose(fibers *all, const uint32_t *ready, uint32_t count)
{
    if (!all->turns.listed)
        return ready[next_random(all) % count];
    uint32_t wanted = listed_switch(all);
    for (uint32_t i = 0; i < count; i++)
        if (ready[i] == wanted)
            return wanted;
    return ready[0];
}

/* Who waits for ever would never be woken: a circle. False: all have ended. */
static bool give_up_waiting(fibers *all)
{
    bool some = false;
    for (uint32_t i = 0; i < all->count; i++) {
        if (all->items[i].state == ENDED)
            continue;
        all->items[i].state = READY;
        some = all->late = true;
    }
    return some;
}

bool fibers_run(fibers *all, uint64_t steps)
{
    all->limit = steps;
    for (;;) {
        uint32_t ready[FIBERS_MAX], count = ready_ones(all, ready);
        if (count == 0) {
            if (!wake_some(all) && !give_up_waiting(all))
                return !all->late;
            continue;
        }
        uint32_t next = choose(all, ready, count);
        note_switch(all, next);
        to_fiber(all, next);
    }
}

/* ---- called by the one that runs ---- */

uint32_t fibers_current(const fibers *all)
{
    return all->current;
}

static void count_step(fibers *all)
{
    if (++all->step > all->limit)
        all->late = true;
}

uint64_t fibers_now(const fibers *all)
{
    return all->step;
}

uint64_t fibers_step(fibers *all)
{
    count_step(all);
    uint64_t step = all->step;
    if (is_wanted(all))
        to_main(all);
    return step;
}

void fibers_sleep(fibers *all, int64_t until_ns)
{
    fiber *self = &all->items[all->current];
    PF_ALWAYS(until_ns != INT64_MAX);
    count_step(all);
    self->state = SLEEPS;
    self->until_ns = until_ns;
    to_main(all);
}

bool fibers_wait(fibers *all, int64_t until_ns)
{
    fiber *self = &all->items[all->current];
    bool alone = true;
    for (uint32_t i = 0; i < all->count; i++)
        alone = alone && (i == all->current || all->items[i].state == ENDED ||
                          (all->items[i].state == WAITS && all->items[i].until_ns == INT64_MAX));
    if (all->late || (alone && until_ns == INT64_MAX))
        return false;
    count_step(all);
    self->state = WAITS;
    self->until_ns = until_ns;
    to_main(all);
    return true;
}

void fibers_release(fibers *all)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (all->items[i].state == WAITS)
            all->items[i].state = READY;
}

static void stop_until(fibers *all, uint64_t until_step)
{
    fiber *self = &all->items[all->current];
    self->state = STOPPED;
    self->until_step = until_step;
    to_main(all);
}

void fibers_stop(fibers *all, uint64_t steps)
{
    count_step(all);
    stop_until(all, all->step + steps);
}

void fibers_stop_for_good(fibers *all)
{
    count_step(all);
    stop_until(all, UINT64_MAX - 1);
}

void fibers_go_on(fibers *all, uint32_t index)
{
    if (all->items[index].state == STOPPED)
        all->items[index].state = READY;
}

bool fibers_are_late(const fibers *all)
{
    return all->late;
}

const fiber_switch *fibers_switches(const fibers *all, uint32_t *ret_count)
{
    *ret_count = all->made_count;
    return all->made;
}

/* ---- making ---- */

fibers *fibers_new(uint64_t seed, const fiber_turns *turns)
{
    fibers *all = calloc(1, sizeof *all);
    PF_ALWAYS(all);
    all->random = seed;
    all->turns = *turns;
    return all;
}

uint32_t fibers_add(fibers *all, void (*run)(void *context), void *context)
{
    PF_ALWAYS(all->count < FIBERS_MAX);
    fiber *one = &all->items[all->count];
    one->stack = stack_take();
    one->run = run;
    one->argument = context;
    PF_ALWAYS(getcontext(&one->context) == 0);
    one->context.uc_stack.ss_sp = (char *)one->stack + GUARD;
    one->context.uc_stack.ss_size = STACK;
    one->context.uc_link = NULL;
    makecontext(&one->context, enter, 0);
    return all->count++;
}

void fibers_free(fibers *all)
{
    if (!all)
        return;
    for (uint32_t i = 0; i < all->count; i++) {
        PF_ALWAYS(all->items[i].state == ENDED);
        stack_give(all->items[i].stack);
    }
    free(all->made);
    free(all);
}
