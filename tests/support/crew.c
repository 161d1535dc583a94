/* Workers over one region, supervised by the test (crew.h). */
#include "tests/support/crew.h"
#include "tests/support/child.h"
#include "tests/support/test.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_US 200

typedef struct crew_member {
    crew *all;
    uint32_t seat;
    crew_fn *run;
    void *context;
    const char *failpoint;
    shm_gate_user user;
    shm_publisher publisher;
    wk_executor executor;
} crew_member;

void crew_make(crew *all, uint32_t count, uint32_t slice)
{
    sluice_error err = {0};
    const shm_config config = {count, 4, 64, 16, slice};
    *all = (crew){.count = count};
    assert_true(count <= CREW_MAX);
    ASSERT_OK(shm_region_make(&config, &all->region, &err));
    all->region.latch_wait_ms = SHM_WORKER_LATCH_MS; /* this supervisor has nothing else to do */
}

void crew_free(crew *all)
{
    for (uint32_t i = 0; i < all->count; i++)
        assert_int_equal(all->pids[i], 0);
    assert_true(shm_publish_check(&all->region));
    assert_true(shm_gates_check(&all->region));
    shm_region_free(&all->region);
}

static bool is_allowed(void *context)
{
    crew_member *me = context;
    return shm_token_allowed(&me->all->region, &me->publisher.token);
}

static int work(void *context)
{
    crew_member *me = context;
    sluice_error err = {0};
    if (me->failpoint && setenv("SLUICE_FAILPOINT", me->failpoint, 1) != 0)
        return 120;
    if (me->failpoint && pf_failpoints_init(&err) != SLUICE_OK)
        return 121;
    shm_token token = me->all->tokens[me->seat];
    me->user = (shm_gate_user){&me->all->region, token};
    me->publisher = (shm_publisher){&me->all->region, token};
    lk_gate_hooks hooks = shm_gate_hooks(&me->user);
    me->executor = (wk_executor){.context = me,
                                 .workers = 1,
                                 .gates = &hooks,
                                 .publisher = &me->publisher,
                                 .epoch = me->all->region.header->epoch,
                                 .allowed = is_allowed};
    return me->run(me->context, &me->executor);
}

void crew_start(crew *all, uint32_t seat, crew_fn *run, void *context, const char *failpoint)
{
    crew_member member = {.all = all, .seat = seat, .run = run, .context = context, .failpoint = failpoint};
    assert_true(seat < all->count && all->pids[seat] == 0);
    all->tokens[seat] = shm_slot_assign(&all->region, seat);
    all->pids[seat] = test_child(work, &member);
}

static void bury(crew *all, uint32_t seat)
{
    sluice_error err = {0};
    all->pids[seat] = 0;
    shm_slot_revoke(&all->region, seat);
    ASSERT_OK(shm_gates_bury(&all->region, seat, &err));
    ASSERT_OK(shm_publish_bury(&all->region, seat, &err));
    shm_wake_all(&all->region);
}

int crew_end(crew *all, uint32_t seat)
{
    int status = test_child_wait(all->pids[seat]);
    bury(all, seat);
    return status;
}

void crew_end_all(crew *all)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (all->pids[i] != 0)
            assert_int_equal(crew_end(all, i), 0);
}

void crew_kill(crew *all, uint32_t seat)
{
    test_child_kill(all->pids[seat]);
    bury(all, seat);
}

static bool give_up(unsigned turn)
{
    return turn > TEST_WAIT_MS * 1000u / LOOK_US;
}

void crew_wait_for(const crew *all, uint32_t seat, shm_publish_state state)
{
    for (unsigned turn = 0; all->region.publish->entries[seat].state != (uint64_t)state; turn++) {
        assert_false(give_up(turn));
        (void)usleep(LOOK_US);
    }
}

void crew_wait_in_line_or_ended(const crew *all, uint32_t seat, const unsigned *ended)
{
    for (unsigned turn = 0; all->region.publish->entries[seat].state == SHM_PUBLISH_FREE; turn++) {
        if (__atomic_load_n(ended, __ATOMIC_ACQUIRE))
            return;
        assert_false(give_up(turn));
        (void)usleep(LOOK_US);
    }
}

void crew_wait_in_line(const crew *all, uint32_t count)
{
    for (unsigned turn = 0;; turn++) {
        uint32_t there = 0;
        for (uint32_t i = 0; i < all->count; i++) {
            uint64_t state = all->region.publish->entries[i].state;
            there += state == SHM_PUBLISH_READY || state == SHM_PUBLISH_TAKEN;
        }
        if (there >= count)
            return;
        assert_false(give_up(turn));
        (void)usleep(LOOK_US);
    }
}

void crew_wait_stopped(const crew *all, uint32_t seat)
{
    int status = 0;
    for (unsigned turn = 0; waitpid(all->pids[seat], &status, WUNTRACED | WNOHANG) == 0; turn++) {
        assert_false(give_up(turn));
        (void)usleep(LOOK_US);
    }
    assert_true(WIFSTOPPED(status));
}
