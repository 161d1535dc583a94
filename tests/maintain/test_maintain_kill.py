#!/usr/bin/env python3
"""The real optimize and index run beside loads and deletions: the graph says the same before and after, the next one finishes the
work, and nothing is left behind (L-043, OW-046, OW-098, OW-100; R130, R140, R145). That they may die at any place: tests/matrix."""

import json
import os
import shutil
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string?"}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {}, "key": []}}}
LOADS, ROWS = 6, 20


class Maintain(ProgramTest):
    leaks = False  # the same commands many hundred times; other tests look for theirs

    def setUp(self):
        super().setUp()
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
        self.init(SCHEMA, "base")
        for k in range(LOADS):
            self.write("p.csv", "id,name\n" + "".join("%d,n%d\n" % (k * ROWS + i, i) for i in range(ROWS)))
            self.write("k.csv", "from,to\n" + "".join("%d,%d\n" % (k * ROWS + i, (k * ROWS + i) // 2) for i in range(ROWS)))
            self.load("P=p.csv", "K=k.csv", graph="base")
        self.write("d.jsonl", "".join(json.dumps({"op": "delete", "node": "P", "key": i, "detach": True}) + "\n"
                                      for i in range(5, LOADS * ROWS, 10)))
        self.done("mutate", "base", "d.jsonl")
        self.before = self.content("base")

    def fresh(self):
        shutil.rmtree(self.path("G"), ignore_errors=True)
        shutil.copytree(self.path("base"), self.path("G"))

    def sizes(self):
        types = self.done("status", "G", "--json").document["branches"][0]["types"]
        return {t["type"]: (t["fragments"], t["indexed"]) for t in types}

    def go_on(self, command):
        """Whoever died: the rows are the same; the next one finishes; nothing is left."""
        self.assertEqual(self.content(), self.before)
        self.done(command, "G")
        self.assertEqual(self.content(), self.before)
        sizes = self.sizes()
        if command == "optimize":
            self.assertEqual({name: size[0] for name, size in sizes.items()}, {"P": 1, "K": 1})
        else:
            self.assertEqual(sizes["K"][0], sizes["K"][1])
        self.assertIsNone(self.done(command, "G", "--json").document["commit"])
        self.done("gc", "G")
        self.clean()
        status = self.done("status", "G", "--json").document
        self.assertEqual(os.listdir(self.path("G/attempts")) + status["intents"] + status["gates"], [])

    def test_a_confirmed_one_is_finished_by_the_next_writer(self):
        self.fresh()
        self.run_program("optimize", "G", env={"SLUICE_FAILPOINT": "arm.after=killpool"})
        self.write("x.jsonl", json.dumps({"op": "delete", "node": "P", "key": 0, "detach": True}))
        self.done("mutate", "G", "x.jsonl")
        log = self.done("log", "G", "--json").lines
        self.assertEqual([entry["kind"] for entry in log[:2]], ["mutate", "optimize"])
        self.assertEqual(self.sizes()["P"][0], 1)
        self.assertNotIn(0, [row["id"] for row in self.rows("P")])

    # ---- beside others ----

    def beside(self, point, meanwhile, *words):
        """Runs a command until it stops itself at a place, does something else whole, and lets it go on."""
        self.fresh()
        process = self.start(*words, "--workers", "2", "--json", env={"SLUICE_FAILPOINT": point + "=stop"})
        stopped = self.stopped_worker(process)
        try:
            meanwhile(process)
        finally:
            os.kill(stopped, signal.SIGCONT)
        return self.finish(process)

    def beside_done(self, *words):
        """Like done, while another program of ours runs."""
        result = self.finish(self.start(*words))
        self.assertEqual(result.code, 0, result.out + result.err)
        return result

    def test_rows_may_change_while_it_works(self):
        def change(process=None):
            self.write("m.jsonl", "".join(json.dumps(line) + "\n" for line in (
                {"op": "delete", "node": "P", "key": 1, "detach": True}, {"op": "update", "node": "P", "key": 2, "set": {"name": "new"}},
                {"op": "insert", "node": "P", "set": {"id": 9999, "name": "x"}},
                {"op": "delete", "edge": "K", "from": 22, "to": 11})))
            self.beside_done("mutate", "G", "m.jsonl")
            self.write("q.csv", "id,name\n7777,q\n")
            self.beside_done("load", "G", "P=q.csv")

        for point in ("maintain.after_list", "maintain.after_edits"):
            self.fresh()
            change()
            changed = self.content()
            self.assertNotEqual(changed, self.before)
            result = self.beside(point, change, "optimize", "G")
            self.assertEqual(result.code, 0, result.out + result.err)
            self.assertTrue(result.document["commit"])
            self.assertEqual(self.content(), changed)
            self.assertEqual([entry["kind"] for entry in self.done("log", "G", "--json").lines[:3]], ["optimize", "load", "mutate"])
            self.done("optimize", "G")
            self.assertEqual(self.content(), changed)
            self.clean()

    def test_what_is_replaced_meanwhile_stays_replaced(self):
        self.write("o.csv", "id,name\n" + "".join("%d,over\n" % i for i in range(LOADS * ROWS)))

        def replace(process=None):
            self.beside_done("load", "G", "P=o.csv", "--mode", "overwrite")

        self.fresh()
        replace()
        replaced = self.content()
        for point in ("maintain.after_list", "maintain.after_edits"):
            result = self.beside(point, replace, "optimize", "G")
            self.assertEqual(result.code, 0, result.out + result.err)  # the other table is done
            self.assertEqual(self.content(), replaced)
            self.assertEqual(self.sizes()["K"][0], 1)
        result = self.beside("maintain.after_list", replace, "optimize", "G", "P")
        self.assertEqual(result.code, 3, result.out)
        self.assertEqual(result.error["code"], "WRITE_CONFLICT")
        self.assertIs(result.error["committed"], False)
        self.assertEqual(self.content(), replaced)
        self.clean()

    def test_optimize_and_index_wait_for_each_other_and_both_succeed(self):
        for first, second in (("optimize", "index"), ("index", "optimize"), ("optimize", "optimize")):
            others = []
            result = self.beside("maintain.after_list", lambda process: others.append(self.start(second, "G", "--json")), first, "G")
            self.assertEqual(result.code, 0, result.err)
            other = self.finish(others[0])
            self.assertEqual(other.code, 0, other.out + other.err)
            self.assertEqual(self.content(), self.before)
            self.clean()

    def test_ctrl_c_before_the_last_step_changes_nothing(self):
        for point, code in (("maintain.after_list", 130), ("maintain.after_edits", 130), ("arm.after", 0)):
            result = self.beside(point, self.interrupt, "optimize", "G")
            self.assertEqual(result.code, code, result.out + result.err)
            self.assertEqual(self.sizes()["P"][0] == 1, code == 0)
            self.go_on("optimize")

    def test_branches_come_and_go_beside_it_and_keep_their_own_lists(self):
        def branch(process):
            self.beside_done("branch", "create", "G", "b")
            self.beside_done("branch", "create", "G", "gone")
            self.beside_done("branch", "delete", "G", "gone")

        result = self.beside("maintain.after_edits", branch, "optimize", "G")
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual([line["branch"] for line in self.done("branch", "list", "G", "--json").lines], ["b", "main"])
        fragments = {b["branch"]: b["types"][0]["fragments"] for b in self.done("status", "G", "--json").document["branches"]}
        self.assertEqual(fragments, {"b": LOADS, "main": 1})
        self.done("optimize", "G", "--branch", "b")
        self.done("index", "G", "--branch", "b")
        self.done("gc", "G")
        self.clean()
        for name in ("P", "K"):
            self.assertEqual(self.rows(name, "G"), self.rows(name, "G", "--branch", "b"))

    def test_a_request_given_again_gets_the_first_answer(self):
        self.fresh()
        words = ("optimize", "G", "--op-id", "01900000-0000-4000-8000-000000000001", "--json")
        first, again = self.done(*words).document, self.done(*words).document
        self.assertEqual(first["commit"], again["commit"])
        self.assertEqual(first["tables"], again["tables"])
        self.assertTrue(again["repeated"])
        self.refused(9, *words[:2], "P", *words[2:])

    def test_an_unknown_type_is_refused_before_any_work(self):
        self.fresh()
        self.refused(2, "optimize", "G", "Q")
        self.refused(2, "index", "G", "P", "Q")
        self.refused(2, "optimize", "G", "--workers", "0")
        self.assertEqual(os.listdir(self.path("G/attempts")), [])


if __name__ == "__main__":
    main()
