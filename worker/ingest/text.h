/*
 * What the formats of text share: chunks by a lexer, a record reader over one of them, lines, the byte-order mark.
 */
#ifndef WORKER_INGEST_TEXT_H
#define WORKER_INGEST_TEXT_H

#include "worker/ingest/csv.h"
#include "worker/ingest/format.h"

/* Two of the calls of wk_format_ops. */
void wk_text_scan(const wk_input *input, const uint8_t *bytes, size_t length, size_t offset, size_t piece, int next,
                  wk_boundaries *ret_boundaries);
sluice_status wk_text_join(const wk_input *input, const wk_boundaries *boundaries, uint32_t count, wk_chunk *ret_chunks,
                           wk_shape *ret_shape, sluice_error *err);
/* A record reader before the chunk's first record, lines counted. `fields`: how many of a record are wanted. */
sluice_status wk_text_open(const wk_chunk_view *view, uint32_t fields, wk_csv **ret_csv, sluice_error *err);
/* The next record of a survey; a longer one than the limit ends it, too: it is refused where rows are read. */
sluice_status wk_text_next(wk_csv *csv, wk_record **ret_record, sluice_error *err);
/* The line of source[to], when that of source[from] is *line. */
sluice_status wk_count_lines(const wk_source *source, uint64_t from, uint64_t to, uint64_t *line, sluice_error *err);
/* Where the text begins. The mark of another encoding is a fault, on line 1. */
sluice_status wk_text_begin(const wk_source *source, uint64_t *ret_offset, wk_fault *ret_fault, sluice_error *err);

#endif
