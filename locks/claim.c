/*
 * Claims (locks/claim.h).
 *
 * Crash rules: a take writes the sector that is not the newest and syncs; killed before that is whole, the older one
 * still rules and the next taker counts on from it. Giving back is not synced: what is lost of it reads as a death.
 */
#include "locks/claim.h"
#include "locks/order.h"
#include "platform/check.h"
#include "platform/clock.h"
#include "platform/digest.h"
#include "platform/sabotage.h"
#include <stdlib.h>
#include <string.h>

#define SECTOR    512u
#define SECOND_AT 2048u
#define VERSION   1u
#define AT_CHECK  504u
#define KEY_ROOM  40u

enum { HELD = 1, GIVEN_BACK = 2 };

static const char magic[8] = {'S', 'L', 'U', 'I', 'C', 'C', 'L', 'M'};
static const char *const keys[LK_CLAIM_COUNT] = {[LK_CLAIM_RETENTION] = "retention"};

typedef struct claim_sector {
    uint64_t sequence, term, state;
    pf_id owner;
} claim_sector;

struct lk_claim {
    pf_volume *volume;
    pf_file *file;
    lk_claim_key key;
    claim_sector held;
    bool taken_over;
};

static void put64(uint8_t *to, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get64(const uint8_t *from)
{
    uint64_t value = 0;
    for (unsigned i = 8; i-- > 0;)
        value = value << 8 | from[i];
    return value;
}

static void encode(const claim_sector *sector, lk_claim_key key, uint8_t bytes[SECTOR])
{
    memset(bytes, 0, SECTOR);
    memcpy(bytes, magic, sizeof magic);
    put64(bytes + 8, VERSION);
    put64(bytes + 16, sector->sequence);
    put64(bytes + 24, sector->term);
    put64(bytes + 32, sector->state);
    memcpy(bytes + 40, sector->owner.bytes, sizeof sector->owner.bytes);
    memcpy(bytes + 56, keys[key], strlen(keys[key]));
    put64(bytes + 96, (uint64_t)pf_wall_us());
    put64(bytes + AT_CHECK, pf_xxh64_of(bytes, AT_CHECK));
}

static bool decode(const uint8_t bytes[SECTOR], lk_claim_key key, claim_sector *ret_sector)
{
    char name[KEY_ROOM] = {0};
    memcpy(name, keys[key], strlen(keys[key]));
    if (memcmp(bytes, magic, sizeof magic) != 0 || get64(bytes + AT_CHECK) != pf_xxh64_of(bytes, AT_CHECK) ||
        get64(bytes + 8) != VERSION || memcmp(bytes + 56, name, sizeof name) != 0)
        return false;
    *ret_sector = (claim_sector){.sequence = get64(bytes + 16), .term = get64(bytes + 24), .state = get64(bytes + 32)};
    memcpy(ret_sector->owner.bytes, bytes + 40, sizeof ret_sector->owner.bytes);
    return ret_sector->state == HELD || ret_sector->state == GIVEN_BACK;
}

static uint64_t place(lk_claim_key key, uint64_t sequence)
{
    return (uint64_t)key * LK_CLAIM_SIZE + (sequence % 2 == 0 ? 0 : SECOND_AT);
}

/* The newest whole sector; *ret_found false: there is none, *ret_damaged when that is not for want of a first take. */
static sluice_status read_slot(pf_file *file, lk_claim_key key, claim_sector *ret_sector, bool *ret_found,
                               bool *ret_damaged, sluice_error *err)
{
    static const uint8_t zeros[SECTOR];
    *ret_found = *ret_damaged = false;
    *ret_sector = (claim_sector){0};
    for (uint64_t i = 0; i < 2; i++) {
        uint8_t bytes[SECTOR];
        claim_sector sector;
        PF_TRY(pf_read_exact(file, place(key, i), bytes, sizeof bytes, err));
        if (!decode(bytes, key, &sector)) {
            *ret_damaged |= memcmp(bytes, zeros, sizeof zeros) != 0;
            continue;
        }
        if (!*ret_found || sector.sequence > ret_sector->sequence)
            *ret_sector = sector;
        *ret_found = true;
    }
    return SLUICE_OK;
}

static sluice_status write_slot(const lk_claim *claim, sluice_error *err)
{
    uint8_t bytes[SECTOR];
    encode(&claim->held, claim->key, bytes);
    return pf_write(claim->file, place(claim->key, claim->held.sequence), bytes, sizeof bytes, err);
}

static sluice_status take_slot(lk_claim *claim, sluice_error *err)
{
    claim_sector newest;
    bool found, damaged;
    PF_TRY(read_slot(claim->file, claim->key, &newest, &found, &damaged, err));
    claim->taken_over = found && newest.state == HELD;
    claim->held =
        (claim_sector){.sequence = newest.sequence + 1, .term = newest.term + 1, .state = HELD, .owner = pf_id_new()};
    if (!found && damaged)
        claim->held.term = (uint64_t)pf_wall_us();
    PF_TRY(write_slot(claim, err));
    return pf_sync(claim->file, err);
}

sluice_status lk_claim_take(pf_volume *volume, lk_claim_key key, pf_deadline deadline, lk_claim **ret_claim,
                            sluice_error *err)
{
    sluice_error local = {0};
    lk_claim *claim = calloc(1, sizeof *claim);
    sluice_status status;
    if (!claim)
        return pf_fail_memory(err);
    claim->volume = volume;
    claim->key = key;
    PF_GOTO(status, failed, pf_open(volume, LK_CLAIMS_FILE, PF_WRITE, &claim->file, err));
    lk_order_wait(volume, LK_RANK_CLAIM, (uint64_t)key);
    status = pf_lock(claim->file, (uint64_t)key * LK_CLAIM_SIZE, 1, PF_LOCK_EXCLUSIVE, deadline, &local);
    if (status == SLUICE_LIVE_WRITER_CONTENTION) {
        status = pf_fail(err, status, "somebody else holds the %s claim of this graph", keys[key]);
        pf_hint(err, "another gc or backup is at work; try again when it has ended");
        goto failed;
    }
    if (status != SLUICE_OK) {
        if (err)
            *err = local;
        goto failed;
    }
    lk_order_take(volume, LK_RANK_CLAIM, (uint64_t)key);
    status = take_slot(claim, err);
    if (status == SLUICE_OK) {
        *ret_claim = claim;
        return SLUICE_OK;
    }
    lk_order_drop(volume, LK_RANK_CLAIM, (uint64_t)key);
failed:
    (void)pf_close(claim->file, NULL);
    free(claim);
    return status;
}

static sluice_status is_ours(lk_claim *claim, bool *ret_ours, sluice_error *err)
{
    claim_sector newest;
    bool found, damaged;
    PF_TRY(pf_file_check_identity(claim->file, err));
    PF_TRY(read_slot(claim->file, claim->key, &newest, &found, &damaged, err));
    *ret_ours = found && newest.state == HELD && newest.term == claim->held.term &&
                pf_id_equal(&newest.owner, &claim->held.owner);
    return SLUICE_OK;
}

sluice_status lk_claim_check(lk_claim *claim, sluice_error *err)
{
    bool ours = false;
    PF_TRY(is_ours(claim, &ours, err));
    if (ours || PF_SABOTAGE(term_not_checked))
        return SLUICE_OK;
    sluice_status status =
        pf_fail(err, SLUICE_FENCED, "the %s claim of this graph was taken over by another", keys[claim->key]);
    pf_hint(err, "nothing more was done; what the new owner does holds");
    return status;
}

uint64_t lk_claim_term(const lk_claim *claim)
{
    return claim->held.term;
}

bool lk_claim_was_taken_over(const lk_claim *claim)
{
    return claim->taken_over;
}

void lk_claim_release(lk_claim *claim)
{
    bool ours = false;
    if (!claim)
        return;
    if (is_ours(claim, &ours, NULL) == SLUICE_OK && ours) {
        claim->held.sequence++;
        claim->held.state = GIVEN_BACK;
        (void)write_slot(claim, NULL);
    }
    lk_order_drop(claim->volume, LK_RANK_CLAIM, (uint64_t)claim->key);
    (void)pf_close(claim->file, NULL); /* the kernel gives the lock back with it */
    free(claim);
}
