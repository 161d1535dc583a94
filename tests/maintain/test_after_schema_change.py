#!/usr/bin/env python3
"""Optimize and index after the schema has changed: rewritten rows say what the old ones said under the new schema; what was dropped is
gone from the files; tuples that became unique get their runs (LESSONS section 5: "bytes go at the next optimize", "optimize
rewrites")."""

import glob
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support.program import ProgramTest, main

FIRST = {"nodes": {"P": {"key": "id", "properties": {"id": "int32", "old": "string?", "n": "int32?", "f": "float32?", "u": "int64?"}}},
         "edges": {"K": {"from": "P", "to": "P", "properties": {"w": "int32?"}}}}
SECOND = {"nodes": {"P": {"key": "id", "unique": [["u"]],
                          "properties": {"id": "int32", "n": "int64?", "g": {"type": "float64?", "renamed_from": "f"}, "u": "int64?",
                                         "d": {"type": "string", "default": "x"}}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {"w": "int64?"}}}}


class AfterSchemaChange(ProgramTest):
    def test_rows_say_the_same_and_files_follow_the_schema(self):
        self.init(FIRST)
        for k in range(3):
            self.write("p.csv", "id,old,n,f,u\n" + "".join("%d,SECRET%d,%d,0.5,%d\n" % (10 * k + i, i, -i, 10 * k + i) for i in range(10)))
            self.write("k.csv", "from,to,w\n" + "".join("%d,%d,%d\n" % (10 * k + i, i, i) for i in range(10)))
            self.load("P=p.csv", "K=k.csv")
        self.write("second.json", SECOND)
        self.done("schema", "apply", "G", "second.json", "--allow-data-loss")
        self.write("p.csv", "id,n,g,u,d\n100,4000000000,1e300,100,y\n")
        self.write("k.csv", "from,to,w\n100,1,4000000000\n")
        self.load("P=p.csv", "K=k.csv")
        before = self.content()
        self.assertIn(b"SECRET", self.fragments())
        self.done("index", "G")  # also the runs of the new unique tuple
        self.assertIsNone(self.done("index", "G", "--json").document["commit"])
        self.assertEqual(self.content(), before)
        self.write("twice.csv", "id,u\n200,7\n")
        self.refused(4, "load", "G", "P=twice.csv")
        self.done("optimize", "G")
        self.assertEqual(self.content(), before)
        self.refused(4, "load", "G", "P=twice.csv")
        self.assertEqual(self.done("get", "G", "P", "3", "--json").lines, [{"id": 3, "n": -3, "g": 0.5, "u": 3, "d": "x"}])
        newest = max(glob.glob(self.path("G/tables/64/fragments/*")), key=os.path.getmtime)
        with open(newest, "rb") as file:
            self.assertNotIn(b"SECRET", file.read())
        self.done("index", "G")
        words = ("neighbors", "G", "P", "1", "--direction", "both", "--depth", "2", "--json")
        self.assertEqual(self.done(*words).out, self.done(*words, env={"SLUICE_NO_INDEXES": "1"}).out)
        self.clean()

    def fragments(self):
        found = b""
        for path in glob.glob(self.path("G/tables/*/fragments/*")):
            with open(path, "rb") as file:
                found += file.read()
        return found


if __name__ == "__main__":
    main()
