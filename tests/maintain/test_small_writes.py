#!/usr/bin/env python3
"""Single rows written and deleted by several processes at once, then optimize and gc (R124): every delete goes through, and in the end
a graph takes about what it would if it had been loaded with its rows at once."""

import json
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "v": "string"}}}}
GRAPHS, WRITERS, STEPS = (20, 5, 50) if os.environ.get("SLUICE_LONG") else (2, 3, 8)
TRIES = 50
MORE = 2 << 20  # segments and slots have sizes of their own


class SmallWrites(ProgramTest):
    def size(self, graph):
        return sum(os.stat(os.path.join(folder, name)).st_blocks * 512
                   for folder, _, names in os.walk(self.path(graph)) for name in names)

    def mutate(self, graph, record):
        name = self.write("%s-%d.jsonl" % (graph, threading.get_ident()), json.dumps(record) + "\n")
        for _ in range(TRIES):  # whoever waited too long for others is told to come again
            result = self.run_program("mutate", graph, name)
            if result.code != 3:
                break
        if result.code != 0:
            self.failures.append((record, result.code, result.err))

    def write_rows(self, graph, number):
        for step in range(STEPS):
            key = number * 1000 + step
            self.mutate(graph, {"op": "insert", "node": "P", "set": {"id": key, "v": "x" * 50}})
            if step % 4:
                self.mutate(graph, {"op": "delete", "node": "P", "key": key})

    def test_single_rows_by_many_take_no_more_than_their_rows_afterwards(self):
        graphs = ["G%d" % i for i in range(GRAPHS)]
        self.failures = []
        for graph in graphs:
            self.init(SCHEMA, graph)
        threads = [threading.Thread(target=self.write_rows, args=(graph, number)) for graph in graphs for number in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.failures, [])
        left = sorted(number * 1000 + step for number in range(WRITERS) for step in range(0, STEPS, 4))
        self.write("all.csv", "id,v\n" + "".join("%d,%s\n" % (key, "x" * 50) for key in left))
        self.init(SCHEMA, "once")
        self.load("P=all.csv", graph="once")
        for graph in graphs:
            self.assertEqual(sorted(row["id"] for row in self.rows("P", graph)), left)
            self.done("optimize", graph)
            self.done("gc", graph, "--keep", "1")
            self.assertEqual(sorted(row["id"] for row in self.rows("P", graph)), left)
            self.assertLessEqual(self.size(graph), self.size("once") + MORE, graph)
            self.clean(graph)


if __name__ == "__main__":
    main()
