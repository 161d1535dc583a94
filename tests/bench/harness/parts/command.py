"""The command as a process: start, open the largest graph, answer, end; beside a process that only starts and ends."""

from harness import measure


def run(bench):
    graph = bench.sizes.graphs[-1]
    case, nodes, _ = graph
    database = bench.database("sluice", graph)

    def once(number):
        for call in range(bench.sizes.calls):
            key = (number * bench.sizes.calls + call + 1) * 2654435761 % nodes
            for name, words in (("sluice get", ("get", database, "N", key)), ("sluice version", ("version",))):
                took = measure.milliseconds_of([bench.program, *words])
                bench.results.add("command", case, name, "wall", "ms", number * bench.sizes.calls + call, took)
    bench.in_turns("command", case, {"sluice get": once})
