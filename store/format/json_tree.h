/*
 * A document's tree, built in one piece of memory. Internal to store/format.
 */
#ifndef STORE_FORMAT_JSON_TREE_H
#define STORE_FORMAT_JSON_TREE_H

#include "store/format/json.h"

/* The tree of a text that the scanner admitted, with so many values in it. CORRUPT: two members of one name;
 * RESOURCE_LIMIT: no memory, or a number of too many digits. */
sluice_status st_json_build(const uint8_t *bytes, size_t length, size_t values, cJSON **ret_document,
                            sluice_error *err);

#endif
