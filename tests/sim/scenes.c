/* Scenes (scenes.txt): plans that lead to places where much can go wrong. */
#include "model.h"
#include "plan.h"
#include "platform/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCENES_MAX 64u

static sim_plan scenes[SCENES_MAX];
static uint32_t scene_count;

/* One paragraph each; lines that begin with # say what follows. */
static void read_scenes(void)
{
    static char text[1 << 15];
    FILE *file = scene_count ? NULL : fopen(TEST_GOLDEN_DIR "/../sim/scenes.txt", "r");
    if (scene_count)
        return;
    PF_ALWAYS(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    PF_ALWAYS(fclose(file) == 0);
    for (char *at = text; *at;) {
        char *end = strstr(at, "\n\n");
        if (end)
            *end = '\0';
        sim_plan scene;
        PF_ALWAYS(scene_count < SCENES_MAX && sim_plan_read(at, &scene));
        if (scene.op_count)
            scenes[scene_count++] = scene;
        at = end ? end + 2 : at + strlen(at);
    }
    PF_ALWAYS(scene_count);
}

static uint32_t draw(uint64_t *random, uint32_t bound)
{
    *random = sim_mix(*random);
    return (uint32_t)(*random >> 16) % bound;
}

/* Equal ones stay equal, and the remainder by 12 what it was. */
static uint64_t salt_of(uint64_t salt, uint64_t random)
{
    return salt + 12 * (sim_mix(random ^ salt) >> 8);
}

static void vary(uint64_t *random, sim_fault *fault)
{
    bool stops = fault->kind == SIM_FAULT_STOP || fault->kind == SIM_FAULT_AWAIT;
    if (fault->at == 0 && fault->kind != SIM_FAULT_AWAIT)
        fault->at = 1 + draw(random, 160);
    if (fault->times == 0 && fault->kind == SIM_FAULT_STOP)
        fault->times = 3000 + draw(random, 3000); /* odd: also while others wait for it */
    else if (fault->times == 0 && !stops)
        fault->times = 1 + draw(random, 6);
    if (fault->loss == PF_SIM_LOSE_ALL && !stops && draw(random, 4) == 0)
        fault->loss = PF_SIM_RANDOM;
}

void sim_plan_scene(uint64_t turn, uint64_t *random, sim_plan *ret_plan)
{
    sim_plan scene;
    read_scenes();
    scene = scenes[turn % scene_count];
    scene.seed = ret_plan->seed;
    scene.turns = ret_plan->turns;
    scene.pool = scene.pool || ret_plan->pool;
    uint64_t base = sim_mix(*random);
    for (uint32_t i = 0; i < scene.op_count; i++)
        scene.ops[i].salt =
            scene.ops[i].salt ? salt_of(scene.ops[i].salt, base) : sim_mix(*random += i + 1); /* 0: any */
    for (uint32_t i = 0; i < scene.fault_count; i++)
        vary(random, &scene.faults[i]);
    *ret_plan = scene;
}
