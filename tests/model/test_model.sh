#!/usr/bin/env bash
# The protocol's model (write.pml): no reachable state of any scenario breaks an invariant, and each planted defect does.
# Needs spin; one verifier is compiled, the bounds and the defect reach it through the environment. SLUICE_LONG=1: more
# deaths, more processes at once.
set -euo pipefail
model="$SLUICE_SOURCE_DIR/tests/model/write.pml"
command -v spin >/dev/null && command -v gcc >/dev/null || { echo "spin or gcc is missing: scripts/setup"; exit 77; }
folder=$(mktemp -d -p "${SLUICE_TEST_DIR:-$SLUICE_BUILD_DIR}" model-XXXXXX)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

declare -A bounds=(
  [crash]="WRITERS=2 DEATHS=1 LOSSES=1"
  [again]="WRITERS=1 DEATHS=2 LOSSES=1"
  [fence]="WRITERS=2 FENCES=1 LOSSES=1"
  [delete]="WRITERS=1 DEATHS=1 LOSSES=1 DELETERS=1"
  [collect]="WRITERS=1 DEATHS=1 LOSSES=1 COLLECTORS=1"
)
order=(crash again fence delete collect)
optimize=-O1
if [ -n "${SLUICE_LONG-}" ]; then
  optimize=-O2
  bounds[deaths]="WRITERS=2 DEATHS=2"
  bounds[recoverer]="WRITERS=2 DEATHS=1 RECOVERERS=1"
  bounds[recovery]="WRITERS=1 DEATHS=2 LOSSES=1 RECOVERERS=1"
  bounds[delete-two]="WRITERS=2 LOSSES=1 DELETERS=1"
  bounds[collect-two]="WRITERS=2 LOSSES=1 COLLECTORS=1"
  order+=(deaths recoverer recovery delete-two collect-two)
fi

if ! { spin -a "$model" && gcc $optimize -w -DSAFETY -DCOLLAPSE -DVECTORSZ=512 -DMEMLIM=3000 -o pan pan.c; } >log 2>&1; then
  cat log
  exit 1
fi

look() { # NAME=VALUE...: what pan says, in `said`
  env "$@" timeout 600 ./pan -n -m20000 -w20 >said 2>&1 || true
  [ "$(grep -c 'errors: ' said)" = 1 ] || { echo "pan did not come to an end with $*" && cat said && exit 1; }
}

for name in "${order[@]}"; do
  read -ra with <<<"${bounds[$name]}"
  look "${with[@]}"
  if ! grep -q 'errors: 0$' said || grep -q 'not completed\|too small\|out of memory' said; then
    echo "$name (${bounds[$name]}): an invariant does not hold, or not all was seen"
    cat said
    exit 1
  fi
  echo "$name (${bounds[$name]}): $(awk '/states, stored/ { print $1 }' said) states"
done

found=0
while read -r _ defect number _ name _; do
  read -ra with <<<"${bounds[$name]}"
  look "${with[@]}" "MUTANT=$number"
  if ! grep -q 'assertion violated' said; then
    echo "$defect breaks no invariant in $name"
    cat said
    exit 1
  fi
  echo "$defect: $(sed -n 's/^pan:1: assertion violated *//p' said)"
  found=$((found + 1))
done < <(grep '^#define M_' "$model")
[ "$found" -eq "$(sort -u <(awk '/^#define M_/ { print $3 }' "$model") | wc -l)" ] && [ "$found" -ge 21 ] ||
  { echo "$found defects: a number stands twice, or one is gone" && exit 1; }
