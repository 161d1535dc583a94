#!/usr/bin/env python3
"""A disk that gets full under a load, at any step: exit 10, the graph as it was, and as usable as before once there is room again;
readers do not mind; recovery finishes, on the reserve."""

import glob
import json
import os
import signal

from support import disk
from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string"}}},
          "edges": {"K": {"from": "P", "to": "P"}}}
MIB = 1 << 20


class FullDisk(ProgramTest):
    def setUp(self):
        super().setUp()
        if disk.possible():
            self.skipTest(disk.possible())
        try:
            self.disk = disk.SmallDisk(self.path("image"), self.path("disk"), 40)
        except OSError as error:
            self.skipTest("no small disk can be mounted: %s" % error)
        self.addCleanup(self.disk.unmount)
        self.init(SCHEMA, "disk/G")
        self.write("first.csv", "id,name\n0,first\n")
        self.load("P=first.csv", graph="disk/G")

    def write_rows(self, rows, width):
        self.write("p.csv", "id,name\n" + "".join("%d,%0*d\n" % (i, width, i) for i in range(1, rows + 1)))
        self.write("k.csv", "from,to\n" + "".join("%d,%d\n" % (i, i - 1) for i in range(1, rows + 1)))
        return "P=p.csv", "K=k.csv"

    def counts(self):
        return self.done("count", "disk/G", "--json").document

    def check_old(self):
        self.assertEqual(self.counts(), {"P": 1, "K": 0})
        self.clean("disk/G")

    def refused_full(self, *words):
        said = self.refused(10, "load", "disk/G", *words, "--workers", "2", "--json")
        self.assertEqual(said.error["code"], "NO_SPACE", said.err)
        self.assertIs(said.error["committed"], False)
        self.assertIn("hint: free some space on the disk and try again; `sluice gc disk/G`", said.err)
        return said

    def test_in_the_middle_of_a_load(self):
        rows = self.write_rows(60000, 100)
        self.disk.fill(left=6 * MIB)
        self.refused_full(*rows)
        self.check_old()
        self.disk.give_back()
        self.done("gc", "disk/G")
        self.assertEqual(os.listdir(self.path("disk/G/attempts")), [])
        self.load(*rows, graph="disk/G")
        self.assertEqual(self.counts(), {"P": 60001, "K": 60000})
        self.clean("disk/G")

    def test_while_runs_are_spilled_and_inputs_unpacked(self):
        rows = self.write_rows(150000, 1)
        self.disk.fill(left=3 * MIB)
        self.refused_full(rows[0], "--memory", "64M")
        with open(self.path("p.csv"), "rb") as file:
            said = self.run_program("load", "disk/G", "P=-", "--workers", "2", stdin=file)
        self.assertEqual(said.code, 10, said.err)
        self.check_old()
        self.disk.give_back()
        self.load(*rows, graph="disk/G")
        self.clean("disk/G")

    def test_at_every_step_down_to_nothing(self):
        """The disk is a little fuller each time; sooner or later every step of a load is the one that finds it full."""
        self.write("one.csv", "id,name\n1000001,x\n")
        outcomes, loaded = set(), 0
        steps = list(range(1200, 100, -40)) + list(range(100, 0, -12)) + [0]
        if self.done("version", "--json").document["build"]["sanitizers"] and not os.environ.get("SLUICE_LONG"):
            steps = steps[::3]
        for left in steps:
            self.write("one.csv", "id,name\n%d,x\n" % (1000 + left))
            self.disk.fill(left * 1024)
            said = self.run_program("load", "disk/G", "P=one.csv", "--workers", "1", "--json")
            self.assertIn(said.code, (0, 10), said.err)
            loaded += said.code == 0
            outcomes.add(said.code)
            if said.code:
                self.assertEqual(said.error["code"], "NO_SPACE", said.err)
                self.assertIs(said.error["committed"], False)
            self.assertEqual(self.counts(), {"P": 1 + loaded, "K": 0}, left)
            self.disk.give_back()
        self.assertEqual(outcomes, {0, 10})
        self.clean("disk/G")
        self.write("one.csv", "id,name\n5000,x\n")
        self.load("P=one.csv", graph="disk/G")
        self.done("gc", "disk/G")
        self.clean("disk/G")

    def test_the_log_goes_on_in_a_new_segment_when_there_is_room_again(self):
        for number in range(12):  # some of these records fill a segment
            self.write("one.jsonl", json.dumps({"op": "insert", "node": "P", "set": {"id": 10 + number, "name": "n" * 30000}}) + "\n")
            self.disk.fill()
            said = self.run_program("mutate", "disk/G", "one.jsonl", "--json")
            self.assertIn(said.code, (0, 10), said.err[:1000])
            if said.code:
                self.assertEqual(said.error["code"], "NO_SPACE")
                self.assertEqual(self.counts()["P"], 1 + number)
            self.disk.give_back()
            if said.code:
                self.done("mutate", "disk/G", "one.jsonl")
        self.assertGreater(len(os.listdir(glob.glob(self.path("disk/G/branches/*/log"))[0])), 1)
        self.assertEqual(self.counts()["P"], 13)
        self.clean("disk/G")

    def test_readers_on_a_full_disk(self):
        rows = self.write_rows(500, 5)
        self.load(*rows, graph="disk/G")
        self.disk.fill()
        self.assertEqual(self.counts(), {"P": 501, "K": 500})
        self.assertEqual(len(self.rows("P", "disk/G")), 501)
        self.done("get", "disk/G", "P", "7")
        self.done("neighbors", "disk/G", "P", "7")
        self.done("log", "disk/G")
        self.done("status", "disk/G")
        self.clean("disk/G")

    def test_recovery_finishes_on_the_reserve(self):
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
        rows = self.write_rows(300, 5)
        for point, expected in (("arm.after", 301), ("publish.after_log_record_write", 301), ("publish.before_append", 301)):
            graph = "disk/" + point
            self.init(SCHEMA, graph)
            self.load("P=first.csv", graph=graph)
            said = self.run_program("load", graph, *rows, env={"SLUICE_FAILPOINT": point + "=killpool"})
            self.assertEqual(said.code, -signal.SIGKILL, said.err)
            self.disk.fill()
            self.done("recover", graph)
            self.assertEqual(self.done("count", graph, "--json").document, {"P": expected, "K": 300}, point)
            self.disk.give_back()
            self.write("next.csv", "id,name\n9999,next\n")
            self.load("P=next.csv", graph=graph)
            self.done("gc", graph)
            self.clean(graph)


if __name__ == "__main__":
    main()
