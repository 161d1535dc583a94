#!/usr/bin/env python3
"""Mutations of several workers in one generation, and each member of it wherever a commit is taken (P-03 to P-06, OW-079).

tests/coord/test_group.c runs the files: one worker each, in one line, published by the first of them.
"""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "email": "string?", "age": "int32?", "n": "int32?"},
                          "unique": [["email"]]},
                    "Q": {"key": "id", "properties": {"id": "int64"}},
                    "E": {"properties": {"what": "string?"}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {}, "key": []},
                    "ONE": {"from": "P", "to": "Q", "properties": {}, "key": [], "cardinality": {"out": "0..1", "in": "0..*"}}}}


def insert(number, node="P", **more):
    return {"op": "insert", "node": node, "set": {"id": number, **more}}


def edge(name, a, b, op="insert"):
    return {"op": op, "edge": name, "from": a, "to": b}


class GroupOfMutations(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        self.group = os.path.join(os.environ["SLUICE_BUILD_DIR"], "tests", "test_group")

    def base(self, *records):
        self.write("base.jsonl", "".join(json.dumps(record) + "\n" for record in records))
        return self.done("mutate", "G", "base.jsonl", "--json").document["commit"]["generation"]

    def together(self, *members):
        names = []
        for i, records in enumerate(members):
            names.append(self.write("m%d.jsonl" % i, "".join(json.dumps(record) + "\n" for record in records)))
        said = subprocess.run([self.group, "--mutate", "G", *names], cwd=self.folder, env=self.environment, timeout=300,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
        answers = [json.loads(line) for line in said.stdout.decode().splitlines()]
        self.assertEqual(len(answers), len(members))
        return answers

    def expect(self, answers, *expected):
        """A status, or (generation, index)."""
        got = [(a["generation"], a["index"]) if a["status"] == "OK" else a["status"] for a in answers]
        self.assertEqual(got, list(expected))

    def keys(self, name="P", *words):
        return sorted(row["id"] for row in self.rows(name, "G", *words))

    # ---- what members may do to each other ----

    def test_of_two_ids_with_one_unique_value_one_wins(self):
        answers = self.together([insert(1, email="a")], [insert(2, email="a")], [insert(3, email="b")])
        self.expect(answers, (2, 0), "CONSTRAINT_UNIQUE", (2, 1))
        self.assertEqual(self.keys(), [1, 3])
        self.clean()

    def test_an_edge_and_the_deletion_of_its_end_are_not_both_published(self):
        self.base(insert(1), insert(2), insert(3))
        answers = self.together([edge("K", 1, 2)], [{"op": "delete", "node": "P", "key": 2}], [insert(9)])
        self.assertEqual([a["status"] for a in answers][::2], ["OK", "OK"])
        self.assertNotEqual(answers[1]["status"], "OK")
        answers = self.together([{"op": "delete", "node": "P", "key": 3}], [edge("K", 1, 3)], [insert(10)])
        self.assertEqual([a["status"] for a in answers][::2], ["OK", "OK"])
        self.assertEqual(answers[1]["status"], "CONSTRAINT_ENDPOINT")
        self.assertEqual(self.rows("K"), [{"from": 1, "to": 2}])
        self.clean()

    def test_cardinality_holds_in_a_group(self):
        self.base(insert(1), insert(1, "Q"), insert(2, "Q"))
        answers = self.together([edge("ONE", 1, 1)], [edge("ONE", 1, 2)], [insert(9)])
        self.expect(answers, (3, 0), "CONSTRAINT_CARDINALITY", (3, 1))
        self.assertEqual(self.rows("ONE"), [{"from": 1, "to": 1}])
        self.clean()

    def test_different_properties_of_one_object_are_both_changed(self):
        self.base(insert(1, age=1, n=1))
        answers = self.together([{"op": "update", "node": "P", "key": 1, "set": {"age": 2}}],
                                [{"op": "update", "node": "P", "key": 1, "set": {"n": 2}}],
                                [{"op": "update", "node": "P", "key": 1, "set": {"age": 3}}])
        self.expect(answers, (3, 0), (4, 0), "WRITE_CONFLICT")
        self.assertEqual(self.rows("P"), [{"id": 1, "email": None, "age": 2, "n": 2}])
        self.clean()

    def test_who_looked_where_the_other_wrote_is_planned_anew(self):
        self.base(insert(1, n=0), insert(2, n=0))
        read = [{"op": "assert", "node": "P", "key": 1, "equals": {"n": 0}}, {"op": "update", "node": "P", "key": 2, "set": {"n": 1}}]
        other = [{"op": "assert", "node": "P", "key": 2, "equals": {"n": 0}}, {"op": "update", "node": "P", "key": 1, "set": {"n": 1}}]
        answers = self.together(read, other)
        self.expect(answers, (3, 0), "WRITE_CONFLICT")
        self.assertEqual(sorted(row["n"] for row in self.rows("P")), [0, 1])

    def test_many_small_mutations_are_one_record(self):
        members = [[insert(100 * i + k) for k in range(3)] for i in range(12)]
        answers = self.together(*members)
        self.expect(answers, *[(2, i) for i in range(12)])
        self.assertEqual(self.keys(), sorted(record["set"]["id"] for member in members for record in member))
        self.assertEqual(self.done("status", "G", "--json").code, 0)
        self.clean()

    def test_rows_of_each_member_have_ids_of_their_own(self):
        answers = self.together(*[[{"op": "insert", "node": "E", "set": {"what": "%d-%d" % (i, k)}} for k in range(4)]
                                  for i in range(3)])
        self.expect(answers, (2, 0), (2, 1), (2, 2))
        rows = self.rows("E")
        self.assertEqual(len({row["_row_id"] for row in rows}), 12)
        self.assertEqual([row["what"] for row in sorted(rows, key=lambda row: row["_row_id"])],
                         ["%d-%d" % (i, k) for i in range(3) for k in range(4)])
        self.clean()

    # ---- each member as a place in history (P-03) ----

    def three(self):
        self.base(insert(1, n=0))
        answers = self.together([insert(11), edge("K", 11, 11)], [insert(12), {"op": "update", "node": "P", "key": 1, "set": {"n": 2}}],
                                [insert(13), insert(1, "Q")])
        self.expect(answers, (3, 0), (3, 1), (3, 2))
        return [a["commit"] for a in answers]

    def test_time_travel_diff_log_and_show(self):
        commits = self.three()
        for i, commit in enumerate(commits):
            self.assertEqual(self.keys("P", "--at", commit), [1] + [11 + k for k in range(i + 1)])
            self.assertEqual(self.done("get", "G", "P", "1", "--at", commit, "--json").lines[0]["n"], 2 if i >= 1 else 0)
            self.assertIn(commit, self.done("show", "G", commit, "--json").out)
        self.assertEqual(self.keys("P", "--at", "3"), [1, 11, 12, 13])
        self.assertEqual(self.keys("P", "--at", "2"), [1])
        lines = self.done("log", "G", "--json").lines
        self.assertEqual([line["commit"] for line in lines][:3], commits[::-1])
        self.assertEqual([(line["generation"], line["index"]) for line in lines][:3], [(3, 2), (3, 1), (3, 0)])
        self.assertEqual([line["parents"] for line in lines][:2], [[commits[1]], [commits[0]]])
        inside = self.done("diff", "G", commits[0], commits[1], "--keys", "--json").out
        self.assertIn("12", inside)
        self.assertNotIn("13", inside)
        across = self.done("diff", "G", "2", commits[1], "--keys", "--json").out
        self.assertIn("11", across)
        self.assertNotIn("13", across)

    def test_checkpoints_branches_reverts_and_collection(self):
        commits = self.three()
        for i, commit in enumerate(commits):
            self.done("checkpoint", "create", "G", "c%d" % i, "--at", commit)
            self.done("branch", "create", "G", "b%d" % i, "--from", commit)
        self.base(insert(20))
        self.done("gc", "G")
        for i, commit in enumerate(commits):
            there = [1] + [11 + k for k in range(i + 1)]
            self.assertEqual(self.keys("P", "--branch", "b%d" % i), there)
            self.assertEqual(self.keys("P", "--at", "c%d" % i), there)
            self.assertEqual(self.keys("P", "--at", commit), there)
        self.done("revert", "G", "--to", commits[1])
        self.assertEqual(self.keys(), [1, 11, 12])
        self.assertEqual(len(self.rows("K")), 1)
        self.assertEqual(self.keys("Q"), [])
        self.clean()

    def test_merge_bases_and_sources(self):
        commits = self.three()
        for i, commit in enumerate(commits):
            self.done("branch", "create", "G", "b%d" % i, "--from", commit)
            self.write("more.jsonl", json.dumps(insert(100 + i)) + "\n")
            self.done("mutate", "G", "more.jsonl", "--branch", "b%d" % i)
            self.assertEqual(self.done("merge", "G", "b%d" % i, "--json").document["outcome"], "merged")
        self.assertEqual(self.keys(), [1, 11, 12, 13, 100, 101, 102])
        self.clean()

    def test_the_last_member_is_the_head_that_conditional_writes_see(self):
        commits = self.three()
        self.write("next.jsonl", json.dumps(insert(50)) + "\n")
        for commit in commits[:2]:
            self.refused(3, "mutate", "G", "next.jsonl", "--if-head", commit)
        self.done("mutate", "G", "next.jsonl", "--if-head", commits[2])

    def test_a_group_is_the_same_as_its_members_one_by_one(self):
        members = [[insert(5, email="x")], [insert(6, email="x")], [{"op": "update", "node": "P", "key": 1, "set": {"n": 9}}],
                   [{"op": "delete", "node": "P", "key": 2}], [edge("K", 1, 2)], [edge("K", 1, 3)], [insert(7)]]
        start = [insert(1, n=0), insert(2), insert(3)]
        self.base(*start)
        grouped = ["OK" if a["status"] == "OK" else "no" for a in self.together(*members)]
        self.done("init", "H", "--schema", "schema.json")
        single = []
        for records in [start] + members:
            self.write("one.jsonl", "".join(json.dumps(record) + "\n" for record in records))
            single.append("OK" if self.run_program("mutate", "H", "one.jsonl").code == 0 else "no")
        self.assertEqual(grouped, single[1:])
        self.assertEqual(self.content("G"), self.content("H"))


if __name__ == "__main__":
    main()
