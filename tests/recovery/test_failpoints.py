#!/usr/bin/env python3
"""The real load command dies, fails or loses its whole pool at every place of the write protocol, and others go on.

For each failpoint of the machine and of the log, and each action: the rows are the old or the new ones, exactly; what was answered is
true now and after recovery; the next load works; nothing is damaged and nothing is left behind. The places inside a load's own tasks
have tests of their own.
"""

import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string?"}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {}, "key": []}}}
MACHINE = ["barrier.before", "barrier.after", "prepare.after_pin", "prepare.after_plan", "gates.after", "revalidate.after",
           "arm.before_side_file", "arm.after_side_file", "arm.before_frame_sync", "arm.after", "publish.after_lock",
           "publish.before_append", "publish.after_log_record_write", "publish.after_log_record_sync", "publish.after_mark",
           "finalize.before_audit", "finalize.before_retire", "finalize.after_retire"]
SEGMENT = ["segment.after_opening_sync", "segment.after_current_write", "segment.after_current_sync"]
RECOVER = ["recover.before_publish", "recover.before_audit", "recover.after_audit", "recover.after_retire"]
CALLS = ["volume.create", "volume.open", "volume.publish", "volume.make_folder", "volume.sync_dir", "volume.write", "volume.sync",
         "volume.lock"]
OLD, NEW, NEXT = [1, 2, 3], [10, 11, 12, 13], [100]
# Before these the write has not been decided; a process that dies there and is alone leaves the old rows until somebody recovers.
COMMITTED_FROM = MACHINE.index("publish.after_log_record_write")


class Failpoints(ProgramTest):
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

    def check_answer(self, result):
        """What it answered, and what a reader finds before anybody recovers."""
        seen = self.see()
        if result.code == 0:
            self.assertTrue(seen)
            return True
        if result.code < 0:
            return None
        error = result.error
        if error["committed"] is False:
            self.assertFalse(seen, result.out)
        elif error["committed"] is True:
            self.assertTrue(seen, result.out)
        else:
            self.assertIn(result.code, (5, 6))
        return error["committed"]

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

    def strike_load(self, point, action, base="base"):
        self.fresh(base)
        with self.subTest(point=point, action=action):
            result = self.struck(["load", "G", "P=new.csv", "K=edges.csv", "--workers", "2"], "%s=%s" % (point, action))
            if action == "kill":  # one worker dies once: its work is taken over
                self.assertEqual(result.code, 0, result.out + result.err)
            if action == "killpool":
                self.assertEqual(result.code, -9, result.out + result.err)
            return result, self.go_on(self.check_answer(result))

    def test_a_worker_that_dies_anywhere_costs_nothing(self):
        for point in MACHINE:
            self.strike_load(point, "kill")

    def test_a_pool_that_dies_anywhere_leaves_old_or_new(self):
        for index, point in enumerate(MACHINE):
            _, keys = self.strike_load(point, "killpool")
            if index >= MACHINE.index("arm.after"):  # confirmed: an hour's load is not lost to its last step
                self.assertEqual(keys, OLD + NEW + NEXT, point)
            if index < MACHINE.index("arm.before_frame_sync"):
                self.assertEqual(keys, OLD + NEXT, point)

    def test_a_failure_anywhere_is_answered_truthfully(self):
        for index, point in enumerate(MACHINE):
            result, _ = self.strike_load(point, "error")
            if index < COMMITTED_FROM and result.code != 0:
                self.assertIs(result.error["committed"], False, point)

    def make_full(self):
        """A graph whose next commit opens a segment; returns the keys that were added on the way."""
        added = []
        while True:
            shutil.rmtree(self.path("G"), ignore_errors=True)
            shutil.copytree(self.path("full" if added else "base"), self.path("G"))
            segments = len(os.listdir(self.path("G/branches/1/log")))
            self.write("one.csv", "id\n%d\n" % (100000 + len(added)))
            self.load("P=one.csv")
            if len(os.listdir(self.path("G/branches/1/log"))) > segments:
                return added
            shutil.rmtree(self.path("full"), ignore_errors=True)
            os.rename(self.path("G"), self.path("full"))
            added.append(100000 + len(added))

    def test_a_switch_to_the_next_segment_may_be_cut_anywhere(self):
        added = self.make_full()
        for point in SEGMENT:
            for action in ("kill", "killpool", "error"):
                self.fresh("full")
                with self.subTest(point=point, action=action):
                    self.struck(["load", "G", "P=new.csv", "K=edges.csv", "--workers", "2"], "%s=%s" % (point, action))
                    self.load("P=next.csv")
                    self.assertIn(self.keys(), [sorted(OLD + NEXT + added), sorted(OLD + NEW + NEXT + added)])
                    self.clean()

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

    def test_the_same_operation_given_again_returns_its_result(self):
        operation = "01890a5d-ac96-774b-bcce-b302099a8057"
        for point in ("arm.before_frame_sync", "arm.after", "publish.after_log_record_sync", "finalize.before_retire"):
            with self.subTest(point=point):
                self.fresh()
                words = ["load", "G", "P=new.csv", "K=edges.csv", "--op-id", operation]
                self.struck(words, point + "=killpool")
                first = self.done(*words, "--json").document["commit"]["id"]
                again = self.done(*words, "--json").document["commit"]["id"]
                self.assertEqual(first, again)
                self.go_on(True)

    def test_the_pool_may_die_before_any_call(self):
        for call in CALLS:
            for count in (1, 4, 11, 30):
                self.fresh()
                with self.subTest(call=call, count=count):
                    result = self.struck(["load", "G", "P=new.csv", "K=edges.csv", "--workers", "2"], "%s=killpool@%d" % (call, count))
                    self.go_on(self.check_answer(result))
                    if result.code == 0:
                        break  # fewer such calls than that


if __name__ == "__main__":
    main()
