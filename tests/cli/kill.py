"""Loads that are killed at random, or while they read what can be had only once: what must hold afterwards.

After any of it the graph is exactly as before the load or exactly as after it; a load that was answered is there; the next load
works; verify is clean; nothing is left over after the next writer and gc.
"""

import os
import random
import shutil

from support.program import ProgramTest

SCHEMA = {"nodes": {"Person": {"key": "id", "properties": {"id": "int64", "name": "string"}, "unique": [["name"]]}},
          "edges": {"KNOWS": {"from": "Person", "to": "Person", "properties": {"since": "date?"}, "key": []}}}
ROWS = 400
OLD = {"Person": 1, "KNOWS": 0}
NEW = {"Person": 1 + ROWS, "KNOWS": ROWS}
PIECES = {"SLUICE_SPLIT": "2000", "SLUICE_TEST_SPILL": "50"}


class Kill(ProgramTest):
    leaks = False  # the same commands many hundred times; other tests look for theirs

    def setUp(self):
        super().setUp()
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
        self.write("schema.json", SCHEMA)
        self.write("first.csv", "id,name\n0,first\n")
        self.write("people.csv", "id,name\n" + "".join("%d,name %d\n" % (i, i) for i in range(1, ROWS + 1)))
        self.write("knows.csv", "from,to\n" + "".join("%d,%d\n" % (i, i - 1) for i in range(1, ROWS + 1)))

        self.done("init", "template", "--schema", "schema.json")
        self.load("Person=first.csv", graph="template")
        self.seed = int(os.environ.get("SLUICE_SEED", 20261201))
        print("SLUICE_SEED=%d" % self.seed, flush=True)

    def graph(self, name):
        """A graph with one person; a copy of a graph that nobody has open is a graph."""
        shutil.copytree(self.path("template"), self.path(name))
        return name

    def load_words(self, graph):
        return ("load", graph, "Person=people.csv", "KNOWS=knows.csv", "--workers", "2", "--json")

    def counts(self, graph):
        return self.done("count", graph, "--json").document

    def check_after(self, graph, acknowledged, where):
        """What must hold of a graph whose second load met with something."""
        counts = self.counts(graph)
        self.assertIn(counts, (OLD, NEW), where)
        if acknowledged:
            self.assertEqual(counts, NEW, where)
        self.write("next.csv", "id,name\n100001,next\n")
        self.load("Person=next.csv", graph=graph)
        self.done("gc", graph)
        status = self.done("status", graph, "--json").document
        self.assertEqual(os.listdir(self.path(graph + "/attempts")) + status["intents"] + status["gates"], [], where)
        settled = {entry["type"]: entry["rows"] for entry in status["branches"][0]["types"]}
        settled["Person"] -= 1
        self.assertIn(settled, (OLD, NEW), where)
        if counts == NEW:
            self.assertEqual(settled, NEW, where)
        self.clean(graph)
        if settled == OLD:
            self.done(*self.load_words(graph))
            self.assertEqual(self.counts(graph), {"Person": 2 + ROWS, "KNOWS": ROWS}, where)
        shutil.rmtree(self.path(graph))
