#!/usr/bin/env python3
"""Recovery that dies twice at the same place, and what the command is told that recovery finished. (tests/matrix strikes every writer,
recovery among them, at every place once.)"""

import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string?"}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {}, "key": []}}}
RECOVER = ["recover.before_publish", "recover.before_audit", "recover.after_audit", "recover.after_retire"]
OLD, NEW, NEXT = [1, 2, 3], [10, 11, 12, 13], [100]


class Failpoints(ProgramTest):
    leaks = False  # the same commands many hundred times; other tests look for theirs

    def setUp(self):
        super().setUp()
        self.write("old.csv", "id,name\n" + "".join("%d,old\n" % i for i in OLD))
        self.write("new.csv", "id,name\n" + "".join("%d,new\n" % i for i in NEW))
        self.write("edges.csv", "from,to\n" + "".join("%d,%d\n" % (i, i + 1) for i in NEW[:-1]))
        self.write("next.csv", "id,name\n" + "".join("%d,next\n" % i for i in NEXT))
        self.write("schema.json", SCHEMA)
        self.done("init", "base", "--schema", "schema.json")
        self.load("P=old.csv", graph="base")

    def load(self, *words, graph="G"):
        return super().load(*words, "--workers", "2", graph=graph)

    def fresh(self, base="base"):
        shutil.rmtree(self.path("G"), ignore_errors=True)
        shutil.copytree(self.path(base), self.path("G"))

    def keys(self):
        return sorted(row["id"] for row in self.rows("P"))

    def see(self):
        """Exactly the old rows, or exactly the new ones: nodes and edges of one commit."""
        keys, edges = self.keys(), len(self.rows("K"))
        self.assertIn((keys, edges), [(OLD, 0), (OLD + NEW, len(NEW) - 1)])
        return edges > 0

    def struck(self, words, failpoint):
        return self.run_program(*words, "--json", env={"SLUICE_FAILPOINT": failpoint})

    def go_on(self, answered):
        """The next writer settles what is left; then everything is whole, and clean."""
        self.load("P=next.csv")
        keys = self.keys()
        self.assertIn(keys, [OLD + NEXT, OLD + NEW + NEXT])
        if answered is not None:
            self.assertEqual(keys, OLD + NEW + NEXT if answered else OLD + NEXT)
        self.assertEqual(self.done("recover", "G", "--json").lines, [])
        self.clean()
        self.done("gc", "G")
        self.assertEqual(os.listdir(self.path("G/attempts")), [])
        self.assertEqual(os.listdir(self.path("G/trash")), [])
        return keys

    def leave_confirmed(self):
        self.fresh()
        result = self.struck(["load", "G", "P=new.csv", "K=edges.csv"], "arm.after=killpool")
        self.assertEqual(result.code, -9)
        lines = self.done("recover", "G", "--probe", "--json").lines
        self.assertEqual([(line["stage"], line["outcome"]) for line in lines], [("confirmed", "pending")])
        self.assertFalse(self.see())
        return lines[0]

    def test_recovery_that_dies_anywhere_is_finished_by_the_next(self):
        for point in RECOVER:
            for action in ("kill", "error"):
                with self.subTest(point=point, action=action):
                    line = self.leave_confirmed()
                    for _ in range(2):  # and its successor dies at the same place
                        self.struck(["recover", "G"], "%s=%s" % (point, action))
                    self.done("recover", "G")
                    self.assertTrue(self.see())
                    commits = [commit for commit in self.done("log", "G", "--json").lines if commit["commit"] == line["commit"]]
                    self.assertEqual(len(commits), 1)
                    audit = [row for row in os.listdir(self.path("G/audit")) if row.endswith(".json")]
                    self.assertEqual(len(audit), 1, audit)
                    self.go_on(True)

    def test_the_command_given_again_is_told_who_finished_it(self):
        line = self.leave_confirmed()
        said = self.refused(4, "load", "G", "P=new.csv", "K=edges.csv")
        self.assertIn("completed by recovery as " + line["commit"], said.err)


if __name__ == "__main__":
    main()
