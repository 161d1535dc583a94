"""What the programs of peers that are called from Python do, so that all are measured alike:

  PEER MODULE load NODES.csv EDGES.csv DATABASE    the graph of graph_files, durable at the end
  PEER MODULE commits DATABASE 1 SECONDS           commits of one small row each, from an empty database
  PEER MODULE history DATABASE COMMITS             so many of them: what one costs at depth 100, and at the end
  PEER MODULE read DATABASE NODES                  scan, and 1-hop and 2-hop of many nodes as one query each
  PEER MODULE optimize DATABASE                    what history left becomes one piece

What is measured is printed as JSON, a line each, as by peer.c.
"""

import json
import statistics
import sys
import time

LOOKUPS, DEEP, REPEATS, WINDOW = 10000, 1000, 5, 201
NAME = "somebody"


def show(measure, unit, value):
    print(json.dumps({"measure": measure, "unit": unit, "value": value}), flush=True)


class Peer:
    """Of these, a peer has what it can do:

    load(nodes, edges, database)
    writer(database)    makes an empty table of nodes; gives what commits one of them, by id
    reader(database)    gives what makes, of some ids, {measure: (unit, factor of seconds, function)}; the functions answer
                        (result, sum or None)
    optimize(database)
    """

    def __init__(self, module):
        self.module = module


def some_ids(count, nodes):
    return [(i + 1) * 2654435761 % nodes for i in range(count)]


def do_commits(peer, database, seconds):
    commit, times = peer.writer(database), []
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        before = time.perf_counter()
        commit(len(times))
        times.append(time.perf_counter() - before)
    show("commits", "/s", len(times) / (time.perf_counter() - started))
    show("p50", "us", statistics.median(times) * 1e6)
    show("p99", "us", sorted(times)[len(times) - 1 - len(times) // 100] * 1e6)


def do_history(peer, database, count):
    commit, times = peer.writer(database), []
    started = time.perf_counter()
    for i in range(count):
        before = time.perf_counter()
        commit(i)
        times.append(time.perf_counter() - before)
    show("total", "s", time.perf_counter() - started)
    show("commit at the end", "us", statistics.median(times[-WINDOW:]) * 1e6)
    show("commit at depth 100", "us", statistics.median(times[:WINDOW]) * 1e6)


def do_read(peer, database, nodes):
    started = time.perf_counter()
    reads = peer.reader(database)(some_ids(LOOKUPS, nodes))
    show("open", "ms", (time.perf_counter() - started) * 1e3)
    for measure, (unit, factor, read) in reads.items():
        answer, times = read(), []
        for _ in range(REPEATS):
            before = time.perf_counter()
            answer = read()
            times.append(time.perf_counter() - before)
        show(measure, unit, statistics.median(times) * factor)
        show("answer of " + measure, "", answer[0])
        if answer[1] is not None:
            show("sum of " + measure, "", int(answer[1]))


def main(kind):
    peer, what, words = kind(sys.argv[1]), sys.argv[2], sys.argv[3:]
    if what == "load":
        peer.load(*words)
    elif what == "commits":
        do_commits(peer, words[0], float(words[2]))
    elif what == "history":
        do_history(peer, words[0], int(words[1]))
    elif what == "read":
        do_read(peer, words[0], int(words[1]))
    elif what == "optimize":
        started = time.perf_counter()
        peer.optimize(words[0])
        show("optimize", "s", time.perf_counter() - started)
    else:
        sys.exit(__doc__)
