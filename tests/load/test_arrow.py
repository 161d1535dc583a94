#!/usr/bin/env python3
"""Loads of Arrow files keep what every load keeps: the same bytes at any number of workers, a worker's death survived, a change of
the file told, a repeated request answered. The files are those that export writes."""

import hashlib
import os

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "string", "text": "string?", "n": "int32?"}, "unique": [["n"]]}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {"w": "float64"}, "key": ["w"]}}}
ROWS = 900


class ArrowLoads(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA, "source")
        self.write("p.csv", "id,text,n\n" + "".join(f"k{i},{'text' * (i % 9)},{i}\n" for i in range(ROWS)))
        self.write("k.csv", "from,to,w\n" + "".join(f"k{i * 7 % ROWS},k{i},{i / 4}\n" for i in range(ROWS)))
        self.load("P=p.csv", "K=k.csv", graph="source")
        self.done("export", "source", "out", "--format", "arrow")
        self.failpoints = self.done("version", "--json").document["build"]["failpoints"]

    def contents(self, graph):
        """Digests of fragments and runs."""
        found = []
        for folder, _, names in os.walk(self.path(graph + "/tables")):
            for name in names if not folder.endswith("lists") else []:
                with open(os.path.join(folder, name), "rb") as file:
                    found.append((os.path.relpath(folder, self.path(graph)), hashlib.sha256(file.read()).hexdigest()))
        return sorted(found)

    def load_arrow(self, graph, *words, **options):
        self.init(SCHEMA, graph)
        return self.run_program("load", graph, "K=out/K.arrow", "P=out/P.arrow", *words, **options)

    def test_the_same_bytes_at_any_number_of_workers_and_any_cut(self):
        if not self.failpoints:
            self.skipTest("chunks cannot be made small in this build")
        first = None
        for workers, piece in (("1", "1"), ("2", "64"), ("7", "1000000")):
            graph = "G" + workers
            said = self.load_arrow(graph, "--workers", workers, env={"SLUICE_TEST_CHUNK": "3000", "SLUICE_SPLIT": piece})
            self.assertEqual(said.code, 0, said.err)
            first = first or self.contents(graph)
            self.assertGreater(len(first), 20)
            self.assertEqual(self.contents(graph), first)
            self.assertEqual(self.content(graph), self.content("source"))
            self.clean(graph)

    def test_a_killed_worker_does_not_stop_the_load(self):
        if not self.failpoints:
            self.skipTest("a build without failpoints")
        for point in ("load.before_fragment", "load.after_fragment_sync", "load.after_task_result"):
            said = self.load_arrow(point, "--workers", "2",
                                   env={"SLUICE_FAILPOINT": point + "=kill@3", "SLUICE_TEST_CHUNK": "3000"})
            self.assertEqual(said.code, 0, said.err)
            self.assertEqual(self.content(point), self.content("source"))
            self.clean(point)

    def test_a_file_that_changes_under_a_load_is_told(self):
        if not self.failpoints:
            self.skipTest("a build without failpoints")
        path = self.path("out/P.arrow")
        with open(path, "rb") as file:
            content = file.read()
        changed = content.replace(b"texttext", b"TEXTTEXT", 1)
        self.init(SCHEMA, "G")
        for point, after in (("load.after_boundaries", changed), ("load.before_fragment", content[:len(content) // 2])):
            process = self.start("load", "G", "P=out/P.arrow", "--workers", "1", "--json", env={"SLUICE_FAILPOINT": point + "=stop"})
            stopped = self.stopped_worker(process)
            self.write("out/P.arrow", after)
            os.kill(stopped, 18)
            said = self.finish(process)
            self.assertEqual((said.code, said.error["code"]), (4, "INPUT_CHANGED"), said.err)
            self.write("out/P.arrow", content)
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 0, "K": 0})

    def test_a_repeated_request_gives_the_first_result(self):
        operation = "0193b1c2-7d1e-7a52-8f0e-3f6f6a0c9a11"
        first = self.load_arrow("G", "--op-id", operation, "--json").document
        again = self.done("load", "G", "K=out/K.arrow", "P=out/P.arrow", "--op-id", operation, "--json").document
        self.assertEqual((again["repeated"], again["commit"], again["rows"]), (True, first["commit"], {"P": ROWS, "K": ROWS}))
        said = self.refused(9, "load", "G", "P=out/P.arrow", "--op-id", operation, "--json")
        self.assertEqual(said.error["code"], "IDEMPOTENCY_CONFLICT")


if __name__ == "__main__":
    main()
