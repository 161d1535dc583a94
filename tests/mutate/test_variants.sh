#!/usr/bin/env bash
# The model of mutations with everything switched off that must not change an answer: runs, gates and pins; attaching; and
# with all hashes equal, so that nothing but keys decides.
set -euo pipefail
run() { env "$@" "$SLUICE_BUILD_DIR/tests/test_mutate_model" >/dev/null || { echo "fails with: $*"; exit 1; }; }
run SLUICE_TEST_EQUAL_HASHES=1
run SLUICE_NO_RUNS=1 SLUICE_NO_GATES=1 SLUICE_NO_PINS=1
