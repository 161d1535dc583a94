/*
 * What the writer and the reader of fragments agree on beside Arrow itself (docs/format.md has it in full).
 *
 * Schema metadata: sluice.format, sluice.table. Footer metadata: sluice.rows, the rows of each batch, decimal, each
 * followed by a comma; and, each a row of 32 hexadecimal digits per item, in file order, sluice.messages (XXH3-128 of
 * the schema's and of every batch's message, prefix and padding included) and sluice.checksums (of every buffer as it
 * is stored, empty ones too); where it is known sluice.schema, the accepted schema of its type: for salvage alone.
 * Messages and batches follow each other without gaps.
 */
#ifndef STORE_FRAGMENT_FRAGMENT_FORMAT_H
#define STORE_FRAGMENT_FRAGMENT_FORMAT_H

#define ST_FRAGMENT_FOLDER    "fragments"
#define ST_FRAGMENT_ATTACHED  "attached" /* no folder: how one in a record is called in messages */
#define ST_FRAGMENT_FORMAT    "fragment/1"
#define ST_FRAGMENT_ROW_ID    "_row_id"
#define ST_FRAGMENT_COMMIT    "_commit"
#define ST_FRAGMENT_KEY_FORM  "sluice.format"
#define ST_FRAGMENT_KEY_TABLE "sluice.table"
#define ST_FRAGMENT_KEY_ROWS  "sluice.rows"
#define ST_FRAGMENT_KEY_SUMS  "sluice.checksums"
#define ST_FRAGMENT_KEY_HEADS "sluice.messages"
#define ST_FRAGMENT_KEY_TYPE  "sluice.schema"
#define ST_FRAGMENT_HEX       32u /* digits per checksum */

#endif
