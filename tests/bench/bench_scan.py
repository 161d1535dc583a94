#!/usr/bin/env python3
"""How much a scan costs more in pyarrow than in C; for people, never a test.

    build/venv/bin/python tests/bench/bench_scan.py BENCH_SCAN LIBRARY FOLDER [ROWS]

BENCH_SCAN is the program of bench_scan.c, LIBRARY the libsluice.so of the same build (release), FOLDER empty, on an admitted filesystem.
Makes a graph of ROWS (5,000,000) nodes, then has processes scan it in turn, C and Python, the first time (digests are checked) and again.
"""

import os
import statistics
import subprocess
import sys
import time

RUNS, PROCESSES = 5, 9
SCAN = """
import sys, time
import sluice
with sluice.Graph.open(sys.argv[1], write=False) as graph:
    for _ in range(int(sys.argv[2])):
        wall, processor = time.monotonic(), time.process_time()
        table = graph.scan("N").read_all()
        rows = table.num_rows
        del table
        print(rows, time.monotonic() - wall, time.process_time() - processor)
"""


def main():
    program, library, folder = sys.argv[1:4]
    rows = int(sys.argv[4]) if len(sys.argv) > 4 else 5000000
    os.environ["SLUICE_LIBRARY"] = os.path.abspath(library)
    os.environ["PYTHONPATH"] = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python")
    sys.path.insert(0, os.environ["PYTHONPATH"])
    import pyarrow
    import sluice
    path = os.path.join(folder, "graph")
    schema = {"nodes": {"N": {"key": "id", "properties": {"id": "int64", "name": "string", "age": "int32?", "score": "float64"}}}}
    with sluice.Graph.create(path, schema) as graph:
        ids = range(rows)
        graph.load({"N": pyarrow.table({"id": pyarrow.array(ids, pyarrow.int64()), "name": ["name %d" % i for i in ids],
                                        "age": pyarrow.array((i % 90 if i % 7 else None for i in ids), pyarrow.int32()),
                                        "score": pyarrow.array((i * 0.5 for i in ids), pyarrow.float64())})})
    load, found = os.getloadavg()[0], {"C": [], "pyarrow": []}
    for _ in range(PROCESSES):
        for name, words in (("C", [program, path, "N", str(RUNS)]), ("pyarrow", [sys.executable, "-c", SCAN, path, str(RUNS)])):
            said = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.split("\n")[:-1]
            assert [line.split()[0] for line in said] == [str(rows)] * RUNS, said
            found[name].append([[float(word) for word in line.split()[1:]] for line in said])
    print("%d rows; load average %.1f before, %.1f after" % (rows, load, os.getloadavg()[0]))
    for what, pick in (("first scan of a process", lambda runs: [runs[0]]), ("scans after it", lambda runs: runs[1:])):
        for clock, at in (("wall", 0), ("processor", 1)):
            medians = {name: statistics.median(run[at] for runs in lists for run in pick(runs)) for name, lists in found.items()}
            print("%s, %s: C %.2f ms, pyarrow %.2f ms, ratio %.2f" % (what, clock, medians["C"] * 1e3, medians["pyarrow"] * 1e3,
                                                                      medians["pyarrow"] / medians["C"]))


if __name__ == "__main__":
    main()
