"""Waiting: a gate that nobody else wants, and how soon after a holder's death the next has committed."""

import re

LINE = re.compile(r"gate enter \+ leave (\d+) ns +death to next commit ([\d.]+) ms")


def run(bench):
    def once(number):
        bench.remove("gates")
        bench.run("mkdir", bench.path("gates"))
        found = LINE.search(bench.run(bench.built("bench_gate"), bench.path("gates"), 1).output.decode())
        bench.results.add("gates", "1 process", "sluice", "enter + leave", "ns", number, float(found.group(1)))
        bench.results.add("gates", "2 processes", "sluice", "death to next commit", "ms", number, float(found.group(2)))
    bench.in_turns("gates", "processes", {"sluice": once})
    bench.remove("gates")
