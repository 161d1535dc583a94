#!/usr/bin/env python3
"""Differences on a graph of 300,000 edges (SLUICE_LONG: five million) in little memory, program included: of one row, whichever way it
changed, in 16 MiB; of tables that were written anew as a whole, in 24 MiB (64). What they read is counted in test_branch_cost."""

import os

from support.program import ProgramTest, main

LONG = bool(os.environ.get("SLUICE_LONG"))
MIB = 1 << 20
NODES, EDGES = 5000, 5000000 if LONG else 300000
SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64"}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {"w": "int32?"}, "key": []}}}


class DiffMemory(ProgramTest):
    def change(self, **change):
        self.write("change.jsonl", {"edge": "K", **change})
        return str(self.done("mutate", "G", "change.jsonl", "--json").document["commit"]["generation"])

    def difference(self, before, after, most):
        return self.done("diff", "G", before, after, "--keys", "--json", "--memory", str(most)).lines

    def test_changes_of_single_edges_among_many(self):
        if self.done("version", "--json").document["build"]["sanitizers"]:
            self.skipTest("the sanitizers' own memory is far beyond any bound")
        self.init(SCHEMA)
        self.write("p.csv", "id\n" + "".join("%d\n" % i for i in range(NODES)))
        halves = ("k1.csv", range(0, EDGES, 2)), ("k2.csv", range(1, EDGES, 2))
        for name, numbers in halves:
            with open(self.path(name), "w", encoding="ascii") as file:
                file.write("from,to,w\n")
                file.writelines("%d,%d,%d\n" % (i % NODES, i // NODES, i) for i in numbers)
        self.load("P=p.csv", "K=k1.csv")
        places = [str(self.load("K=k2.csv")["commit"]["generation"])]
        changes = [{"change": "updated", "from": 1, "to": 2, "properties": ["w"]}, {"change": "inserted", "from": 1, "to": 4999},
                   {"change": "deleted", "from": 1, "to": 3}]
        changes = [{"type": "K", **change} for change in changes]
        places.append(self.change(op="update", **{"from": 1, "to": 2}, set={"w": -1}))
        places.append(self.change(op="insert", **{"from": 1, "to": 4999}, set={"w": 1}))
        places.append(self.change(op="delete", **{"from": 1, "to": 3}))
        for before, after, change in zip(places, places[1:], changes):
            self.assertEqual(self.difference(before, after, 16 * MIB), [change])
        self.assertEqual(self.difference(places[0], places[-1], 16 * MIB), changes)
        self.done("optimize", "G")  # no fragment is listed on both sides any more
        most = (64 if LONG else 24) * MIB
        self.assertEqual(self.difference(places[-1], "head", most), [])
        self.assertCountEqual(self.difference(places[0], "head", most), changes)
        backwards = {"inserted": "deleted", "deleted": "inserted", "updated": "updated"}
        self.assertCountEqual(self.difference("head", places[0], most),
                              [{**change, "change": backwards[change["change"]]} for change in changes])


if __name__ == "__main__":
    main()
