"""What the parts of a run share: where things are, the programs, the graphs' files, and how subjects take turns."""

import json
import os
import shutil
import subprocess
import sys

from harness import measure

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SOURCES = os.path.join(ROOT, "tests/bench")
SCHEMA = {"nodes": {"N": {"key": "id", "properties": {"id": "int64", "name": "string", "age": "int32", "score": "float64",
                                                      "created": "timestamp"}}},
          "edges": {"E": {"from": "N", "to": "N", "properties": {"weight": "float64", "since": "int64"}}}}
PROGRAMS = ("bench_commits", "bench_group", "bench_gate", "peer_sluice")


class Sizes:
    """How much is done. `graphs`: (name, nodes, edges) of what is loaded; reads go to the first of them. `writers`: how many
    commit at once."""

    def __init__(self, graphs, seconds, writers, depth, commits, fragments, mebibytes, calls):
        self.graphs, self.seconds, self.writers, self.depth, self.commits = graphs, seconds, writers, depth, commits
        self.fragments, self.mebibytes, self.calls = fragments, mebibytes, calls


WHOLE = Sizes([("1M + 5M", 1000000, 5000000), ("5M + 25M", 5000000, 25000000)], 2.0, (1, 4, 16), 100000, 3000, 100, 1024, 20)
QUICK = Sizes([("100k + 500k", 100000, 500000)], 0.5, (1, 4, 16), 3000, 300, 20, 256, 10)
TINY = Sizes([("1k + 5k", 1000, 5000)], 0.02, (1,), 20, 3, 2, 1, 1)


class Bench:
    def __init__(self, folder, builds, python, sizes, runs, results):
        self.folder, self.builds, self.python, self.sizes = folder, builds, python, sizes
        self.runs, self.results, self.peers = runs, results, {}
        self.program = os.path.join(builds, "sluice")

    def path(self, name):
        return os.path.join(self.folder, name)

    def built(self, name):
        return os.path.join(self.builds, "tests/bench", name)

    def build(self):
        """The release preset, with the programs that measure; the others need nothing but a compiler."""
        say = {"cwd": ROOT, "check": True, "stdout": subprocess.DEVNULL}
        subprocess.run(["cmake", "--preset", "release", "-B", self.builds, "-DSLUICE_TESTS=ON"], **say)
        subprocess.run(["cmake", "--build", self.builds, "--target", "sluice", *PROGRAMS], **say)

    def compile_limits(self):
        """What stands by itself: the maker of the files, and the machine's limits."""
        sources = [os.path.join(SOURCES, "graph_files.c")]
        sources += [os.path.join(SOURCES, "limits", name + ".c") for name in ("bandwidth", "copy_files", "bare_load")]
        for source in sources:
            program = self.path(os.path.splitext(os.path.basename(source))[0])
            subprocess.run(["cc", "-O3", "-march=native", "-o", program, source, "-lpthread"], check=True)
        with open(self.path("schema.json"), "w") as file:
            json.dump(SCHEMA, file)

    def files(self, name, nodes, edges):
        """nodes.csv and edges.csv of a graph, made once."""
        folder = self.path("files " + name)
        if not os.path.exists(folder):
            made = folder + ".part"
            shutil.rmtree(made, ignore_errors=True)
            os.mkdir(made)
            subprocess.run([self.path("graph_files"), made, str(nodes), str(edges)], check=True)
            os.rename(made, folder)
        return os.path.join(folder, "nodes.csv"), os.path.join(folder, "edges.csv")

    def run(self, *words, env=None):
        return measure.run(words, self.folder, env)

    def remove(self, *names):
        for name in names:
            for end in ("", "-wal", "-shm", ".wal"):
                path = self.path(name) + end
                shutil.rmtree(path, ignore_errors=True)
                if os.path.exists(path):
                    os.remove(path)

    def new_graph(self, name, schema="schema.json"):
        self.remove(name)
        self.run(self.program, "init", self.path(name), "--schema", self.path(schema))

    def of(self, ability):
        return [peer for peer in self.peers.values() if ability in peer.does]

    def in_turns(self, part, case, subjects, runs=None, slow=()):
        """`subjects`: {name: function of the run's number}. Each run goes through all of them, every other backwards, so that a slow
        stretch of the machine falls on all. Who fails is named and left out from then on. Those of `slow` have three runs at most."""
        runs = runs or self.runs
        for run in range(runs):
            for name in (list(subjects) if run % 2 == 0 else list(reversed(subjects))):
                if name in slow and run >= 3:
                    continue
                self.show("%-9s %-12s run %d of %d  %s" % (part, case, run + 1, runs, name))
                try:
                    subjects[name](run)
                except measure.Failed as failed:
                    self.results.fail(part, case, name, str(failed))
                    del subjects[name]
        self.show("")

    def show(self, text):
        """Where it is, for who watches."""
        if sys.stderr.isatty():
            print("\r%-79s\r%s" % ("", text), end="", file=sys.stderr, flush=True)

    def keep(self, part, case, subject, run, ran):
        self.results.add_run(part, case, subject, run, ran)

    # ---- databases that later parts read ----

    def load_sluice(self, graph, database, *options):
        nodes, edges = self.files(*graph)
        self.new_graph(database)
        return self.run(self.program, "load", self.path(database), "N=" + nodes, "E=" + edges, *options)

    def load_peer(self, peer, graph, database):
        nodes, edges = self.files(*graph)
        self.remove(database)
        return self.run(*peer.words, "load", nodes, edges, self.path(database), env=peer.env)

    def database(self, subject, graph):
        """What a load has left, or now leaves, of a graph."""
        name = "%s %s" % (subject, graph[0])
        if not os.path.exists(self.path(name)):
            if subject == "sluice":
                self.load_sluice(graph, name)
            else:
                self.load_peer(self.peers[subject], graph, name)
        return self.path(name)
