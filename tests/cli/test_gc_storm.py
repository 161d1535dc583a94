#!/usr/bin/env python3
"""History is let go of again and again while refs, checkpoints, pinned readers, live loads and merges need parts of it, and some of
all these processes are killed: whatever is needed reads as before, and in the end only what is needed is left."""

import fcntl
import os
import random
import signal
import struct
import time

from support.program import ProgramTest, end_of_orphans, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string?"}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {}, "key": []}}}
F_OFD_SETLK = 37
ROUNDS = 12 if os.environ.get("SLUICE_LONG") else 2


class Storm(ProgramTest):
    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("SLUICE_SEED", 20261201))
        print("SLUICE_SEED=%d" % self.seed, flush=True)
        self.random = random.Random(self.seed)
        self.init(SCHEMA)
        self.rows(0)
        self.load("P=p0.csv", "K=k0.csv")

    def rows(self, base):
        """A file of ten people and their edges."""
        self.write("p%d.csv" % base, "id,name\n" + "".join("%d,n%d\n" % (i, base) for i in range(base, base + 10)))
        self.write("k%d.csv" % base, "from,to\n" + "".join("%d,%d\n" % (i, base) for i in range(base, base + 10)))

    def wave(self, jobs, kills):
        started = [self.start(*words) for words in jobs]
        for process in self.random.sample(started, kills):
            time.sleep(self.random.random() * 0.05)     # when it is struck is chance; what must hold is not
            process.kill()
        results = [self.finish(process) for process in started]
        self.assertEqual(end_of_orphans(), [])
        for words, result in zip(jobs, results):
            self.assertIn(result.code, (0, 3, 8, -signal.SIGKILL), "%s: %s" % (words, result.err))
            self.assertNotIn("Sanitizer", result.err)
            if result.code == 8:                        # asked for what went, or for what another made first
                self.assertTrue(words[0] != "gc", result.err)
        return [result.code for result in results]

    def pin(self, generation):
        """What a reader does: a shared lock on the generation's byte."""
        pins = os.open(self.path("G/branches/1/pins"), os.O_RDONLY)
        fcntl.fcntl(pins, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, generation, 1, 0))
        return pins

    def see(self, *words):
        return [sorted(self.done("scan", "G", type_, "--json", *words).out.splitlines()) for type_ in ("P", "K")]

    def head(self):
        return int(self.done("log", "G", "-n", "1", "--json").lines[0]["generation"])

    def files(self):
        return sum(len(names) for folder in ("tables", "branches") for _, _, names in os.walk(self.path("G/" + folder)))

    def test_nothing_needed_goes_in_a_storm(self):
        kept = {}
        for round_ in range(ROUNDS):
            base = 1000 * (round_ + 1)
            for i in range(3):
                self.rows(base + 100 * i)
            # something of each kind that needs an older state
            self.done("checkpoint", "create", "G", "c%d" % round_)
            kept["c%d" % round_] = self.see("--at", "c%d" % round_)
            branch = "b%d" % round_
            self.done("branch", "create", "G", branch)
            self.load("P=p%d.csv" % base, "--branch", branch, "--workers", "1")
            of_branch = self.see("--branch", branch)
            generation = self.head()
            pinned, of_pinned = self.pin(generation), self.see("--at", str(generation))
            self.wave([("load", "G", "P=p%d.csv" % (base + 100), "K=k%d.csv" % (base + 100), "--workers", "1"),
                       ("load", "G", "P=p0.csv", "--mode", "upsert", "--workers", "1"),
                       ("gc", "G", "--keep", "1"), ("gc", "G", "--keep", "2"), ("optimize", "G", "--workers", "1"),
                       ("branch", "create", "G", "x%d" % round_, "--from", "main"), ("scan", "G", "P", "--json"),
                       ("gc", "G", "--keep", "1", "--older-than", "0s")], self.random.randrange(3))
            self.done("recover", "G")
            before = self.see()
            self.wave([("gc", "G", "--keep", "1"), ("merge", "G", branch), ("scan", "G", "K", "--json", "--branch", branch),
                       ("load", "G", "P=p%d.csv" % (base + 200), "--workers", "1"), ("gc", "G", "--keep", "1")],
                      self.random.randrange(2))
            self.done("recover", "G")
            now = self.see()
            self.assertTrue(all(set(old) <= set(new) for old, new in zip(before, now)))
            self.assertEqual(self.see("--branch", branch), of_branch)
            self.assertEqual(self.see("--at", str(generation)), of_pinned)
            for name, rows in kept.items():
                self.assertEqual(self.see("--at", name), rows, name)
            self.clean()
            os.close(pinned)
            self.done("gc", "G", "--keep", "1")
            self.done("merge", "G", branch)             # where they met last is still known
            self.assertTrue(set(of_branch[0]) <= set(self.see()[0]))
            self.done("branch", "delete", "G", branch)
            self.clean()
        last = self.see()
        for name in kept:
            self.done("checkpoint", "delete", "G", name)
        for line in self.done("branch", "list", "G", "--json").lines:
            if line["branch"] != "main":
                self.done("branch", "delete", "G", line["branch"])
        self.done("optimize", "G", "--workers", "1")
        before = self.files()                           # with the folder of the branch that went last
        self.done("gc", "G", "--keep", "1")
        self.assertEqual(self.done("gc", "G", "--keep", "1", "--json").document["files"], 0)
        self.assertLess(self.files(), before)
        self.assertEqual(self.see(), last)
        self.assertEqual(os.listdir(self.path("G/trash")) + os.listdir(self.path("G/attempts")), [])
        self.clean()


if __name__ == "__main__":
    main()
