#!/usr/bin/env python3
"""Several commands at once on one graph: what does not meet does not disturb; of what meets, one wins and the others change nothing."""

import os
import signal

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"Person": {"key": "id", "properties": {"id": "int64", "name": "string"}},
                    "Place": {"key": "id", "properties": {"id": "int64"}}}, "edges": {}}


class Concurrent(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)

    def together(self, *commands):
        """Starts all, waits for all."""
        started = [self.start(*words) for words in commands]
        return [self.finish(process) for process in started]

    def people(self, name, first, count):
        return self.write(name, "id,name\n" + "".join("%d,name\n" % i for i in range(first, first + count)))

    def test_different_tables_and_disjoint_keys_both_succeed(self):
        self.people("a.csv", 0, 3000)
        self.people("b.csv", 10000, 3000)
        self.write("c.csv", "id\n" + "".join("%d\n" % i for i in range(3000)))
        results = self.together(*(("load", "G", "%s=%s" % (kind, name), "--workers", "1", "--json")
                                  for kind, name in (("Person", "a.csv"), ("Person", "b.csv"), ("Place", "c.csv"))))
        self.assertEqual([r.code for r in results], [0, 0, 0], [r.err for r in results])
        self.assertEqual(self.done("count", "G", "--json").document, {"Person": 6000, "Place": 3000})
        self.clean()

    def test_one_same_key_has_one_winner(self):
        for number in range(3):
            graph = "S%d" % number
            self.done("init", graph, "--schema", "schema.json")
            self.people("a.csv", 0, 500)
            self.people("b.csv", 499, 500)
            results = self.together(*(("load", graph, "Person=" + name, "--workers", "1", "--json") for name in ("a.csv", "b.csv")))
            codes = sorted(r.code for r in results)
            self.assertEqual(codes[0], 0, [r.err for r in results])
            self.assertIn(codes[1], (3, 4))
            self.assertEqual(self.done("count", graph, "Person").out, "500\n")
            self.clean(graph)

    def test_sixteen_processes_insert_one_same_key(self):
        self.people("one.csv", 7, 1)
        results = self.together(*[("load", "G", "Person=one.csv", "--workers", "1", "--json")] * 16)
        codes = [r.code for r in results]
        self.assertEqual(codes.count(0), 1, [r.err for r in results])
        self.assertLessEqual(set(codes), {0, 3, 4})
        self.assertEqual(self.done("count", "G", "Person").out, "1\n")
        self.assertEqual(len(self.done("log", "G", "--json").lines), 2)
        self.clean()

    def test_sixteen_processes_insert_keys_of_their_own(self):
        for number in range(16):
            self.people("p%d.csv" % number, 100 * number, 20)
        results = self.together(*(("load", "G", "Person=p%d.csv" % number, "--workers", "1", "--json") for number in range(16)))
        self.assertEqual([r.code for r in results], [0] * 16, [r.err for r in results])
        self.assertEqual(self.done("count", "G", "Person").out, "320\n")
        self.clean()

    def test_readers_see_whole_commits_while_writers_write(self):
        for number in range(8):
            self.people("p%d.csv" % number, 1000 * number, 250)
        writers = [self.start("load", "G", "Person=p%d.csv" % number, "--workers", "1", "--json") for number in range(8)]
        seen = set()
        while any(writer.poll() is None for writer in writers):
            seen.add(int(self.finish(self.start("count", "G", "Person")).out))
        self.assertEqual([self.finish(writer).code for writer in writers], [0] * 8)
        self.assertEqual({count % 250 for count in seen}, {0})
        self.assertEqual(self.done("count", "G", "Person").out, "2000\n")

    def test_a_stopped_writer_is_not_taken_for_dead(self):
        self.people("a.csv", 0, 3000)
        self.people("b.csv", 10000, 10)
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
        stopped = self.start("load", "G", "Person=a.csv", "--workers", "1", "--json",
                             env={"SLUICE_FAILPOINT": "prepare.after_plan=sleep:1500"})
        other = self.finish(self.start("load", "G", "Person=b.csv", "--workers", "1", "--json"))
        self.assertEqual(other.code, 0, other.err)
        self.assertEqual(other.document["rows"], {"Person": 10})
        self.assertEqual(self.finish(stopped).code, 0)
        self.assertEqual(self.done("count", "G", "Person").out, "3010\n")

    def test_an_interrupt_before_arming_changes_nothing(self):
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
        self.people("a.csv", 0, 3000)
        process = self.start("load", "G", "Person=a.csv", "--json", env={"SLUICE_FAILPOINT": "load.before_fragment=sleep:20000"})
        while not os.listdir(self.path("G/attempts")) and process.poll() is None:
            self.finish(self.start("count", "G"))
        self.interrupt(process)
        result = self.finish(process)
        self.assertEqual(result.code, 130, result.err)
        self.assertEqual(result.error["code"], "CANCELLED")
        self.assertIs(result.error["committed"], False)
        self.assertEqual(self.done("count", "G", "Person").out, "0\n")
        self.load("Person=a.csv")
        self.clean()


if __name__ == "__main__":
    main()
