"""What the tests of compressed inputs and of streams share: the rows, and what must hold after a load of them."""

import os
import shutil
import subprocess

from support.program import TIMEOUT, ProgramTest

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string?"}}}}
ROWS = 300
TEXT = "id,name\n" + "".join("%d,name %d\n" % (i, i) for i in range(ROWS))
SMALL = {"SLUICE_SPLIT": "97"}


class Sources(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)

    def check_whole(self, graph="G"):
        self.assertEqual(self.done("count", graph, "--json").document, {"P": ROWS})
        self.assertEqual(sum(row["id"] for row in self.rows("P", graph)), ROWS * (ROWS - 1) // 2)
        self.check_nothing_left(graph)

    def check_nothing_left(self, graph="G"):
        self.assertEqual(os.listdir(self.path(graph + "/attempts")), [])
        self.clean(graph)

    def refused_whole(self, code, exit_status, operand, words, *options, **more):
        """A load that fails at any number of workers and leaves no row."""
        for workers in ("1", "3"):
            said = self.refused(exit_status, "load", "G", "P=" + operand, "--json", "--workers", workers, *options, **more)
            self.assertEqual(said.error["code"], code)
            self.assertIs(said.error["committed"], False)
            for word in words:
                self.assertIn(word, said.err)
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 0})

    def zstd(self, text):
        if shutil.which("zstd") is None:
            self.skipTest("no zstd program")
        return subprocess.run(["zstd", "-q", "-c"], input=text.encode(), stdout=subprocess.PIPE, check=True, timeout=TIMEOUT).stdout

    def fresh(self, graph):
        self.done("init", graph, "--schema", "schema.json")
        return graph

    def need_failpoints(self):
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
