#!/usr/bin/env python3
"""--dry-run of what takes something away: it says what the command then does, refuses what that refuses, and changes no byte."""

import hashlib
import json
import os

from support.program import ProgramTest, main

SCHEMA = {
    "nodes": {"P": {"key": "id", "properties": {"id": "int64", "n": "int64?", "m": "int64?"}}},
    "edges": {"E": {"from": "P", "to": "P", "properties": {}, "key": []}},
}


class DryRun(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        self.write("p.csv", "id,n\n" + "".join("%d,%d\n" % (i, i) for i in range(50)))
        self.write("e.csv", "from,to\n1,2\n3,4\n")
        self.load("P=p.csv", "E=e.csv")

    def mutate(self, records, *words):
        self.write("m.jsonl", "".join(json.dumps(record) + "\n" for record in records))
        self.done("mutate", "G", "m.jsonl", *words)

    def bytes_of_graph(self):
        """Every file that a graph consists of; not who locks and pins."""
        found = {}
        for folder, _, names in os.walk(self.path("G")):
            for name in names:
                path = os.path.join(folder, name)
                if name not in ("pins", "locks") and os.sep + "locks" + os.sep not in path:
                    with open(path, "rb") as file:
                        found[path] = hashlib.sha256(file.read()).hexdigest()
        return found

    def look(self, *words, code=0):
        """A dry run: its document (or error), with the graph's bytes as they were."""
        self.done("gc", "G")
        before = self.bytes_of_graph()
        result = self.run_program(*words, "--dry-run", "--json")
        self.assertEqual(result.code, code, result.out + result.err)
        self.assertEqual(self.bytes_of_graph(), before)
        return result.document if code == 0 else result

    def agree(self, *words, members):
        looked = self.look(*words)
        self.assertTrue(looked["dry_run"])
        did = self.done(*words, "--json").document
        self.assertFalse(did["dry_run"])
        self.assertEqual([looked[name] for name in members], [did[name] for name in members])
        return looked

    def test_merges_of_every_outcome_are_told_beforehand(self):
        self.done("branch", "create", "G", "b")
        self.assertEqual(self.agree("merge", "G", "b", members=("outcome", "inserted"))["outcome"], "up-to-date")
        self.mutate([{"op": "update", "node": "P", "key": 1, "set": {"n": 100}}, {"op": "delete", "node": "P", "key": 9}], "--branch", "b")
        counts = ("outcome", "source", "inserted", "updated", "deleted")
        self.assertEqual(self.agree("merge", "G", "b", members=counts)["outcome"], "fast-forward")
        self.mutate([{"op": "update", "node": "P", "key": 1, "set": {"m": 7}}], "--branch", "b")
        self.mutate([{"op": "update", "node": "P", "key": 1, "set": {"n": 8}}])
        looked = self.agree("merge", "G", "b", "--delete-source", members=counts)
        self.assertEqual((looked["outcome"], looked["updated"]), ("merged", 1))
        self.refused(8, "count", "G", "--branch", "b")

    def test_a_merge_that_would_conflict_lists_its_conflicts(self):
        self.done("branch", "create", "G", "b")
        self.mutate([{"op": "update", "node": "P", "key": 1, "set": {"n": 100}}], "--branch", "b")
        self.mutate([{"op": "update", "node": "P", "key": 1, "set": {"n": 200}}])
        looked = self.look("merge", "G", "b", code=3)
        self.assertEqual([conflict["key"] for conflict in looked.lines[0]["conflicts"]], ["1"])
        self.assertIs(looked.error["committed"], False)
        self.assertEqual(self.done("merge", "G", "b", "--dry-run", "--on-conflict", "theirs").out,
                         "merged: would insert 0, update 1, delete 0\ndry run: nothing was changed\n")

    def test_a_revert_counts_what_it_would_change(self):
        self.mutate([{"op": "delete", "node": "P", "key": 9}, {"op": "insert", "node": "P", "set": {"id": 100}},
                     {"op": "update", "node": "P", "key": 1, "set": {"n": 5}}])
        looked = self.agree("revert", "G", "--to", "2", members=("inserted", "updated", "deleted"))
        self.assertEqual((looked["commit"], looked["inserted"], looked["updated"], looked["deleted"]), (None, 1, 1, 1))
        self.look("revert", "G", "--to", "77", code=8)

    def test_an_operation_that_is_done_answers_so_in_a_dry_run_too(self):
        self.done("branch", "create", "G", "b")
        self.mutate([{"op": "update", "node": "P", "key": 1, "set": {"n": 100}}], "--branch", "b")
        self.write("again.jsonl", '{"op": "update", "node": "P", "key": 2, "set": {"n": 77}}\n')
        for number, words in enumerate((("merge", "G", "b"), ("mutate", "G", "again.jsonl"), ("revert", "G", "--to", "2"))):
            operation = ("--op-id", "00000000-0000-4000-8000-00000000000%d" % number)
            did = self.done(*words, *operation, "--json").document
            again = self.look(*words, *operation)
            self.assertEqual((again["commit"], again["repeated"], again["dry_run"]), (did["commit"], True, True), words)
            said = self.done(*words, *operation, "--dry-run").out
            self.assertIn("done before: ", said)
            self.assertIn(did["commit"]["id"], said)
            self.assertNotIn("would", said)
        self.refused(9, "mutate", "G", "m.jsonl", "--dry-run", "--op-id", "00000000-0000-4000-8000-000000000001")

    def test_a_large_mutation_that_is_only_checked_stages_nothing(self):
        self.write("large.jsonl", "".join(json.dumps({"op": "insert", "node": "P", "set": {"id": 1000 + i, "n": i}}) + "\n" for i in range(20000)))
        looked = self.look("mutate", "G", "large.jsonl")
        self.assertEqual((looked["commit"], looked["inserted"], looked["dry_run"]), (None, 20000, True))

    def test_branches_and_checkpoints_stay_and_what_would_be_refused_is(self):
        self.done("branch", "create", "G", "b")
        self.mutate([{"op": "delete", "node": "P", "key": 9}], "--branch", "b")
        self.look("branch", "delete", "G", "b", "--if-head", "00000000-0000-7000-8000-000000000001", code=3)
        self.look("branch", "delete", "G", "main", code=2)
        self.look("branch", "delete", "G", "c", code=8)
        self.agree("branch", "delete", "G", "b", members=("branch", "incarnation", "commit"))
        self.done("checkpoint", "create", "G", "kept")
        self.look("checkpoint", "delete", "G", "other", code=8)
        self.agree("checkpoint", "delete", "G", "kept", members=("checkpoint", "commit"))
        self.refused(2, "branch", "create", "G", "d", "--dry-run")
        self.refused(2, "checkpoint", "create", "G", "d", "--dry-run")


if __name__ == "__main__":
    main()
