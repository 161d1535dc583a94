#!/usr/bin/env python3
"""Runs the cases of this folder against the program, all but those that need what does not exist yet.

What is left out stands in LATER with its reason; a case that is missing there and fails, fails the test. A case that stands
there and passes fails it too, when SLUICE_LONG=1 also tries those. Small cases run also with their inputs cut into very small
pieces (SLUICE_SPLIT), but not under sanitizers, where tests/ingest and load.test_variants cut; SLUICE_LONG=1 does that with all, and
repeats the repeated steps more often.
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LATER = {}
HEAVY = ["R001", "R003", "R011", "R031", "R088"]    # many rows: whole, but not in small pieces, and not under sanitizers
LONG = ["R054"]                             # many rows, many times


def run(cases, *more):
    program = os.environ["SLUICE"]
    scratch = os.environ.get("SLUICE_TEST_DIR") or os.environ["SLUICE_BUILD_DIR"]
    return subprocess.run([sys.executable, os.path.join(HERE, "run-cases"), "--sluice", program, "--tmp", scratch, *more, *cases],
                          stdin=subprocess.DEVNULL)


def main():
    cases = sorted(name for name in os.listdir(HERE) if name.startswith("R") and os.path.isdir(os.path.join(HERE, name)))
    unknown = (set(LATER) | set(HEAVY) | set(LONG)) - set(cases)
    if unknown:
        print("a list names cases that are not there: %s" % ", ".join(sorted(unknown)))
        return 1
    sanitized = os.path.basename(os.environ["SLUICE_BUILD_DIR"]) == "asan"
    long = bool(os.environ.get("SLUICE_LONG"))
    for case in sorted(LATER):
        print("LATER %s needs %s" % (case, LATER[case]))
    limits = ["--time-factor", "6" if sanitized else "3", "--rss-factor", "0" if sanitized else "1"]
    quick = sanitized and not long
    pieces = [] if quick else ["--split-env", "SLUICE_SPLIT=16,64"]
    light = [case for case in cases if case not in LATER and case not in HEAVY + LONG]
    failed = run(light, *limits, *pieces, "--workers", "3" if quick else "1,3").returncode
    if long:
        failed |= run(HEAVY + LONG, *limits, *pieces, "--effort", "3").returncode
        for case in sorted(LATER):
            if run([case], *limits).returncode == 0:
                print("%s stands in LATER and passes" % case)
                failed = 1
    elif not sanitized:
        failed |= run(HEAVY, *limits, "--workers", "2").returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
