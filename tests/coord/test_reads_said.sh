#!/usr/bin/env bash
# What the plans of loads, mutations and merges look at stands in their read sets (OW-024): their own tests once more,
# with a check of each plan that aborts.
set -euo pipefail
export SLUICE_CHECK_READS=1
for name in test_conflicts test_load test_overwrite test_names test_index test_write; do
    "$SLUICE_BUILD_DIR/tests/$name" >reads-said.log 2>&1 || { cat reads-said.log; exit 1; }
done
rm -f reads-said.log
