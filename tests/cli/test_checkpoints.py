#!/usr/bin/env python3
"""Checkpoints: names for commits that stay readable, whatever becomes of the branch."""

import os

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64"}}}, "edges": {}}
OPERATION = "9b2d1c3e-0000-4000-8000-000000000001"


class Checkpoints(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        for i in (1, 2):
            self.load_one(i)

    def load_one(self, i, *words):
        self.write("p.csv", "id\n%d\n" % i)
        return self.load("P=p.csv", *words)

    def ids(self, *words):
        return [row["id"] for row in self.rows("P", "G", *words)]

    def names(self):
        return [line["checkpoint"] for line in self.done("checkpoint", "list", "G", "--json").lines]

    def make(self, name, *words):
        return self.done("checkpoint", "create", "G", name, "--json", *words).document

    def test_a_checkpoint_is_a_place_everywhere(self):
        made = self.make("a/b c")
        self.load_one(3)
        self.make("one", "--at", "2")
        self.assertEqual(self.names(), ["a/b c", "one"])
        self.assertEqual(self.ids("--at", "a/b c"), [1, 2])
        self.assertEqual(self.ids("--at", "one"), [1])
        self.assertEqual(self.done("count", "G", "P", "--at", "one").out, "1\n")
        self.assertEqual(self.done("show", "G", "a/b c", "--json").document["commit"], made["commit"]["id"])
        self.assertEqual(self.done("diff", "G", "one", "head", "--json").document["inserted"], 2)
        for name, words in (("x", ("--from", "one")), ("y", ("--at", "one"))):
            self.done("branch", "create", "G", name, *words)
            self.assertEqual(self.ids("--branch", name), [1])
        listed = self.done("checkpoint", "list", "G", "--json").lines[1]
        self.assertEqual((listed["branch"], listed["generation"], listed["index"]), ("main", 2, 0))
        self.assertIn("one", self.done("checkpoint", "list", "G").out)
        self.done("checkpoint", "delete", "G", "one")
        self.assertEqual(self.names(), ["a/b c"])
        self.refused(2, "scan", "G", "P", "--at", "one")
        self.clean()

    def test_a_checkpoint_outlives_its_branch(self):
        self.done("branch", "create", "G", "f")
        self.load_one(3, "--branch", "f")
        self.make("kept", "--branch", "f")
        self.load_one(4, "--branch", "f")
        self.done("branch", "delete", "G", "f")
        self.done("gc", "G")
        self.assertEqual(self.ids("--at", "kept"), [1, 2, 3])
        self.assertIsNone(self.done("checkpoint", "list", "G", "--json").lines[0]["branch"])
        self.clean()
        self.done("branch", "create", "G", "again", "--from", "kept")
        self.assertEqual(self.ids("--branch", "again"), [1, 2, 3])
        self.done("branch", "delete", "G", "again")
        self.done("checkpoint", "delete", "G", "kept")
        freed = self.done("gc", "G", "--json").document
        self.assertGreater(freed["files"], 0)
        self.clean()

    def test_names_that_could_be_another_place_are_refused(self):
        for name in ("head", "12", "99999999999999999999", "2026-01-31", "2026-13-31T00:00:00Z", "", "a//b", "/a", "..", "x\n",
                     self.done("log", "G", "-n", "1", "--json").document["commit"]):
            self.refused(2, "checkpoint", "create", "G", name)
        self.assertEqual(self.names(), [])
        self.make("twice")
        self.refused(8, "checkpoint", "create", "G", "twice")
        self.refused(8, "checkpoint", "delete", "G", "missing")
        self.refused(8, "checkpoint", "create", "G", "x", "--branch", "missing")
        self.refused(8, "checkpoint", "create", "G", "x", "--at", "77")
        self.refused(2, "checkpoint", "create", "G")
        self.refused(2, "checkpoint", "delete", "G", "twice", "--at", "1")
        self.refused(2, "checkpoint", "show", "G")

    def test_an_exact_retry_gets_the_first_answer(self):
        first = self.make("n", "--op-id", OPERATION)
        self.load_one(3)
        self.assertEqual(self.make("n", "--op-id", OPERATION), {**first, "repeated": True})
        self.refused(9, "checkpoint", "create", "G", "n", "--at", "1", "--op-id", OPERATION)
        gone = self.done("checkpoint", "delete", "G", "n", "--op-id", OPERATION[:-1] + "2", "--json").document
        self.assertEqual(gone["commit"], first["commit"])
        again = self.done("checkpoint", "delete", "G", "n", "--op-id", OPERATION[:-1] + "2", "--json").document
        self.assertEqual(again, {**gone, "repeated": True})
        self.assertEqual(self.make("n", "--op-id", OPERATION), {**first, "repeated": True})
        self.assertEqual(self.names(), [])

    def test_there_are_so_many_and_no_more(self):
        if not os.environ.get("SLUICE_LONG"):
            self.skipTest("some hundred commands")
        for i in range(256):
            self.done("checkpoint", "create", "G", "c%d" % i)
        self.assertIn("256", self.refused(10, "checkpoint", "create", "G", "one more").err)
        self.done("checkpoint", "delete", "G", "c7")
        self.make("one more")


if __name__ == "__main__":
    main()
