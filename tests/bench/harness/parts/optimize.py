"""Maintenance: many one-row commits become one piece; a hundred fragments of edges become big ones, beside a bare copy."""

import glob
import os


def run(bench):
    rows(bench)
    edges(bench)


def rows(bench):
    commits = bench.sizes.commits
    case = "%d commits" % commits

    def sluice(number):
        bench.remove("rows")
        bench.run(bench.built("peer_sluice"), "history", bench.path("rows"), commits)
        ran = bench.run(bench.program, "optimize", bench.path("rows"))
        bench.results.add("optimize", case, "sluice", "optimize", "s", number, ran.wall)
        bench.results.add("optimize", case, "sluice", "cpu", "s", number, ran.cpu)

    def of(peer):
        def once(number):
            bench.remove("rows")
            bench.run(*peer.words, "history", bench.path("rows"), commits, env=peer.env)
            ran = bench.run(*peer.words, "optimize", bench.path("rows"), env=peer.env)
            bench.results.add_printed("optimize", case, peer.name, number, ran)
        return once

    bench.in_turns("optimize", case, {"sluice": sluice, **{peer.name: of(peer) for peer in bench.of("optimize")}})
    bench.remove("rows")


def split(bench, path, pieces):
    """The file in so many pieces of whole lines, each with the line of the names."""
    with open(path, "rb") as file:
        names, lines = file.readline(), file.readlines()
    each = -(-len(lines) // pieces)
    found = []
    for i in range(0, len(lines), each):
        found.append(bench.path("piece-%d.csv" % (i // each)))
        with open(found[-1], "wb") as file:
            file.write(names)
            file.writelines(lines[i:i + each])
    return found


def edges(bench):
    """The graph is made once, and copied for each run."""
    sizes = bench.sizes
    case, graph = "%d fragments" % sizes.fragments, sizes.graphs[0]
    nodes, edge_file = bench.files(*graph)
    bench.new_graph("fragments")
    bench.run(bench.program, "load", bench.path("fragments"), "N=" + nodes)
    for piece in split(bench, edge_file, sizes.fragments):
        bench.run(bench.program, "load", bench.path("fragments"), "E=" + piece, "--workers", "1")
        os.remove(piece)

    def files():
        tables = glob.glob(os.path.join(bench.path("fragments"), "tables/*/fragments"))
        edges_table = max(tables, key=lambda table: len(os.listdir(table)))
        keys = os.path.join(os.path.dirname(edges_table), "keys")
        return [os.path.join(folder, name) for folder in (edges_table, keys) for name in sorted(os.listdir(folder))]

    def sluice(number):
        bench.remove("optimized")
        bench.run("cp", "-a", bench.path("fragments"), bench.path("optimized"))
        bytes_read = sum(os.path.getsize(path) for path in files())
        ran = bench.run(bench.program, "optimize", bench.path("optimized"), "E", "--workers", "2")
        for measure, unit, value in (("optimize", "s", ran.wall), ("cpu", "s", ran.cpu), ("bandwidth", "MB/s", bytes_read / ran.wall / 1e6),
                                     ("anonymous memory", "MiB", ran.anonymous / 2**20)):
            bench.results.add("optimize", case, "sluice", measure, unit, number, value)
        ran = bench.run(bench.program, "index", bench.path("optimized"), "E", "--workers", "2")
        bench.results.add("optimize", case, "sluice", "then index", "s", number, ran.wall)

    def copy(number):
        for path in glob.glob(glob.escape(bench.path("copy")) + ".*"):
            os.remove(path)
        ran = bench.run(bench.path("copy_files"), bench.path("copy"), *files())
        bench.results.add_printed("optimize", case, "bare copy", number, ran)

    bench.in_turns("optimize", case, {"sluice": sluice, "bare copy": copy})
    bench.remove("fragments", "optimized")
    for path in glob.glob(glob.escape(bench.path("copy")) + ".*"):
        os.remove(path)
