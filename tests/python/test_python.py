#!/usr/bin/env python3
"""The Python package over the library of this build: what goes in comes out, as Arrow and not copied; errors are exceptions."""

import os
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = os.environ["SLUICE_SOURCE_DIR"], os.environ["SLUICE_BUILD_DIR"]
try:
    import cffi  # noqa: F401
    import polars
    import pyarrow
except ImportError:
    print("skipped: cffi, pyarrow and polars are not there (scripts/setup installs them)")
    sys.exit(77)
if "asan" in BUILD:
    print("skipped: a sanitized library does not load into this Python")
    sys.exit(77)
os.environ["SLUICE_LIBRARY"] = os.path.join(BUILD, "libsluice.so")
sys.path[:0] = [os.path.join(SOURCE, "python")]
import make_interface  # noqa: E402
import sluice  # noqa: E402

SCHEMA = {
    "nodes": {"Person": {"key": "id", "properties": {"id": "int64", "name": "string?", "age": "int32?"}}},
    "edges": {"KNOWS": {"from": "Person", "to": "Person", "properties": {"since": "date?"}, "key": []}},
}


class Package(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("SLUICE_TEST_DIR") or os.path.realpath("."))
        self.addCleanup(self.folder.cleanup)
        self.graph = sluice.Graph.create(os.path.join(self.folder.name, "g"), SCHEMA)
        self.addCleanup(self.graph.close)

    def load_people(self, count=1000):
        ids = list(range(count))
        return self.graph.load({"Person": pyarrow.table({"id": ids, "name": ["name %d" % i for i in ids],
                                                         "age": [i % 100 if i % 3 else None for i in ids]})})

    def test_the_declarations_are_those_of_the_headers(self):
        with open(os.path.join(SOURCE, "python/sluice/interface.cdef"), encoding="utf-8") as file:
            self.assertEqual(file.read().split(), make_interface.interface(SOURCE).split(),
                             "python3 python/make_interface.py > python/sluice/interface.cdef")

    def test_tables_frames_and_files_load_and_come_back(self):
        receipt = self.load_people()
        self.assertEqual((receipt.inserted, receipt.acknowledged, len(receipt.commit)), (1000, True, 36))
        edges = polars.DataFrame({"from": [1, 2], "to": [2, 3], "since": [None, "2026-01-31"]})
        self.graph.load({"KNOWS": edges})
        path = os.path.join(self.folder.name, "more.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write("id,name,age\n5000,late,1\n")
        seen = []
        self.graph.load([("Person", path)], message="one more", progress=lambda rows, count: seen.append(rows))
        self.assertEqual(seen[-1], 1)
        frame = polars.from_arrow(self.graph.scan("Person", columns=["age", "id"], where="age >= 98").read_all())
        self.assertEqual(frame.columns, ["age", "id"])
        self.assertEqual(sorted(frame["age"].unique().to_list()), [98, 99])
        self.assertEqual(self.graph.count("Person"), 1001)
        self.assertEqual(self.graph.scan("Person", limit=3).read_all().num_rows, 3)
        self.assertEqual(self.graph.scan("Person", limit=0).read_all().num_rows, 0)
        self.assertEqual(self.graph.log()[0].message, "one more")
        self.assertEqual([c.kind for c in self.graph.log(limit=2)], ["load", "load"])

    def test_what_is_scanned_is_not_copied_and_outlives_the_graph(self):
        self.load_people()
        before = pyarrow.total_allocated_bytes()
        reader = self.graph.scan("Person")
        self.graph.close()
        table = reader.read_all()
        self.assertEqual(pyarrow.total_allocated_bytes(), before)
        del reader
        self.assertEqual(table.column("id")[999].as_py(), 999)
        self.assertEqual(table.column("age").null_count, 334)
        self.assertEqual(table.schema.field("age").type, pyarrow.int32())

    def test_changes_keys_and_neighbours(self):
        self.load_people(10)
        receipt = self.graph.mutate([{"op": "upsert", "node": "Person", "key": 7, "set": {"name": "Ada"}},
                                     {"op": "insert", "edge": "KNOWS", "from": 7, "to": 8},
                                     {"op": "insert", "edge": "KNOWS", "from": 8, "to": 9}], actor="me")
        self.assertEqual((receipt.inserted, receipt.updated), (2, 1))
        self.assertEqual(self.graph.get("Person", 7), {"id": 7, "name": "Ada", "age": 7})
        self.assertIsNone(self.graph.get("Person", 99))
        self.assertEqual(self.graph.neighbors("Person", 7, depth=2), [("Person", 8, 1), ("Person", 9, 2)])
        self.assertEqual(self.graph.neighbors("Person", 9, edge="KNOWS", direction="in"), [("Person", 8, 1)])
        self.assertEqual(self.graph.log()[0].actor, "me")
        again = self.graph.mutate('{"op": "delete", "node": "Person", "key": 0}', dry_run=True)
        self.assertEqual((again.commit, again.deleted), (None, 1))

    def test_snapshots_stay_and_branches_part(self):
        self.load_people(10)
        with self.graph.snapshot() as before:
            self.graph.create_branch("draft")
            self.graph.mutate([{"op": "delete", "node": "Person", "key": 1}], branch="draft")
            self.graph.mutate([{"op": "insert", "node": "Person", "key": 100}])
            self.assertEqual(before.count("Person"), 10)
            self.assertEqual(self.graph.count("Person", at=before.commit), 10)
            self.assertEqual(before.schema()["nodes"]["Person"]["key"], "id")
        self.assertEqual(self.graph.count("Person", branch="draft"), 9)
        self.assertEqual(sorted(b.name for b in self.graph.branches()), ["draft", "main"])
        self.graph.delete_branch("draft")
        with self.assertRaises(ValueError):
            before.count("Person")

    def test_errors_are_exceptions_with_the_envelope(self):
        self.load_people(10)
        with self.assertRaises(sluice.SluiceError) as caught:
            self.load_people(1)
        self.assertEqual((caught.exception.code, caught.exception.committed), ("KEY_CONFLICT", False))
        with self.assertRaises(sluice.SluiceError) as caught:
            self.graph.count("Persn")
        self.assertIn("Person", caught.exception.hint)
        with self.assertRaises(sluice.SluiceError) as caught:
            sluice.Graph.open(os.path.join(self.folder.name, "none"))
        self.assertEqual(caught.exception.code, "NOT_FOUND")
        with self.assertRaises(TypeError):
            self.graph.load({"Person": 7})
        with self.assertRaises(ValueError):
            self.graph.load({"Person": "x.csv"}, mode="replace")

        def stop(_rows, _bytes):
            raise KeyError("enough")
        with self.assertRaises(KeyError):
            self.graph.load({"Person": pyarrow.table({"id": [100, 101]})}, progress=stop)
        self.assertEqual(self.graph.count("Person"), 10)

    def test_pip_installs_it(self):
        target = os.path.join(self.folder.name, "site")
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation",
                               "--target", target, self.copy_of_package()],
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout)
        script = "import sluice, sys; assert sluice.__file__.startswith(sys.argv[1]); print(sluice.version())"
        said = subprocess.run([sys.executable, "-c", script, target], check=True, stdout=subprocess.PIPE, text=True,
                              env=dict(os.environ, PYTHONPATH=target)).stdout
        self.assertEqual(said, "0.1.0\n")

    def copy_of_package(self):
        """pip builds in the folder itself: not in the sources."""
        import shutil
        return shutil.copytree(os.path.join(SOURCE, "python"), os.path.join(self.folder.name, "package"))


if __name__ == "__main__":
    unittest.main()
