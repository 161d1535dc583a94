#!/usr/bin/env python3
"""What somebody who knows neither the program nor the words of its documents does first: what was understood is said, what was not is
told in a way that leads on."""

import re

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"Person": {"key": "id", "properties": {"id": "int64", "name": "string?", "age": "int32?"}}, "Note": {"properties": {"text": "string"}}},
          "edges": {"KNOWS": {"from": "Person", "to": "Person", "properties": {"since": "date?"}, "key": []},
                    "SAW": {"from": "Person", "to": "Person", "properties": {"w": "int64?"}}, "WROTE": {"from": "Person", "to": "Note", "properties": {}}}}


class Inferred(ProgramTest):
    def lines(self, *words):
        return [line for line in self.run_program(*words).err.splitlines() if not line.startswith("sluice: the filesystem")]

    def told(self, *inputs):
        """What `load --infer` says of each type."""
        return dict(line.split(": ", 1) for line in self.lines("load", "none", "--infer", *inputs))

    def test_every_type_is_told_as_nodes_or_edges_with_its_key_and_columns(self):
        self.write("p.csv", "id,name\n1,Ada\n2,Bob\n")
        self.write("k.csv", "from,to,since\n1,2,2026-01-31\n")
        self.write("links.csv", "person,friend\n1,2\n")
        said = self.told("P=p.csv", "K=k.csv", "L=links.csv")
        self.assertEqual(said["P"], "nodes, key id, 2 columns")
        self.assertEqual(said["K"], "edges from P to P, 1 column beside from and to")
        self.assertEqual(said["L"], "nodes without a key, 2 columns: none is called id, key, L_id or Lid (a file of edges has columns from and to)")
        self.assertEqual(list(said), ["P", "L", "K"])
        self.assertEqual(self.lines("init", "G", "--infer", "P=p.csv", "K=k.csv")[0], "P: nodes, key id, 2 columns")
        self.assertEqual(self.told("P=p.csv") and self.lines("load", "G", "--infer", "P=p.csv"), ["P: nodes, as the graph has them"])
        self.assertEqual(self.done("load", "none", "--infer", "P=p.csv").document["nodes"]["P"]["key"], "id")

    def test_why_a_column_is_no_key_is_told(self):
        for text, why in (("album_id,t\n1,a\n2,b\n1,c\n", 'column album_id has "1" twice, on line 2 and line 4'), ("id,t\n1,a\n,b\n", "column id is empty in some row"),
                          ("id,t\n1.5,a\n", "column id is a float64; keys are whole numbers or texts"), ("id,t\n%s,a\n" % ("x" * 1100), "longer than a key may be"),
                          ("id,key\n1,a\n1,a\n", 'column id has "1" twice, on line 2 and line 3'), ("_row_id,t\n1,a\n", "_row_id names them")):
            self.write("a.csv", text)
            said = self.told("Album=a.csv")["Album"]
            self.assertTrue(said.startswith("nodes without a key"), said)
            self.assertIn(why, said)
        self.write("a.csv", "_row_id,t\n%s,a\n" % ("x" * 1100))
        self.assertIn("a name is longer than a key may be", self.refused(10, "load", "none", "--infer", "Album=a.csv").err)
        self.write("a.csv", "id\n1\n2\n")
        self.write("b.csv", "id\n3\n2\n")
        self.assertIn('column id has "2" twice, on line 3 of a.csv and line 3 of b.csv', self.told("A=a.csv", "A=b.csv")["A"])

    def test_ends_in_nodes_without_a_key_lead_back_to_what_was_said(self):
        self.write("a.csv", "id\n1\n2\n1\n")
        self.write("p.csv", "id\n7\n")
        self.write("k.csv", "from,to\n7,2\n")
        for inputs in (("Album=a.csv", "K=k.csv"), ("Person=p.csv", "Album=a.csv", "K=k.csv")):
            said = self.lines("init", "G", "--infer", *inputs)
            self.assertTrue(any('column id has "1" twice' in line for line in said), said)
            self.assertRegex(said[-1], "^hint: Album has no key")


class Asked(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        self.write("p.csv", "id,name,age\n1,Ada,36\n2,Bob,\n3,,17\n4,Ada,1\n")
        self.write("n.csv", "text\nhello\n")
        self.write("k.csv", "from,to\n1,2\n")
        self.load("Person=p.csv", "Note=n.csv", "KNOWS=k.csv", "SAW=k.csv")

    def hint(self, code, *words):
        hints = re.findall(r"^hint: (.*)$", self.refused(code, *words).err, re.M)
        self.assertEqual(len(hints), 1, words)
        return hints[0]

    def test_nodes_without_a_key_are_asked_for_by_row_id(self):
        for code, words in ((2, ("get", "G", "Note", "hello")), (8, ("get", "G", "Note", "999")), (8, ("neighbors", "G", "Note", "999")), (2, ("neighbors", "G", "Note", "x"))):
            self.assertEqual(self.hint(code, *words), "Note has no key: its nodes go by _row_id, which `sluice scan G Note` shows")
        row = self.rows("Note")[0]["_row_id"]
        self.done("get", "G", "Note", str(row))
        self.write("w.csv", "from,to\n1,999\n")
        self.assertIn("`sluice scan G Note` shows", self.hint(4, "load", "G", "WROTE=w.csv"))
        self.write("w.csv", "from,to\n1,%d\n" % row)
        self.load("WROTE=w.csv")

    def test_types_of_edges_are_listed_to_who_names_nodes(self):
        self.assertEqual(self.hint(2, "neighbors", "G", "Person", "1", "--edge", "Note"), "types of edges: KNOWS, SAW, WROTE")

    def test_headings_without_ends_are_told_to_have_them_however_many_columns_there_are(self):
        for name, text in (("e.csv", "a,b\n1,3\n"), ("e.csv", "a,b,w\n1,3,5\n"), ("e.csv", "x,a,b\n0,1,3\n"), ("e.jsonl", '{"a": 1, "b": 3}\n')):
            self.write(name, text)
            self.assertIn("columns from and to", self.hint(4, "load", "G", "SAW=" + name))
        for text in ("from,b\n1,3\n", "from,to,x\n1,3,0\n"):
            self.write("e.csv", text)
            self.assertIn("--ignore-unknown", self.hint(4, "load", "G", "SAW=e.csv"))

    def where(self, text):
        return [row["id"] for row in self.rows("Person", "G", "--where", text)]

    def test_filters(self):
        for text, found in (("age = null", [2]), ("age = NULL", [2]), ("age != null", [1, 3, 4]), ("name != Ada", [2]), ("name != 'Ada' and age = null", [2]), ("age > 18", [1]),
                            ("age >= 17 AND id <= 3", [1, 3]), ("age<>36", [3, 4]), ("name == Ada and age < 2", [4]), ('"name" = \'Ada\'', [1, 4]), ("name = 'null'", [])):
            self.assertEqual(self.where(text), found, text)

    def test_what_no_filter_has_is_told_with_what_there_is(self):
        for text, said in (("name is null", "without a value: name = null; with one: name != null"), ("name IS NOT NULL", "name != null"), ("name like 'A%'", "filters only compare"),
                           ("id in (1, 2)", "filters only compare"), ("name = Ada or name = Bob", "joined by and only"), ("age > 18 OR id = 1", "joined by and only"),
                           ("(age > 18)", "no parentheses"), ("not age > 18", "no not"), ('name = "Ada"', "single quotes"), ("nam = Ada", "did you mean name"),
                           ("age > 18 and", "for example"), ("age >", "for example")):
            self.assertIn(said, self.hint(2, "scan", "G", "Person", "--where", text), text)
        for text in ("age > 18 and", "age >", ""):
            self.assertIn("is wanted at its end", self.refused(2, "scan", "G", "Person", "--where", text).err)
        self.assertEqual(self.where("name = 'Ada or Bob'"), [])

    def mutation(self, code, text):
        self.write("m.jsonl", text + "\n")
        return self.hint(code, "mutate", "G", "m.jsonl")

    def test_mutations_that_name_things_wrongly_are_told_how(self):
        self.assertIn("leave this line out", self.mutation(8, '{"op": "delete", "node": "Person", "key": 77}'))
        self.assertIn("leave this line out", self.mutation(8, '{"op": "delete", "edge": "KNOWS", "from": 2, "to": 1}'))
        self.assertIn('"upsert"', self.mutation(8, '{"op": "update", "node": "Person", "key": 77, "set": {"age": 1}}'))
        self.assertIn('properties stand in "set", as in "set": {"age": ...}', self.mutation(4, '{"op": "upsert", "node": "Person", "key": 1, "age": 1}'))
        self.assertIn('did you mean "detach"?', self.mutation(4, '{"op": "delete", "node": "Person", "key": 1, "detatch": true}'))
        self.assertIn('"key": 7', self.mutation(4, '{"op": "delete", "node": "Person"}'))
        hint = self.mutation(4, '{"op": "delete", "edge": "SAW", "from": 1, "to": 2}')
        self.assertIn("`sluice scan G SAW --columns _row_id,from,to` shows them", hint)
        row = self.rows("SAW", "G", "--columns", "_row_id,from,to")[0]["_row_id"]
        self.write("m.jsonl", '{"op": "delete", "edge": "SAW", "_row_id": %d}\n' % row)
        self.done("mutate", "G", "m.jsonl")


if __name__ == "__main__":
    main()
