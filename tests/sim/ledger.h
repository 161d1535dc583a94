/*
 * The ledger of what the histories of a program reached: windows (failpoints) that a process passed and was the last
 * one before its end, rows of recovery by the kind of write that they were for, and what clients were told. A gap that
 * is not explained here is a failure: a history that never goes there proves nothing about it.
 */
#ifndef TESTS_SIM_LEDGER_H
#define TESTS_SIM_LEDGER_H

#include "run.h"

/* Notes a row of audit/. */
void sim_ledger_recovered(sim_counts *counts, const char *kind, const char *classification);
/* Prints all; returns how many gaps there are. */
uint32_t sim_ledger_print(const sim_counts *counts);

#endif
