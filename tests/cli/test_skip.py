#!/usr/bin/env python3
"""Loads that skip bad rows: which rows are left out and why, at any cut and worker count and after deaths; the rejects file; what
cannot be skipped; and that everything that reads agrees on what is left."""

import base64
import gzip
import importlib.util
import json
import os
import shutil
import time
import uuid

from support.program import ProgramTest, main, some

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string?", "mail": "string?"}, "unique": [["mail"]],
                          "checks": {"name": {"max_length": 9}}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {"w": "int32?"}, "key": [], "cardinality": {"out": "0..2"}}}}
# One row of each kind and phase. Line 3 goes on to line 4. The node of line 8 falls by its mail, so the edge to it falls by its end;
# the key of line 6 is free again, as line 6 fell by itself.
PEOPLE = (b'id,name,mail\n1,a,x\n2,"b\nb",y\n2,c,z\nfive,d,w\n5,e,\n4,f,x\n6,\xa0,v\n8,g\n9,far too long,\n7,"h",q\n,i,\n')
KNOWS = b"from,to,w\n1,2,\n1,2,3\n1,4,\n2,1,\n2,7,\n2,5,\n1,7,x\n7,5,\n"
LEFT_OUT = [("p.csv", 5, "KEY_CONFLICT", '"2"', "line 3"), ("p.csv", 6, "CONSTRAINT_TYPE", "five"),
            ("p.csv", 8, "CONSTRAINT_UNIQUE", '"x"', "line 2"), ("p.csv", 9, "CONSTRAINT_TYPE", "UTF-8"),
            ("p.csv", 10, "INPUT_SYNTAX", "2 values for 3"), ("p.csv", 11, "CONSTRAINT_CHECK", "far too long"),
            ("p.csv", 13, "CONSTRAINT_NULL", "id"), ("k.csv", 3, "KEY_CONFLICT", "line 2"),
            ("k.csv", 4, "CONSTRAINT_ENDPOINT", '"4"'), ("k.csv", 7, "CONSTRAINT_CARDINALITY", '"2"'),
            ("k.csv", 8, "CONSTRAINT_TYPE", '"x"')]
RECORDS = ["2,c,z", "five,d,w", "4,f,x", "6,\ufffd,v", "8,g", "9,far too long,", ",i,", "1,2,3", "1,4,", "2,5,", "1,7,x"]
KEPT = [1, 2, 5, 7]
EDGES = [(1, 2), (2, 1), (2, 7), (7, 5)]
ROWS = {"P": 4, "K": 4}
SMALL = {"SLUICE_SPLIT": "3", "SLUICE_TEST_CHUNK": "11", "SLUICE_TEST_RANGE": "1"}
SKIP = ("--on-error", "skip")


def new_id():
    return str(uuid.UUID(int=(int(time.time() * 1000) << 80) | (7 << 76) | (2 << 62) | int.from_bytes(os.urandom(7), "big")))


class Skip(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("p.csv", PEOPLE)
        self.write("k.csv", KNOWS)
        self.write("schema.json", SCHEMA)
        self.done("init", "template", "--schema", "schema.json")
        self.graphs = 0
        self.failpoints = self.done("version", "--json").document["build"]["failpoints"]

    def graph(self):
        self.graphs += 1
        shutil.copytree(self.path("template"), self.path("G%d" % self.graphs))  # nobody has it open
        return "G%d" % self.graphs

    def words(self, graph, *more):
        return ("load", graph, "P=p.csv", "K=k.csv", *SKIP, *more, "--json")

    def rejects(self, name="bad.jsonl"):
        return [json.loads(line) for line in self.read(name).splitlines()]

    def check_rejects(self, rejects):
        self.assertEqual([(r["file"], r["line"], r["code"]) for r in rejects], [want[:3] for want in LEFT_OUT])
        self.assertEqual([r["record"] for r in rejects], RECORDS)
        for reject, want in zip(rejects, LEFT_OUT):
            for word in want[3:]:
                self.assertIn(word, reject["message"])

    def check_graph(self, graph):
        self.assertEqual(self.done("count", graph, "--json").document, ROWS)
        self.assertEqual(sorted(row["id"] for row in self.rows("P", graph)), KEPT)
        self.assertEqual(sorted((row["from"], row["to"]) for row in self.rows("K", graph)), EDGES)
        self.assertEqual(os.listdir(self.path(graph + "/attempts")), [])
        self.clean(graph)

    def test_the_same_rows_are_left_out_at_any_cut_and_worker_count(self):
        for workers, env in some((("1", {}), ("2", SMALL), ("3", {"SLUICE_SPLIT": "1"}), ("8", SMALL)), 2):
            graph = self.graph()
            result = self.done(*self.words(graph, "--rejects", "bad.jsonl", "--workers", workers), env=env).document
            self.assertEqual((result["rows"], result["rejected"]), (ROWS, len(LEFT_OUT)))
            self.check_rejects(self.rejects())
            self.check_graph(graph)

    def test_without_a_file_each_is_named_on_standard_error_in_order(self):
        said = self.done(*self.words(self.graph()), env=SMALL)
        lines = [line for line in said.err.splitlines() if line.startswith("sluice: ")]
        self.assertEqual(len(lines), len(LEFT_OUT), said.err)
        for line, want in zip(lines, LEFT_OUT):
            self.assertTrue(line.startswith("sluice: %s:%d: " % want[:2]), line)
            self.assertTrue(line.endswith("(%s)" % want[2]), line)

    def test_what_is_no_utf_8_stands_exactly_beside_the_record(self):
        self.done(*self.words(self.graph(), "--rejects", "bad.jsonl"))
        exact = [base64.b64decode(r["record_base64"]) for r in self.rejects() if "record_base64" in r]
        self.assertEqual(exact, [b"6,\xa0,v"])

    def test_a_dry_run_tells_the_same_and_changes_nothing(self):
        graph = self.graph()
        result = self.done(*self.words(graph, "--rejects", "bad.jsonl", "--dry-run"), env=SMALL).document
        self.assertEqual((result["commit"], result["rows"], result["rejected"]), (None, ROWS, len(LEFT_OUT)))
        self.check_rejects(self.rejects())
        self.assertEqual(self.done("count", graph, "--json").document, {"P": 0, "K": 0})
        self.clean(graph)

    def test_everything_that_reads_agrees_on_what_is_left(self):
        graph = self.graph()
        self.done(*self.words(graph), env=SMALL)
        self.done("export", graph, "out", "--format", "csv")
        self.assertEqual(len(self.read("out/P.csv").splitlines()), 1 + ROWS["P"] + 1)  # a name has two lines
        self.assertEqual(len(self.read("out/K.csv").splitlines()), 1 + ROWS["K"])
        near = self.done("neighbors", graph, "P", "2", "--json").lines
        self.assertEqual(sorted(n["key"] for n in near), [1, 7])
        self.done("get", graph, "P", "5", "--json")
        for key in ("4", "6", "8", "9"):
            self.refused(8, "get", graph, "P", key)
        status = self.done("status", graph, "--json").document
        self.assertEqual({t["type"]: t["rows"] for t in status["branches"][0]["types"]}, ROWS)
        # What was left out is as if it had never been there: keys and unique values are free, ends are missing, counts have room.
        self.write("q.csv", "id,name,mail\n4,later,z\n")
        self.write("more.csv", "from,to\n1,4\n")
        self.assertIn("more.csv:2", self.refused(4, "load", graph, "K=more.csv").err)
        self.done("load", graph, "P=q.csv", "K=more.csv")
        self.write("full.csv", "from,to\n1,7\n")
        self.assertIn("CONSTRAINT_CARDINALITY", self.refused(4, "load", graph, "K=full.csv").err)
        self.clean(graph)

    def test_rows_that_are_in_the_graph_already_are_left_out(self):
        graph = self.graph()
        self.done(*self.words(graph))
        self.write("more.csv", "id,name,mail\n7,again,\n10,new,\n11,taken,y\n")
        result = self.done("load", graph, "P=more.csv", *SKIP, "--rejects", "bad.jsonl", "--json").document
        self.assertEqual((result["rows"], result["rejected"]), ({"P": 1}, 2))
        self.assertEqual([(r["line"], r["code"]) for r in self.rejects()], [(2, "KEY_CONFLICT"), (4, "CONSTRAINT_UNIQUE")])
        self.assertIn("exists already", self.rejects()[0]["message"])
        self.clean(graph)

    def test_of_max_errors_the_next_one_fails_the_load(self):
        for workers, env in (("1", {}), ("4", SMALL)):
            graph = self.graph()
            few = str(len(LEFT_OUT) - 1)
            self.write("bad.jsonl", "kept\n")
            said = self.refused(4, *self.words(graph, "--max-errors", few, "--workers", workers, "--rejects", "bad.jsonl"), env=env)
            self.assertEqual(said.error["code"], "CONSTRAINT_TYPE")
            self.assertIs(said.error["committed"], False)
            self.assertIn("k.csv:8: ", said.err)
            self.assertIn("--max-errors allows %s" % few, said.err)
            # Rows are judged one by one first: line 5 falls by its key, later.
            self.assertIn("p.csv:6: ", self.refused(4, *self.words(graph, "--max-errors", "0", "--workers", workers), env=env).err)
            self.assertEqual(self.read("bad.jsonl"), "kept\n")
            self.assertEqual(self.done("count", graph, "--json").document, {"P": 0, "K": 0})
            self.done(*self.words(graph, "--max-errors", str(len(LEFT_OUT))), env=env)
            self.check_graph(graph)

    def test_a_file_without_a_good_row_is_told(self):
        graph = self.graph()
        self.write("all.csv", "id,name,mail\nx,1,\ny,2,\n")
        said = self.done("load", graph, "P=all.csv", *SKIP, "--rejects", "bad.jsonl", "--json")
        self.assertEqual((said.document["commit"], said.document["rejected"]), (None, 2))
        self.assertIn("warning: no row of all.csv was loaded: all 2 are bad; the first is all.csv:2: column id", said.err)
        self.assertEqual(len(self.rejects()), 2)
        # Also when other files have rows, and when the rows fall by a later rule.
        self.write("ends.csv", "from,to,w\na,b,1\n")
        self.write("ends2.csv", "from,to,w\n100,200,1\n")
        said = self.done("load", graph, "P=p.csv", "K=ends.csv", "K=ends2.csv", *SKIP, "--json", env=SMALL)
        self.assertIn("no row of ends.csv was loaded", said.err)
        self.assertIn("no row of ends2.csv was loaded: all 1 are bad; the first is ends2.csv:2: column from: there is no P", said.err)
        self.assertNotIn("no row of p.csv", said.err)

    def test_nothing_bad_leaves_an_empty_rejects_file(self):
        graph = self.graph()
        self.write("good.csv", "id,name,mail\n1,a,\n")
        said = self.done("load", graph, "P=good.csv", *SKIP, "--rejects", "bad.jsonl", "--json")
        self.assertEqual((said.document["rejected"], self.read("bad.jsonl")), (0, ""))
        self.assertNotIn("warning", said.err)

    def test_lines_are_physical_ones_also_of_the_row_that_was_first(self):
        self.write("lines.csv", b'\xef\xbb\xbfid,name,mail\r\n\r\n1,"a\r\nb\r\n\r\nc",x\r\n\r\n2,b,\r\n3,"q\n",\r\n\r\n\r\n2,again,\r\n3,again,\r\n1,again,'
                                b'\r\n9,z,x\r\nbad')
        first = {13: 8, 14: 9, 15: 3, 16: 3}
        for env in ({}, SMALL):
            self.done("load", "template", "P=lines.csv", *SKIP, "--dry-run", "--rejects", "bad.jsonl", env=env)
            rejects = self.rejects()
            self.assertEqual([r["line"] for r in rejects], [13, 14, 15, 16, 17])
            for reject in rejects[:4]:
                self.assertTrue(reject["message"].endswith("already on line %d" % first[reject["line"]]), reject)
            self.assertEqual(rejects[2]["record"], "1,again,")

    def test_json_lines_and_streams_skip_alike(self):
        lines = b'{"id":1,"name":"a","mail":"x"}\n\n{"id":1,"name":"\\u0041"}\n{"id":"z"}\n{"id":2,"nam":1}\n{"id":3,\n{"id":4,"mail":"x"}\n{"id":5}\n'
        records = ['{"id":1,"name":"\\u0041"}', '{"id":"z"}', '{"id":2,"nam":1}', '{"id":3,', '{"id":4,"mail":"x"}']
        self.write("p.jsonl", lines)
        self.write("p.jsonl.gz", gzip.compress(lines))
        for operand, options in (("p.jsonl", ()), ("p.jsonl.gz", ()), ("-", ("--format", "jsonl"))):
            graph = self.graph()
            with open(self.path("p.jsonl"), "rb") as stream:
                result = self.done("load", graph, "P=" + operand, *options, *SKIP, "--rejects", "bad.jsonl", "--json", stdin=stream,
                                   env={"SLUICE_SPLIT": "3", "SLUICE_TEST_CHUNK": "40", "SLUICE_TEST_RANGE": "1"}).document
            self.assertEqual((result["rows"], result["rejected"]), ({"P": 2}, 5))
            self.assertEqual([(r["file"], r["line"], r["code"], r["record"]) for r in self.rejects()], [
                (operand, line, code, record) for line, code, record in zip(
                    (3, 4, 5, 6, 7), ("KEY_CONFLICT", "CONSTRAINT_TYPE", "INPUT_SYNTAX", "INPUT_SYNTAX", "CONSTRAINT_UNIQUE"), records)])
            self.assertEqual([row["id"] for row in self.rows("P", graph)], [1, 5])
            self.clean(graph)

    def test_rows_of_arrow_are_skipped_by_their_numbers(self):
        if importlib.util.find_spec("pyarrow") is None:
            self.skipTest("no pyarrow")
        import pyarrow.ipc
        table = pyarrow.table({"id": [10, 10, None, 12, 13], "name": ["a", None, "c", "d", "\u00e9"], "mail": ["k", "l", "m", "k", None]})
        with pyarrow.OSFile(self.path("p.arrow"), "wb") as file, pyarrow.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
        for workers in ("1", "3"):
            graph = self.graph()
            result = self.done("load", graph, "P=p.arrow", *SKIP, "--rejects", "bad.jsonl", "--json", "--workers", workers, env=SMALL).document
            self.assertEqual((result["rows"], result["rejected"]), ({"P": 2}, 3))
            self.assertEqual([(r["line"], r["code"]) for r in self.rejects()],
                             [(2, "KEY_CONFLICT"), (3, "CONSTRAINT_NULL"), (4, "CONSTRAINT_UNIQUE")])
            self.assertEqual(json.loads(self.rejects()[2]["record"]), {"id": 12, "name": "d", "mail": "k"})
            self.assertEqual([row["id"] for row in self.rows("P", graph)], [10, 13])

    def test_edges_fall_with_the_rows_that_they_name(self):
        """Nodes without a key, which have names in this load only."""
        self.write("schema2.json", {"nodes": {"N": {"properties": {"s": "string", "u": "int32?"}, "unique": [["u"]]}},
                                    "edges": {"E": {"from": "N", "to": "N", "properties": {}, "key": []}}})
        self.write("n.csv", "_row_id,s,u\na,A,1\nb,B,x\na,C,2\nc,D,1\nd,E,3\n")
        self.write("e.csv", "from,to\na,d\nb,d\nd,c\nz,a\na,d\nd,a\n")
        for env in ({}, SMALL):
            self.done("init", "N", "--schema", "schema2.json")
            operation = new_id()
            words = ("load", "N", "N=n.csv", "E=e.csv", *SKIP, "--op-id", operation, "--json", "--rejects")
            result = self.done(*words, "bad.jsonl", env=env).document
            self.assertEqual((result["rows"], result["rejected"]), ({"N": 2, "E": 2}, 7))
            self.assertEqual([(r["file"], r["line"], r["code"]) for r in self.rejects()], [
                ("n.csv", 3, "CONSTRAINT_TYPE"), ("n.csv", 4, "KEY_CONFLICT"), ("n.csv", 5, "CONSTRAINT_UNIQUE"),
                ("e.csv", 3, "CONSTRAINT_ENDPOINT"), ("e.csv", 4, "CONSTRAINT_ENDPOINT"), ("e.csv", 5, "CONSTRAINT_ENDPOINT"),
                ("e.csv", 6, "KEY_CONFLICT")])
            self.assertEqual(self.done(*words, "again.jsonl", env=env).document["rejected"], 7)
            self.assertEqual(self.read("again.jsonl"), self.read("bad.jsonl"))
            self.assertEqual(self.done("count", "N", "--json").document, {"N": 2, "E": 2})
            self.clean("N")
            shutil.rmtree(self.path("N"))

    # ---- what cannot be skipped ----

    def test_damage_of_a_file_cannot_be_skipped(self):
        graph = self.graph()
        self.write("bad.jsonl", "kept\n")
        whole = gzip.compress(PEOPLE)
        files = {"open.csv": (b'id,name,mail\nx,1,\n2,"b,\n3,c,\n', 3), "name.csv": (b"id,nam,mail\n1,a,\n", 1),
                 "twice.csv": (b"id,name,name\n1,a,b\n", 1), "empty.csv": (b"", 1), "wide.csv": (b"\xff\xfei\0d\0", 1),
                 "cut.csv.gz": (whole[:-5], None), "sum.csv.gz": (whole[:-6] + b"\0\0\0\0\0\0", None)}
        for name, (content, line) in files.items():
            self.write(name, content)
            for workers in ("1", "3"):
                said = self.refused(4, "load", graph, "P=" + name, *SKIP, "--rejects", "bad.jsonl", "--workers", workers, "--json", env=SMALL)
                self.assertIs(said.error["committed"], False)
                self.assertIn("%s:%d: " % (name, line) if line else name, said.err)
        self.assertEqual(self.read("bad.jsonl"), "kept\n")
        self.assertEqual(self.done("count", graph, "--json").document, {"P": 0, "K": 0})

    def test_a_file_in_another_encoding_is_told_row_by_row(self):
        """R021: Latin-1, strict and skipping."""
        graph = self.graph()
        self.write("latin.csv", "id,name,mail\n1,\u00e9t\u00e9,\n2,plain,\n3,\u00fc,\n".encode("latin-1"))
        said = self.refused(4, "load", graph, "P=latin.csv", "--json")
        self.assertIn("latin.csv:2: column name", said.err)
        self.assertIn("UTF-8", said.err)
        self.assertEqual(self.done("load", graph, "P=latin.csv", *SKIP, "--rejects", "bad.jsonl", "--json").document["rejected"], 2)
        self.assertEqual([r["line"] for r in self.rejects()], [2, 4])
        self.assertEqual([row["id"] for row in self.rows("P", graph)], [2])

    # ---- the rejects file ----

    def test_a_rejects_file_that_cannot_be_made_ends_it_before_any_effect(self):
        graph = self.graph()
        before = sorted(os.listdir(self.folder))
        os.mkdir(self.path("folder"))
        for name in ("nowhere/bad.jsonl", "folder", "p.csv", "./k.csv", graph + "/bad", graph + "/tables/x", "-", "", "new/", "n" * 300):
            said = self.refused(2, *self.words(graph, "--rejects", name))
            self.assertEqual(said.error["code"], "USAGE", name)
        os.rmdir(self.path("folder"))
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        self.assertEqual(self.done("count", graph, "--json").document, {"P": 0, "K": 0})
        for flag in (("--rejects", "bad.jsonl"), ("--max-errors", "1")):
            said = self.refused(2, "load", graph, "P=p.csv", *flag)
            self.assertIn("%s goes with --on-error skip" % flag[0], said.err)

    def test_an_old_rejects_file_stands_until_the_new_one_is_whole(self):
        graph = self.graph()
        self.write("bad.jsonl", "old\n" * 1000)
        os.chmod(self.path("bad.jsonl"), 0o640)
        os.symlink("bad.jsonl", self.path("link.jsonl"))
        self.done(*self.words(graph, "--rejects", "link.jsonl"))
        self.check_rejects(self.rejects())
        self.assertTrue(os.path.islink(self.path("link.jsonl")))
        self.assertEqual(os.stat(self.path("bad.jsonl")).st_mode & 0o777, 0o640)
        self.assertEqual([name for name in os.listdir(self.folder) if "part" in name], [])

    def test_a_rejects_file_that_fails_says_that_the_load_stands_and_how_to_have_it_again(self):
        graph = self.graph()
        said = self.refused(10, *self.words(graph, "--rejects", "/dev/full"))
        self.assertIs(said.error["committed"], True)
        self.assertEqual(said.error["code"], "NO_SPACE")
        flag = said.err.split("the same command with ")[1].split(" names")[0].split()
        again = self.done(*self.words(graph, "--rejects", "bad.jsonl", *flag)).document
        self.assertEqual((again["repeated"], again["rejected"], again["rows"]), (True, len(LEFT_OUT), ROWS))
        self.check_rejects(self.rejects())
        self.check_graph(graph)

    def test_a_repeated_load_names_what_the_first_one_left_out(self):
        graph, operation = self.graph(), new_id()
        first = self.done(*self.words(graph, "--op-id", operation, "--rejects", "bad.jsonl")).document
        self.write("later.csv", "id,name,mail\n4,later,\n")
        self.done("load", graph, "P=later.csv")
        again = self.done(*self.words(graph, "--op-id", operation, "--rejects", "again.jsonl"), env={"SLUICE_SPLIT": "3"}).document
        self.assertEqual([again[k] for k in ("commit", "rows", "rejected")], [first[k] for k in ("commit", "rows", "rejected")])
        self.assertEqual(self.read("again.jsonl"), self.read("bad.jsonl"))
        self.assertEqual(self.done("show", graph, first["commit"]["id"], "--json").document["rejected"], len(LEFT_OUT))
        self.refused(9, *self.words(graph, "--op-id", operation, "--max-errors", "1000"))
        self.clean(graph)
        self.assertEqual(os.listdir(self.path(graph + "/attempts")), [])

    # ---- deaths ----

    def test_the_death_of_a_worker_or_of_the_conductor_changes_nothing(self):
        if not self.failpoints:
            self.skipTest("a build without failpoints")
        points = ["worker.after_take=kill@%d" % n for n in (2, 23)] + \
                 ["load.after_task_result=kill@%d" % n for n in (4, 33)] + \
                 [name + "=kill" for name in ("load.before_key_check", "load.after_key_check", "load.after_rejects", "load.after_edits",
                                              "arm.after", "publish.after_log_record_sync", "finalize.before_retire")]
        for point in some(points, 4):
            graph = self.graph()
            said = self.done(*self.words(graph, "--rejects", "bad.jsonl", "--workers", "2"), env={"SLUICE_FAILPOINT": point, **SMALL})
            self.assertEqual((said.document["rows"], said.document["rejected"]), (ROWS, len(LEFT_OUT)), point)
            self.check_rejects(self.rejects())
            self.check_graph(graph)

    def test_the_death_of_the_pool_leaves_no_half_file_and_the_retry_tells_all(self):
        if not self.failpoints:
            self.skipTest("a build without failpoints")
        for point in some(("load.after_task_result", "load.after_rejects", "arm.after", "publish.after_mark", "finalize.after_retire"), 2):
            graph, operation = self.graph(), new_id()
            words = self.words(graph, "--rejects", "bad.jsonl", "--op-id", operation)
            self.write("bad.jsonl", "old\n")
            self.assertEqual(self.run_program(*words, env={"SLUICE_FAILPOINT": point + "=killpool", **SMALL}).code, -9)
            self.assertEqual(self.read("bad.jsonl"), "old\n")
            self.assertEqual([name for name in os.listdir(self.folder) if "part" in name], [])
            again = self.done(*words, env=SMALL).document
            self.assertEqual((again["rows"], again["rejected"]), (ROWS, len(LEFT_OUT)), point)
            self.check_rejects(self.rejects())
            self.done("gc", graph)
            self.check_graph(graph)


if __name__ == "__main__":
    main()
