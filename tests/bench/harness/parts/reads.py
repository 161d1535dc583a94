"""Reads of the first graph, warm: scan and sum, point reads, 1-hop and 2-hop; everybody's answers must be the same."""

from harness import measure


def run(bench):
    graph = bench.sizes.graphs[0]
    case, nodes, edges = graph
    indexed = bench.database("sluice", graph)
    bench.run(bench.program, "index", indexed, "--workers", "2")
    subjects = {"sluice": lambda number: sluice(bench, case, indexed, nodes, edges, number)}
    for peer in bench.of("read"):
        subjects[peer.name] = lambda number, peer=peer: of_peer(bench, case, peer, graph, number)
    bench.in_turns("reads", case, subjects)
    if nodes >= 10000:  # of fewer, ids come again, and a query over a set of them answers once
        compare(bench, case)


def sluice(bench, case, graph, nodes, edges, number):
    ran = bench.run(bench.built("peer_sluice"), "read", graph, nodes)
    bench.results.add_printed("reads", case, "sluice", number, ran)
    bench.results.add("reads", case, "sluice", "scan bandwidth", "GB/s", number, edges * 8 / ran.measures()["scan"][1] / 1e6)


def of_peer(bench, case, peer, graph, number):
    database = bench.database(peer.name, graph)
    ran = bench.run(*peer.words, "read", database, graph[1], env=peer.env)
    bench.results.add_printed("reads", case, peer.name, number, ran)


def compare(bench, case):
    """Sums of weights are rounded differently; all else is the same number."""
    for what in ("answer of scan", "answer of point", "answer of 1-hop", "sum of 1-hop", "answer of 2-hop", "sum of 2-hop"):
        found = {key[2]: bench.results.median(key) for key in bench.results.keys() if key[:2] == ("reads", case) and key[3] == what}
        if found and max(found.values()) - min(found.values()) > 1e-9 * max(map(abs, found.values())):
            raise measure.Failed("the peers' %s differ: %s" % (what, found))
