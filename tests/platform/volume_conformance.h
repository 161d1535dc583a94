/*
 * One battery of tests of the volume port, run alike on real files and on the simulated disk: what callers of
 * platform/volume.h may rely on wherever they stand.
 */
#ifndef TESTS_PLATFORM_VOLUME_CONFORMANCE_H
#define TESTS_PLATFORM_VOLUME_CONFORMANCE_H

#include "platform/volume.h"

typedef struct conformance_place {
    void *context;
    /* Another process's view of the same, at first empty, root folder. Closed by the test. */
    pf_volume *(*open)(void *context);
} conformance_place;

typedef struct conformance_case {
    const char *name;
    void (*run)(const conformance_place *place);
} conformance_case;

/* The battery; each case wants an empty place of its own. */
extern const conformance_case conformance_cases[];
extern const unsigned conformance_case_count;

#endif
