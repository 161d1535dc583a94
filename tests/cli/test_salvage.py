#!/usr/bin/env python3
"""Salvage of a table from a graph in which each kind of file is damaged in turn: what comes out, and what is said about it.

What must hold of every outcome: the new graph is whole; exit 0 means that exactly the rows of the table are in it; otherwise no row is in
it that never was; where deletions are known none is in it that was deleted; and what is missing was told.
"""

import json
import os
import shutil

from support.program import ProgramTest, main, some

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string"}}, "Q": {"properties": {"q": "string"}}},
          "edges": {"E": {"from": "P", "to": "P", "properties": {"w": "int64?"}, "key": []}}}


class Salvage(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        for k in range(2):
            self.write("p.csv", "id,name\n" + "".join("%d,n%d\n" % (i, i) for i in range(100 * k, 100 * k + 100)))
            self.write("e.csv", "from,to,w\n" + "".join("%d,%d,%d\n" % (i, i + 1, i) for i in range(100 * k, 100 * k + 99)))
            self.load("P=p.csv", "E=e.csv")
        self.write("q.csv", "q\na\nb\n")
        self.load("Q=q.csv")
        self.write("m.jsonl", "".join(json.dumps(line) + "\n" for line in (
            {"op": "delete", "node": "P", "key": 3, "detach": True}, {"op": "delete", "node": "P", "key": 150, "detach": True},
            {"op": "insert", "node": "P", "set": {"id": 1000, "name": "late"}})))
        self.done("mutate", "G", "m.jsonl")
        self.alive = {row["id"] for row in self.rows("P")}
        self.ever = self.alive | {3, 150}
        self.edges = {(row["from"], row["to"]) for row in self.rows("E")}
        self.count = 0

    def damaged(self, how, *paths):
        """A copy of the graph with these files damaged: flip, cut, or remove."""
        self.count += 1
        graph = "damaged-%d" % self.count
        shutil.copytree(self.path("G"), self.path(graph))
        for path in paths:
            path = self.path(graph + "/" + path)
            if how == "remove":
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
                continue
            size = os.path.getsize(path)
            with open(path, "r+b") as file:
                if how == "cut":
                    file.truncate(size // 2)
                else:
                    for at in range(size // 2, min(size // 2 + 64, size)):
                        file.seek(at)
                        byte = file.read(1)
                        file.seek(at)
                        file.write(bytes([byte[0] ^ 0x5A]))
        return graph

    def files(self, folder):
        return sorted(folder + "/" + name for name in os.listdir(self.path("G/" + folder)))

    def salvage(self, graph, type_name="P"):
        new = "new-%s-%d" % (graph, self.count)
        self.count += 1
        result = self.run_program("salvage", graph, type_name, "--into", new, "--json")
        self.assertIn(result.code, (0, 6), result.err)
        document = json.loads(result.out.splitlines()[0])
        if "error" in document:
            self.assertFalse(os.path.exists(self.path(new)))
            return document, None
        self.clean(new)
        self.assertEqual(document["whole"], result.code == 0)
        return document, new

    def check(self, graph, whole=None):
        document, new = self.salvage(graph)
        rows = {row["id"] for row in self.rows("P", new)} if new else set()
        self.assertLessEqual(rows, self.ever)
        if new is None:
            return document
        if whole is not None:
            self.assertEqual(document["whole"], whole, document)
        if document["whole"]:
            self.assertEqual(rows, self.alive)
            return document
        self.assertTrue(document["losses"])
        if not document["deletions_unknown"]:
            self.assertLessEqual(rows, self.alive)
            self.assertGreaterEqual(len(rows) + document["lost_rows"], len(self.alive))
        return document

    def test_what_the_table_does_not_need_may_be_gone(self):
        needless = [("FORMAT",), ("graph.json",), ("intents",), ("claims",), ("branches/1/CURRENT",), ("branches/1/acknowledged",),
                    ("control",), ("refs",), ("tables/65",), ("tables/64/keys",)]
        for paths in some(needless, 5):
            for how in ("flip", "remove"):
                if how == "flip" and not os.path.isfile(self.path("G/" + paths[0])):
                    continue
                self.check(self.damaged(how, *paths), whole=True)
        self.check(self.damaged("remove", *(paths[0] for paths in needless)), whole=True)

    def test_a_whole_graph_gives_the_whole_table(self):
        self.check("G", whole=True)
        document, new = self.salvage("G", "E")
        self.assertEqual(document["rows"], {"P": len(self.alive), "E": len(self.edges)})
        self.assertEqual({(row["from"], row["to"]) for row in self.rows("E", new)}, self.edges)
        self.assertEqual(self.salvage("G", "Q")[0]["rows"], {"Q": 2})
        self.refused(2, "salvage", "G", "Nobody", "--into", "x")
        self.refused(2, "salvage", "G", "P")
        self.refused(8, "salvage", "G", "P", "--into", "G")
        self.refused(8, "salvage", "nowhere", "P", "--into", "x")

    def test_of_a_damaged_fragment_only_its_own_rows_are_lost(self):
        for path, hows in zip(self.files("tables/64/fragments"), (("flip", "cut"), ("remove",))):
            for how in hows:
                document = self.check(self.damaged(how, path), whole=False)
                self.assertIn(os.path.basename(path), json.dumps(document["losses"]))
        # Edges whose nodes are lost are left out, each of them told.
        document, new = self.salvage(self.damaged("remove", self.files("tables/64/fragments")[0]), "E")
        self.assertGreater(document["rejected"], 0)
        self.assertEqual(len(self.rows("E", new)) + document["rejected"], len(self.edges))

    def test_damage_anywhere_in_the_log_is_told(self):
        (segment,) = self.files("branches/1/log")
        for how in ("flip", "cut", "remove"):
            self.check(self.damaged(how, segment))
        size = os.path.getsize(self.path("G/" + segment))
        unknown = 0
        for at in some(range(0, min(size, 56 * 1024), 4096), 7):
            graph = self.damaged("flip")
            with open(self.path(graph + "/" + segment), "r+b") as file:
                for where in (at + 10, at + 300):
                    file.seek(where)
                    byte = file.read(1)
                    file.seek(where)
                    file.write(bytes([byte[0] ^ 1]))
            unknown += bool(self.check(graph).get("deletions_unknown"))
            shutil.rmtree(self.path(graph))
        self.assertGreater(unknown, 0)

    def test_lists_and_deletions_that_are_damaged_are_told(self):
        for i in range(34):
            self.write("m.jsonl", json.dumps({"op": "insert", "node": "P", "set": {"id": 2000 + i, "name": "x"}}) + "\n")
            self.done("mutate", "G", "m.jsonl")
        self.write("m.jsonl", "".join(json.dumps({"op": "delete", "node": "P", "key": i, "detach": True}) + "\n" for i in range(10, 40)))
        self.done("mutate", "G", "m.jsonl")
        self.alive = {row["id"] for row in self.rows("P")}
        self.ever = self.alive | {3, 150} | set(range(10, 40))
        self.check("G", whole=True)
        self.assertTrue(self.files("tables/64/lists"))
        for folder in ("tables/64/lists", "tables/64/deletions"):
            for path in self.files(folder)[-2:]:
                self.check(self.damaged("flip", path))
            self.check(self.damaged("remove", *self.files(folder)))

    def test_a_schema_that_is_lost_is_told(self):
        (schema,) = self.files("schema")
        document = self.check(self.damaged("remove", schema), whole=False)
        self.assertEqual(document["rows"], {"P": len(self.alive)})
        self.assertTrue(document["guesses"])
        wider = json.loads(json.dumps(SCHEMA))
        wider["nodes"]["P"]["properties"]["age"] = "int32?"
        self.write("wider.json", wider)
        self.done("schema", "apply", "G", "wider.json")
        for path in self.files("schema"):
            document = self.check(self.damaged("flip", path))
            self.assertNotIn("error", document)


if __name__ == "__main__":
    main()
