/*
 * Contents on the simulated disk.
 *
 * The unit of the medium is the sector: whatever a crash leaves, each sector of a file holds what it held at the last
 * sync or what it held after one of the writes since, and the sectors choose apart from each other (or, by the seed, in
 * units of a whole page, as many file systems and devices write). A partly written sector counts with all its bytes, as
 * the page cache held them. The size chooses for itself among the last synced one and those that the writes since made:
 * a size without data reads as zeros, data without size is gone. Bytes behind the end are zeros when the file grows
 * again.
 *
 * A failed sync marks every page clean: the writes are forgotten here although readers still see them, so no later sync
 * brings them to the medium; only writing a sector again does.
 */
#include "platform/sim_disk.h"

#include "platform/check.h"

#include <stdlib.h>
#include <string.h>

#define SIZES_MAX 16u /* of one file that a chosen power loss tells apart */

static sim_page zero_page = {.references = 2}; /* shared by all files; not counted, and never anybody's own */

/* ---- pages ---- */

void pf_sim_page_drop(sim_page *page)
{
    if (page != NULL && page != &zero_page && --page->references == 0)
        free(page);
}

bool pf_sim_page_is_zeros(const sim_page *page)
{
    return page == NULL || page == &zero_page ||
           (page->bytes[0] == 0 && memcmp(page->bytes, page->bytes + 1, SIM_PAGE - 1) == 0);
}

static sim_page *page_hold(sim_page *page)
{
    if (page != NULL && page != &zero_page)
        page->references++;
    return page;
}

static void page_set(sim_page **at, sim_page *page)
{
    sim_page *old = *at;

    *at = page_hold(page);
    pf_sim_page_drop(old);
}

/* A page that only *at refers to; a hole becomes zeros. */
static sim_page *page_own(sim_page **at)
{
    sim_page *shared = *at, *own;

    if (shared != NULL && shared->references == 1)
        return shared;
    own = pf_sim_grow(NULL, 1, sizeof *own);
    if (shared != NULL)
        *own = *shared;
    else
        memset(own->bytes, 0, SIM_PAGE);
    own->references = 1;
    pf_sim_page_drop(shared);
    *at = own;
    return own;
}

static void reserve_pages(sim_inode *inode, uint64_t size)
{
    uint64_t need = (size + SIM_PAGE - 1) / SIM_PAGE, count = inode->page_count;

    if (need <= count)
        return;
    count = need > count * 2 ? need : count * 2;
    inode->cached = pf_sim_grow(inode->cached, count, sizeof(sim_page *));
    inode->durable = pf_sim_grow(inode->durable, count, sizeof(sim_page *));
    memset(inode->cached + inode->page_count, 0, (size_t)(count - inode->page_count) * sizeof(sim_page *));
    memset(inode->durable + inode->page_count, 0, (size_t)(count - inode->page_count) * sizeof(sim_page *));
    inode->page_count = count;
}

void pf_sim_content_free(sim_inode *inode)
{
    for (uint64_t i = 0; i < inode->page_count; i++) {
        pf_sim_page_drop(inode->cached[i]);
        pf_sim_page_drop(inode->durable[i]);
    }
    for (size_t i = 0; i < inode->write_count; i++)
        pf_sim_page_drop(inode->writes[i].content);
    free(inode->cached);
    free(inode->durable);
    free(inode->writes);
}

void pf_sim_content_copy(const sim_inode *from, sim_inode *to)
{
    to->size = from->size;
    to->durable_size = from->durable_size;
    to->allocated = from->allocated;
    to->dropped = from->dropped;
    if (from->page_count > 0) {
        reserve_pages(to, from->page_count * SIM_PAGE);
        for (uint64_t i = 0; i < from->page_count; i++) {
            to->cached[i] = page_hold(from->cached[i]);
            to->durable[i] = page_hold(from->durable[i]);
        }
    }
    if (from->write_count > 0) {
        to->writes = pf_sim_grow(NULL, from->write_count, sizeof *to->writes);
        to->write_capacity = to->write_count = from->write_count;
        memcpy(to->writes, from->writes, from->write_count * sizeof *to->writes);
        for (size_t i = 0; i < to->write_count; i++)
            (void)page_hold(to->writes[i].content);
    }
}

/* ---- writing and reading ---- */

static void note_write(sim_inode *inode, const sim_page_write *write)
{
    if (inode->write_count == inode->write_capacity) {
        inode->write_capacity = inode->write_capacity == 0 ? 4 : inode->write_capacity * 2;
        inode->writes = pf_sim_grow(inode->writes, inode->write_capacity, sizeof *inode->writes);
    }
    inode->writes[inode->write_count] = *write;
    (void)page_hold(write->content);
    inode->write_count++;
}

/* Makes room for the page in the disk's account; false when the disk is full. */
static bool charge_page(pf_sim_disk *disk, sim_inode *inode, uint64_t page)
{
    if (inode->cached[page] != NULL)
        return true;
    if (disk->bounded && disk->used >= disk->capacity)
        return false;
    disk->used++;
    inode->allocated++;
    return true;
}

static uint8_t sectors_of(uint64_t from, uint64_t to) /* bytes of a page, to > from */
{
    unsigned first = (unsigned)(from / SIM_SECTOR), last = (unsigned)((to - 1) / SIM_SECTOR);

    return (uint8_t)((0xffu << first) & (0xffu >> (SIM_SECTORS - 1 - last)));
}

/* The part of [offset, end) that lies in one page, written from `bytes`, or as zeros when NULL. */
static bool write_page(pf_sim_disk *disk, sim_inode *inode, uint64_t offset, uint64_t end, const uint8_t *bytes,
                       uint64_t serial, uint64_t size_before)
{
    uint64_t page = offset / SIM_PAGE, from = offset % SIM_PAGE, to = from + (end - offset);

    if (!charge_page(disk, inode, page))
        return false;
    if (bytes == NULL && from == 0 && to == SIM_PAGE)
        page_set(&inode->cached[page], &zero_page);
    else if (bytes == NULL)
        memset(page_own(&inode->cached[page])->bytes + from, 0, (size_t)(to - from));
    else
        memcpy(page_own(&inode->cached[page])->bytes + from, bytes, (size_t)(to - from));
    if (end > inode->size)
        inode->size = end;
    note_write(inode, &(sim_page_write){.serial = serial,
                                        .page = page,
                                        .size_before = size_before,
                                        .size_after = inode->size,
                                        .content = inode->cached[page],
                                        .sectors = sectors_of(from, to)});
    return true;
}

static bool write_range(pf_sim_disk *disk, uint32_t slot, uint64_t offset, uint64_t end, const uint8_t *bytes,
                        uint64_t serial, uint64_t *ret_written)
{
    sim_inode *inode = pf_sim_own(disk, slot);
    uint64_t size_before = inode->size;

    if (end > offset)
        reserve_pages(inode, end);
    for (uint64_t at = offset; at < end;) {
        uint64_t stop = (at / SIM_PAGE + 1) * SIM_PAGE;
        if (stop > end)
            stop = end;
        if (!write_page(disk, inode, at, stop, bytes != NULL ? bytes + (at - offset) : NULL, serial, size_before))
            return false;
        *ret_written += stop - at;
        at = stop;
    }
    return true;
}

bool pf_sim_content_write(pf_sim_disk *disk, uint32_t slot, uint64_t offset, const void *bytes, size_t length,
                          uint64_t serial, uint64_t *ret_written)
{
    return write_range(disk, slot, offset, offset + length, bytes, serial, ret_written);
}

bool pf_sim_content_zero(pf_sim_disk *disk, uint32_t slot, uint64_t size, uint64_t serial, uint64_t *ret_written)
{
    uint64_t old = pf_sim_look(disk, slot)->size;

    return old >= size || write_range(disk, slot, old, size, NULL, serial, ret_written);
}

size_t pf_sim_content_read(const sim_inode *inode, uint64_t offset, void *bytes, size_t length)
{
    uint8_t *to = bytes;
    uint64_t end;

    if (offset >= inode->size)
        return 0;
    end = length < inode->size - offset ? offset + length : inode->size;
    for (uint64_t at = offset; at < end;) {
        uint64_t from = at % SIM_PAGE, part = SIM_PAGE - from < end - at ? SIM_PAGE - from : end - at;
        const sim_page *page = inode->cached[at / SIM_PAGE];
        if (page != NULL)
            memcpy(to + (at - offset), page->bytes + from, (size_t)part);
        else
            memset(to + (at - offset), 0, (size_t)part);
        at += part;
    }
    return (size_t)(end - offset);
}

/* ---- syncing ---- */

static void put_sectors(sim_page **at, const sim_page *content, uint8_t sectors)
{
    sim_page *page;

    if (sectors == 0)
        return;
    page = page_own(at);
    for (unsigned s = 0; s < SIM_SECTORS; s++)
        if ((sectors & (1u << s)) != 0)
            memcpy(page->bytes + (size_t)s * SIM_SECTOR, content->bytes + (size_t)s * SIM_SECTOR, SIM_SECTOR);
}

static void forget_writes(sim_inode *inode)
{
    for (size_t i = 0; i < inode->write_count; i++)
        pf_sim_page_drop(inode->writes[i].content);
    inode->write_count = 0;
}

void pf_sim_content_sync(pf_sim_disk *disk, uint32_t slot)
{
    const sim_inode *before = pf_sim_look(disk, slot);
    sim_inode *inode;

    if (before->write_count == 0 && before->durable_size == before->size)
        return;
    inode = pf_sim_own(disk, slot);
    for (size_t i = 0; i < inode->write_count; i++) {
        const sim_page_write *write = &inode->writes[i];
        if (inode->dropped) /* the cache holds more than what is dirty */
            put_sectors(&inode->durable[write->page], write->content, write->sectors);
        else
            page_set(&inode->durable[write->page], inode->cached[write->page]);
    }
    inode->durable_size = inode->size;
    forget_writes(inode);
}

void pf_sim_content_fail_sync(pf_sim_disk *disk, uint32_t slot)
{
    sim_inode *inode = pf_sim_own(disk, slot);

    if (disk->failed_sync == PF_SIM_KEEP_ALL) { /* all arrived, only the answer is an error */
        pf_sim_content_sync(disk, slot);
        return;
    }
    for (size_t i = 0; i < inode->write_count; i++) {
        uint8_t arrived = disk->failed_sync == PF_SIM_LOSE_ALL ? 0 : (uint8_t)pf_sim_random(disk);
        inode->dropped = true;
        put_sectors(&inode->durable[inode->writes[i].page], inode->writes[i].content,
                    inode->writes[i].sectors & arrived);
    }
    forget_writes(inode);
}

void pf_sim_content_forget_clean(pf_sim_disk *disk, uint32_t slot, uint64_t offset, uint64_t length)
{
    sim_inode *inode;

    if (!pf_sim_look(disk, slot)->dropped || length == 0)
        return;
    inode = pf_sim_own(disk, slot);
    for (uint64_t page = offset / SIM_PAGE; page <= (offset + length - 1) / SIM_PAGE && page < inode->page_count;
         page++) {
        if (inode->cached[page] == NULL)
            continue;
        page_set(&inode->cached[page], inode->durable[page] != NULL ? inode->durable[page] : &zero_page);
        for (size_t i = 0; i < inode->write_count; i++)
            if (inode->writes[i].page == page)
                put_sectors(&inode->cached[page], inode->writes[i].content, inode->writes[i].sectors);
    }
}

/* ---- losing ---- */

static int by_page(const void *a, const void *b)
{
    const sim_page_write *x = a, *y = b;

    if (x->page != y->page)
        return x->page < y->page ? -1 : 1;
    return x->serial < y->serial ? -1 : x->serial > y->serial; /* one call touches a page once */
}

/* Which of a page's writes a unit takes: the number of them, counted from the oldest, up to which they are kept. */
static size_t kept_up_to(pf_sim_disk *disk, size_t count, pf_sim_loss loss, unsigned keep, bool last_is_torn)
{
    switch (loss) {
    case PF_SIM_LOSE_ALL:
        return 0;
    case PF_SIM_KEEP_ALL:
        return count;
    case PF_SIM_TEAR_LAST:
        return last_is_torn && pf_sim_chance(disk, 1, 2) ? count - 1 : count;
    case PF_SIM_RANDOM:
        break;
    }
    if (disk->choices != NULL)
        return pf_sim_choose(disk, count + 1);
    return pf_sim_chance(disk, keep, 8) ? count : (size_t)(pf_sim_random(disk) % (count + 1));
}

/* One page's writes, oldest first. */
static void lose_page(pf_sim_disk *disk, sim_inode *inode, const sim_page_write *writes, size_t count, pf_sim_loss loss,
                      unsigned keep, bool by_sector)
{
    bool torn = writes[count - 1].serial == disk->serial;
    size_t upto = 0;

    if (disk->choices != NULL && count == 1 && pf_sim_page_is_zeros(writes[0].content) &&
        pf_sim_page_is_zeros(inode->durable[writes[0].page]))
        return; /* zeros over zeros: no choice */
    for (unsigned s = 0; s < SIM_SECTORS; s++) {
        if (s == 0 || by_sector)
            upto = kept_up_to(disk, count, loss, keep, torn);
        for (size_t i = upto; i > 0; i--)
            if ((writes[i - 1].sectors & (1u << s)) != 0) {
                put_sectors(&inode->durable[writes[i - 1].page], writes[i - 1].content, (uint8_t)(1u << s));
                break;
            }
    }
}

/* One of the synced size and those that the writes since made, which only grow. */
static uint64_t chosen_size(pf_sim_disk *disk, const sim_inode *inode)
{
    uint64_t sizes[SIZES_MAX] = {inode->durable_size};
    size_t count = 1;

    for (size_t i = 0; i < inode->write_count && count + 1 < SIZES_MAX; i++)
        if (inode->writes[i].size_after > sizes[count - 1])
            sizes[count++] = inode->writes[i].size_after;
    if (inode->size > sizes[count - 1])
        sizes[count++] = inode->size;
    return count > 1 ? sizes[pf_sim_choose(disk, count)] : sizes[0];
}

static uint64_t size_left(pf_sim_disk *disk, const sim_inode *inode, pf_sim_loss loss)
{
    const sim_page_write *last = inode->write_count > 0 ? &inode->writes[inode->write_count - 1] : NULL;
    uint64_t choice;

    switch (loss) {
    case PF_SIM_LOSE_ALL:
        return inode->durable_size;
    case PF_SIM_KEEP_ALL:
        return inode->size;
    case PF_SIM_TEAR_LAST:
        if (last == NULL || last->serial != disk->serial || pf_sim_chance(disk, 1, 2))
            return inode->size;
        return last->size_before;
    case PF_SIM_RANDOM:
        break;
    }
    if (disk->choices != NULL)
        return chosen_size(disk, inode);
    choice = pf_sim_random(disk);
    if (choice % 4 == 0)
        return inode->durable_size;
    if (choice % 4 == 1 && last != NULL)
        return inode->writes[(choice / 4) % inode->write_count].size_after;
    return inode->size;
}

/* Cuts the durable image at its size: what lies behind is gone, and zeros when the file grows again. */
static void cut(sim_inode *inode)
{
    uint64_t whole = inode->durable_size / SIM_PAGE, rest = inode->durable_size % SIM_PAGE;

    if (rest > 0) {
        if (inode->durable[whole] != NULL && inode->durable[whole] != &zero_page)
            memset(page_own(&inode->durable[whole])->bytes + rest, 0, SIM_PAGE - (size_t)rest);
        whole++;
    }
    for (uint64_t i = whole; i < inode->page_count; i++)
        page_set(&inode->durable[i], NULL);
}

void pf_sim_content_lose(pf_sim_disk *disk, uint32_t slot, pf_sim_loss loss, unsigned keep)
{
    const sim_inode *before = pf_sim_look(disk, slot);
    bool by_sector;
    sim_inode *inode;
    uint64_t size;

    if (before->write_count == 0 && !before->dropped && before->size == before->durable_size)
        return;
    inode = pf_sim_own(disk, slot);
    size = size_left(disk, inode, loss);
    by_sector = disk->choices == NULL && (loss != PF_SIM_RANDOM || pf_sim_chance(disk, 1, 2));
    if (inode->write_count > 1)
        qsort(inode->writes, inode->write_count, sizeof *inode->writes, by_page);
    for (size_t first = 0, next; first < inode->write_count; first = next) {
        for (next = first + 1; next < inode->write_count; next++)
            if (inode->writes[next].page != inode->writes[first].page)
                break;
        lose_page(disk, inode, inode->writes + first, next - first, loss, keep, by_sector);
    }
    forget_writes(inode);
    inode->size = inode->durable_size = size;
    inode->dropped = false;
    cut(inode);
    inode->allocated = 0;
    for (uint64_t i = 0; i < inode->page_count; i++) {
        page_set(&inode->cached[i], inode->durable[i]);
        inode->allocated += inode->cached[i] != NULL;
    }
}
