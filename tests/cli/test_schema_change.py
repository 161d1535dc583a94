#!/usr/bin/env python3
"""schema plan and apply: every step, what it costs, what it is refused for; rows read under the schema of their commit."""

import copy
import json

from support.program import ProgramTest, main

SCHEMA = {
    "nodes": {
        "Person": {"key": "id", "properties": {"id": "int64", "name": "string", "age": "int32?", "size": "float32?"},
                   "unique": [["name"]]},
        "Note": {"properties": {"text": "string?"}},
        "Empty": {"key": "k", "properties": {"k": "int32"}},
    },
    "edges": {"KNOWS": {"from": "Person", "to": "Person", "properties": {"since": "date?"}}},
}


class SchemaChange(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        self.write("people.csv", "id,name,age,size\n1,Ada,36,1.5\n2,Bob,,\n3,Cyd,70,0.1\n")
        self.write("notes.csv", "text\nhello\n")
        self.write("knows.csv", "from,to,since\n1,2,2026-01-31\n1,3,\n")
        self.load("Person=people.csv", "Note=notes.csv", "KNOWS=knows.csv")
        self.schema = copy.deepcopy(SCHEMA)
        self.person = self.schema["nodes"]["Person"]

    def plan(self):
        self.write("new.json", self.schema)
        return self.done("schema", "plan", "G", "new.json", "--json").document

    def steps(self):
        return [(step["step"], step["type"], step["property"], step["cost"]) for step in self.plan()["steps"]]

    def apply(self, *words):
        self.write("new.json", self.schema)
        result = self.done("schema", "apply", "G", "new.json", "--json", *words).document
        self.clean()
        return result

    def apply_refused(self, code, text, *words):
        """Refused with this status, and no trace of it."""
        self.write("new.json", self.schema)
        before = self.done("log", "G", "--json").out, self.content(), self.done("schema", "show", "G").out
        result = self.refused(code, "schema", "apply", "G", "new.json", *words)
        self.assertIn(text, result.err)
        self.assertEqual((self.done("log", "G", "--json").out, self.content(), self.done("schema", "show", "G").out), before)
        self.assertEqual(self.done("status", "G", "--json").document["intents"], [])
        self.schema = copy.deepcopy(SCHEMA)
        self.person = self.schema["nodes"]["Person"]
        return result

    def people(self, *words):
        return self.rows("Person", "G", *words)

    def test_the_same_schema_changes_nothing(self):
        self.assertEqual(self.plan(), {"steps": [], "violation": None})
        self.assertIsNone(self.apply()["commit"])
        self.write("new.json", self.done("schema", "show", "G").out)
        self.assertIsNone(self.done("schema", "apply", "G", "new.json", "--json").document["commit"])

    def test_types_are_added_renamed_and_dropped_and_a_name_used_again_is_a_new_life(self):
        self.schema["nodes"]["Human"] = {**self.schema["nodes"].pop("Person"), "renamed_from": "Person"}
        self.schema["edges"]["KNOWS"].update({"from": "Human", "to": "Human"})
        del self.schema["nodes"]["Note"]
        self.schema["nodes"]["Place"] = {"key": "id", "properties": {"id": "string"}}
        self.assertEqual(self.steps(), [("rename-type", "Human", None, "metadata"), ("add-type", "Place", None, "metadata"),
                                        ("drop-type", "Note", None, "loses data")])
        self.apply("--allow-data-loss")
        self.assertEqual([row["name"] for row in self.rows("Human")], ["Ada", "Bob", "Cyd"])
        self.refused(2, "scan", "G", "Person")
        self.refused(2, "count", "G", "Note")
        self.write("places.csv", "id\nBern\n")
        self.load("Place=places.csv")
        self.assertEqual(self.rows("Place"), [{"id": "Bern"}])
        self.assertEqual(self.rows("Note", "G", "--at", "2")[0]["text"], "hello")
        self.schema["nodes"]["Note"] = SCHEMA["nodes"]["Note"]
        self.apply()
        self.assertEqual(self.done("count", "G", "Note").out, "0\n")
        self.assertEqual(self.done("neighbors", "G", "Human", "1", "--json").lines,
                         [{"type": "Human", "key": key, "depth": 1} for key in (2, 3)])

    def test_properties_are_added_with_what_older_rows_have_then(self):
        self.person["properties"].update({"nick": "string?", "rank": {"type": "int32", "default": 7}})
        self.assertEqual(self.steps(), [("add-property", "Person", "nick", "metadata"), ("add-property", "Person", "rank", "metadata")])
        self.apply()
        self.assertEqual({(row["nick"], row["rank"]) for row in self.people()}, {(None, 7)})
        self.person["properties"]["rank"]["default"] = 9
        self.assertEqual(self.steps(), [("change-default", "Person", "rank", "metadata")])
        self.apply()
        self.write("more.csv", "id,name\n4,Dan\n")
        self.load("Person=more.csv")
        self.assertEqual([row["rank"] for row in self.people()], [7, 7, 7, 9])
        self.assertEqual([row["id"] for row in self.people("--where", "rank = 9")], [4])
        self.assertNotIn("rank", self.people("--at", "2")[0])

    def test_properties_are_renamed_and_dropped_without_touching_the_others(self):
        self.person["properties"] = {"id": "int64", "size": "float32?", "years": {"type": "int32?", "renamed_from": "age"},
                                     "name": "string"}
        self.assertEqual(self.steps(), [("rename-property", "Person", "years", "metadata")])
        self.apply()
        self.assertEqual(self.people()[2], {"id": 3, "size": 0.1, "years": 70, "name": "Cyd"})
        del self.person["properties"]["years"]
        self.assertEqual(self.steps(), [("drop-property", "Person", "years", "loses data")])
        self.apply("--allow-data-loss")
        self.assertEqual(self.people()[0], {"id": 1, "size": 1.5, "name": "Ada"})
        self.person["properties"]["years"] = "int32?"
        self.apply()
        self.assertEqual([row["years"] for row in self.people()], [None] * 3)

    def test_a_wider_type_reads_old_values_wide(self):
        self.person["properties"].update({"age": "int64?", "size": "float64?"})
        self.assertEqual([step[0] for step in self.steps()], ["widen-property"] * 2)
        self.apply()
        self.write("more.csv", "id,name,age,size\n4,Dan,9000000000,1e300\n")
        self.load("Person=more.csv")
        self.assertEqual([row["age"] for row in self.people()], [36, None, 70, 9000000000])
        self.assertEqual(self.people()[0]["size"], 1.5)
        self.assertEqual(json.loads(self.done("get", "G", "Person", "3", "--json").out)["age"], 70)
        self.done("export", "G", "out", "--format", "csv")
        self.done("init", "H", "--schema", "new.json")
        self.load("Person=out/Person.csv", graph="H")
        self.assertEqual(self.rows("Person", "H"), self.people())

    def test_checks_and_defaults_of_a_widened_property_are_the_same_ones(self):
        self.person["properties"]["age"] = {"type": "int32?", "default": 7}
        self.person["checks"] = {"age": {"min": 0, "max": 150}, "size": {"enum": [1.5, 2.5]}}
        self.refused(4, "schema", "apply", "G", self.write("new.json", self.schema))
        self.person["checks"]["size"]["enum"].append(0.1)
        self.apply()
        self.person["properties"].update({"age": {"type": "int64?", "default": 7}, "size": "float64?"})
        self.person["checks"]["size"]["enum"].pop()
        self.assertEqual([step[0] for step in self.steps()], ["widen-property", "widen-property", "tighten-checks"])
        self.person["checks"]["age"]["max"] = 200
        self.person["properties"]["age"]["default"] = 8
        self.person["checks"]["size"]["enum"].append(0.10000000149011612)
        self.assertEqual([step[0] for step in self.steps()], ["widen-property", "change-default", "loosen-checks", "widen-property"])

    def mutate(self, *records, branch="main"):
        self.write("records.jsonl", "".join(json.dumps(record) + "\n" for record in records))
        self.done("mutate", "G", "records.jsonl", "--branch", branch)

    def test_every_writer_and_reader_takes_narrow_and_wide_fragments_together(self):
        self.mutate(*[{"op": "insert", "node": "Person", "set": {"id": i, "name": "n%d" % i, "age": i, "size": i / 4}} for i in range(10, 14)])
        self.mutate({"op": "delete", "node": "Person", "key": 13}, {"op": "update", "node": "Person", "key": 10, "set": {"age": 20}})
        self.done("branch", "create", "G", "narrow")
        self.mutate({"op": "update", "node": "Person", "key": 11, "set": {"age": 21}}, branch="narrow")
        self.person["properties"].update({"age": "int64?", "size": "float64?"})
        self.person["unique"].append(["age", "size"])
        self.apply()
        expected = {1: (36, 1.5), 2: (None, None), 3: (70, None), 10: (20, 2.5), 11: (11, 2.75), 12: (12, 3.0)}

        def check(graph="G"):
            self.clean(graph)
            rows = {row["id"]: (row["age"], row["size"]) for row in self.rows("Person", graph)}
            rows[3] = (rows[3][0], None)
            self.assertEqual(rows, expected)

        check()
        for key in range(20, 26):  # each of them folds what is small
            self.mutate({"op": "insert", "node": "Person", "set": {"id": key, "name": "n%d" % key, "age": key << 33, "size": 1e300}})
            expected[key] = (key << 33, 1e300)
        check()
        self.write("up.csv", "id,age\n1,37\n20,5\n")
        self.load("Person=up.csv", "--mode", "upsert")
        expected[1], expected[20] = (37, 1.5), (5, 1e300)
        check()
        self.write("twice.csv", "id,name,age,size\n99,x,12,3\n")
        self.assertIn("CONSTRAINT_UNIQUE", self.refused(4, "load", "G", "Person=twice.csv").err)
        self.assertEqual(self.done("count", "G", "Person", "--json").document, {"Person": len(expected)})
        self.assertEqual(self.rows("Person", "G", "--where", "age = 12")[0]["id"], 12)
        self.done("diff", "G", "2", "head", "--keys")
        self.done("describe", "G", "Person")
        self.done("merge", "G", "narrow")
        expected[11] = (21, 2.75)
        check()
        self.done("backup", "G", "copy")
        check("copy")
        self.done("salvage", "G", "Person", "--into", "saved")
        check("saved")
        self.done("optimize", "G")
        check()
        self.done("index", "G")
        self.done("revert", "G", "--to", "2")
        self.assertEqual([row["age"] for row in self.rows("Person", "G")], [36, None, 70])

    def test_constraints_are_added_when_the_rows_keep_them(self):
        self.person["checks"] = {"age": {"min": 0, "max": 70}, "name": {"pattern": "[A-Z].*"}}
        self.person["unique"].append(["age", "size"])
        self.schema["edges"]["KNOWS"]["cardinality"] = {"out": "0..2", "in": "0..1"}
        self.assertEqual([(step[0], step[3]) for step in self.steps()],
                         [("tighten-checks", "checks rows")] * 2 + [("add-unique", "checks rows"), ("tighten-cardinality", "checks rows")])
        self.apply()
        self.write("bad.csv", "id,name,age,size\n4,Dan,36,1.5\n")
        self.assertIn("unique", self.refused(4, "load", "G", "Person=bad.csv").err)
        self.write("bad.csv", "id,name,age\n4,Dan,71\n")
        self.refused(4, "load", "G", "Person=bad.csv")
        self.write("bad.csv", "from,to\n2,3\n")
        self.refused(4, "load", "G", "KNOWS=bad.csv")
        self.person["unique"].pop(0)
        del self.person["checks"]
        self.assertEqual([step[0] for step in self.steps()], ["loosen-checks", "loosen-checks", "drop-unique"])
        self.apply()
        self.write("good.csv", "id,name,age\n4,Ada,71\n")
        self.load("Person=good.csv")
        self.write("bad.csv", "id,name,age,size\n5,Eve,36,1.5\n")
        self.refused(4, "load", "G", "Person=bad.csv")

    def test_constraints_that_rows_break_are_refused_and_the_row_is_named(self):
        self.person["properties"]["age"] = "int32"
        self.assertIn("Person 2: its age is null", self.plan()["violation"])
        self.apply_refused(4, "Person 2: its age is null")
        self.person["checks"] = {"age": {"max": 69}}
        self.apply_refused(4, "Person 3:")
        self.write("twin.csv", "id,name,age\n4,Dan,36\n")
        self.load("Person=twin.csv")
        self.person["unique"].append(["age"])
        self.apply_refused(4, "Person 4: it has the unique value of Person 1")
        self.schema["edges"]["KNOWS"]["cardinality"] = {"out": "0..1"}
        self.apply_refused(4, "KNOWS 1 -> 3: its from has 2 of these edges, and may have 1")

    def test_what_cannot_be_done_is_refused_with_a_way_out(self):
        self.person["properties"]["rank"] = "int32"
        self.apply_refused(4, "default")
        self.person["properties"]["name"] = "int32"
        self.apply_refused(4, "export the type")
        self.person["key"] = "name"
        self.apply_refused(4, "another key")
        del self.person["properties"]["age"]
        self.assertIn("--allow-data-loss", self.apply_refused(2, "with 2 values").err)
        del self.schema["nodes"]["Note"]
        self.assertIn("--allow-data-loss", self.apply_refused(2, "with 1 rows").err)
        self.schema["nodes"]["X"] = {"properties": {"a": "int32"}, "renamed_from": "Nobody"}
        self.apply_refused(4, "Nobody")
        self.write("new.json", "{")
        self.refused(4, "schema", "plan", "G", "new.json")
        self.refused(2, "schema", "plan", "G")
        self.refused(2, "schema", "apply", "G", "missing.json")
        self.refused(2, "schema", "alter", "G")

    def test_a_type_without_rows_may_change_in_any_way(self):
        self.schema["nodes"]["Empty"] = {"key": ["a", "b"], "properties": {"a": "string", "b": "int64"}}
        self.apply()
        self.write("empty.csv", "a,b\nx,1\n")
        self.load("Empty=empty.csv")
        self.assertEqual(self.rows("Empty"), [{"a": "x", "b": 1}])

    def test_an_added_unique_property_is_null_in_older_rows_and_holds_for_new_ones(self):
        self.person["properties"]["mail"] = "string?"
        self.person["unique"].append(["mail"])
        self.apply()
        self.write("more.csv", "id,name,mail\n4,Dan,d@x\n5,Eve,\n")
        self.load("Person=more.csv")
        self.write("bad.csv", "id,name,mail\n6,Fay,d@x\n")
        self.refused(4, "load", "G", "Person=bad.csv")
        self.clean()

    def test_the_same_operation_gives_the_first_commit(self):
        self.person["properties"]["nick"] = "string?"
        operation = "01900000-0000-7000-8000-%012x" % 1
        first = self.apply("--op-id", "9b2d1c3e-0000-4000-8000-000000000001")
        again = self.apply("--op-id", "9b2d1c3e-0000-4000-8000-000000000001")
        self.assertEqual(again["commit"]["id"], first["commit"]["id"])
        self.assertTrue(again["repeated"])
        self.write("new.json", SCHEMA)
        self.refused(9, "schema", "apply", "G", "new.json", "--op-id", "9b2d1c3e-0000-4000-8000-000000000001")
        self.refused(3, "schema", "apply", "G", "new.json", "--if-head", operation)

    def test_a_branch_has_a_schema_of_its_own(self):
        self.done("branch", "create", "G", "f")
        self.person["properties"]["nick"] = "string?"
        self.apply("--branch", "f")
        self.assertIn("nick", self.rows("Person", "G", "--branch", "f")[0])
        self.assertNotIn("nick", self.people()[0])

    def test_loads_that_run_beside_a_change_end_under_one_schema_or_the_other(self):
        self.write("many.csv", "id,name\n" + "".join("%d,n%d\n" % (i, i) for i in range(1000, 3000)))
        self.person["properties"]["nick"] = {"type": "string", "default": "none"}
        self.write("new.json", self.schema)
        load = self.start("load", "G", "Person=many.csv", "--workers", "2", "--json")
        change = self.start("schema", "apply", "G", "new.json", "--json")
        changed, loaded = self.finish(change), self.finish(load)
        self.assertEqual(changed.code, 0, changed.err)
        self.assertIn(loaded.code, (0, 3), loaded.err)
        self.assertEqual(len(self.people()), 2003 if loaded.code == 0 else 3)
        self.assertEqual({row["nick"] for row in self.people()}, {"none"})
        self.clean()


if __name__ == "__main__":
    main()
