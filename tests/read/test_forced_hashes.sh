#!/usr/bin/env bash
# Look-ups, differences and verify with every key hash equal: only the keys themselves tell rows apart (LESSONS K-04).
set -euo pipefail
SLUICE_TEST_EQUAL_HASHES=1 "$SLUICE_BUILD_DIR/tests/test_snapshot"
SLUICE_TEST_EQUAL_HASHES=1 "$SLUICE_BUILD_DIR/tests/test_diff"
SLUICE_TEST_EQUAL_HASHES=1 "$SLUICE_BUILD_DIR/tests/test_lib_lookup"
SLUICE_TEST_EQUAL_HASHES=1 exec "$SLUICE_BUILD_DIR/tests/test_verify"
