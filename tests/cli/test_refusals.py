#!/usr/bin/env python3
"""What the program refuses: exit status, the line for people, the document for programs, and that nothing changed."""

import os

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"Person": {"key": "id", "properties": {"id": "int64", "name": "string", "email": "string?", "age": "int32?"},
                               "unique": [["email"]], "checks": {"age": {"min": 0, "max": 150}}}},
          "edges": {"KNOWS": {"from": "Person", "to": "Person", "properties": {}, "key": []}}}
FIELDS = {"code", "message", "hint", "committed", "acknowledged", "operation_id", "commit_id", "phase", "retryable", "action",
          "details"}


class Refusals(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        self.write("people.csv", "id,name,email,age\n1,Ada,a@x,36\n2,Bob,,\n")
        self.load("Person=people.csv")
        self.before = self.content()

    def bad(self, code, name, text, place, *words, exit_status=4, operand="Person=bad.csv"):
        """A load that must fail with this code at FILE:LINE and change nothing."""
        self.write("bad.csv", text)
        for workers in ("1", "3"):
            said = self.refused(exit_status, "load", "G", operand, "--json", "--workers", workers, *words)
            self.assertEqual(said.error["code"], code)
            self.assertIs(said.error["committed"], False)
            self.assertEqual(set(said.error), FIELDS)
            self.assertIn("(%s)" % code, said.err)
            if place:
                self.assertIn("bad.csv:%d" % place, said.err)
            for word in name:
                self.assertIn(word, said.err)
            self.assertNotIn("bad.csv", said.out)
        self.assertEqual(self.content(), self.before)

    def test_bad_content_of_a_file(self):
        head = "id,name,email,age\n"
        self.bad("CONSTRAINT_TYPE", ["age", "abc", "int32"], head + "5,Eve,,1\n6,Max,,abc\n", 3)
        self.bad("CONSTRAINT_TYPE", ["id", "99999999999999999999"], head + "99999999999999999999,Eve,,\n", 2)
        self.bad("CONSTRAINT_NULL", ["id"], head + ",Eve,,\n", 2)
        self.bad("CONSTRAINT_CHECK", ["age", "151"], head + "5,Eve,,151\n", 2)
        self.bad("CONSTRAINT_UNIQUE", ["email"], head + "5,Eve,e@x,\n6,Max,e@x,\n", 3)
        self.bad("CONSTRAINT_UNIQUE", ["a@x"], head + "5,Eve,a@x,\n", 2)
        self.bad("KEY_CONFLICT", ["5", "line 2"], head + "5,Eve,,\n5,Max,,\n", 3)
        self.bad("KEY_CONFLICT", ["1"], head + "5,Eve,,\n1,Max,,\n", 3)
        self.bad("INPUT_SYNTAX", [], head + "5,Eve\n", 2)
        self.bad("INPUT_SYNTAX", [], head + "5,Eve,,,,\n", 2)
        self.bad("INPUT_SYNTAX", [], head + '5,"Eve,,\n6,Max,,\n', 2)

    def test_bad_headings(self):
        self.bad("INPUT_SYNTAX", ["agee"], "id,name,agee\n5,Eve,1\n", 1)
        self.bad("INPUT_SYNTAX", ["name"], "id,name,name\n5,Eve,x\n", 1)
        self.bad("INPUT_SYNTAX", ["name"], "id,age\n5,1\n", 1)

    def test_bad_edges(self):
        self.bad("CONSTRAINT_ENDPOINT", ["77", "to"], "from,to\n1,2\n1,77\n", 3, operand="KNOWS=bad.csv")
        self.bad("KEY_CONFLICT", [], "from,to\n1,2\n1,2\n", 3, operand="KNOWS=bad.csv")

    def test_usage_ends_with_2_and_a_hint(self):
        for words, hint in ((("lod", "G"), "load"), (("load", "G", "Person=people.csv", "--mod=insert"), "--mode"),
                            (("load", "G"), "usage"), (("scan", "G"), "usage"), (("load", "G", "Person"), "Person=people.csv"),
                            (("count", "G", "Person", "x"), "usage"), (("load", "G", "Persn=people.csv"), "Person"),
                            (("load", "G", "Person=people.csv", "--workers=0"), None),
                            (("load", "G", "Person=people.csv", "--mode=replace"), None),
                            (("load", "G", "Person=people.csv", "--op-id=7"), None),
                            (("load", "G", "Person=absent.csv"), None), (("load", "G", "Person=."), None), ((), "help"),
                            (("help", "lod"), "help"), (("schema", "paint", "G"), "show")):
            said = self.refused(2, *words)
            self.assertEqual(said.out, "")
            if hint:
                self.assertIn("hint: ", said.err)
                self.assertIn(hint, said.err.split("hint: ", 1)[1])
        said = self.refused(2, "load", "G", "Persn=people.csv", "--json")
        self.assertEqual(set(said.error), FIELDS)
        self.assertEqual((said.error["code"], said.error["action"], said.error["retryable"]), ("USAGE", "fix", False))
        self.assertEqual(self.content(), self.before)

    def test_what_is_no_graph(self):
        for words in (("count", "absent"), ("load", "absent", "Person=people.csv"), ("verify", "absent"), ("log", "absent")):
            self.assertEqual(self.refused(8, *words, "--json").error["code"], "NOT_FOUND")
        os.mkdir(self.path("empty"), 0o700)
        self.assertEqual(self.refused(7, "count", "empty", "--json").error["code"], "UNSUPPORTED_FORMAT")
        self.refused(8, "load", "G", "Person=people.csv", "--branch", "nobody")

    def test_an_unsupported_filesystem_is_refused_before_anything_is_made(self):
        if not os.path.isdir("/dev/shm") or not os.access("/dev/shm", os.W_OK):
            self.skipTest("no tmpfs to try")
        graph = "/dev/shm/sluice-test-%d" % os.getpid()
        said = self.refused(7, "init", graph, "--schema", "schema.json", "--json")
        self.assertEqual(said.error["code"], "UNSUPPORTED_FILESYSTEM")
        self.assertIn("tmpfs", said.err)
        self.assertFalse(os.path.exists(graph))

    def test_the_document_names_nothing_of_the_user(self):
        self.write("geheim.csv", "id,name,email,age\n5,Wort4711,,zahl4712\n")
        said = self.refused(4, "load", "G", "Person=geheim.csv", "--json")
        for word in ("geheim", "4711", "4712", self.folder, "Person"):
            self.assertNotIn(word, said.out)
        self.assertIn("geheim.csv:2", said.err)

    def test_text_of_a_file_cannot_act_on_the_terminal(self):
        self.write("bad.csv", b"id,name,email,age\n5,Eve,,\x1b[31m\x07\n")
        said = self.refused(4, "load", "G", "Person=bad.csv")
        self.assertNotIn("\x1b", said.err)
        self.assertIn("\\x1b", said.err)

    def test_a_failpoint_that_is_not_understood_is_refused(self):
        if "failpoints" not in self.done("version").out or "no failpoints" in self.done("version").out:
            self.skipTest("a build without failpoints")
        self.refused(2, "count", "G", env={"SLUICE_FAILPOINT": "nothing.here=kill"})


if __name__ == "__main__":
    main()
