/*
 * The Arrow C data and C stream interface: its structs.
 */
#ifndef STORE_ARROW_C_DATA_H
#define STORE_ARROW_C_DATA_H

#include <sluice/arrow.h>

#endif
