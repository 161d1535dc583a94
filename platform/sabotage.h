/*
 * Planted defects, for the tests of the tests: PF_SABOTAGE(name) stands where a step of the protocol is taken, and
 * being true would leave it out or turn it round. It is the constant false, and nothing of it is compiled, in every
 * build of the modules. tests/sabotage compiles the files that have one a second time, for its own programs only, with
 * SLUICE_SABOTAGE defined; there the defect that the environment names is in, and its table says who catches it.
 */
#ifndef PLATFORM_SABOTAGE_H
#define PLATFORM_SABOTAGE_H

#include <stdbool.h>

#ifdef SLUICE_SABOTAGE
bool pf_sabotage(const char *name); /* tests/sabotage/sabotage.c */
#define PF_SABOTAGE(name) pf_sabotage(#name)
#else
#define PF_SABOTAGE(name) false
#endif

#endif
