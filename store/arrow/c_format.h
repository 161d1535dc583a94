/*
 * Inside of store/arrow: schemas of the C data interface as fields.
 */
#ifndef STORE_ARROW_C_FORMAT_H
#define STORE_ARROW_C_FORMAT_H

#include "store/arrow/c_data.h"
#include "store/arrow/metadata.h"

/* The field of a schema, with its children and its dictionary's values, to be freed with its schema
 * (st_arrow_schema_free). A format that is not known becomes a kind that is not flat. CORRUPT when it is malformed or
 * too deep. */
sluice_status st_c_field(const struct ArrowSchema *schema, st_arrow_field *ret_field, sluice_error *err);

#endif
