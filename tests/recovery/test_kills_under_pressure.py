#!/usr/bin/env python3
"""Writers that have hardly any memory and are killed, again and again (R175): the graph opens each time, says what was answered, and
takes the next write."""

import os
import random
import resource
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "v": "string?"}}}}
ROUNDS = 200 if os.environ.get("SLUICE_LONG") else 10
ROWS = 50
MIB = 1 << 20


class KillsUnderPressure(ProgramTest):
    def setUp(self):
        super().setUp()
        build = self.done("version", "--json").document["build"]
        if not build["failpoints"]:
            self.skipTest("a build without failpoints")
        self.limited = not build["sanitizers"]  # the sanitizers' own memory is far beyond any bound
        points = self.done("version", "--failpoints").out.split()
        self.points = [p for p in points if p.split(".")[0] in ("load", "prepare", "arm", "publish", "finalize")]

    def hardship(self, memory):
        if self.limited:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))

    def test_it_opens_each_time(self):
        dice = random.Random(int(os.environ.get("SLUICE_SEED", "8")))
        self.init(SCHEMA, "G")
        rows = 0
        for number in range(ROUNDS):
            self.write("p.csv", "id,v\n" + "".join("%d,%s\n" % (number * ROWS + i, "v" * i) for i in range(ROWS)))
            point = "%s=%s" % (dice.choice(self.points), dice.choice(("killpool", "kill", "error")))
            memory = dice.choice((9, 10, 11, 12, 14, 20, 40)) * MIB
            where = "%s with %d MiB" % (point, memory // MIB)
            process = self.start("load", "G", "P=p.csv", "--workers", "1", env={"SLUICE_FAILPOINT": point},
                                 preexec_fn=lambda: self.hardship(memory))
            result = self.finish(process)
            self.assertIn(result.code, (0, 1, 3, 5, 10, -signal.SIGKILL), where + result.err)
            seen = self.done("count", "G", "--json").document["P"]
            self.assertIn(seen, (rows + ROWS,) if result.code == 0 else (rows, rows + ROWS), where)
            self.write("next.jsonl", '{"op": "upsert", "node": "P", "key": -1, "set": {"v": "%d"}}\n' % number)
            self.done("mutate", "G", "next.jsonl")
            settled = self.done("count", "G", "--json").document["P"] - 1
            grown = seen - (1 if number else 0)
            # a load that was confirmed, and not seen yet, is finished by the next writer
            self.assertIn(settled, (grown,) if seen > rows else (grown, grown + ROWS), where)
            rows = settled + 1
        self.done("gc", "G")
        self.clean("G")


if __name__ == "__main__":
    main()
