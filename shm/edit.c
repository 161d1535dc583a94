/*
 * The intent record of a latch: values before, saved word by word (see shm/edit.h).
 *
 * Every store here is an atomic one that comes after all before it (release): compiler and processor keep their order,
 * and a process that is killed has made a prefix of them. None needs to be seen before a later load: whoever reads them
 * has got the latch, and taking and giving that back is a full barrier. The phase word says how many saved words count;
 * it moves on only after the pair that it newly counts is complete.
 */
#include "shm/edit.h"
#include "platform/check.h"

static uint64_t phase_of(shm_operation operation, uint32_t saved)
{
    return (uint64_t)operation << 32 | saved;
}

static void put(shm_word *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

void shm_edit_begin(shm_edit *edit, shm_intent *intent, void *base, shm_operation operation)
{
    PF_ASSERT(intent->phase == 0);
    *edit = (shm_edit){.intent = intent, .base = base, .operation = operation};
    put(&intent->phase, phase_of(operation, 0));
}

void shm_set(shm_edit *edit, shm_word *word, uint64_t value)
{
    if (*word == value)
        return;
    PF_ALWAYS(edit->saved < SHM_EDIT_WORDS);
    put(&edit->intent->words[edit->saved].offset, (uintptr_t)word - (uintptr_t)edit->base);
    put(&edit->intent->words[edit->saved].before, *word);
    put(&edit->intent->phase, phase_of(edit->operation, ++edit->saved));
    put(word, value);
}

void shm_edit_commit(shm_edit *edit)
{
    put(&edit->intent->phase, 0);
}

bool shm_edit_undo(shm_intent *intent, void *base, size_t length)
{
    uint32_t saved = (uint32_t)intent->phase;
    if (saved > SHM_EDIT_WORDS)
        return false;
    for (uint32_t i = saved; i-- > 0;) {
        uint64_t offset = intent->words[i].offset;
        if (offset % sizeof(shm_word) != 0 || length < sizeof(shm_word) || offset > length - sizeof(shm_word))
            return false;
        shm_word *word = (shm_word *)(void *)((uint8_t *)base + offset);
        *word = intent->words[i].before;
    }
    intent->phase = 0;
    return true;
}
