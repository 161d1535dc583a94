#!/usr/bin/env python3
"""`sluice mutate`: what each op does and refuses, what it prints, on real files."""

import atexit
import json
import os
import shutil
import tempfile
import time
import uuid

from support.program import ProgramTest, main

SCHEMA = {
    "nodes": {"Person": {"key": "id",
                         "properties": {"id": "int64", "name": "string", "email": "string?", "age": "int32?",
                                        "born": "date?", "raw": "bytes?", "score": "float64?", "ok": "bool?",
                                        "team": {"type": "string?", "default": "red"}},
                         "unique": [["email"]],
                         "checks": {"age": {"min": 0, "max": 150}, "name": {"max_length": 20}}},
              "Event": {"properties": {"what": "string?"}},
              "Place": {"key": ["country", "city"],
                        "properties": {"country": "string", "city": "string", "size": "int64?"}}},
    "edges": {"KNOWS": {"from": "Person", "to": "Person", "properties": {"since": "date?"}, "key": []},
              "VISITED": {"from": "Person", "to": "Place", "properties": {"year": "int32", "stars": "int32?"},
                          "key": ["year"]},
              "SAW": {"from": "Person", "to": "Event", "properties": {"n": "int32?"}},
              "OWNS": {"from": "Person", "to": "Place", "properties": {}, "key": [],
                       "cardinality": {"out": "0..2", "in": "0..1"}}}}


def new_operation():
    value = int(time.time() * 1000) << 80 | uuid.uuid4().int & (1 << 80) - 1
    return str(uuid.UUID(int=value & ~(0xF << 76) & ~(3 << 62) | 7 << 76 | 2 << 62))


def person(number, **more):
    return {"op": "insert", "node": "Person", "set": {"id": number, "name": "p%d" % number, **more}}


def knows(a, b, op="insert", **more):
    return {"op": op, "edge": "KNOWS", "from": a, "to": b, **more}


class Mutate(ProgramTest):
    fresh = None  # one empty graph, made once and copied for each test

    def setUp(self):
        super().setUp()
        if Mutate.fresh is None:
            self.init(SCHEMA)
            Mutate.fresh = tempfile.mkdtemp(prefix="sluice-fresh-", dir=os.path.dirname(self.folder))
            atexit.register(shutil.rmtree, Mutate.fresh, True)
            shutil.copytree(self.path("G"), Mutate.fresh + "/G")
        else:
            shutil.copytree(Mutate.fresh + "/G", self.path("G"))

    def text(self, records):
        return "".join(json.dumps(record) + "\n" for record in records)

    def mutate(self, *records, options=()):
        self.write("m.jsonl", self.text(records))
        return self.done("mutate", "G", "m.jsonl", "--json", *options).document

    def counts(self, *records):
        said = self.mutate(*records)
        return said["inserted"], said["updated"], said["deleted"]

    def refuse(self, status, code, line, *records, says="", check=True):
        before = self.state() if check else None
        self.write("m.jsonl", self.text(records))
        said = self.refused(status, "mutate", "G", "m.jsonl", "--json")
        self.assertEqual(said.error["code"], code, said.err)
        self.assertEqual(said.error["committed"], False)
        self.assertIn("m.jsonl:%d:" % line, said.err)
        self.assertIn(says, said.err)
        if check:
            self.assertEqual(self.state(), before)
        return said

    def state(self):
        return self.rows("Person"), self.rows("KNOWS"), self.done("count", "G").out, self.done("log", "G", "--json").out

    def get(self, name, *key):
        return self.done("get", "G", name, *key, "--json").lines[0]

    # ---- what each op does ----

    def test_a_file_is_one_commit(self):
        said = self.mutate(person(7, email="a@x"), person(8), knows(7, 8, set={"since": "2026-01-31"}),
                           {"op": "insert", "node": "Event", "set": {"what": "rain"}})
        self.assertEqual((said["inserted"], said["updated"], said["deleted"]), (4, 0, 0))
        self.assertEqual(said["commit"]["generation"], 2)
        self.assertEqual(said["commit"]["branch"], "main")
        self.assertEqual(self.get("Person", "7")["email"], "a@x")
        self.assertEqual(self.get("Person", "7")["team"], "red")
        self.assertEqual(self.rows("KNOWS"), [{"from": 7, "to": 8, "since": "2026-01-31"}])
        self.assertEqual(self.rows("Event")[0]["what"], "rain")
        entry = self.done("log", "G", "-n", "1", "--json").lines[0]
        self.assertEqual((entry["commit"], entry["kind"]), (said["commit"]["id"], "mutate"))
        self.clean()

    def test_values_are_exact(self):
        self.mutate({"op": "insert", "node": "Person",
                     "set": {"id": 9223372036854775807, "name": "x\u00e9\n", "raw": "AAEC", "score": "-Infinity",
                             "born": "0001-01-01", "ok": False, "age": 0}})
        self.assertEqual(self.get("Person", "9223372036854775807"),
                         {"id": 9223372036854775807, "name": "x\u00e9\n", "email": None, "age": 0, "born": "0001-01-01",
                          "raw": "AAEC", "score": "-Infinity", "ok": False, "team": "red"})

    def test_update_changes_what_is_named(self):
        self.mutate(person(1, age=5, email="e@x"), person(2))
        self.assertEqual(self.counts({"op": "update", "node": "Person", "key": 1, "set": {"age": 6, "email": None}}), (0, 1, 0))
        self.assertEqual(self.get("Person", "1")["age"], 6)
        self.assertIsNone(self.get("Person", "1")["email"])
        self.assertEqual(self.get("Person", "1")["name"], "p1")
        self.clean()

    def test_a_condition_decides_whether_a_record_counts(self):
        self.mutate(person(1), person(2, age=4))
        update = {"op": "update", "node": "Person", "set": {"age": 36}, "if": {"age": None}}
        said = self.mutate({**update, "key": 1}, {**update, "key": 2})
        self.assertEqual((said["updated"], said["skipped"]), (1, 1))
        self.assertEqual([row["age"] for row in self.rows("Person")][-1], 36)
        self.assertEqual(self.get("Person", "2")["age"], 4)
        said = self.mutate({"op": "delete", "node": "Person", "key": 2, "if": {"age": 5}})
        self.assertIsNone(said["commit"])
        self.assertEqual(said["skipped"], 1)

    def test_upsert_inserts_or_updates(self):
        upsert = {"op": "upsert", "node": "Person", "key": 7, "set": {"name": "Ada L."}}
        self.assertEqual(self.counts(upsert), (1, 0, 0))
        self.assertEqual(self.counts({**upsert, "set": {"age": 3}}), (0, 1, 0))
        self.assertEqual((self.get("Person", "7")["name"], self.get("Person", "7")["age"]), ("Ada L.", 3))
        self.refuse(4, "CONSTRAINT_NULL", 1, {"op": "upsert", "node": "Person", "key": 8, "set": {}}, says="name")

    def test_delete_restricts_or_detaches(self):
        self.mutate(person(1), person(2), person(3), knows(1, 2), knows(2, 3), knows(3, 3))
        self.refuse(4, "CONSTRAINT_ENDPOINT", 1, {"op": "delete", "node": "Person", "key": 2}, says="KNOWS")
        self.assertEqual(self.counts({"op": "delete", "node": "Person", "key": 2, "detach": True}), (0, 0, 3))
        self.assertEqual(self.rows("KNOWS"), [{"from": 3, "to": 3, "since": None}])
        self.assertEqual(self.counts({"op": "delete", "node": "Person", "key": 3, "detach": True}), (0, 0, 2))
        self.clean()

    def test_edges_may_go_before_their_node_or_after_it(self):
        self.mutate(person(1), person(2), knows(1, 2))
        self.assertEqual(self.counts({"op": "delete", "node": "Person", "key": 2}, knows(1, 2, "delete")), (0, 0, 2))
        self.mutate(person(2), knows(1, 2))
        self.assertEqual(self.counts(knows(1, 2, "delete"), {"op": "delete", "node": "Person", "key": 2}), (0, 0, 2))
        self.clean()

    def test_keys_of_several_members_are_lists_or_objects(self):
        self.mutate(person(1), {"op": "insert", "node": "Place", "set": {"country": "NO", "city": "Oslo", "size": 7}},
                    {"op": "insert", "node": "Place", "key": ["DE", "a,b"], "set": {}})
        self.mutate({"op": "insert", "edge": "VISITED", "from": 1, "to": ["NO", "Oslo"], "set": {"year": 2020}},
                    {"op": "insert", "edge": "VISITED", "from": 1, "to": {"city": "Oslo", "country": "NO"}, "key": 2021})
        self.assertEqual(self.counts({"op": "update", "edge": "VISITED", "from": 1, "to": ["NO", "Oslo"],
                                      "key": {"year": 2021}, "set": {"stars": 3}},
                                     {"op": "update", "node": "Place", "key": {"country": "DE", "city": "a,b"},
                                      "set": {"size": 1}}), (0, 2, 0))
        self.assertEqual(sorted((row["year"], row["stars"]) for row in self.rows("VISITED")), [(2020, None), (2021, 3)])
        self.assertEqual(self.counts({"op": "delete", "node": "Place", "key": ["NO", "Oslo"], "detach": True}), (0, 0, 3))
        self.clean()

    def test_what_has_no_key_is_named_by_its_row_id(self):
        self.mutate(person(1), *[{"op": "insert", "node": "Event", "set": {"what": "e%d" % i}} for i in range(3)])
        events = {row["what"]: row["_row_id"] for row in self.rows("Event")}
        self.mutate(*[{"op": "insert", "edge": "SAW", "from": 1, "to": events["e1"], "set": {"n": n}} for n in (1, 2)])
        edges = {row["n"]: row["_row_id"] for row in self.rows("SAW", "G", "--columns", "_row_id,n")}
        self.assertEqual(self.counts({"op": "update", "edge": "SAW", "_row_id": edges[2], "set": {"n": 20}},
                                     {"op": "delete", "edge": "SAW", "_row_id": edges[1]},
                                     {"op": "update", "node": "Event", "key": events["e0"], "set": {"what": None}},
                                     {"op": "delete", "node": "Event", "_row_id": events["e2"]}), (0, 2, 2))
        self.assertEqual(self.rows("SAW", "G", "--columns", "_row_id,n"), [{"_row_id": edges[2], "n": 20}])
        self.refuse(4, "CONSTRAINT_ENDPOINT", 1, {"op": "delete", "node": "Event", "_row_id": events["e1"]})
        self.assertEqual(self.counts({"op": "delete", "node": "Event", "_row_id": events["e1"], "detach": True}), (0, 0, 2))
        self.clean()

    # ---- the net effect ----

    def test_a_file_reads_its_own_writes_and_the_last_one_wins(self):
        self.mutate(person(1), {"op": "update", "node": "Person", "key": 1, "set": {"age": 1}},
                    {"op": "update", "node": "Person", "key": 1, "set": {"age": 2}, "if": {"age": 1}},
                    {"op": "assert", "node": "Person", "key": 1, "equals": {"age": 2}})
        self.assertEqual(self.get("Person", "1")["age"], 2)

    def test_insert_and_delete_come_to_nothing(self):
        said = self.mutate(person(1), {"op": "delete", "node": "Person", "key": 1})
        self.assertIsNone(said["commit"])
        self.assertEqual((said["inserted"], said["deleted"]), (0, 0))
        said = self.mutate(person(1), person(2), knows(1, 2), {"op": "delete", "node": "Person", "key": 2, "detach": True})
        self.assertEqual(said["inserted"], 1)
        self.assertEqual(self.rows("KNOWS"), [])

    def test_delete_and_insert_replace_all_values(self):
        self.mutate(person(1, age=4, email="e@x"), person(2), knows(1, 2))
        self.assertEqual(self.counts({"op": "delete", "node": "Person", "key": 1}, person(1, age=5)), (0, 1, 0))
        self.assertEqual((self.get("Person", "1")["age"], self.get("Person", "1")["email"]), (5, None))
        self.assertEqual(len(self.rows("KNOWS")), 1)
        self.clean()

    def test_what_changes_nothing_is_no_commit(self):
        self.mutate(person(1, age=4))
        for records in ([], [{"op": "update", "node": "Person", "key": 1, "set": {"age": 4}}],
                        [{"op": "upsert", "node": "Person", "key": 1, "set": {"age": 4}}],
                        [{"op": "assert", "node": "Person", "key": 2, "absent": True}]):
            said = self.mutate(*records)
            self.assertIsNone(said["commit"])
            self.assertEqual((said["inserted"], said["updated"], said["deleted"]), (0, 0, 0))
        self.assertEqual(len(self.done("log", "G", "--json").lines), 2)

    def test_unique_values_may_be_swapped_and_taken_over(self):
        self.mutate(person(1, email="a"), person(2, email="b"), person(3), person(4))

        def email(key, value):
            return {"op": "update", "node": "Person", "key": key, "set": {"email": value}}
        self.assertEqual(self.counts(email(1, "b"), email(2, "a")), (0, 2, 0))
        self.assertEqual(self.counts({"op": "delete", "node": "Person", "key": 1}, email(3, "b")), (0, 1, 1))
        self.refuse(4, "CONSTRAINT_UNIQUE", 1, email(3, "a"), says="email")
        self.refuse(4, "CONSTRAINT_UNIQUE", 2, email(3, "z"), email(4, "z"), says="line 1")
        self.assertEqual(self.counts(email(2, None), email(3, None)), (0, 2, 0))
        self.clean()

    # ---- what is refused ----

    def test_faults_name_their_line_and_column_and_change_nothing(self):
        self.mutate(person(1, email="a@x"), person(2), {"op": "insert", "node": "Place", "key": ["N", "O"]})
        update = {"op": "update", "node": "Person", "key": 1}
        cells = [
            (4, "KEY_CONFLICT", person(1), "is there already"),
            (8, "NOT_FOUND", {"op": "update", "node": "Person", "key": 9, "set": {"age": 1}}, "no Person 9"),
            (8, "NOT_FOUND", {"op": "delete", "node": "Person", "key": 9}, "no Person 9"),
            (8, "NOT_FOUND", knows(1, 2, "delete"), "KNOWS 1,2"),
            (4, "CONSTRAINT_TYPE", {**update, "set": {"age": "abc"}}, "age"),
            (4, "CONSTRAINT_TYPE", {**update, "set": {"age": 3000000000}}, "out of range"),
            (4, "CONSTRAINT_TYPE", {**update, "set": {"name": 5}}, "name"),
            (4, "CONSTRAINT_TYPE", {**update, "set": {"name": ["x"]}}, "name"),
            (4, "CONSTRAINT_TYPE", {**update, "key": "abc", "set": {"age": 1}}, "id"),
            (4, "CONSTRAINT_NULL", {**update, "set": {"name": None}}, "name"),
            (4, "CONSTRAINT_NULL", {**update, "key": None, "set": {"age": 1}}, "id"),
            (4, "CONSTRAINT_CHECK", {**update, "set": {"age": 151}}, "above the maximum"),
            (4, "CONSTRAINT_CHECK", {**update, "set": {"name": "x" * 21}}, "21 characters"),
            (4, "CONSTRAINT_CHECK", {**update, "set": {"id": 5}}, "a key never changes"),
            (4, "CONSTRAINT_UNIQUE", {**update, "key": 2, "set": {"email": "a@x"}}, "email"),
            (4, "CONSTRAINT_ENDPOINT", knows(1, 77), "no Person 77"),
            (4, "CONSTRAINT_NULL", {"op": "insert", "node": "Person", "set": {"id": 5}}, "name"),
            (4, "INPUT_SYNTAX", {**update, "set": {"agee": 1}}, "did you mean age"),
            (4, "INPUT_SYNTAX", {"op": "insert", "node": "Persn", "set": {}}, "did you mean Person"),
            (4, "INPUT_SYNTAX", {"op": "insert", "node": "KNOWS", "set": {}}, "no node type"),
            (4, "INPUT_SYNTAX", {"op": "merge", "node": "Person", "key": 1}, "no op"),
            (4, "INPUT_SYNTAX", {"op": "delete", "node": "Person"}, "\"key\" is missing"),
            (4, "INPUT_SYNTAX", {"op": "delete", "node": "Person", "key": 1, "set": {}}, "takes no \"set\""),
            (4, "INPUT_SYNTAX", {"op": "update", "node": "Person", "key": 1}, "needs \"set\""),
            (4, "INPUT_SYNTAX", {"op": "delete", "node": "Person", "key": 1, "detached": True}, "no member"),
            (4, "INPUT_SYNTAX", {"op": "assert", "node": "Person", "key": 1}, "assert needs"),
            (4, "INPUT_SYNTAX", {"op": "delete", "edge": "KNOWS", "from": 1}, "\"from\" and \"to\""),
            (4, "INPUT_SYNTAX", {"op": "delete", "node": "Place", "key": ["N"]}, "the key of Place"),
            (4, "INPUT_SYNTAX", {"op": "upsert", "node": "Event", "set": {}}, "has none"),
            (4, "INPUT_SYNTAX", {"op": "delete", "node": "Person", "_row_id": 3}, "by their key"),
            (3, "WRITE_CONFLICT", {"op": "assert", "node": "Person", "key": 9, "present": True}, "is not there"),
            (3, "WRITE_CONFLICT", {"op": "assert", "node": "Person", "key": 1, "absent": True}, "is there"),
            (3, "WRITE_CONFLICT", {"op": "assert", "node": "Person", "key": 1, "equals": {"age": 1}}, "other values"),
        ]
        before = self.state()
        for status, code, record, says in cells:
            with self.subTest(record=record):
                self.refuse(status, code, 2, person(100), record, says=says, check=False)
        self.assertEqual(self.state(), before)
        self.clean()

    def test_an_update_that_failed_stands_in_nobodys_way(self):
        self.mutate(person(1), person(2))
        for _ in range(3):
            self.refuse(4, "CONSTRAINT_CHECK", 1, {"op": "update", "node": "Person", "key": 1, "set": {"age": 500}}, check=False)
            self.write("m.jsonl", self.text([{"op": "update", "node": "Person", "key": 1, "set": {"age": 5}}]))
            for point in ("prepare.after_plan", "gates.after", "publish.before_append"):
                self.run_program("mutate", "G", "m.jsonl", env={"SLUICE_FAILPOINT": point + "=error"})
        self.assertEqual(self.counts({"op": "update", "node": "Person", "key": 1, "set": {"age": 9}},
                                     {"op": "update", "node": "Person", "key": 2, "set": {"age": 9}}), (0, 2, 0))
        self.clean()

    def test_text_that_is_no_json_is_refused_at_its_line(self):
        for text in ('{"op": "insert"', "[1]", "7", "{'op': 1}", '{"op":"delete","op":"delete"}', '{"op": "\ud800"}', "nul"):
            self.write("m.jsonl", self.text([person(1)]) + "\n" + text.encode("utf-8", "surrogatepass").decode("latin-1") + "\n")
            said = self.refused(4, "mutate", "G", "m.jsonl", "--json")
            self.assertEqual(said.error["code"], "INPUT_SYNTAX")
            self.assertIn("m.jsonl:3:", said.err)
        self.assertEqual(self.rows("Person"), [])

    def test_cardinality_is_kept(self):
        places = [{"op": "insert", "node": "Place", "key": ["N", c]} for c in "abcd"]
        self.mutate(person(1), person(2), *places)

        def owns(who, where, op="insert"):
            return {"op": op, "edge": "OWNS", "from": who, "to": ["N", where]}
        self.mutate(owns(1, "a"), owns(1, "b"))
        self.refuse(4, "CONSTRAINT_CARDINALITY", 1, owns(1, "c"), says="from")
        self.refuse(4, "CONSTRAINT_CARDINALITY", 1, owns(2, "a"), says="to")
        self.refuse(4, "CONSTRAINT_CARDINALITY", 3, owns(1, "a", "delete"), owns(1, "c"), owns(1, "d"), says="from")
        self.assertEqual(self.counts(owns(1, "a", "delete"), owns(1, "c"), owns(2, "a")), (2, 0, 1))
        self.clean()

    def test_keys_have_a_bound(self):
        def place(length):
            return {"op": "insert", "node": "Place", "key": ["N", "x" * length]}
        most = 1024 - 2 * 4 - 1  # canonical bytes: the lengths, "N", the rest
        self.mutate(place(most), person(1), {"op": "insert", "edge": "OWNS", "from": 1, "to": ["N", "x" * most]})
        self.refuse(10, "RESOURCE_LIMIT", 1, place(most + 1), says="1025 bytes")
        self.refuse(4, "CONSTRAINT_ENDPOINT", 1, {"op": "insert", "edge": "OWNS", "from": 1, "to": ["N", "x" * (most + 1)]})
        self.clean()

    def test_branches_change_their_own_objects(self):
        self.mutate(person(1), person(2), knows(1, 2))
        self.done("branch", "create", "G", "draft")
        self.mutate({"op": "update", "node": "Person", "key": 1, "set": {"age": 5}}, knows(1, 2, "delete"), person(3),
                    options=["--branch", "draft"])
        self.mutate({"op": "update", "node": "Person", "key": 1, "set": {"age": 6}})
        self.assertEqual(self.get("Person", "1")["age"], 6)
        self.assertEqual(self.done("get", "G", "Person", "1", "--branch", "draft", "--json").lines[0]["age"], 5)
        self.assertEqual((self.done("count", "G", "KNOWS").out, self.done("count", "G", "KNOWS", "--branch", "draft").out),
                         ("1\n", "0\n"))
        for i in range(40):  # both fold what they share and what is their own
            self.mutate({"op": "upsert", "node": "Person", "key": 1, "set": {"age": i}},
                        options=["--branch", "draft" if i % 2 else "main"])
        self.assertEqual(self.get("Person", "1")["age"], 38)
        self.assertEqual(self.done("get", "G", "Person", "1", "--branch", "draft", "--json").lines[0]["age"], 39)
        self.clean()

    # ---- the command ----

    def test_standard_input_is_the_default(self):
        self.write("m.jsonl", self.text([person(1)]))
        with open(self.path("m.jsonl")) as file:
            self.done("mutate", "G", stdin=file)
        with open(self.path("m.jsonl")) as file:
            said = self.refused(4, "mutate", "G", "-", stdin=file)
        self.assertIn("standard input:1:", said.err)

    def test_a_dry_run_checks_and_changes_nothing(self):
        said = self.mutate(person(1), options=["--dry-run"])
        self.assertIsNone(said["commit"])
        self.assertEqual(said["inserted"], 1)
        self.assertEqual(self.rows("Person"), [])

    def test_an_operation_id_makes_it_repeatable(self):
        operation = new_operation()
        first = self.mutate(person(1), options=["--op-id", operation, "-m", "first"])
        again = self.mutate(person(1), options=["--op-id", operation])
        self.assertEqual(again["commit"], first["commit"])
        self.assertEqual((again["repeated"], again["inserted"]), (True, 1))
        self.write("m.jsonl", self.text([person(2)]))
        said = self.refused(9, "mutate", "G", "m.jsonl", "--op-id", operation, "--json")
        self.assertEqual(said.error["code"], "IDEMPOTENCY_CONFLICT")
        self.assertEqual(self.done("log", "G", "-n", "1", "--json").lines[0]["message"], "first")

    def test_a_head_makes_it_conditional(self):
        head = self.mutate(person(1))["commit"]["id"]
        self.mutate(person(2), options=["--if-head", head])
        self.write("m.jsonl", self.text([person(3)]))
        said = self.refused(3, "mutate", "G", "m.jsonl", "--if-head", head, "--json")
        self.assertEqual(said.error["code"], "READ_SET_CHANGED")

    def test_a_large_file_is_staged_and_as_good(self):
        self.mutate(*[person(i, email="e%d" % i) for i in range(5000)])
        self.assertEqual(self.done("count", "G", "Person").out, "5000\n")
        self.assertEqual(self.counts(*[{"op": "update", "node": "Person", "key": i, "set": {"age": i % 100}}
                                       for i in range(3000)]), (0, 3000, 0))
        self.assertEqual(self.counts(*[{"op": "delete", "node": "Person", "key": i} for i in range(2000)]), (0, 0, 2000))
        self.assertEqual(self.done("count", "G", "Person").out, "3000\n")
        self.assertEqual(self.get("Person", "2500")["age"], 0)
        self.refuse(4, "CONSTRAINT_UNIQUE", 1, person(9000, email="e4999"))
        self.mutate(person(9000, email="e5"))
        self.clean()

    def test_many_small_files_fold_and_stay_whole(self):
        for i in range(50):
            self.mutate(person(i), *([knows(i - 1, i)] if i else []))
            if i % 3 == 2:
                self.mutate({"op": "update", "node": "Person", "key": i - 1, "set": {"age": i}})
            if i % 10 == 9:
                self.mutate({"op": "delete", "node": "Person", "key": i - 5, "detach": True})
        self.assertEqual(self.done("count", "G", "Person").out, "45\n")
        self.assertEqual(self.get("Person", "40")["age"], 41)
        self.clean()


if __name__ == "__main__":
    main()
