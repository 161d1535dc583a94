#!/usr/bin/env python3
"""Salvage when what explains a table's files is gone: its schema, its log, its lists, its branch's name, each alone and all at once.

What must hold of every outcome: the damaged graph is as it was; the new one is whole; no row is in it that never was, and each only once
where it has a key; what was guessed and what is lost was told.
"""

import hashlib
import json
import os
import shutil

from support.program import ProgramTest, main, some

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": {"type": "string", "default": "x"}}, "unique": [["name"]]},
                    "Q": {"properties": {"q": "string"}}},
          "edges": {"E": {"from": "P", "to": "P", "properties": {"w": "int64?"}, "key": []},
                    "A": {"from": "Q", "to": "P", "properties": {"n": "int32?"}}}}


def contents(folder):
    found = {}
    for root, folders, files in os.walk(folder):
        for name in folders:
            found[os.path.join(root, name)] = None
        for name in files:
            with open(os.path.join(root, name), "rb") as file:
                found[os.path.join(root, name)] = hashlib.sha256(file.read()).digest()
    return found


class SalvageFiles(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        self.write("p.csv", "id,name\n" + "".join("%d,n%d\n" % (i, i) for i in range(60)))
        self.write("e.csv", "from,to,w\n" + "".join("%d,%d,%d\n" % (i, i + 1, i) for i in range(59)))
        self.write("q.csv", ":ID,q\n" + "".join("%d,q%d\n" % (i, i) for i in range(5)))
        self.write("a.csv", "from,to,n\n" + "".join("%d,%d,%d\n" % (i % 5, i, i) for i in range(30)))
        self.load("P=p.csv", "E=e.csv", "Q=q.csv", "A=a.csv")
        self.write("u.csv", "id,name\n" + "".join("%d,m%d\n" % (i, i) for i in range(50, 80)))
        self.done("load", "G", "P=u.csv", "--mode", "upsert")
        self.write("m.jsonl", json.dumps({"op": "delete", "node": "P", "key": 3, "detach": True}) + "\n")
        self.done("mutate", "G", "m.jsonl")
        self.now = {row["id"]: row["name"] for row in self.rows("P")}
        self.before = {i: "n%d" % i for i in range(60)}
        self.count = 0

    def without(self, *paths):
        """A copy of the graph without these files and folders."""
        self.count += 1
        graph = "less-%d" % self.count
        shutil.copytree(self.path("G"), self.path(graph))
        for path in paths:
            path = self.path(graph + "/" + path)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        return graph

    def salvaged(self, graph, type_name, *words):
        new = "%s-%s" % (graph, type_name)
        before = contents(self.path(graph))
        result = self.run_program("salvage", graph, type_name, "--into", new, "--workers", "1", "--json", *words)
        self.assertEqual(contents(self.path(graph)), before)
        self.assertIn(result.code, (0, 6), result.err)
        document = json.loads(result.out.splitlines()[0])
        self.assertNotIn("error", document)
        self.assertEqual(document["whole"], result.code == 0)
        self.assertEqual(document["whole"], not (document["losses"] or document["guesses"] or document["deletions_unknown"]))
        self.clean(new)
        return document, new

    def check(self, graph, whole, *words):
        """P and E of this graph; every row of P that lives comes back as it is."""
        for type_name in ("P", "E"):
            document, new = self.salvaged(graph, type_name, *words)
            self.assertEqual(document["whole"], whole, document)
            rows = self.rows("P", new)
            found = {row["id"]: row["name"] for row in rows}
            self.assertEqual(len(found), len(rows))
            for key, name in found.items():
                self.assertEqual(name, self.now.get(key, self.before.get(key)))
            self.assertLessEqual(set(self.now), set(found))
            if whole:
                self.assertEqual(found, self.now)
        edges = {(row["from"], row["to"]): row["w"] for row in self.rows("E", new)}
        self.assertLessEqual(set(edges.items()), {((i, i + 1), i) for i in range(59)})
        self.assertGreaterEqual(len(edges), 57)
        return document

    def folders(self):
        return ["tables/" + name for name in os.listdir(self.path("G/tables"))]

    def files(self, *kinds):
        return [folder + "/" + kind for folder in self.folders() for kind in kinds]

    def test_without_one_of_its_parts_the_rows_are_there(self):
        schema = ["schema/" + name for name in os.listdir(self.path("G/schema"))]
        segments = ["branches/1/log/" + name for name in os.listdir(self.path("G/branches/1/log"))]
        for whole, paths in some(((True, ["branches/1/CURRENT"]), (True, ["refs"]), (True, ["control"]), (True, self.files("keys")),
                                  (True, self.files("lists")), (False, schema), (False, ["schema"]), (False, segments),
                                  (False, ["branches"])), 5):
            graph = self.without(*paths)
            document = self.check(graph, whole)
            self.assertEqual(document["from"], "files" if paths[0].startswith("branches") and not whole else "state")
            shutil.rmtree(self.path(graph))

    def test_of_the_fragments_alone_a_graph_is_made(self):
        all_else = ["FORMAT", "graph.json", "control", "refs", "branches", "schema", "intents", "claims", "locks", "audit", "attempts",
                    *self.files("lists", "keys", "deletions", "indexes")]
        there = [path for path in all_else if os.path.exists(self.path("G/" + path))]
        graph = self.without(*there)
        document = self.check(graph, False)
        self.assertEqual(document["from"], "files")
        self.assertIsNone(document["lost_rows"])
        self.assertGreater(document["doubled"], 0)  # what the upsert has written anew
        new = json.loads(self.done("schema", "show", graph + "-E").out)
        self.assertEqual(new["nodes"]["P"], json.loads(self.done("schema", "show", "G").out)["nodes"]["P"])
        document, new = self.salvaged(graph, "Q")
        self.assertEqual(sorted(row["q"] for row in self.rows("Q", new)), ["q%d" % i for i in range(5)])
        # Row ids stood in the lists: whose edges these are is not known any more, and none is made up.
        document, new = self.salvaged(graph, "A")
        self.assertEqual(len(self.rows("A", new)) + document["rejected"], 30)
        self.assertIn("salvaged", self.done("log", new).out)
        text = self.refused(2, "salvage", graph, "Nobody", "--into", "x")
        self.assertIn("Nobody", text.err)

    def test_what_was_optimized_is_not_there_twice(self):
        self.done("optimize", "G")
        self.write("more.csv", "id,name\n" + "".join("%d,k%d\n" % (i, i) for i in range(80, 90)))
        self.load("P=more.csv")
        self.now = {row["id"]: row["name"] for row in self.rows("P")}
        everything = sorted((row["from"], row["to"], row["n"]) for row in self.rows("A"))
        segments = ["branches/1/log/" + name for name in os.listdir(self.path("G/branches/1/log"))]
        self.check(self.without(*segments), False)
        self.check(self.without(*segments, *self.files("lists")), False)
        self.check(self.without("branches", "schema"), False)
        # Edges without a key are told from each other by their row ids, where lists give these.
        document, new = self.salvaged(self.without(*self.files("lists")), "A")
        rows = sorted((row["to"], row["n"]) for row in self.rows("A", new))
        self.assertLessEqual({(to, n) for _, to, n in everything}, set(rows))

    def test_a_fragment_that_is_gone_takes_its_own_rows_only(self):
        fragments = sorted("tables/64/fragments/" + name for name in os.listdir(self.path("G/tables/64/fragments")))
        missing = set()
        for path in fragments:
            document, new = self.salvaged(self.without(path, "branches", "schema"), "P")
            found = {row["id"] for row in self.rows("P", new)}
            self.assertTrue(found)
            self.assertLessEqual(found, set(self.now) | set(self.before))
            missing |= set(self.now) - found
        self.assertEqual(missing, set(self.now) - set(range(50, 60)))  # of these there are two versions
        graph = self.without("branches", "schema")
        for path in fragments:  # what is damaged is not taken for whole
            with open(self.path(graph + "/" + path), "r+b") as file:
                file.seek(os.path.getsize(file.name) // 3)
                byte = file.read(1)
                file.seek(-1, os.SEEK_CUR)
                file.write(bytes([byte[0] ^ 1]))
        document, new = self.salvaged(graph, "P")
        self.assertTrue(any("fragments" in loss["object"] for loss in document["losses"]))
        for row in self.rows("P", new):
            self.assertIn((row["id"], row["name"]), set(self.now.items()) | set(self.before.items()))
        graph = self.without("branches", "schema", *fragments)  # the edges' files know what their ends were
        document, new = self.salvaged(graph, "E")
        self.assertEqual(document["rows"], {"P": 0, "E": 0})

    def test_a_branch_without_its_name_is_found(self):
        self.done("branch", "create", "G", "side")
        self.write("side.csv", "id,name\n500,side\n")
        self.load("P=side.csv", "--branch", "side")
        for gone in (["refs"], ["refs", "control"]):
            document, new = self.salvaged(self.without(*gone), "P", "--branch", "side")
            self.assertEqual(document["from"], "state")
            self.assertIn("refs", [guess["object"] for guess in document["guesses"]])
            self.assertEqual({row["id"] for row in self.rows("P", new)}, set(self.now) | {500})
        self.done("branch", "create", "G", "other")
        document, new = self.salvaged(self.without("refs"), "P", "--branch", "side")  # a receipt knows which it is
        self.assertIn(500, {row["id"] for row in self.rows("P", new)})
        self.refused(8, "salvage", self.without("refs", "control"), "P", "--branch", "side", "--into", "x")
        self.refused(8, "salvage", "G", "P", "--branch", "nobody", "--into", "x")
        document, new = self.salvaged(self.without("branches"), "P", "--branch", "side")
        self.assertEqual(document["from"], "files")
        self.assertLessEqual(set(self.now) | {500}, {row["id"] for row in self.rows("P", new)})

    def test_the_newest_description_of_a_type_counts(self):
        wider = json.loads(json.dumps(SCHEMA))
        wider["nodes"]["Human"] = wider["nodes"].pop("P")
        wider["nodes"]["Human"]["renamed_from"] = "P"
        wider["nodes"]["Human"]["properties"]["age"] = "int32?"
        for edge in ("E", "A"):
            for end in ("from", "to"):
                if wider["edges"][edge][end] == "P":
                    wider["edges"][edge][end] = "Human"
        self.write("wider.json", wider)
        self.done("schema", "apply", "G", "wider.json")
        self.write("h.csv", "id,name,age\n900,new,7\n")
        self.load("Human=h.csv")
        graph = self.without("branches", "schema")
        document, new = self.salvaged(graph, "E")
        self.assertGreaterEqual(document["rows"]["E"], 57)
        rows = {row["id"]: row for row in self.rows("Human", new)}
        self.assertEqual(rows[900]["age"], 7)
        self.assertEqual(rows[0], {"id": 0, "name": "n0", "age": None})

    def test_what_is_no_graph_at_all_says_so(self):
        os.mkdir(self.path("empty"))
        self.assertIn("CORRUPT", self.refused(6, "salvage", "empty", "P", "--into", "x", "--json").out)
        self.assertFalse(os.path.exists(self.path("x")))
        graph = self.without("branches", "schema", "tables")
        self.refused(6, "salvage", graph, "P", "--into", "x")
        self.assertFalse(os.path.exists(self.path("x")))


if __name__ == "__main__":
    main()
