#!/usr/bin/env python3
"""Many processes make, write, merge and delete branches at once, and some of them are killed: nothing that was answered is
missing, nothing is half there, and no branch stands in another one's way."""

import os
import random
import signal
import time

from support.program import ProgramTest, end_of_orphans, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string?"}}}}


class Storm(ProgramTest):
    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("SLUICE_SEED", 20261201))
        print("SLUICE_SEED=%d" % self.seed, flush=True)
        self.random = random.Random(self.seed)
        self.init(SCHEMA)
        self.write("p.csv", "id,name\n0,zero\n")
        self.load("P=p.csv")

    def wave(self, jobs, kills):
        """Runs them together; kills some in the middle. The exit statuses."""
        started = [self.start(*words) for words in jobs]
        for process in self.random.sample(started, kills):
            time.sleep(self.random.random() * 0.02)     # when it is struck is chance; what must hold is not
            process.kill()
        results = [self.finish(process) for process in started]
        self.assertEqual(end_of_orphans(), [])
        for words, result in zip(jobs, results):
            self.assertIn(result.code, (0, 3, 8, -signal.SIGKILL), "%s: %s" % (words, result.err))
        return [result.code for result in results]

    def keys(self, branch="main"):
        return {row["id"] for row in self.done("scan", "G", "P", "--json", "--branch", branch).lines}

    def names(self):
        return {line["branch"] for line in self.done("branch", "list", "G", "--json").lines}

    def test_branches_in_a_storm(self):
        merged = {0}
        for round_ in range(8 if os.environ.get("SLUICE_LONG") else 3):
            base = 100 * (round_ + 1)
            for i in range(4):
                self.write("n%d.csv" % (base + i), "id,name\n%d,n\n" % (base + i))
            made = ["r%d-%d" % (round_, i) for i in range(4)]
            codes = self.wave([("load", "G", "P=n%d.csv" % (base + i), "--branch", made[i], "--create-branch", "--workers", "1")
                               for i in range(4)], 1)
            self.done("recover", "G")
            for i, code in enumerate(codes):
                if code == 0:
                    self.assertIn(made[i], self.names())
                if made[i] in self.names():
                    self.assertEqual(self.keys(made[i]), self.keys(made[i]) & (merged | {base + i}) | {0, base + i})
            there = [i for i in range(4) if made[i] in self.names()]
            jobs = [("merge", "G", made[i], "--delete-source") for i in there]
            jobs += [("branch", "create", "G", "x%d" % round_), ("gc", "G")]
            codes = self.wave(jobs, 1)
            self.done("recover", "G")
            now = self.keys()
            for i, code in zip(there, codes):
                if code == 0:
                    self.assertIn(base + i, now)
                    self.assertNotIn(made[i], self.names())
                self.assertEqual(base + i in now, made[i] not in self.names())
            self.assertTrue(merged <= now, "%s %s" % (merged, now))
            merged = now
            self.done("gc", "G")
            self.clean()
        log = self.done("log", "G", "--json").lines
        self.assertEqual(len([line for line in log if line["kind"] == "merge"]), len(merged) - 1)
        status = self.done("status", "G", "--json").document
        self.assertEqual(status["intents"] + status["gates"] + os.listdir(self.path("G/attempts")), [])


if __name__ == "__main__":
    main()
