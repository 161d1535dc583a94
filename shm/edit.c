/*
 * The intent record of a latch: values before, saved word by word (see shm/edit.h).
 *
 * Every store here is an atomic one: the compiler keeps their order, and a process that is killed has made a prefix of
 * them. The phase word says how many saved words count; it moves on only after the pair that it newly counts is
 * complete.
 */
#include "shm/edit.h"
#include "platform/check.h"

static uint64_t phase_of(shm_operation operation, uint32_t saved)
{
    return (uint64_t)operation << 32 | saved;
}

void shm_edit_begin(shm_edit *edit, shm_intent *intent, void *base, shm_operation operation)
{
    PF_ASSERT(intent->phase == 0);
    *edit = (shm_edit){.intent = intent, .base = base, .operation = operation};
    intent->phase = phase_of(operation, 0);
}

void shm_set(shm_edit *edit, shm_word *word, uint64_t value)
{
    if (*word == value)
        return;
    PF_ALWAYS(edit->saved < SHM_EDIT_WORDS);
    edit->intent->words[edit->saved].offset = (uintptr_t)word - (uintptr_t)edit->base;
    edit->intent->words[edit->saved].before = *word;
    edit->intent->phase = phase_of(edit->operation, ++edit->saved);
    *word = value;
}

void shm_edit_commit(shm_edit *edit)
{
    edit->intent->phase = 0;
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
