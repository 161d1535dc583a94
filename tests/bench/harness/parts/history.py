"""What a commit and an open cost behind many commits: by one writer, one row each."""

FEW = 100


def run(bench):
    sizes = bench.sizes
    deep = "%d commits" % sizes.depth
    subjects = {"sluice": lambda number: sluice(bench, sizes.depth, number)}
    for peer in bench.of("history"):
        if peer.name in ("sqlite", "lmdb", "rocksdb"):
            subjects[peer.name] = lambda number, peer=peer: of_peer(bench, deep, sizes.depth, peer, number)
    # A hundred thousand commits take a minute or more: once.
    bench.in_turns("history", deep, subjects, runs=1 if sizes.depth > 10000 else min(bench.runs, 3))
    if sizes.depth >= FEW:
        bench.in_turns("history", "%d commits" % FEW, {"sluice": lambda number: sluice(bench, FEW, number)})
    bench.remove("history")


def sluice(bench, depth, number):
    case, graph = "%d commits" % depth, bench.path("history")
    bench.remove("history")
    ran = bench.run(bench.built("peer_sluice"), "history", graph, depth)
    bench.results.add_printed("history", case, "sluice", number, ran)
    opened = bench.run(bench.built("peer_sluice"), "snapshots", graph, min(1000, depth))
    bench.results.add_printed("history", case, "sluice", number, opened)


def of_peer(bench, case, depth, peer, number):
    bench.remove("history")
    ran = bench.run(*peer.words, "history", bench.path("history"), depth, env=peer.env)
    bench.results.add_printed("history", case, peer.name, number, ran)
