#!/usr/bin/env python3
"""Histories of real processes: embedded programs, commands and pools on one graph, killed and stopped at random; what all of them saw and
were told is judged by checker.py. SLUICE_LONG=1: more of everything, several times. SLUICE_SEED repeats the choices, not the timing."""

import os
import random

from history.checker import check, transaction
from history.storm import SCHEMA, Storm
from serve.serving import ServeTest
from support.program import ProgramTest, main

LONG = bool(os.environ.get("SLUICE_LONG"))
ROUNDS = 20 if LONG else 1
MORE = 8 if LONG else 1
MAINTENANCE = ("optimize G", "index G", "gc G", "recover G")


def seed():
    chosen = int(os.environ.get("SLUICE_SEED", random.SystemRandom().randrange(1 << 20)))
    print("SLUICE_SEED=%d" % chosen, flush=True)
    return chosen


class Histories(ProgramTest):
    def weather(self, mode, embedded, transactions, commands, kills):
        for number in range(ROUNDS):
            with self.subTest(round=number):
                storm = Storm(self, seed() + number)
                if number:
                    self.doCleanups()
                    self.setUp()
                storm.prepare(mode)
                work = [(storm.embedded, transactions * MORE)] * embedded
                work += [(storm.commands, commands * MORE, MORE, MAINTENANCE if LONG or mode == "optimistic" else ()), (storm.commands, commands * MORE, MORE, ())]
                storm.run(work, kills * MORE)
                storm.judge()

    def test_optimistic_writers_of_all_kinds(self):
        self.weather("optimistic", 4, 20, 3, 8)

    def test_queued_writers(self):
        self.weather("queued", 2, 8, 1, 3)

    def test_one_writer_at_a_time(self):
        self.weather("single", 2, 8, 1, 3)


class Hosted(ServeTest):
    def test_a_hosted_graph_with_embedded_writers_beside_it(self):
        """Commands go through the supervisor and are published in groups; embedded programs write beside them."""
        storm = Storm(self, seed(), hosted=True)
        storm.prepare()
        self.configure("G")
        self.serve()
        storm.run([(storm.embedded, 15 * MORE)] * 2 + [(storm.commands, 3 * MORE, MORE, ())] * 3, 3 * MORE)
        self.end()
        storm.judge()


class Skew(ProgramTest):
    """Two who each read what the other one changes, step by step, so that it happens."""

    def both(self, guarded):
        self.init(SCHEMA)
        self.write("r.csv", "id,v\n0,\"\"\n1,\"\"\n")
        self.load("R=r.csv")
        history, start = [], self.done("log", "G", "-n", "1", "--json").lines[0]
        at, clock = (start["generation"], start["index"]), 0
        for number in (0, 1):
            lines = ['{"op": "assert", "node": "R", "key": %d, "equals": {"v": ""}}' % key for key in ((0, 1) if guarded else (number,))]
            lines.append('{"op": "update", "node": "R", "key": %d, "set": {"v": "s.%d.0"}}' % (number, number))
            self.write("m.jsonl", "\n".join(lines) + "\n")
            result = self.finish(self.start("mutate", "G", "m.jsonl", "--json"))
            clock += 10
            one = transaction("s.%d" % number, begin=0, sent=clock, end=clock + 5, at=at, reads={0: [], 1: []}, appends={number: 1},
                              guarded=guarded, outcome="ok" if result.code == 0 else "fail")
            if result.code == 0:
                place = result.document["commit"]
                one.update(place=(place["generation"], place["index"]), op=result.document["operation_id"])
            else:
                self.assertEqual((result.code, result.error["code"], result.error["committed"]), (3, "WRITE_CONFLICT", False))
                one.update(op=result.error["operation_id"])
            history.append(one)
        storm = Storm(self, 0, registers=2)
        storm.history = history
        return storm.judge(), [one["outcome"] for one in history[:2]]

    def test_write_skew_happens_and_is_seen(self):
        self.assertEqual(self.both(False), (True, ["ok", "ok"]))

    def test_assertions_cure_it(self):
        self.assertEqual(self.both(True), (False, ["ok", "fail"]))

    def test_write_skew_over_a_predicate_happens(self):
        """Two who each add an item because both saw none: nothing of what they read was an object, so nothing of it is asserted."""
        self.init(SCHEMA)
        self.assertEqual([self.done("count", "G", "I").out for _ in (0, 1)], ["0\n", "0\n"])
        for number in (0, 1):
            self.write("m.jsonl", '{"op": "insert", "node": "I", "set": {"id": %d, "tag": "only one"}}\n' % number)
            self.done("mutate", "G", "m.jsonl")
        self.assertEqual(self.done("count", "G", "I").out, "2\n")


if __name__ == "__main__":
    main()
