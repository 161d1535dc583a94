#!/usr/bin/env python3
"""Loads that update rows (--mode upsert) and replace types (--mode overwrite), by real processes: any number of workers, any cut,
repeated, dry, compressed, against each other."""

import gzip
import json
import os
import random
import shutil

from support.program import ProgramTest, main, some

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string?", "n": "int64", "t": "string?"},
                          "unique": [["name"]]},
                    "Q": {"key": ["a", "b"], "properties": {"a": "int64", "b": "string", "v": "int64?"}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {"w": "int64?"}, "key": []},
                    "M": {"from": "Q", "to": "P", "properties": {"w": "int64?"}}}}
SMALL = {"SLUICE_TEST_CHUNK": "700", "SLUICE_TEST_RANGE": "40"}


class Modes(ProgramTest):
    def setUp(self):
        super().setUp()
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
        dice = random.Random(11)
        rows = range(200)
        self.write("p.csv", "id,name,n,t\n" + "".join("%d,name %d,%d,\"a\n%d\"\n" % (i, i, i % 7, i) for i in rows))
        self.write("q.csv", "a,b,v\n" + "".join("%d,\"b,%d\",%d\n" % (i // 10, i % 10, i) for i in rows))
        self.write("k.csv", "from,to,w\n" + "".join("%d,%d,%d\n" % (i, (i * 7) % 200, i) for i in rows))
        self.write("m.csv", "from.a,from.b,to\n" + "".join("%d,\"b,%d\",%d\n" % (i // 10, i % 10, i) for i in rows))
        # two files with other columns: names move round in a ring, n and t change for some, some keys are new
        keys = list(range(100, 300))
        dice.shuffle(keys)
        self.write("up1.csv", "name,id,n\n" + "".join("name %d,%d,%d\n" % (100 + (i - 99) % 200, i, i % 7) for i in keys))
        self.write("up2.csv", "id,n\n0,9\n" + "".join("%d,%d\n" % (i, i % 5) for i in range(0, 100, 3)))
        self.write("qup.csv", "b,a\n" + "".join("\"b,%d\",%d\n" % (i % 10, i // 10) for i in range(150, 260)))
        self.write("kup.csv", "to,from,w\n" + "".join("%d,%d,%d\n" % ((i * 7) % 200, i, i + i % 2) for i in range(150, 240)))
        self.write("over.csv", "id,n\n" + "".join("%d,%d\n" % (i, i) for i in reversed(range(0, 200, 2))))
        self.write("kover.csv", "from,to\n" + "".join("%d,%d\n" % (i, 198 - i) for i in range(0, 200, 2)))
        self.upsert = ("P=up1.csv", "K=kup.csv", "Q=qup.csv", "P=up2.csv", "--mode", "upsert")
        self.overwrite = ("P=over.csv", "K=kover.csv", "M=none.csv", "--mode", "overwrite")
        self.write("none.csv", "from.a,from.b,to\n")

    def graph(self, name):
        if not os.path.exists(self.path("template")):
            self.init(SCHEMA, "template")
            self.load("P=p.csv", "Q=q.csv", "K=k.csv", "M=m.csv", graph="template")
        shutil.copytree(self.path("template"), self.path(name))
        return name

    def all_rows(self, graph):
        return {name: self.rows(name, graph) for name in ("P", "Q", "K", "M")}

    def test_any_workers_and_any_cut_give_the_same_rows(self):
        for mode in (self.upsert, self.overwrite):
            first = None
            for workers, piece in some((("1", None), ("2", "1"), ("4", "64")), 2):
                graph = self.graph("G")
                said = self.done("load", graph, *mode, "--workers", workers, "--json",
                                 env={**SMALL, **({"SLUICE_SPLIT": piece} if piece else {})}).document
                result = self.all_rows(graph), said["rows"], [said[name] for name in ("inserted", "updated", "deleted")]
                self.clean(graph)
                shutil.rmtree(self.path(graph))
                first = first or result
                self.assertEqual(result, first, (mode, workers, piece))
            if mode is self.upsert:
                self.assertEqual(first[2][0], 100 + 40 + 60)
                self.assertEqual(first[2][2], 0)
                people = {row["id"]: row for row in first[0]["P"]}
                self.assertEqual({people[i]["name"] for i in range(100, 300)}, {"name %d" % i for i in range(100, 300)})
                self.assertEqual(people[150], {"id": 150, "name": "name 151", "n": 3, "t": "a\n150"})
            else:
                self.assertEqual(first[2], [200, 0, 600])

    def test_the_last_row_of_a_key_counts_however_the_input_is_cut(self):
        dice = random.Random(5)
        # up to many rows of one key, over two files and both formats; some known, some new, some as they were at last
        lines, more, wanted, edges, ends = [], [], {}, [], {}
        for number in range(900):
            key = dice.choice((dice.randrange(150, 250), 7, 333))
            row = {"id": key, "n": dice.choice((key % 7, number))}
            if number % 3:
                row["t"] = dice.choice((None, "a\n%d" % key, "line\n%d" % number))
            wanted[key] = row
            (lines if number < 500 else more).append(json.dumps(row))
            end = dice.randrange(150, 200)
            edges.append("%d,%d,%d" % (end, (end * 7) % 200 if number % 2 else 1, number))
            ends[end, (end * 7) % 200 if number % 2 else 1] = number
        self.write("first.jsonl", "\n".join(lines) + "\n")
        self.write("second.jsonl", "\n".join(more) + "\n")
        self.write("edges.csv", "from,to,w\n" + "\n".join(edges) + "\n")
        first = None
        for workers, piece, equal in some((("1", None, None), ("2", "1", None), ("4", "64", "1"), ("2", "100000", "1")), 2):
            graph = self.graph("G")
            old = {row["id"]: row for row in self.rows("P", graph)}
            env = {**SMALL, **({"SLUICE_SPLIT": piece} if piece else {}), **({"SLUICE_TEST_EQUAL_HASHES": equal} if equal else {})}
            if equal:  # runs of the graph and of the load are made alike
                shutil.rmtree(self.path(graph))
                self.init(SCHEMA, graph)
                self.done("load", graph, "P=p.csv", "Q=q.csv", "K=k.csv", "M=m.csv", env=env)
            words = ("load", graph, "P=first.jsonl", "K=edges.csv", "P=second.jsonl", "--mode", "upsert", "--workers", workers, "--json")
            dry = self.done(*words, "--dry-run", env=env).document
            said = self.done(*words, env=env).document
            self.assertEqual(dry["rows"], said["rows"])
            people = {row["id"]: row for row in self.rows("P", graph)}
            should = {**old, **{key: {"name": None, "t": None, **old.get(key, {}), **row} for key, row in wanted.items()}}
            self.assertEqual(people, should, (workers, piece, equal))
            seen = {(e["from"], e["to"]): e["w"] for e in self.rows("K", graph)}
            self.assertEqual({pair: seen.get(pair) for pair in ends}, ends)
            known = sum(1 for start, end in ends if end == (start * 7) % 200)
            new = len(set(wanted) - set(old))
            changed = sum(1 for key, row in wanted.items() if key in old and {**old[key], **row} != old[key])
            w = sum(1 for (start, end), number in ends.items() if end == (start * 7) % 200 and number == start)
            self.assertEqual((said["inserted"], said["updated"]), (new + len(ends) - known, changed + known - w))
            result = self.all_rows(graph), said["rows"]
            first = first or result
            self.assertEqual(result, first, (workers, piece, equal))
            again = self.done(*words, env=env).document
            self.assertIsNone(again["commit"])
            self.clean(graph)
            shutil.rmtree(self.path(graph))

    def test_a_repeated_request_gives_the_first_result(self):
        operation = "0193a1b2-0000-7000-8000-000000000001"
        for mode in (self.upsert, self.overwrite):
            graph = self.graph("G")
            words = ("load", graph, *mode, "--json")
            before = self.all_rows(graph)
            dry = self.done(*words, "--dry-run").document
            self.assertIsNone(dry["commit"])
            self.assertEqual(self.all_rows(graph), before)
            first = self.done(*words, "--op-id", operation, "--compress").document
            after = self.all_rows(graph)
            again = self.done(*words, "--op-id", operation).document
            self.assertEqual((again["commit"], again["repeated"], first["repeated"]), (first["commit"], True, False))
            self.assertEqual((again["rows"], again["updated"]), (first["rows"], first["updated"]))
            self.assertEqual(dry["rows"], first["rows"])
            self.refused(9, "load", graph, "P=over.csv", "--mode", "upsert", "--op-id", operation)
            self.assertEqual(self.all_rows(graph), after)
            self.clean(graph)
            if mode is self.upsert:  # as a new request it changes nothing
                self.assertIsNone(self.done(*words).document["commit"])
            # what stood before still stands there
            old = self.done("scan", graph, "P", "--at", "2", "--json").lines
            self.assertEqual(old, before["P"])
            shutil.rmtree(self.path(graph))

    def test_all_ways_of_reading_agree_afterwards(self):
        for mode in (self.upsert, self.overwrite):
            graph = self.graph("G")
            for name in ("up1.csv", "over.csv"):
                with open(self.path(name), "rb") as file, gzip.open(self.path(name + ".gz"), "wb") as packed:
                    packed.write(file.read())
            self.done("load", graph, *[word.replace("up1.csv", "up1.csv.gz").replace("over.csv", "over.csv.gz")
                                       .replace("kover.csv.gz", "kover.csv") for word in mode], "--compress")
            people = self.rows("P", graph)
            self.assertEqual(self.done("count", graph, "--json").document,
                             {name: len(rows) for name, rows in self.all_rows(graph).items()})
            for row in people[::25]:
                self.assertEqual(self.done("get", graph, "P", str(row["id"]), "--json").lines, [row])
            edges = self.rows("K", graph)
            for start in (150, 198):
                out = {e["to"] for e in edges if e["from"] == start}
                said = self.done("neighbors", graph, "P", str(start), "--edge", "K", "--direction", "out", "--json").lines
                self.assertEqual({n["key"] for n in said if n["depth"] == 1} | ({start} & out), out)
            for kind in ("csv", "jsonl"):
                self.done("export", graph, "out-" + kind, "--format", kind)
                self.done("init", "again", "--schema", "schema.json")
                self.load(*("%s=out-%s/%s.%s" % (name, kind, name, kind) for name in ("P", "Q", "K", "M")), graph="again")
                self.assertEqual(self.content("again"), self.content(graph))
                # and the same once more by upsert changes nothing
                self.assertIsNone(self.load(*("%s=out-%s/%s.%s" % (name, kind, name, kind) for name in ("P", "Q", "K")),
                                            "--mode", "upsert", graph=graph)["commit"])
                shutil.rmtree(self.path("again"))
                shutil.rmtree(self.path("out-" + kind))
            shutil.rmtree(self.path(graph))

    def test_json_lines_say_for_each_row_what_they_give(self):
        graph = self.graph("G")
        self.write("up.jsonl", "".join(json.dumps(row) + "\n" for row in (
            {"id": 1, "n": 100}, {"id": 2, "t": None}, {"id": 3, "name": "drei", "t": "drei"}, {"id": 4}, {"id": 900, "n": 1})))
        said = self.load("P=up.jsonl", "--mode", "upsert", graph=graph)
        self.assertEqual((said["inserted"], said["updated"]), (1, 3))
        people = {row["id"]: row for row in self.rows("P", graph)}
        self.assertEqual(people[1], {"id": 1, "name": "name 1", "n": 100, "t": "a\n1"})
        self.assertEqual(people[2], {"id": 2, "name": "name 2", "n": 2, "t": None})
        self.assertEqual(people[3], {"id": 3, "name": "drei", "n": 3, "t": "drei"})
        self.assertEqual(people[900], {"id": 900, "name": None, "n": 1, "t": None})
        self.write("bad.jsonl", '{"id": 1, "n": 5}\n{"id": 901, "name": "x"}\n')
        said = self.refused(4, "load", graph, "P=bad.jsonl", "--mode", "upsert", "--json")
        self.assertEqual(said.error["code"], "CONSTRAINT_NULL")
        self.assertIn("bad.jsonl:2: column n", said.err)
        self.clean(graph)

    def test_types_without_a_key_are_wrong_words(self):
        graph = self.graph("G")
        said = self.refused(2, "load", graph, "M=m.csv", "--mode", "upsert")
        self.assertIn("hint: ", said.err)
        said = self.refused(2, "load", graph, "M=m.csv", "--mode", "upsert", "--on-error", "skip")
        self.assertIn("type M has no key", said.err)

    def test_a_stranded_edge_is_named(self):
        graph = self.graph("G")
        before = self.content(graph)
        said = self.refused(4, "load", graph, "P=over.csv", "K=kover.csv", "--mode", "overwrite", "--json")
        self.assertEqual((said.error["code"], said.error["committed"]), ("CONSTRAINT_ENDPOINT", False))
        self.assertIn("over.csv: the edge M from \"0\", \"b,1\" to \"1\" would lose its end: P \"1\"", said.err)
        self.assertIn("hint: overwrite M in the same load", said.err)
        self.assertEqual(self.content(graph), before)

    # ---- against each other ----

    def test_two_that_replace_one_type_leave_one_content(self):
        graph = self.graph("G")
        self.write("a.csv", "id,n,name\n" + "".join("%d,1,a%d\n" % (i, i) for i in range(200)))
        self.write("b.csv", "id,n,name\n" + "".join("%d,2,b%d\n" % (i, i) for i in range(300)))
        for number in range(6):
            started = [self.start("load", graph, "P=" + name, "--mode", "overwrite", "--workers", "1") for name in ("a.csv", "b.csv")]
            codes = [self.finish(process).code for process in started]
            self.assertIn(0, codes)
            self.assertLessEqual(set(codes), {0, 3})
            self.assertIn({(row["n"], len(row["name"]) > 0) for row in self.rows("P", graph)}, ({(1, True)}, {(2, True)}))
            self.assertIn(int(self.done("count", graph, "P").out), (200, 300))
        self.clean(graph)

    def test_updates_of_one_row_by_many_are_all_there(self):
        graph = self.graph("G")
        columns = ("name", "n", "t")
        for number, column in enumerate(columns):
            self.write("one%d.csv" % number, "id,%s\n7,%s\n" % (column, "77" if column == "n" else "seven"))
        started = [self.start("load", graph, "P=one%d.csv" % number, "--mode", "upsert", "--workers", "1") for number in range(3)] + \
                  [self.start("load", graph, "P=up2.csv", "--mode", "upsert", "--workers", "1")]
        self.assertEqual([self.finish(process).code for process in started], [0, 0, 0, 0])
        self.assertEqual(self.done("get", graph, "P", "7", "--json").lines, [{"id": 7, "name": "seven", "n": 77, "t": "seven"}])
        self.clean(graph)

    def test_a_replacement_and_edges_that_need_its_nodes(self):
        for number in range(3):
            graph = self.graph("R%d" % number)
            self.write("e.csv", "from,to\n" + "".join("%d,%d\n" % (i, i + 1) for i in range(0, 150, 2)))
            started = [self.start("load", graph, *self.overwrite, "--workers", "1"),
                       self.start("load", graph, "K=e.csv", "--mode", "upsert", "--workers", "1")]
            codes = [self.finish(process).code for process in started]
            self.assertIn(0, codes)
            self.assertLessEqual(set(codes), {0, 3, 4})
            self.clean(graph)


if __name__ == "__main__":
    main()
