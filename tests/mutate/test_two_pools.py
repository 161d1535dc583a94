#!/usr/bin/env python3
"""Mutations of two pools, each with a line of its own, let go at the same moment: each pool publishes its group, and between the groups
the same is refused as inside one (P-04 to P-06, OW-079). Whose group is first nobody says; the others of it are never touched.

tests/coord/test_group.c runs the files; what happens inside one group is in test_group_of_mutations.
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from mutate.test_group_of_mutations import SCHEMA, edge, insert
from support.program import ProgramTest, main


def delete(number):
    return {"op": "delete", "node": "P", "key": number}


def update(number, **what):
    return {"op": "update", "node": "P", "key": number, "set": what}


class TwoPools(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        self.group = os.path.join(os.environ["SLUICE_BUILD_DIR"], "tests", "test_group")
        self.base = [insert(1, n=0, age=0), insert(2), insert(1, "Q"), insert(2, "Q")]
        self.apply("G", self.base)

    def apply(self, graph, records):
        self.write("records.jsonl", "".join(json.dumps(record) + "\n" for record in records))
        return self.run_program("mutate", graph, "records.jsonl").code

    def pools(self, *pools):
        """Runs lists of members, each a list of records, one list a pool; the answers in the same shape."""
        words = []
        for p, members in enumerate(pools):
            words += ["--"] if p > 0 else []
            words += [self.write("p%d-%d.jsonl" % (p, i), "".join(json.dumps(record) + "\n" for record in records))
                      for i, records in enumerate(members)]
        said = subprocess.run([self.group, "--mutate", "G", *words], cwd=self.folder, env=self.environment, timeout=300,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
        answers = [json.loads(line) for line in said.stdout.decode().splitlines()]
        self.assertEqual(len(answers), sum(map(len, pools)))
        self.clean()
        shaped = []
        for members in pools:
            shaped.append(answers[:len(members)])
            answers = answers[len(members):]
        return shaped

    def among_others(self, first, second):
        """Two that meet, each between two that meet nobody, in pools of their own. Their answers, when all others are through, and
        each pool's in one generation."""
        pools = self.pools([[insert(101)], first, [insert(103)]], [[insert(201)], second, [insert(203)]])
        numbers = []
        for members in pools:
            self.assertEqual([members[0]["status"], members[2]["status"]], ["OK", "OK"])
            self.assertEqual(members[0]["generation"], members[2]["generation"])
            numbers.append(members[0]["generation"])
        self.assertEqual(sorted(numbers), [3, 4])
        self.assertLessEqual({101, 103, 201, 203}, {row["id"] for row in self.rows("P")})
        return pools[0][1], pools[1][1]

    def one_wins(self, first, second, *codes):
        """One is through and the other refused, and what stands is what the winner alone leaves."""
        a, b = self.among_others(first, second)
        self.assertEqual([a["status"], b["status"]].count("OK"), 1, (a, b))
        loser = b if a["status"] == "OK" else a
        self.assertIn(loser["status"], codes)
        self.done("init", "H", "--schema", "schema.json")
        for records in (self.base, first if a["status"] == "OK" else second, [insert(n) for n in (101, 103, 201, 203)]):
            self.assertEqual(self.apply("H", records), 0)
        self.assertEqual(self.content("G"), self.content("H"))

    def test_disjoint_keys_are_all_through_in_two_generations(self):
        pools = self.pools(*[[[insert(1000 * p + i)] for i in range(8)] for p in (1, 2)])
        for members in pools:
            self.assertEqual([(m["status"], m["index"]) for m in members], [("OK", i) for i in range(8)])
            self.assertEqual(len({m["generation"] for m in members}), 1)
        self.assertEqual({members[0]["generation"] for members in pools}, {3, 4})
        self.assertEqual(self.done("count", "G", "P", "--json").document, {"P": 18})
        log = self.done("log", "G", "--json").lines
        self.assertEqual({line["commit"] for line in log[:16]}, {m["commit"] for members in pools for m in members})
        self.assertEqual([line["parents"] for line in log[:15]], [[line["commit"]] for line in log[1:16]])

    def test_of_two_of_one_key_one_wins(self):
        self.one_wins([insert(50, n=1)], [insert(50, n=2)], "KEY_CONFLICT")

    def test_of_two_ids_with_one_unique_value_one_wins(self):
        self.one_wins([insert(51, email="x")], [insert(52, email="x")], "CONSTRAINT_UNIQUE")

    def test_an_edge_and_the_deletion_of_its_end_are_not_both_published(self):
        self.one_wins([edge("K", 1, 2)], [delete(2)], "CONSTRAINT_ENDPOINT", "WRITE_CONFLICT")

    def test_cardinality_holds_between_pools(self):
        self.one_wins([edge("ONE", 1, 1)], [edge("ONE", 1, 2)], "CONSTRAINT_CARDINALITY")

    def test_of_two_of_one_property_one_wins(self):
        self.one_wins([update(1, n=1)], [update(1, n=2)], "WRITE_CONFLICT")

    def test_different_properties_of_one_object_are_both_changed(self):
        a, b = self.among_others([update(1, n=7)], [update(1, age=8)])
        self.assertEqual((a["status"], b["status"], a["restarts"] + b["restarts"]), ("OK", "OK", 1))
        row = self.done("get", "G", "P", "1", "--json").lines[0]
        self.assertEqual((row["n"], row["age"]), (7, 8))

    def test_of_two_that_read_what_the_other_writes_one_looks_again(self):
        look = {"op": "assert", "node": "P", "key": 1, "equals": {"n": 0}}
        self.one_wins([look, update(1, n=1)], [look, update(1, n=2)], "WRITE_CONFLICT")


if __name__ == "__main__":
    main()
