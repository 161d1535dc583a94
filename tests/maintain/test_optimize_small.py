#!/usr/bin/env python3
"""What optimize does to tables of many small commits and of narrow rows, beside writers and readers, and within a bound of memory."""

import os
import select
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "t": "string?"}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {}, "key": []}, "L": {"from": "P", "to": "P", "properties": {}}}}
WRITERS, READERS = 4, 2
COMMITS = 3000 // WRITERS if os.environ.get("SLUICE_LONG") else 12  # of each writer


class Small(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)

    def sizes(self):
        return {t["type"]: t for t in self.done("status", "G", "--json").document["branches"][0]["types"]}

    def beside(self, *words):
        """Runs a program to its end while others of this test go on."""
        result = self.finish(self.start(*words))
        self.assertEqual(result.code, 0, result.out + result.err)
        return result

    def insert(self, key, name="m.jsonl"):
        self.write(name, '{"op":"insert","node":"P","set":{"id":%d}}\n' % key)
        self.beside("mutate", "G", name)

    def test_rows_that_only_records_hold_are_moved_into_a_fragment(self):
        for key in range(5):
            self.insert(key)
        self.assertEqual(self.sizes()["P"]["fragments"], 5)
        before, head = self.rows("P"), self.done("log", "G", "-n", "1", "--json").document
        told = self.done("optimize", "G", "--json").document
        self.assertEqual((told["tables"]["P"]["before"]["fragments"], told["tables"]["P"]["after"]["fragments"]), (5, 1))
        self.assertEqual(self.rows("P"), before)
        self.assertEqual(self.rows("P", "G", "--at", head["commit"]), before)
        self.assertIsNone(self.done("optimize", "G", "--json").document["commit"])
        identity = "01900000-0000-7000-8000-000000000001"
        self.insert(9)
        first = self.done("optimize", "G", "P", "--op-id", identity, "--json").document
        self.insert(10)
        again = self.done("optimize", "G", "P", "--op-id", identity, "--json").document
        self.assertEqual((again["commit"], again["repeated"]), (first["commit"], True))
        self.done("optimize", "G")
        self.done("optimize", "G")
        self.assertEqual(self.sizes()["P"]["fragments"], 1)
        self.assertEqual([row["id"] for row in self.rows("P")], [0, 1, 2, 3, 4, 9, 10])
        self.clean()

    def test_a_table_of_small_commits_is_made_one_beside_writers_and_old_readers(self):
        self.write("p.csv", "id,t\n" + "".join("%d,%s\n" % (-i, "x" * 60) for i in range(1, 3001)))
        self.load("P=p.csv")
        readers = [self.start("scan", "G", "P", "--format", "jsonl") for _ in range(READERS)]  # more than a pipe takes: they wait, pinned
        for reader in readers:
            select.select([reader.stdout], [], [])
        failed, counts = [], [0] * WRITERS

        def writer(number):
            try:
                for step in range(COMMITS):
                    self.insert(1 + number * 10 ** 6 + step, "w%d.jsonl" % number)
                    counts[number] += 1
            except Exception as failure:  # told by the test
                failed.append(failure)

        threads = [threading.Thread(target=writer, args=(n,)) for n in range(WRITERS)]
        for thread in threads:
            thread.start()
        runs = 0
        while any(thread.is_alive() for thread in threads):
            self.beside("optimize", "G", "P", "--workers", "2")
            runs += 1
        for thread in threads:
            thread.join()
        self.assertEqual((failed, counts), ([], [COMMITS] * WRITERS))
        self.beside("optimize", "G", "P")
        self.beside("gc", "G")
        keys = [row["id"] for row in self.beside("scan", "G", "P", "--json").lines]
        self.assertEqual(sorted(keys), sorted([-i for i in range(1, 3001)] + [1 + n * 10 ** 6 + s for n in range(WRITERS) for s in range(COMMITS)]))
        for reader in readers:
            result = self.finish(reader)
            self.assertEqual((result.code, [row["id"] for row in result.lines]), (0, [-i for i in range(1, 3001)]))
        self.assertLess(self.sizes()["P"]["fragments"], 10)
        self.clean()
        print("%d runs" % runs, flush=True)

    def test_rows_of_one_load_do_not_grow_when_they_are_put_together(self):
        self.write("p.csv", "id\n" + "".join("%d\n" % i for i in range(300)))
        names = []
        for f in range(5):
            self.write("k%d.csv" % f, "from,to\n" + "".join("%d,%d\n" % (f, i) for i in range(300)))
            names.append("K=k%d.csv" % f)
        self.load("P=p.csv", *names)
        self.done("index", "G")
        head = self.done("log", "G", "-n", "1", "--json").document["commit"]
        before, size = self.rows("K"), self.sizes()["K"]
        self.assertEqual(size["fragments"], 5)
        self.done("optimize", "G")
        after = self.sizes()["K"]
        self.assertEqual((after["fragments"], after["indexed"]), (1, 1))
        self.assertLess(after["bytes"], size["bytes"])  # one footer instead of five, and no columns beside the two
        self.assertEqual(self.rows("K"), before)
        self.assertEqual(self.done("diff", "G", head, "head", "--json").out, "")
        self.assertIsNone(self.done("optimize", "G", "--json").document["commit"])
        self.clean()
        self.write("d.jsonl", "".join('{"op":"delete","edge":"K","from":%d,"to":%d}\n' % (f, i) for f in range(5) for i in range(0, 300, 2)))
        self.done("mutate", "G", "d.jsonl")
        left = [row for row in before if row["to"] % 2]
        self.assertEqual(self.rows("K"), left)
        self.done("optimize", "G")  # with holes, so ids stand in a column
        self.assertEqual(self.rows("K"), left)
        self.clean()

    def test_memory_is_bounded_as_for_loads(self):
        if self.done("version", "--json").document["build"]["sanitizers"]:
            self.skipTest("the sanitizers' own memory is far beyond any bound")
        count = 300_000
        self.write("p.csv", "id\n" + "".join("%d\n" % i for i in range(1000)))
        self.load("P=p.csv")
        for part in range(3):
            self.write("l.csv", "from,to\n" + "".join("%d,%d\n" % (i % 997, i % 1000) for i in range(count // 3)))
            self.load("L=l.csv")
        for command in ("index", "optimize"):
            told = self.done(command, "G", "L", "--workers", "2", "--memory", "64M", "--json").document
            self.assertIsNotNone(told["commit"])
            self.assertLessEqual(told["memory_peak"], 64 << 20)
            self.assertEqual(told["tables"]["L"]["after"]["indexed"], told["tables"]["L"]["after"]["fragments"])
            said = self.refused(10, command, "G", "--memory", "10M", "--workers", "2", "--json")
            self.assertEqual(said.error["code"], "RESOURCE_LIMIT")
            self.assertIn("--memory", said.err)
            self.refused(2, command, "G", "--memory", "0")
        self.assertEqual(self.sizes()["L"]["fragments"], 1)
        self.clean()


if __name__ == "__main__":
    main()
