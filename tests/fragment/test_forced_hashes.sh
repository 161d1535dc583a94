#!/usr/bin/env bash
# SLUICE_TEST_EQUAL_HASHES=1 makes every key hash 7, so that whole test runs can rely on nothing but key equality (LESSONS K-04).
set -euo pipefail
SLUICE_TEST_EQUAL_HASHES=1 exec "$SLUICE_BUILD_DIR/tests/test_key"
