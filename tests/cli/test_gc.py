#!/usr/bin/env python3
"""Letting go of history with the command: its limits, what it says, what stays, and real kills in the middle of it."""

import json
import os
import shutil
import signal
import time

from support.program import ProgramTest, main, process_state

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string?"}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {}, "key": []}}}


class Gc(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)

    def change(self, name, *words, key=1):
        """One commit: generation n + 1 gets the n-th name."""
        self.write("m.jsonl", '{"op":"upsert","node":"P","key":%d,"set":{"id":%d,"name":"%s"}}\n' % (key, key, name))
        return self.done("mutate", "G", "m.jsonl", "--json", *words).document["commit"]["id"]

    def name(self, *words):
        return [row["name"] for row in self.done("scan", "G", "P", "--json", *words).lines]

    def files(self, folder="G/tables"):
        return sum(len(names) for _, _, names in os.walk(self.path(folder)))

    def gone(self, *words):
        error = self.refused(8, "scan", "G", "P", "--json", *words).error
        self.assertEqual(error["code"], "NOT_FOUND")
        self.assertTrue(error["details"]["collected"])
        self.assertTrue(error["hint"])

    def test_without_limits_no_history_goes(self):
        for i in range(4):
            self.change("n%d" % i)
        self.assertEqual(self.done("gc", "G", "--json").document["generations"], 0)
        self.assertEqual(self.name("--at", "2"), ["n0"])

    def test_limits_that_are_none_are_refused(self):
        for words in (["--keep", "0"], ["--keep", "x"], ["--older-than", "30"], ["--older-than", "d"], ["--older-than", "-1d"],
                      ["--older-than", "1.5h"], ["--older-than", ""], ["--older-than", "9999999999d"], ["--older-than", "3 d"]):
            self.refused(2, "gc", "G", *words)
        self.done("gc", "G", "--older-than", "999999999w")
        self.done("gc", "G", "--keep", "9223372036854775807")

    def test_both_limits_must_allow_it(self):
        for i in range(6):
            self.change("n%d" % i)
        self.assertEqual(self.done("gc", "G", "--keep", "1", "--older-than", "1d", "--json").document["generations"], 0)
        self.assertEqual(self.done("gc", "G", "--keep", "100", "--older-than", "0s", "--json").document["generations"], 0)
        self.assertEqual(self.name("--at", "2"), ["n0"])
        self.assertGreater(self.done("gc", "G", "--keep", "3", "--older-than", "0s", "--json").document["generations"], 0)
        self.gone("--at", "2")
        self.assertEqual(self.name("--at", "5"), ["n3"])
        self.assertEqual(self.done("gc", "G", "--older-than", "0s", "--json").document["generations"], 2)
        self.gone("--at", "5")
        self.assertEqual(self.name(), ["n5"])
        self.clean()

    def test_a_dry_run_says_what_the_run_does(self):
        self.write("p.csv", "id,name\n" + "".join("%d,x\n" % i for i in range(50)))
        for _ in range(3):
            self.load("P=p.csv", "--mode", "overwrite")
        before = self.files()
        dry = self.done("gc", "G", "--keep", "1", "--dry-run", "--json").document
        self.assertEqual(self.files(), before)
        self.assertTrue(all(os.path.exists(self.path("G/" + path)) for path in dry["paths"]))
        self.assertIn(dry["paths"][0], self.done("gc", "G", "--keep", "1", "--dry-run").out)
        self.assertEqual(len(self.name("--at", "2")), 50)
        real = self.done("gc", "G", "--keep", "1", "--json").document
        self.assertEqual([real[n] for n in ("files", "bytes", "generations", "segments")],
                         [dry[n] for n in ("files", "bytes", "generations", "segments")])
        self.assertFalse(any(os.path.exists(self.path("G/" + path)) for path in dry["paths"]))
        self.assertEqual(self.files(), before - len(dry["paths"]))
        self.assertGreater(real["files"], 0)
        self.gone("--at", "2")
        self.assertEqual(len(self.name()), 50)
        self.clean()

    def test_log_show_merge_and_exact_retries_outlive_what_went(self):
        operation = "01890a5d-ac96-4b4b-8cce-b302099a8057"
        first = self.change("first", "--op-id", operation)
        self.done("branch", "create", "G", "b")
        self.change("of b", "--branch", "b", key=2)
        for i in range(5):
            self.change("n%d" % i)
        self.done("merge", "G", "b")
        self.change("b again", "--branch", "b", key=3)
        self.done("checkpoint", "create", "G", "kept", "--at", "4")
        log = self.done("log", "G", "--json").out
        shown = self.done("show", "G", first).out
        self.assertGreater(self.done("gc", "G", "--keep", "1", "--json").document["generations"], 0)
        self.assertEqual(self.done("log", "G", "--json").out, log)
        self.assertEqual(self.done("show", "G", first).out, shown)
        self.assertEqual(self.change("first", "--op-id", operation), first)
        self.assertEqual(self.name("--at", "kept"), ["n1"])
        self.gone("--at", "3")
        self.assertEqual(self.done("merge", "G", "b", "--json").document["outcome"], "merged")
        self.done("branch", "delete", "G", "b")
        self.done("gc", "G", "--keep", "1")
        self.assertEqual(sorted(self.name()), ["b again", "n4", "of b"])
        self.assertEqual(self.done("merge", "G", "main", "--into", "main", "--json").document["outcome"], "up-to-date")
        self.refused(8, "diff", "G", "2", "3")
        self.refused(8, "branch", "create", "G", "late", "--from", first)
        self.clean()

    # ---- real processes in the middle ----

    def need_failpoints(self):
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")

    def stopped(self, *words, point):
        process = self.start(*words, env={"SLUICE_FAILPOINT": point + "=stop"})
        while process_state(process.pid) != "T":
            self.assertIsNone(process.poll(), "it has ended before it was stopped")
            time.sleep(0.002)
        return process

    def beside(self, *words):
        """Like done, while another program of ours stands still."""
        result = self.finish(self.start(*words))
        self.assertEqual(result.code, 0, "%s\n%s%s" % (words, result.out, result.err))
        return result

    def resumed(self, process):
        os.kill(process.pid, signal.SIGCONT)
        return self.finish(process)

    def test_a_reader_that_comes_too_late_reads_the_newest_state_or_says_so(self):
        self.need_failpoints()
        self.write("1.csv", "id,name\n1,old\n")
        self.write("2.csv", "id,name\n1,new\n")
        self.load("P=1.csv")
        newest = self.stopped("scan", "G", "P", "--json", point="read.before_pin")
        old = self.stopped("scan", "G", "P", "--json", "--at", "2", point="read.before_pin")
        self.beside("load", "G", "P=2.csv", "--mode", "overwrite", "--workers", "1")
        self.assertGreater(json.loads(self.beside("gc", "G", "--keep", "1", "--json").out)["files"], 0)
        self.assertEqual([row["name"] for row in self.resumed(newest).lines], ["new"])
        result = self.resumed(old)
        self.assertEqual(result.code, 8, result.out + result.err)
        self.assertTrue(result.error["details"]["collected"])
        self.clean()

    def test_a_slow_writer_never_goes_on_from_what_went(self):
        """It is stopped behind its pin: everything from its base on stays, so it publishes."""
        self.need_failpoints()
        self.change("a")
        self.change("b")
        self.write("slow.jsonl", '{"op":"insert","node":"P","set":{"id":9,"name":"slow"}}\n')
        slow = self.stopped("mutate", "G", "slow.jsonl", "--json", point="prepare.after_pin")
        for i in range(3):
            self.write("m.jsonl", '{"op":"update","node":"P","key":1,"set":{"name":"n%d"}}\n' % i)
            self.beside("mutate", "G", "m.jsonl")
        self.assertEqual(json.loads(self.beside("gc", "G", "--keep", "1", "--json").out)["generations"], 2)
        self.assertIn('"b"', self.beside("scan", "G", "P", "--json", "--at", "3").out)
        self.assertEqual(self.resumed(slow).code, 0)
        self.assertEqual(sorted(self.name()), ["n2", "slow"])
        self.done("gc", "G", "--keep", "1")
        self.gone("--at", "3")
        self.clean()

    def test_killed_at_each_of_its_steps_it_goes_on_the_next_time(self):
        self.need_failpoints()
        for mode in ("insert", "overwrite"):
            self.write("p.csv", "id,name\n1,%s\n" % mode)
            self.load("P=p.csv", "--mode", mode)
        for i in range(10):
            self.change("%d" % i * 24000)
        for i in range(33):
            self.change("n%d" % i)
        self.assertGreater(len(os.listdir(self.path("G/branches/1/log"))), 1)
        shutil.copytree(self.path("G"), self.path("full"))
        log = self.done("log", "G", "--json").out
        ends = set()
        points = [point for point in self.done("version", "--failpoints").out.split() if point.startswith("gc.")]
        self.assertEqual(len(points), 5)
        cells = [(point, "kill") for point in points] + [(point, "error") for point in points[1::2]]
        if self.done("version", "--json").document["build"]["sanitizers"]:
            cells = cells[1::3]
        for point, action in cells:
            shutil.rmtree(self.path("G"))
            shutil.copytree(self.path("full"), self.path("G"))
            result = self.run_program("gc", "G", "--keep", "2", "--json", env={"SLUICE_FAILPOINT": "%s=%s" % (point, action)})
            self.assertEqual(result.code, -signal.SIGKILL if action == "kill" else 1, point)
            self.assertEqual(self.name(), ["n32"])
            self.assertEqual(self.done("log", "G", "--json").out, log)
            if action == "kill":
                self.clean()
            self.done("gc", "G", "--keep", "2")
            self.assertEqual(self.name("--at", "45"), ["n31"])
            self.gone("--at", "44")
            self.assertEqual(self.done("log", "G", "--json").out, log)
            self.assertEqual(os.listdir(self.path("G/trash")), [])
            ends.add((self.files(), self.files("G/branches/1/log"), self.files("G/branches/1/lineage")))
            self.clean()
        self.assertEqual(len(ends), 1, ends)
        self.assertEqual(ends.pop()[1:], (1, 1))


if __name__ == "__main__":
    main()
