#!/usr/bin/env python3
"""The pipes to and from Parquet of docs/operations.md, as they stand there: rows go out by pyarrow and by DuckDB, and come in again."""

import os
import re
import subprocess
import sys

from support.program import TIMEOUT, ProgramTest, main

SCHEMA = {"nodes": {"Person": {"key": "id", "properties": {"id": "int64", "name": "string?", "age": "int32?", "joined": "timestamp?",
                                                            "born": "date?", "score": "float64?"}}},
          "edges": {"KNOWS": {"from": "Person", "to": "Person", "properties": {"since": "date?"}, "key": []}}}


def recipes():
    with open(os.path.join(os.environ["SLUICE_SOURCE_DIR"], "docs/operations.md"), encoding="utf-8") as file:
        part = file.read().split("\n### Parquet\n")[1]
    block = re.search(r"```sh\n(.*?)```", part, re.S).group(1)
    return [command.strip() for command in re.split(r"^\$ ", block, flags=re.M) if command.strip()]


class Parquet(ProgramTest):
    def setUp(self):
        super().setUp()
        try:
            import duckdb  # noqa: F401
            import pyarrow  # noqa: F401
        except ImportError:
            self.skipTest("pyarrow and duckdb are not there")
        self.write("schema.json", SCHEMA)
        for name in ("social", "other"):
            self.done("init", name, "--schema", "schema.json")
        self.write("p.csv", "id,name,age,joined,born,score\n1,Ada,36,2026-01-31T12:00:00Z,1815-12-10,0.5\n2,,,,,\n"
                            + "".join("%d,n%d,%d,,,\n" % (i, i, i % 90) for i in range(3, 3000)))
        self.write("k.csv", "from,to,since\n1,2,2026-01-31\n2,3,\n")
        self.load("Person=p.csv", "KNOWS=k.csv", graph="social")

    def shell(self, command):
        folder = os.path.join(self.folder, "bin")
        os.makedirs(folder, exist_ok=True)
        for name, target in (("sluice", self.program), ("python3", sys.executable)):
            script = self.write(os.path.join("bin", name), '#!/bin/sh\nexec "%s" "$@"\n' % target)
            os.chmod(self.path(script), 0o755)
        path = os.pathsep.join([folder, os.environ["PATH"]])
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=self.folder, env={**self.environment, "PATH": path},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT, check=False)
        if b"terminate called without an active exception" not in done.stderr:  # a thread of DuckDB's met the end of its Python
            self.assertEqual(done.returncode, 0, command + "\n" + done.stderr.decode())

    def test_what_goes_out_comes_in_again(self):
        import pyarrow.parquet
        commands = recipes()
        self.assertEqual(len(commands), 4)
        for command in commands[:2]:  # out, by pyarrow and by DuckDB
            self.shell(command)
            table = pyarrow.parquet.read_table(self.path("people.parquet"))
            self.assertEqual((table.num_rows, table.column("name")[0].as_py()), (2999, "Ada"))
        rows = self.rows("Person", "social")
        for number, command in enumerate(commands[2:]):  # in, by pyarrow and by DuckDB
            branch = "b%d" % number
            self.done("branch", "create", "other", branch)
            self.shell(command.replace("load other ", "load other --branch %s " % branch))
            self.assertEqual(self.rows("Person", "other", "--branch", branch), rows)


if __name__ == "__main__":
    main()
