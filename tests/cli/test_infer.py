#!/usr/bin/env python3
"""Inference: which schema files have, and that they load with it, whatever they are."""

import gzip
import json
import os
import random
import subprocess

from support.program import SAMPLED, TIMEOUT, ProgramTest, main

try:
    import pyarrow
    import pyarrow.feather
except ImportError:
    pyarrow = None


class Infer(ProgramTest):
    def infer(self, *words, **more):
        return self.done("load", "none", "--infer", *words, **more).document

    def types(self, text, name="a.csv", *words):
        """The properties that a file of nodes has."""
        self.write(name, text)
        return self.infer("T=" + name, *words)["nodes"]["T"]["properties"]

    def test_types_of_csv_columns(self):
        for values, want in [
            (["1", "-2"], "int64"), (["1", ""], "int64?"), (["9223372036854775808", "0"], "uint64"), (["9223372036854775808", "-1"], "string"),
            (["18446744073709551616"], "string"), (["1", "2.5"], "float64"), (["1.0"], "float64"), (["1e3", "NaN", "-Infinity"], "float64"),
            (["9007199254740993", "0.5"], "string"), (["9007199254740992", "0.5"], "float64"), (["007", "1"], "string"), (["-0"], "float64"),
            (["00.5"], "string"), (["+1"], "string"), ([" 1"], "string"), (["1,5"], "string"), (["1_000"], "string"), (["0x10"], "string"),
            (["true", "false"], "bool"), (["true", "1"], "string"), (["True"], "string"), (["2026-01-31"], "date"), (["2026-02-30"], "string"),
            (["2026-01-31", "2026-01-31T10:00:00Z"], "timestamp"), (["2026-01-31 10:00", ""], "timestamp?"), (["2026-01-31", "1"], "string"),
            (["", ""], "string?"), (["x"], "string"), (["1", '""'], "string"), (["null"], "string"), (["1e400"], "string"),
        ]:
            text = "k,v\n" + "".join("x,%s\n" % ('"%s"' % v if "," in v else v) for v in values)
            self.assertEqual(self.types(text)["v"], want, values)
        self.assertEqual(self.types("k,v\n", "b.csv"), {"k": "string", "v": "string"})
        self.assertEqual(self.types("k;v\n1;NA\n", "b.csv", "--delimiter", ";", "--null", "NA"), {"k": "int64", "v": "string?"})
        self.assertEqual(self.types("1\t2\n", "b.tsv", "--no-header", "--columns", "x,y"), {"x": "int64", "y": "int64"})
        self.assertIn("--columns", self.refused(2, "load", "none", "--infer", "T=b.tsv", "--no-header").err)

    def test_types_of_json_members(self):
        for values, want in [
            ([1, 2], "int64"), ([1, None], "int64?"), ([2**64 - 1, 0], "uint64"), ([1, 0.5], "float64"), ([True], "bool"), (["1", "2"], "string"),
            ([1, "2"], "int64"), ([0.5, "NaN"], "float64"), (["2026-01-31"], "date"), (["2026-01-31", "2026-01-31T10:00:00Z"], "timestamp"),
            (["2026-01-31", ""], "string"), ([None], "string?"), (["true"], "string"), ([True, "false"], "bool"), ([""], "string"),
        ]:
            text = "".join(json.dumps({"k": "x", "v": v}) + "\n" for v in values)
            self.assertEqual(self.types(text, "a.jsonl")["v"], want, values)
        self.assertEqual(self.types('{"a": 1}\n\n{"b": 2, "a": 3}\n', "a.jsonl"), {"a": "int64", "b": "int64?"})
        self.assertEqual(self.types('{"v": 1e2}\n', "a.jsonl"), {"v": "float64"})
        self.assertEqual(self.types('{"v": 1, "w": [1]}\n{"v": 2, "w": {}}\n', "a.jsonl", "--ignore-unknown"), {"v": "int64"})

    def test_keys_are_found_by_rule(self):
        for heading, rows, want in [
            ("id,v", "1,1\n2,1\n", "id"), ("Id,v", "a,1\nb,1\n", "Id"), ("id,v", "1,1\n1,1\n", None), ("id,v", "1,1\n,1\n", None),
            ("id,v", "1.5,1\n2.5,1\n", None), ("key,v", "1,1\n2,1\n", "key"), ("id,key", "1,1\n1,2\n", "key"), ("t_id,v", "1,1\n2,2\n", "t_id"),
            ("TID,v", "1,1\n2,2\n", "TID"), ("v,w", "1,1\n2,2\n", None), ("x:ID,v", "1,1\n2,1\n", "x"), (":ID(S),v", "1,1\n2,1\n", "id"),
            ("id,v:ID", "1,1\n2,2\n", "v"), ("a:ID,b:ID", "1,1\n1,2\n", ["a", "b"]), ("id,v", "%s,1\n" % ("x" * 1100), None),
        ]:
            for keys in ("1000", "1"):  # many parts of one key each
                self.write("a.csv", heading + "\n" + rows)
                node = self.infer("T=a.csv", env={"SLUICE_TEST_KEYS": keys})["nodes"]["T"]
                self.assertEqual(node.get("key"), want, heading)
        said = self.refused(4, "load", "none", "--infer", "T=" + self.write("a.csv", "x:ID\n5\n7\n\n5\n"), "--json")
        self.assertIn("a.csv:5: column x:ID: the key \"5\" is already on line 2", said.err)
        self.assertEqual(said.error["code"], "KEY_CONFLICT")
        self.write("b.csv", "x:ID\n8\n7\n")
        said = self.refused(4, "load", "none", "--infer", "T=b.csv", "T=a.csv")
        self.assertIn("a.csv:3: column x:ID: the key \"7\" is already on line 3 of b.csv", said.err)

    def test_words_of_headings_decide(self):
        self.assertEqual(self.types("k:ID,a:string,b:float,c:long,d:int32?,e:boolean,f:datetime,g:IGNORE\n1,1,1,1,1,true,2026-01-01,z\n".replace("?", "")),
                         {"k": "int64", "a": "string", "b": "float64", "c": "int64", "d": "int32", "e": "bool", "f": "timestamp"})
        self.write("a.csv", "k:ID,a:int\n1,1\n2,x\n")
        self.assertIn('a.csv:3: column a:int: "x" is not an int64', self.refused(4, "load", "none", "--infer", "T=a.csv").err)
        self.write("a.csv", "k:ID,a:strange\n1,1\n")
        self.assertIn("a.csv:1: ", self.refused(4, "load", "none", "--infer", "T=a.csv").err)

    def test_ends_are_found_by_their_keys(self):
        self.write("p.csv", "id,n\n1,a\n2,b\n3,c\n")
        self.write("q.csv", "id\n2\n3\n4\n")
        self.write("c.jsonl", '{"id": "x"}\n{"id": "2"}\n')
        for name, text, want in [
            ("e.csv", "from,to\n1,2\n3,3\n", ("P", "P")), ("e.csv", "from,to\n2,4\n", ("P", "Q")), ("e.csv", "src,dst,w\n4,x,1\n2,2,\n", ("Q", "C")),
            ("e.csv", "source,target\nx,1\n", ("C", "P")), ("e.csv", ":START_ID,:END_ID,:TYPE\n3,4,E\n", ("P", "Q")),
            ("e.jsonl", '{"from": 1, "to": "x"}\n', ("P", "C")), ("e.jsonl", '{"from": {"id": 4}, "to": ["x"]}\n', None),
            ("e.csv", ":START_ID(Q),:END_ID(Q)\n2,3\n", ("Q", "Q")), ("e.csv", "from,to\n", ("P", "P")),
        ]:
            self.write(name, text)
            for keys in ("1000", "1"):
                words = ("load", "none", "--infer", "P=p.csv", "Q=q.csv", "C=c.jsonl", "E=" + name)
                if want is None:
                    self.refused(4, *words)
                    continue
                edge = self.done(*words, env={"SLUICE_TEST_KEYS": keys}).document["edges"]["E"]
                self.assertEqual((edge["from"], edge["to"]), want, text)
        self.write("e.csv", "from,to\n1,2\n\n2,9\n1,8\n")
        said = self.refused(4, "load", "none", "--infer", "P=p.csv", "Q=q.csv", "E=e.csv", "--json")
        self.assertIn('e.csv:4: column to: there is no P with the key "9" (edge type E)', said.err)
        self.assertIn("none of 2 node types", said.err)
        self.assertEqual(said.error["code"], "CONSTRAINT_ENDPOINT")
        self.assertIn("no node type", self.refused(2, "load", "none", "--infer", "E=e.csv").err)

    def test_exports_of_nodes_without_a_key_are_joined_by_their_names(self):
        self.init({"nodes": {"N": {"properties": {"s": "string"}}, "P": {"key": "k", "properties": {"k": "int64"}}},
                   "edges": {"E": {"from": "N", "to": "P", "properties": {}}, "F": {"from": "N", "to": "N", "properties": {}}}})
        self.write("n.csv", "_row_id,s\na,x\nb,y\n,z\n")
        self.write("p.csv", "k\n1\n2\n")
        self.write("e.csv", "from,to\na,1\nb,2\n")
        self.write("f.jsonl", '{"from": "a", "to": "b"}\n')
        files = ("N=n.csv", "P=p.csv", "E=e.csv", "F=f.jsonl")
        self.load(*files)
        want = self.done("schema", "show", "G").document
        for format in ("csv", "jsonl"):
            self.done("export", "G", format, "--format", format)
            files = ["%s=%s/%s.%s" % (name, format, name, format) for name in "NPEF"]
            if format == "csv":  # no key by the rule: k is none of its names
                self.write("csv/P.csv", self.read("csv/P.csv").replace("k", "k:ID", 1))
            else:
                self.write("jsonl/P.jsonl", self.read("jsonl/P.jsonl").replace('"k"', '"id"'))
                want = json.loads(json.dumps(want).replace('"k"', '"id"'))
            for keys in ("1", "1000"):
                self.assertEqual(self.done("load", "none", "--infer", *files, env={"SLUICE_TEST_KEYS": keys}).document, want)
            self.done("init", "copy-" + format, "--infer", *files)
            self.assertEqual(self.load(*files, graph="copy-" + format)["rows"], {"N": 3, "P": 2, "E": 2, "F": 1})
        self.write("n.csv", ":ID,s\na,x\nb,y\n")
        self.write("m.csv", "from,to,w\nb,2,1\n")
        got = self.done("load", "G", "--infer", "N=n.csv", "E=e.csv", "M=m.csv").document
        self.assertEqual(got["edges"]["M"], {"from": "N", "to": "P", "properties": {"w": "int64"}})
        self.write("n.csv", "_row_id,s\na,x\nb,y\na,z\n")
        self.assertIn("n.csv:4: column _row_id: the key \"a\" is already on line 2", self.refused(4, "load", "none", "--infer", "N=n.csv").err)
        self.write("n.csv", "_row_id,s\na,x\nb,y\n")
        self.write("f.jsonl", '{"from": "a", "to": "q"}\n')
        self.assertIn('f.jsonl:1: column to: there is no N with the key "q"', self.refused(4, "load", "none", "--infer", "N=n.csv", "F=f.jsonl").err)

    def test_types_of_a_graph_serve_as_ends_and_stay_as_they_are(self):
        schema = {"nodes": {"P": {"key": ["a", "b"], "properties": {"a": "int32", "b": "string", "n": {"type": "string", "default": "x"}}},
                            "Q": {"key": "id", "properties": {"id": "int64"}, "checks": {"id": {"min": 0}}}}, "edges": {}}
        self.init(schema)
        self.write("p.csv", "a,b\n1,x\n2,y\n")
        self.write("q.csv", "id\n5\n")
        self.load("P=p.csv", "Q=q.csv")
        self.write("e.csv", "from.a,from.b,to,w\n2,y,5,1\n")
        self.write("l.csv", "from,to\n5,6\n")
        self.write("q2.csv", "id\n6\n")
        self.assertIn("l.csv:2", self.refused(4, "load", "G", "--infer", "L=l.csv").err)
        got = self.done("load", "G", "--infer", "E=e.csv", "L=l.csv", "Q=q2.csv").document
        self.assertEqual(got["edges"], {"E": {"from": "P", "to": "Q", "properties": {"w": "int64"}}, "L": {"from": "Q", "to": "Q", "properties": {}}})
        self.assertEqual(got["nodes"], schema["nodes"])
        self.write("q2.csv", "id\n-6\n")
        self.assertIn("below the minimum", self.refused(4, "load", "G", "--infer", "Q=q2.csv").err)
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 2, "Q": 1})

    def test_graphs_are_made_from_what_files_have(self):
        lines = ["%d,n%d\n" % (i, i) for i in range(100)]
        self.write("p.csv.gz", gzip.compress(("id,name\n" + "".join(lines[:50])).encode()))
        self.write("p2.csv", "name,id,extra\n" + "".join("n%d,%d,true\n" % (i, i) for i in range(50, 100)))
        self.write("k.csv", "from,to,since\n" + "".join("%d,%d,2026-01-%02d\n" % (i, 99 - i, i % 28 + 1) for i in range(100)))
        inputs = ("P=p.csv.gz", "P=p2.csv", "K=k.csv")
        for piece in ("1", "100000"):
            graph = "G" + piece
            made = self.done("init", graph, "--infer", *inputs, "--json", env={"SLUICE_SPLIT": piece}).document
            self.assertEqual(made["path"], graph)
            self.assertEqual(self.load(*inputs, graph=graph)["rows"], {"P": 100, "K": 100})
        self.assertEqual(self.done("schema", "show", "G1").document, {
            "nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string", "extra": "bool?"}}},
            "edges": {"K": {"from": "P", "to": "P", "properties": {"since": "date"}}}})
        self.assertIn("2 types in s.json", self.done("load", "G1", "--infer", "--schema-out", "s.json", *inputs).out)
        self.done("init", "H", "--schema", "s.json")
        with open(self.path("p2.csv")) as stdin:
            self.assertEqual(self.done("load", "none", "--infer", "P=-", stdin=stdin).document["nodes"]["P"]["key"], "id")
        cat = subprocess.Popen(["cat", self.path("p2.csv")], stdout=subprocess.PIPE)
        self.done("init", "I", "--infer", "P=/dev/stdin", stdin=cat.stdout)
        cat.stdout.close()
        cat.wait(TIMEOUT)
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(["G1", "G100000", "H", "I", "p.csv.gz", "p2.csv", "k.csv", "s.json"]))

    def test_what_cannot_be_is_told_with_its_place(self):
        for name, text, words in [
            ("a.jsonl", '{"id": 1}\n{"id": 2, "v": 1}\n\n{"id": 3, "v": "x"}\n', 'a.jsonl:4: column v: "x" is of no type that also holds'),
            ("a.jsonl", '{"id": 1}\n{"id": 2, "v": [1]}\n', 'a.jsonl:2: column v: "[1]" is a list'),
            ("a.jsonl", '{"id": 1}\n{"id": \n', "a.jsonl:2: not one JSON object"),
            ("a.jsonl", '{"id": 1, "_x": 2}\n', 'a.jsonl:1: column "_x" has a name that no property may have'),
            ("a.csv", "id,a/b\n1,2\n", 'a.csv:1: column "a/b" has a name'),
            ("a.csv", "id,v\n1,2\n3\n", "a.csv:3: there is 1 value for 2 columns"),
            ("a.csv", 'id,v\n1,"x\n', "a.csv:2: a quote opens here"),
            ("a.csv", "id,v\n1,\udcff\n".encode("utf-8", "surrogateescape"), "a.csv:2: column v: the value is not valid UTF-8"),
            ("a.csv", "id;v\n1;2\n", 'its only column is called "id;v"'),
            ("a.csv", "", "a.csv:1: the file is empty"),
            ("a.csv", b"\xff\xfea\x00", "a.csv:1: an input is not UTF-8"),
            ("a.csv", "id,:LABEL\n1,X\n", 'a.csv:2: column :LABEL: "X" is not the type T'),
            ("a.csv", "id,id\n1,1\n", 'a.csv:1: column "id" is named twice'),
            ("a.csv", ":ID,id\n1,1\n", 'called "id"'),
        ]:
            said = self.refused(4, "load", "none", "--infer", "T=" + self.write(name, text), "--json")
            self.assertIn(words, said.err)
            self.assertIs(said.error["committed"], False)
        self.write("a.csv", ",".join("c%d" % i for i in range(4097)) + "\n")
        said = self.refused(10, "load", "none", "--infer", "T=a.csv")
        self.assertIn('a.csv:1: column "c4096" is one too many for a type', said.err)
        self.write("a.jsonl", "".join('{"n%d": 1}\n' % i for i in range(9000)))
        self.assertIn("a.jsonl: a type has more than 8192 columns", self.refused(10, "load", "none", "--infer", "T=a.jsonl").err)
        self.refused(2, "load", "none", "--infer", "T=missing.csv")
        self.refused(2, "init", "G", "--infer", "a/b=" + self.write("a.csv", "id\n1\n"))
        self.refused(2, "init", "G", "--infer", "--schema", "s.json", "T=a.csv")
        self.refused(2, "init", "G", "--schema", "s.json", "T=a.csv")
        self.refused(2, "load", "G", "T=a.csv", "--schema-out", "s.json")
        self.assertFalse(os.path.exists(self.path("G")))

    # ---- random files ----

    def column(self, dice, rows):
        """A column of CSV texts, of one kind or of several mixed."""
        kinds = [lambda: str(dice.randrange(-1000, 1000)), lambda: str(dice.getrandbits(64)), lambda: repr(dice.gauss(0, 1e9)),
                 lambda: dice.choice(["true", "false"]), lambda: "20%02d-0%d-1%d" % (dice.randrange(100), dice.randrange(1, 10), dice.randrange(10)),
                 lambda: "2026-01-01T0%d:00:00.5%s" % (dice.randrange(10), dice.choice(["", "Z", "+02:30"])),
                 lambda: dice.choice(['"a,b"', '"x\ny"', "é", '""', "NaN", "-0", "00", "1e5", "null", " ", '"1"', '"q""q"'])]
        kinds = dice.sample(kinds, dice.choice([1, 1, 1, 2, 3]))
        empty = dice.choice([0, 0, 0.2])
        return ["" if dice.random() < empty else dice.choice(kinds)() for _ in range(rows)]

    def test_what_was_inferred_loads_the_files_it_came_from(self):
        rounds = 150 if os.environ.get("SLUICE_LONG") else 5 if SAMPLED else 10
        for seed in range(rounds):
            dice = random.Random(seed)
            inputs = []
            keys = {}
            for name in "PQ":
                keys[name] = dice.sample(dice.choice([range(60), range(10**17, 10**17 + 60), ["k%d" % i for i in range(60)], [str(i) + "é" for i in range(60)]]), 40)
                for part in range(2):
                    mine = keys[name][part * 20:part * 20 + 20]
                    columns = {"c%d" % i: self.column(dice, 20) for i in range(dice.randrange(4))}
                    columns[dice.choice(["id:ID", "id"]) if part else "id"] = [str(key) for key in mine]
                    names = dice.sample(list(columns), len(columns))
                    if dice.random() < 0.5:
                        text = ",".join(names) + "\n" + "".join(",".join(columns[n][i] for n in names) + "\n" for i in range(20))
                        file = "%s%d.csv" % (name, part)
                    else:
                        file = "%s%d.jsonl" % (name, part)
                        text = "".join(json.dumps({"id": mine[i], **{n: {"true": True, "false": False, "": None}.get(v[i], v[i]) if n[0] == "c" and
                                                                     set(v) <= {"true", "false", ""} else v[i] for n, v in columns.items()
                                                                     if n[0] == "c"}}) + "\n" for i in range(20))
                    inputs.append("%s=%s" % (name, self.write(file, text)))
            for edge in "EF":
                ends = [keys[dice.choice("PQ")], keys[dice.choice("PQ")]]
                weights = self.column(dice, 30)
                text = dice.choice(["from,to,w", "src,dst,w", ":START_ID,:END_ID,w"]) + "\n"
                text += "".join("%s,%s,%s\n" % (dice.choice(ends[0]), dice.choice(ends[1]), weights[i]) for i in range(30))
                inputs.append("%s=%s" % (edge, self.write(edge + ".csv", text)))
            graph = "G%d" % seed
            made = self.run_program("init", graph, "--infer", *inputs, env={"SLUICE_SPLIT": dice.choice(["1", "100", "100000"]),
                                                                          "SLUICE_TEST_KEYS": dice.choice(["7", "100000"])})
            if made.code != 0:  # a column that no one type holds, which only JSON's own types can make
                self.assertIn("no type that also holds", made.err, inputs)
                continue
            self.assertEqual(self.load(*inputs, graph=graph)["rows"], {"P": 40, "Q": 40, "E": 30, "F": 30}, seed)
            self.clean(graph)

    def test_arrow_files_say_what_they_are(self):
        if pyarrow is None:
            self.skipTest("no pyarrow")
        table = pyarrow.table({
            "id": pyarrow.array([1, 2], pyarrow.int16()), "u": pyarrow.array([1, 2**64 - 1], pyarrow.uint64()), "s": ["1", "2"],
            "f": pyarrow.array([1, None], pyarrow.float32()), "b": [True, False], "x": [b"a", b""], "day": pyarrow.array([1, 2], pyarrow.date32()),
            "at": pyarrow.array([1, 2], pyarrow.timestamp("ms", "UTC")), "n": pyarrow.nulls(2), "d": pyarrow.array(["a", "a"]).dictionary_encode()})
        pyarrow.feather.write_feather(table, self.path("p.arrow"), compression="uncompressed")
        edges = pyarrow.table({"from": pyarrow.array([1, 2], pyarrow.int8()), "to": pyarrow.array([2, 2], pyarrow.int64()), "w": [0.5, 1.5]})
        pyarrow.feather.write_feather(edges, self.path("k.feather"), compression="uncompressed")
        got = self.infer("P=p.arrow", "K=k.feather")
        self.assertEqual(got, {"nodes": {"P": {"key": "id", "properties": {
            "id": "int64", "u": "uint64", "s": "string", "f": "float64?", "b": "bool", "x": "bytes", "day": "date", "at": "timestamp", "n": "string?",
            "d": "string"}}}, "edges": {"K": {"from": "P", "to": "P", "properties": {"w": "float64"}}}})
        self.done("init", "G", "--infer", "P=p.arrow", "K=k.feather")
        self.assertEqual(self.load("P=p.arrow", "K=k.feather")["rows"], {"P": 2, "K": 2})
        pyarrow.feather.write_feather(pyarrow.table({"id": [1], "l": [[1, 2]]}), self.path("l.arrow"), compression="uncompressed")
        self.assertIn("l.arrow:1: column l:", self.refused(4, "load", "none", "--infer", "P=l.arrow").err)
        self.assertEqual(self.infer("P=l.arrow", "--ignore-unknown")["nodes"]["P"], {"key": "id", "properties": {"id": "int64"}})


if __name__ == "__main__":
    main()
