/*
 * Identities. A pf_id is a UUID in its 16 wire bytes; text form is the canonical lower-case 36 characters.
 * Commit and operation ids are UUIDv7 (RFC 9562): our milliseconds in the first 48 bits, random bits from
 * platform/clock.h behind (so that a simulation owns them); libuuid reads and writes the text form.
 */
#ifndef PLATFORM_IDS_H
#define PLATFORM_IDS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pf_id {
    uint8_t bytes[16];
} pf_id;
#define PF_ID_TEXT 37 /* with the terminating zero */

pf_id pf_id_new(void); /* UUIDv7 */
void pf_id_text(const pf_id *id, char ret_text[PF_ID_TEXT]);
bool pf_id_parse(const char *text, pf_id *ret_id); /* any RFC 4122 text form of 36 characters, any case */
bool pf_id_equal(const pf_id *a, const pf_id *b);
bool pf_id_is_nil(const pf_id *id);
bool pf_id_has_time(const pf_id *id);   /* version 7 */
int64_t pf_id_time_ms(const pf_id *id); /* of a version 7 id: milliseconds since 1970 */

#endif
