#!/usr/bin/env python3
"""Nodes without a key: what is exported loads again, in every format, into an equal graph up to the row ids."""

import json
import os
import random
import shutil

from support.program import ProgramTest, main, some

SCHEMA = {"nodes": {"N": {"properties": {"t": "string", "v": "float64?"}}, "Other": {"properties": {"x": "int64"}},
                    "P": {"key": "id", "properties": {"id": "string"}}},
          "edges": {"E": {"from": "N", "to": "N", "properties": {"w": "int64?"}},
                    "F": {"from": "N", "to": "Other", "properties": {}, "key": []},
                    "A": {"from": "P", "to": "N", "properties": {"s": "string?"}}}}
TYPES = ("N", "Other", "P", "E", "F", "A")


class Keyless(ProgramTest):
    def setUp(self):
        super().setUp()
        dice = random.Random(3)
        self.init(SCHEMA)
        self.write("n.csv", ":ID(N),t,v\n" + "".join("n%d,\"text %d\n,\",%s\n" % (i, i, i / 4 if i % 3 else "") for i in range(60)))
        self.write("o.csv", "_row_id,x\n" + "".join("%d,%d\n" % (i, i * i) for i in range(20)))
        self.write("p.csv", "id\n" + "".join("p%d\n" % i for i in range(10)))
        self.write("e.csv", ":START_ID(N),:END_ID(N),w\n" + "".join("n%d,n%d,%d\n" % (dice.randrange(60), dice.randrange(60), i)
                                                              for i in range(150)))
        self.write("f.csv", "from,to\n" + "".join("n%d,%d\n" % (i, i % 20) for i in range(0, 60, 2)))
        self.write("a.csv", "from,to,s\n" + "".join("p%d,n%d,\"s,%d\"\n" % (i % 10, i, i) for i in range(40)))
        self.words = ("N=n.csv", "Other=o.csv", "P=p.csv", "E=e.csv", "F=f.csv", "A=a.csv")

    def shape(self, graph):
        """Everything that the graph holds, with nodes in the place of their ids."""
        rows = {name: self.rows(name, graph) for name in TYPES}
        nodes = {row.pop("_row_id"): json.dumps(row, sort_keys=True) for name in ("N", "Other") for row in rows[name]}
        for name in ("E", "F", "A"):
            for row in rows[name]:
                row.pop("_row_id", None)
                row["from"], row["to"] = nodes.get(row["from"], row["from"]), nodes[row["to"]]
        return {name: sorted(json.dumps(row, sort_keys=True) for row in rows[name]) for name in TYPES}

    def test_exports_load_again(self):
        self.load(*self.words)
        first = self.shape("G")
        self.assertEqual([len(first[name]) for name in TYPES], [60, 20, 10, 150, 30, 40])
        for kind in ("csv", "jsonl", "arrow"):
            self.done("export", "G", "out", "--format", kind)
            self.assertEqual(sorted(os.listdir(self.path("out"))), sorted("%s.%s" % (name, kind) for name in TYPES))
            self.done("init", "again", "--schema", "schema.json")
            self.load(*("%s=out/%s.%s" % (name, name, kind) for name in TYPES), graph="again")
            self.assertEqual(self.shape("again"), first, kind)
            self.clean("again")
            # once more beside them: names are of one load
            self.load(*("%s=out/%s.%s" % (name, name, kind) for name in TYPES if name != "P"), graph="again")
            self.assertEqual(self.done("count", "again", "N").out, "120\n")
            self.clean("again")
            shutil.rmtree(self.path("again"))
            shutil.rmtree(self.path("out"))

    def test_any_workers_and_any_cut_give_the_same_rows(self):
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("chunks cannot be made small in this build")
        first = None
        for number, (workers, piece) in enumerate(some((("1", None), ("4", "1"), ("2", "100")), 2)):
            graph = "G%d" % number
            self.init(SCHEMA, graph)
            env = {"SLUICE_TEST_CHUNK": "300", "SLUICE_TEST_RANGE": "10", **({"SLUICE_SPLIT": piece} if piece else {})}
            self.done("load", graph, *reversed(self.words), "--workers", workers, env=env)
            result = {name: self.rows(name, graph) for name in TYPES}
            first = first or result
            self.assertEqual(result, first, (workers, piece))
            self.clean(graph)

    def test_rows_and_ends_are_found_by_their_ids(self):
        self.load(*self.words)
        rows = {row["t"]: row["_row_id"] for row in self.rows("N")}
        start = rows["text 0\n,"]
        self.assertEqual(self.done("get", "G", "N", str(start), "--json").lines[0]["t"], "text 0\n,")
        ends = {row["to"] for row in self.rows("E") if row["from"] == start}
        said = self.done("neighbors", "G", "N", str(start), "--edge", "E", "--direction", "out", "--json").lines
        self.assertEqual({line["key"] for line in said}, ends - {start})
        # edges to what is in the graph name its rows' ids
        self.write("more.csv", "from,to\n%d,%d\n" % (start, rows["text 9\n,"]))
        self.load("E=more.csv")
        self.assertEqual(self.done("count", "G", "E").out, "151\n")
        self.write("none.csv", "from,to\n%d,3\n" % start)
        said = self.refused(4, "load", "G", "E=none.csv")
        self.assertIn("none.csv:2: column to: there is no N with the row id \"3\"", said.err)
        self.clean()

    def test_a_killed_load_takes_its_names_with_it(self):
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
        self.load(*self.words)
        before = self.shape("G")
        for point in ("load.after_task_result=kill@3", "load.before_key_check=kill", "load.after_edits=kill", "load.after_edits=killpool"):
            result = self.run_program("load", "G", "N=n.csv", "E=e.csv", "--workers", "2", env={"SLUICE_FAILPOINT": point})
            if result.code == 0:
                before = self.shape("G")
            self.assertEqual(self.shape("G"), before, point)
            self.clean()
        self.done("gc", "G")
        self.assertEqual(os.listdir(self.path("G/attempts")), [])
        self.clean()


if __name__ == "__main__":
    main()
