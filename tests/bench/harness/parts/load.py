"""Loads of the graph's files into a fresh database each time; the last one of each is kept for the reads."""

from harness import measure

SLOW = ("sqlite", "ladybug", "lancedb", "kuzu")  # ten times as long as the others, and more


def run(bench):
    for graph in bench.sizes.graphs:
        case = graph[0]
        large = graph is not bench.sizes.graphs[0]
        nodes, edges = bench.files(*graph)

        def sluice(name, options, database, index=False):
            def once(number):
                ran = bench.load_sluice(graph, database, "--workers", "2", *options)
                bench.keep("load", case, name, number, ran)
                bench.results.add("load", case, name, "disk", "MB", number, measure.size_of(bench.path(database)) / 1e6)
                if index:
                    indexed = bench.run(bench.program, "index", bench.path(database), "--workers", "2")
                    bench.results.add("load", case, name, "then index", "s", number, indexed.wall)
            return once

        def bare(number):
            bench.remove("bare")
            ran = bench.run(bench.path("bare_load"), nodes, edges, bench.path("bare"), 2)
            bench.keep("load", case, "bare loader", number, ran)
            bench.results.add("load", case, "bare loader", "disk", "MB", number, measure.size_of(bench.path("bare")) / 1e6)

        def of(peer):
            def once(number):
                database = "%s %s" % (peer.name, case)
                ran = bench.load_peer(peer, graph, database)
                for what, unit, value in (("wall", "s", ran.wall), ("cpu", "s", ran.cpu), ("anonymous memory", "MiB", ran.anonymous / 2**20),
                                          ("disk", "MB", measure.size_of(bench.path(database)) / 1e6)):
                    bench.results.add("load", case, peer.name, what, unit, number, value)
            return once

        subjects = {"sluice": sluice("sluice", [], "sluice " + case, index=True),
                    "sluice --compress": sluice("sluice --compress", ["--compress"], "compressed"),
                    "sluice --memory 256M": sluice("sluice --memory 256M", ["--memory", "256M"], "bounded")}
        # Of the large graph only those that a bar is about: the others take minutes each.
        subjects.update((peer.name, of(peer)) for peer in bench.of("load") if not large or peer.name in ("duckdb", "kuzu"))
        subjects["bare loader"] = bare
        bench.in_turns("load", case, subjects, slow=[peer.name for peer in bench.of("load")] if large else SLOW)
        bench.remove("bare", "compressed", "bounded")
