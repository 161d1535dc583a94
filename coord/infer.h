/*
 * Inference: the schema that files would have, such that they load with it.
 *
 *   1. survey   every value of every file says what its column could be (worker/ingest/infer.h)
 *   2. nodes    rows are read as a load would read them; a key is looked for
 *   3. edges    likewise; which node types' keys contain the ends
 *
 * A type that the graph has already is taken as it stands there. Files are read several times, in memory that does not
 * depend on them: keys are compared in parts, by 128-bit digests. What comes compressed or as a stream is unpacked into
 * a scratch file first.
 *
 * Key of a node type: its :ID column; else the first of id, key, TYPE_id, TYPEid (in any case of letters) whose values
 * are whole numbers or texts, never null and never twice; else none. Ends of an edge type: the first node type, in the
 * order of the command and then of the graph, whose keys contain all of them; only those of the id space, where the
 * headings name one.
 */
#ifndef COORD_INFER_H
#define COORD_INFER_H

#include "coord/load.h"

/* A line for people about a type, as soon as it is known what it is: nodes or edges, key or why none, columns. */
typedef void co_infer_said(void *context, const char *line);

/* graph_path NULL, or of what does not exist: files alone. The schema has the graph's types, too. */
sluice_status co_infer(const co_load_options *options, co_infer_said *said, void *context, st_schema **ret_schema,
                       sluice_error *err);

#endif
