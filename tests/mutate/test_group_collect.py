#!/usr/bin/env python3
"""Collection of history where generations hold several commits: a group stays or goes as one, whatever points into it; the first one
that stays reads member by member though its parent went; log, receipts, branches and merges go on (P-03, G-01).

tests/coord/test_group.c makes the groups: one worker a file, in one line, published by the first of them.
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "note": "string?"}}}, "edges": {}}
GROUPS, MEMBERS, KEEP = 16, 3, 4
NOTE = 20000  # some segments of the log are full


class GroupCollect(ProgramTest):
    def setUp(self):
        super().setUp()
        self.tool = os.path.join(os.environ["SLUICE_BUILD_DIR"], "tests", "test_group")
        self.init(SCHEMA)
        self.members = [self.together(g) for g in range(GROUPS)]  # generation 2 + g: keys 10 g, 10 g + 1, ...

    def together(self, group):
        files = [self.write("g%d-%d.jsonl" % (group, i), json.dumps({"op": "insert", "node": "P", "set": {
            "id": 10 * group + i, "note": chr(97 + i) * NOTE}}) + "\n") for i in range(MEMBERS)]
        said = subprocess.run([self.tool, "--mutate", "G", *files], cwd=self.folder, env=self.environment, timeout=300,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
        answers = [json.loads(line) for line in said.stdout.decode().splitlines()]
        self.assertEqual([(a["generation"], a["index"]) for a in answers], [(2 + group, i) for i in range(MEMBERS)])
        return [a["commit"] for a in answers]

    def keys(self, *words):
        return [row["id"] for row in self.rows("P", "G", "--columns", "id", *words)]

    def upto(self, group, member):
        return [10 * g + i for g in range(group) for i in range(MEMBERS)] + [10 * group + i for i in range(member + 1)]

    def gone(self, place):
        said = self.refused(8, "count", "G", "P", "--at", place, "--json")
        self.assertIn("was collected", said.err)

    def insert(self, key, *words):
        self.write("one.jsonl", json.dumps({"op": "insert", "node": "P", "set": {"id": key}}) + "\n")
        return self.done("mutate", "G", "one.jsonl", *words, "--json").document["commit"]

    def test_groups_stay_or_go_whole_and_what_points_into_one_keeps_it(self):
        old, middle, fork = 1, 1, 8
        self.done("checkpoint", "create", "G", "inside", "--at", self.members[old][middle])
        self.done("branch", "create", "G", "b", "--from", self.members[fork][0])
        self.done("optimize", "G")
        log, segments = self.done("log", "G", "--json").lines, len(os.listdir(self.path("G/branches/1/log")))
        report = self.done("gc", "G", "--keep", str(KEEP), "--json").document
        self.assertGreater(report["generations"], 0)

        self.assertEqual(self.done("log", "G", "--json").lines, log)
        first_kept = GROUPS - KEEP + 1  # the optimize is one of those that stay
        for group, commits in enumerate(self.members):
            for member, commit in enumerate(commits):
                if group >= first_kept or group in (old, *range(fork - KEEP + 1, fork + 1)):  # a branch keeps as many
                    self.assertEqual(self.keys("--at", commit), self.upto(group, member))
                else:
                    self.gone(commit)
                self.assertEqual(self.done("show", "G", commit, "--json").document["index"], member)
        self.gone(str(first_kept + 1))
        self.assertEqual(self.keys("--at", str(first_kept + 2)), self.upto(first_kept, MEMBERS - 1))
        self.assertEqual(self.keys("--at", "inside"), self.upto(old, middle))
        self.assertEqual(self.keys("--branch", "b"), self.upto(fork, 0))
        oldest = self.members[first_kept]
        said = self.done("diff", "G", oldest[0], oldest[2], "--keys", "--json").lines
        self.assertEqual([line["key"] for line in said], [10 * first_kept + 1, 10 * first_kept + 2])
        self.refused(8, "diff", "G", self.members[first_kept - 1][2], oldest[0])
        self.clean()

        # Receipts: of the first, a middle and the last member, of groups that went and that stay.
        for group in (0, old, first_kept - 1, first_kept, GROUPS - 1):
            for member in range(MEMBERS):
                line = next(line for line in log if line["commit"] == self.members[group][member])
                again = self.done("mutate", "G", "g%d-%d.jsonl" % (group, member), "--op-id", line["operation_id"], "--json").document
                self.assertEqual((again["commit"]["id"], again["commit"]["generation"]), (line["commit"], line["generation"]))
        self.assertEqual(self.done("log", "G", "--json").lines, log)

        # A merge whose base is the first member of a group that went but for it.
        self.insert(1000, "--branch", "b")
        self.insert(1001)
        self.assertEqual(self.done("merge", "G", "b", "--json").document["outcome"], "merged")
        self.assertEqual(self.keys(), self.upto(GROUPS - 1, MEMBERS - 1) + [1001, 1000])
        self.done("branch", "delete", "G", "b")
        self.done("checkpoint", "delete", "G", "inside")
        self.done("gc", "G", "--keep", "1")
        self.assertLess(len(os.listdir(self.path("G/branches/1/log"))), segments)
        for commit in (self.members[old][middle], self.members[fork][0], oldest[0], oldest[2]):
            self.gone(commit)
        self.assertEqual(len(self.done("log", "G", "--json").lines), len(log) + 2)
        self.clean()


if __name__ == "__main__":
    main()
