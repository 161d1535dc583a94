#!/usr/bin/env bash
# The tests of loads again under other cuts: many small chunks, pieces and ranges, and with all key hashes forced equal (K-04).
set -euo pipefail
program="$SLUICE_BUILD_DIR/tests/test_load"
others=(upsert overwrite names)
[ -x "$program" ] || exit 77
run() {
  if ! timeout 800 env "$@" "$program" >variant.log 2>&1; then
    echo "failed with $*" >&2
    cat variant.log >&2
    exit 1
  fi
}
folder=$(mktemp -d -p "${SLUICE_TEST_DIR:-$SLUICE_BUILD_DIR}" variants-XXXXXX)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
run SLUICE_TEST_EQUAL_HASHES=1
chunks=(4 7 16 61)
sampled=
if [ "$(basename "$SLUICE_BUILD_DIR")" = asan ] && [ -z "${SLUICE_LONG-}" ]; then sampled=yes chunks=(7); fi
for chunk in "${chunks[@]}"; do
  [ -n "$sampled" ] || run SLUICE_TEST_CHUNK=$chunk SLUICE_SPLIT=1 SLUICE_TEST_RANGE=1
  run SLUICE_TEST_CHUNK=$chunk SLUICE_SPLIT=13 SLUICE_TEST_RANGE=3 SLUICE_TEST_EQUAL_HASHES=1 SLUICE_TEST_SPILL=2
done
for other in "${others[@]}"; do
  program="$SLUICE_BUILD_DIR/tests/test_$other"
  run SLUICE_TEST_CHUNK=40 SLUICE_SPLIT=7 SLUICE_TEST_RANGE=2 SLUICE_TEST_EQUAL_HASHES=1 SLUICE_TEST_SLICE=3
  [ -n "$sampled" ] || run SLUICE_TEST_CHUNK=400 SLUICE_TEST_RANGE=200 SLUICE_TEST_SLICE=100 SLUICE_NO_RUNS=1
done
