"""Small durable commits: a program's own handle, and 1, 4 and 16 writers at once."""

import re

GROUP = re.compile(r"(\w+) +(\d+) writers +([\d.]+) commits/s +least (\d+) most (\d+) +p50 ([\d.]+) ms +p99 ([\d.]+) ms +([\d.]+)")
NAMES = {"sluice": "sluice pool", "bare": "bare group loop"}


def run(bench):
    for writers in bench.sizes.writers:
        case = "%d writer%s" % (writers, "s" if writers > 1 else "")
        subjects = {}
        if writers == 1:
            subjects["sluice"] = lambda number: library(bench, number)
        subjects["sluice pool"] = lambda number, case=case, writers=writers: pool(bench, case, writers, number)
        for peer in bench.of("commits"):
            # Those that are called from Python write by one connection; of many they answer with errors, or one after the other.
            if writers == 1 or peer.name in ("sqlite", "lmdb", "rocksdb", "postgresql"):
                subjects[peer.name] = lambda number, case=case, writers=writers, peer=peer: of_peer(bench, case, writers, peer, number)
        bench.in_turns("commits", case, subjects)
        bench.remove("commits", "group", "flushes")


def of_peer(bench, case, writers, peer, number):
    bench.remove("commits")
    ran = bench.run(*peer.words, "commits", bench.path("commits"), writers, bench.sizes.seconds, env=peer.env)
    bench.results.add_printed("commits", case, peer.name, number, ran)


def library(bench, number):
    bench.remove("commits", "flushes")
    ran = bench.run(bench.built("peer_sluice"), "commits", bench.path("commits"), 1, bench.sizes.seconds)
    bench.results.add_printed("commits", "1 writer", "sluice", number, ran)
    # In turns of a hundred with bare flushes of as many bytes, in one process: both meet the same disk.
    said = bench.run(bench.built("bench_commits"), bench.path("flushes"), max(100, int(1000 * bench.sizes.seconds))).output.decode()
    for measure, name in (("bare flushes", "flushes"), ("commits beside flushes", "commits")):
        value = float(re.search(r"^%s +([\d.]+)" % name, said, re.M).group(1))
        bench.results.add("commits", "1 writer", "sluice", measure, "/s", number, value)


def pool(bench, case, writers, number):
    """The pool and the bare loop of a group commit, one after the other, by the same program."""
    bench.remove("group")
    bench.run("mkdir", bench.path("group"))
    said = bench.run(bench.built("bench_group"), bench.path("group"), bench.sizes.seconds, 1, writers).output.decode()
    for found in GROUP.finditer(said):
        values = [float(value) for value in found.groups()[2:]]
        for measure, unit, value in (("commits", "/s", values[0]), ("p50", "us", values[3] * 1e3), ("p99", "us", values[4] * 1e3),
                                     ("least of one writer", "commits", values[1]), ("most of one writer", "commits", values[2]),
                                     ("commits of one flush", "", values[5])):
            bench.results.add("commits", case, NAMES[found.group(1)], measure, unit, number, value)
