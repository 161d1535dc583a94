#!/usr/bin/env python3
"""Mutations of many processes at once: no update is lost, disjoint ones do not disturb each other."""

import json
import os
import signal
import threading

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"N": {"key": "id", "properties": {"id": "int64", "n": "int64", "m": "int64?"}}},
          "edges": {"E": {"from": "N", "to": "N", "properties": {}, "key": []}}}
PROCESSES, ROUNDS = 4, 6


class Rivals(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        self.mutate([{"op": "insert", "node": "N", "set": {"id": i, "n": 0}} for i in range(PROCESSES + 1)])

    def try_mutate(self, records, name="m.jsonl", env=None, options=()):
        self.write(name, "".join(json.dumps(record) + "\n" for record in records))
        return self.finish(self.start("mutate", "G", name, "--json", *options, env=env))

    def mutate(self, records, **more):
        said = self.try_mutate(records, **more)
        self.assertEqual(said.code, 0, said.err)
        return said.document

    def value(self, key, name="n"):
        return self.finish(self.start("get", "G", "N", str(key), "--json")).lines[0][name]

    def together(self, work):
        failures = []

        def guarded(number):
            try:
                work(number)
            except BaseException as failure:  # told by the main thread
                failures.append(failure)
        threads = [threading.Thread(target=guarded, args=(number,)) for number in range(PROCESSES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def test_no_increment_is_lost(self):
        def increment(number):
            name, done = "m%d.jsonl" % number, 0
            while done < ROUNDS:
                seen = self.value(0)
                said = self.try_mutate([{"op": "update", "node": "N", "key": 0, "set": {"n": seen + 1}, "if": {"n": seen}}],
                                       name)
                self.assertIn(said.code, (0, 3), said.err)
                done += said.code == 0 and said.document["updated"]
        self.together(increment)
        self.assertEqual(self.value(0), PROCESSES * ROUNDS)
        self.clean()

    def test_disjoint_keys_never_conflict(self):
        def work(number):
            name = "m%d.jsonl" % number
            for i in range(ROUNDS):
                fresh = 100 * (number + 1) + i
                self.mutate([{"op": "update", "node": "N", "key": number + 1, "set": {"n": i}},
                             {"op": "insert", "node": "N", "set": {"id": fresh, "n": i}},
                             {"op": "insert", "edge": "E", "from": number + 1, "to": fresh}], name=name)
                if i % 2:
                    self.mutate([{"op": "delete", "node": "N", "key": fresh, "detach": True}], name=name)
        self.together(work)
        self.assertEqual(self.done("count", "G", "N").out, "%d\n" % (PROCESSES + 1 + PROCESSES * ROUNDS // 2))
        self.clean()

    def test_different_properties_of_one_object_all_stay(self):
        def work(number):
            name = "m%d.jsonl" % number
            for i in range(ROUNDS):
                key = "n" if number % 2 else "m"
                said = self.try_mutate([{"op": "update", "node": "N", "key": 0, "set": {key: 1000 * number + i}}], name)
                self.assertIn(said.code, (0, 3), said.err)
                if said.code:
                    self.assertIn(said.error["code"], ("WRITE_CONFLICT", "REBASE_EXHAUSTED"))
        self.together(work)
        self.assertEqual((self.value(0, "n") // 1000 % 2, self.value(0, "m") // 1000 % 2), (1, 0))
        self.clean()

    def test_loads_and_mutations_meet_by_the_same_matrix(self):
        def update(key, **values):
            return {"op": "update", "node": "N", "key": key, "set": values}
        cells = [  # a load that commits while the mutation stands behind its plan; the mutation; how it ends
            ("overwrite", "id,n\n0,5\n1,5\n2,5\n", [update(1, n=6)], "WRITE_CONFLICT"),
            ("overwrite", "id,n\n0,5\n1,5\n2,5\n", [{"op": "insert", "node": "N", "set": {"id": 70, "n": 1}}], None),
            ("overwrite", "id,n\n0,5\n1,5\n2,5\n71,5\n", [{"op": "insert", "node": "N", "set": {"id": 71, "n": 1}}],
             "KEY_CONFLICT"),
            ("upsert", "id,n\n1,8\n", [update(1, n=9)], "WRITE_CONFLICT"),
            ("upsert", "id,n\n1,8\n", [update(1, m=9)], None),
            ("upsert", "id,n\n80,8\n", [update(1, n=10)], None),
            ("insert", "id,n\n81,8\n", [{"op": "upsert", "node": "N", "key": 81, "set": {"m": 3, "n": 8}}], None),
            ("insert", "id,n\n82,8\n", [{"op": "insert", "node": "N", "set": {"id": 82, "n": 1}}], "KEY_CONFLICT"),
        ]
        for number, (mode, text, records, code) in enumerate(cells):
            with self.subTest(mode=mode, records=records):
                # every cell begins with another value of n, so that each load of it changes something
                self.mutate([{"op": "upsert", "node": "N", "key": 1, "set": {"n": 100 + number, "m": None}}], name="first.jsonl")
                self.write("m.jsonl", "".join(json.dumps(record) + "\n" for record in records))
                process = self.start("mutate", "G", "m.jsonl", "--json", env={"SLUICE_FAILPOINT": "prepare.after_plan=stop"})
                os.waitpid(process.pid, os.WUNTRACED)
                self.write("l.csv", text)
                loaded = self.finish(self.start("load", "G", "N=l.csv", "--mode", mode, "--workers", "1", "--json"))
                self.assertEqual(loaded.code, 0, loaded.err)
                os.kill(process.pid, signal.SIGCONT)
                said = self.finish(process)
                if code:
                    self.assertEqual(said.error["code"], code, said.err)
                else:
                    self.assertEqual(said.code, 0, said.err)
        self.assertEqual((self.value(1, "n"), self.value(81, "m"), self.value(81, "n")), (107, 3, 8))
        self.clean()

    def test_an_interrupt_ends_it_before_its_commit_and_not_after(self):
        for point, code, value in (("prepare.after_plan", 130, 0), ("gates.after", 130, 0),
                                   ("publish.after_log_record_write", 0, 7)):
            self.write("m.jsonl", json.dumps({"op": "update", "node": "N", "key": 1, "set": {"n": 7}}) + "\n")
            process = self.start("mutate", "G", "m.jsonl", "--json", env={"SLUICE_FAILPOINT": point + "=stop"})
            os.waitpid(process.pid, os.WUNTRACED)
            os.kill(process.pid, signal.SIGINT)
            os.kill(process.pid, signal.SIGCONT)
            said = self.finish(process)
            self.assertEqual(said.code, code, said.err)
            self.assertEqual(self.value(1), value)


if __name__ == "__main__":
    main()
