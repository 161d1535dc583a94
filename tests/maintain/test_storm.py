#!/usr/bin/env python3
"""Writers insert, update and delete all the time while optimize and index run over and over, some of them killed: in the end the graph
says what the writers were told (OW-098 "200 commits with folds during one optimize", OW-100; R130, R142, R143)."""

import json
import os
import random
import signal
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support.program import ProgramTest, main, workers

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "v": "int64?"}, "unique": [["v"]]}, "N": {"properties": {"t": "string"}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {"w": "int64?"}, "key": []}}}
WRITERS, STEPS = 3, int(os.environ.get("SLUICE_LONG") and 150 or 22)


class Writer(threading.Thread):
    """One stream of commits over keys of its own; its model holds what was answered."""

    def __init__(self, test, number, seed):
        super().__init__()
        self.test, self.number, self.random = test, number, random.Random(seed)
        self.people, self.edges, self.notes, self.failed = {}, {}, 0, None
        self.values = number * 10 ** 9  # a new one for each

    def run(self):
        try:
            for step in range(STEPS):
                self.step(step)
        except Exception as failure:  # told by the test
            self.failed = failure

    def value(self):
        self.values += 1
        return self.values

    def step(self, step):
        r, base, lines = self.random, self.number * 10 ** 6, []
        people, edges = dict(self.people), dict(self.edges)
        for i in range(r.randrange(1, 6)):
            key = base + step * 10 + i
            people[key] = self.value()
            lines.append({"op": "insert", "node": "P", "set": {"id": key, "v": people[key]}})
        for key in r.sample(sorted(self.people), min(len(self.people), 2)):
            people[key] = self.value()
            lines.append({"op": "update", "node": "P", "key": key, "set": {"v": people[key]}})
        for _ in range(2):
            a, b = r.choice(sorted(people)), r.choice(sorted(people))
            if (a, b) not in edges:
                edges[a, b] = step
                lines.append({"op": "insert", "edge": "K", "from": a, "to": b, "set": {"w": step}})
        untouched = [k for k in self.people if people[k] == self.people[k] and not any(k in e for e in edges if e not in self.edges)]
        if untouched and step % 3 == 2:
            gone = r.choice(sorted(untouched))
            del people[gone]
            edges = {e: w for e, w in edges.items() if gone not in e}
            lines.append({"op": "delete", "node": "P", "key": gone, "detach": True})
        lines.append({"op": "insert", "node": "N", "set": {"t": "%d-%d" % (self.number, step)}})
        name = "w%d.jsonl" % self.number
        self.test.write(name, "".join(json.dumps(line) + "\n" for line in lines))
        result = self.test.finish(self.test.start("mutate", "G", name, "--json"))
        self.test.assertEqual(result.code, 0, result.out + result.err)
        self.people, self.edges, self.notes = people, edges, self.notes + 1


class Storm(ProgramTest):
    def test_writers_and_maintenance_do_not_disturb_each_other(self):
        seed = int(os.environ.get("SLUICE_SEED", 20261201))
        print("SLUICE_SEED=%d" % seed, flush=True)
        r = random.Random(seed)
        self.init(SCHEMA)
        writers = [Writer(self, n, seed + n) for n in range(WRITERS)]
        for writer in writers:
            writer.start()
        ended, killed = 0, 0
        while any(writer.is_alive() for writer in writers):
            command = r.choice([["optimize", "G"], ["optimize", "G", "P", "--compress"], ["optimize", "G", "--fragment-size", "6K"],
                                ["index", "G"], ["index", "G", "K"]])
            process = self.start(*command, "--workers", str(r.choice([1, 2, 8])), "--json")
            if r.random() < 0.3:
                self.kill_some(process, r)
                killed += 1
            result = self.finish(process)
            self.assertIn(result.code, (0, -signal.SIGKILL), result.out + result.err)
            ended += result.code == 0
        for writer in writers:
            writer.join()
            if writer.failed:
                raise writer.failed
        print("%d ended, %d struck" % (ended, killed), flush=True)
        for command in (None, "optimize", "index"):
            if command:
                self.done(command, "G")
            self.check(writers)
        self.done("gc", "G")
        self.clean()
        self.check(writers)

    @staticmethod
    def kill_some(process, r):
        victims = workers(process.pid) + [process.pid]
        try:
            os.kill(r.choice(victims), signal.SIGKILL)
        except OSError:
            pass

    def check(self, writers):
        people, edges = {}, {}
        for writer in writers:
            people.update(writer.people)
            edges.update(writer.edges)
        self.assertEqual({row["id"]: row["v"] for row in self.rows("P")}, people)
        self.assertEqual({(row["from"], row["to"]): row["w"] for row in self.rows("K")}, edges)
        self.assertEqual(len(self.rows("N")), sum(writer.notes for writer in writers))
        start = sorted(people)[len(people) // 2]
        words = ("neighbors", "G", "P", str(start), "--direction", "both", "--depth", "3", "--json")
        self.assertEqual(self.done(*words).out, self.done(*words, env={"SLUICE_NO_INDEXES": "1"}).out)


if __name__ == "__main__":
    main()
