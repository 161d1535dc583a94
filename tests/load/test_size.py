#!/usr/bin/env python3
"""A million nodes and five million edges (SLUICE_LONG): loaded, exported and loaded again they are the same, in every format, within a
small bound of memory too."""

import hashlib
import os
import shutil
import subprocess

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"N": {"key": "id", "properties": {"id": "int64", "name": "string", "age": "int32", "score": "float64",
                                                       "created": "timestamp"}}},
          "edges": {"E": {"from": "N", "to": "N", "properties": {"weight": "float64", "since": "int64"}}}}
LONG = 600


class Size(ProgramTest):
    def setUp(self):
        super().setUp()
        if not os.environ.get("SLUICE_LONG"):
            self.skipTest("runs with SLUICE_LONG=1")
        if shutil.which("cc") is None:
            self.skipTest("there is no C compiler")
        source = os.path.join(os.environ["SLUICE_SOURCE_DIR"], "tests/bench/graph_files.c")
        subprocess.run(["cc", "-O2", source, "-o", self.path("graph_files")], check=True)
        subprocess.run([self.path("graph_files"), self.folder, "1000000", "5000000"], check=True)

    def export(self, graph):
        """The digest of each type's file: rows are exported in the order in which they were loaded."""
        shutil.rmtree(self.path("out"), ignore_errors=True)
        self.done("export", graph, "out", timeout=LONG)
        found = {}
        for name in sorted(os.listdir(self.path("out"))):
            with open(os.path.join(self.path("out"), name), "rb") as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
        return found

    def test_there_and_back(self):
        self.init(SCHEMA)
        self.done("load", "G", "N=nodes.csv", "E=edges.csv", timeout=LONG)
        want = self.export("G")
        self.assertEqual(self.done("count", "G", "--json").document, {"N": 1000000, "E": 5000000})
        for form in ("csv", "jsonl", "arrow"):
            self.done("export", "G", form, "--format", form, timeout=LONG)
            self.init(SCHEMA, "H")
            self.done("load", "H", "N=%s/N.%s" % (form, form), "E=%s/E.%s" % (form, form), "--memory", "64M", "--workers", "2",
                      timeout=LONG)
            self.assertEqual(self.export("H"), want, form)
            self.assertEqual(self.done("verify", "H", "--json", timeout=LONG).document["problems"], [])
            shutil.rmtree(self.path("H"))
            shutil.rmtree(self.path(form))


if __name__ == "__main__":
    main()
