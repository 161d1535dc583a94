#!/usr/bin/env python3
"""Differences of one row on a graph of five million edges (SLUICE_LONG), whichever way the row changed, in 16 MiB of memory, program
included. What they read is counted in test_branch_cost."""

import os
import resource

from support.program import ProgramTest, main

MOST = 16 << 20
NODES, EDGES = 5000, 5000000
SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64"}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {"w": "int32?"}, "key": []}}}


def bound():
    resource.setrlimit(resource.RLIMIT_DATA, (MOST, MOST))


class DiffMemory(ProgramTest):
    def change(self, **change):
        self.write("change.jsonl", {"edge": "K", **change})
        return str(self.done("mutate", "G", "change.jsonl", "--json").document["commit"]["generation"])

    def difference(self, before, after):
        return self.finish(self.start("diff", "G", before, after, "--keys", "--json", preexec_fn=bound))

    def test_a_change_of_one_edge_among_millions(self):
        if not os.environ.get("SLUICE_LONG") or self.done("version", "--json").document["build"]["sanitizers"]:
            self.skipTest("runs with SLUICE_LONG=1, and the sanitizers' own memory is far beyond any bound")
        self.init(SCHEMA)
        self.write("p.csv", "id\n" + "".join("%d\n" % i for i in range(NODES)))
        with open(self.path("k.csv"), "w", encoding="ascii") as file:
            file.write("from,to,w\n")
            for i in range(EDGES):
                file.write("%d,%d,%d\n" % (i % NODES, i // NODES, i))
        self.load("P=p.csv", "K=k.csv")
        places = ["2", self.change(op="update", **{"from": 1, "to": 2}, set={"w": -1}),
                  self.change(op="insert", **{"from": 1, "to": 4999}, set={"w": 1}), self.change(op="delete", **{"from": 1, "to": 3})]
        wanted = [{"change": "updated", "from": 1, "to": 2, "properties": ["w"]}, {"change": "inserted", "from": 1, "to": 4999},
                  {"change": "deleted", "from": 1, "to": 3}]
        for before, after, change in zip(places, places[1:], wanted):
            said = self.difference(before, after)
            self.assertEqual((said.code, said.lines), (0, [{"type": "K", **change}]), said.err)
        self.assertEqual(len(self.difference(places[0], places[-1]).lines), 3)


if __name__ == "__main__":
    main()
