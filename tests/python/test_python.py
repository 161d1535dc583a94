#!/usr/bin/env python3
"""The Python package over the library of this build: what goes in comes out, as Arrow and not copied; errors are exceptions."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

SOURCE, BUILD = os.environ["SLUICE_SOURCE_DIR"], os.environ["SLUICE_BUILD_DIR"]
try:
    import cffi  # noqa: F401
    import duckdb
    import pandas
    import polars
    import pyarrow
    import pyarrow.parquet
except ImportError:
    print("skipped: cffi, pyarrow, polars, pandas and duckdb are not there (scripts/setup installs them)")
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
        with open(os.path.join(SOURCE, "python/sluice/interface.py"), encoding="utf-8") as file:
            self.assertEqual(file.read().split(), make_interface.interface(SOURCE).split(),
                             "build/venv/bin/python python/make_interface.py > python/sluice/interface.py")

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

    def test_batches_point_into_the_mapped_files(self):
        self.load_people(200000)
        batches = list(self.graph.scan("Person"))
        with open("/proc/self/maps", encoding="utf-8") as file:
            ranges = [tuple(int(end, 16) for end in line.split()[0].split("-")) for line in file if "/fragments/" in line]
        seen = 0
        for batch in batches:
            for column in batch.columns:
                for buffer in column.buffers():
                    if buffer is not None and buffer.size > 0:
                        self.assertTrue(any(low <= buffer.address and buffer.address + buffer.size <= high for low, high in ranges))
                        seen += 1
        self.assertGreaterEqual(seen, 6)

    def test_the_same_batches_are_one_thing_to_every_library(self):
        self.load_people()
        table = self.graph.scan("Person").read_all()
        frame = self.graph.to_polars("Person")
        self.assertTrue(frame.equals(polars.from_arrow(table)))
        pandas_frame = self.graph.to_pandas("Person", columns=["id", "name", "age"])
        self.assertIsInstance(pandas_frame, pandas.DataFrame)
        self.assertEqual(pandas_frame["age"].dropna().astype(int).tolist(), [age for age in table["age"].to_pylist() if age is not None])
        reader = self.graph.scan("Person", where="age >= 50")
        found = duckdb.from_arrow(reader).aggregate("count(*), sum(age), min(name)").fetchone()
        rows = [row for row in table.to_pylist() if row["age"] is not None and row["age"] >= 50]
        self.assertEqual(found, (len(rows), sum(row["age"] for row in rows), min(row["name"] for row in rows)))
        self.assertEqual(frame["age"].sum(), int(pandas_frame["age"].sum()))

    def test_what_other_libraries_hold_loads(self):
        self.graph.load({"Person": pandas.DataFrame({"id": [1, 2], "name": ["a", None]})})
        self.graph.load({"Person": duckdb.sql("select 3 :: bigint as id, 'c' as name, 7 :: int as age")})
        self.graph.load({"Person": polars.DataFrame({"id": [4], "age": [4]})})
        self.assertEqual(sorted(self.graph.to_polars("Person").rows()), [(1, "a", None), (2, None, None), (3, "c", 7), (4, None, 4)])

    def test_parquet_goes_out_and_in(self):
        self.load_people()
        path = os.path.join(self.folder.name, "people.parquet")
        self.assertEqual(sluice.to_parquet(self.graph.scan("Person"), path, compression="zstd"), 1000)
        self.assertTrue(pyarrow.parquet.read_table(path).equals(self.graph.scan("Person").read_all()))
        with sluice.Graph.create(os.path.join(self.folder.name, "h"), SCHEMA) as other:
            self.assertEqual(other.load({"Person": path}).inserted, 1000)
            self.assertTrue(other.to_polars("Person").equals(self.graph.to_polars("Person")))

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

    def test_differences_are_told_with_what_was_and_what_is(self):
        self.load_people(3)
        self.graph.mutate([{"op": "update", "node": "Person", "key": 1, "set": {"age": 50}}, {"op": "delete", "node": "Person", "key": 2},
                           {"op": "insert", "edge": "KNOWS", "from": 0, "to": 1}])
        found = self.graph.diff("2", "head")
        self.assertEqual([(c.change, c.type, c.name, c.before, c.after) for c in found],
                         [("update", "Person", {"key": 1}, {"age": 1}, {"age": 50}),
                          ("delete", "Person", {"key": 2}, {"id": 2, "name": "name 2", "age": 2}, None),
                          ("insert", "KNOWS", {"from": 0, "to": 1}, None, {"from": 0, "to": 1, "since": None})])
        self.assertEqual(sorted(c.change for c in self.graph.diff("head", "2")), ["delete", "insert", "update"])

    def test_a_feed_goes_on_where_it_was_left(self):
        self.load_people(3)
        with self.graph.changes() as feed:
            whole = feed.read()
            self.assertEqual([c.change for c in whole], ["insert"] * 3 + ["commit"])
            self.assertEqual((whole[-1].kind, whole[-1].commit, feed.cursor), ("load", self.graph.log()[0].commit, whole[-1].cursor))
        for i, change in enumerate(whole):
            with self.graph.changes(change.cursor) as feed:
                self.assertEqual(feed.read(), whole[i + 1:])
        with self.graph.changes() as feed:
            self.assertEqual(feed.read(2) + feed.read(1) + feed.read(), whole)
        with self.assertRaises(ValueError):
            feed.read()

    def test_iterating_over_a_feed_waits_for_more(self):
        self.load_people(1)

        def write():
            with sluice.Graph.open(self.graph.path) as other:
                other.mutate([{"op": "insert", "node": "Person", "key": 70}])
        seen = []
        with self.graph.changes("head") as feed:
            writer = threading.Thread(target=write)
            writer.start()
            for change in feed:
                seen.append((change.change, change.name))
                if change.change == "commit":
                    break
            writer.join()
        self.assertEqual(seen, [("insert", {"key": 70}), ("commit", {})])

    def test_what_a_feed_would_need_may_be_gone(self):
        for key in range(5):
            self.graph.mutate([{"op": "insert", "node": "Person", "key": key}])
        self.assertGreater(self.graph.gc(keep=1, dry_run=True).generations, 0)
        self.graph.gc(keep=1)
        with self.assertRaises(sluice.GapError) as caught:
            self.graph.changes()
        self.assertEqual((caught.exception.code, caught.exception.details["gap"]), ("NOT_FOUND", True))
        self.assertIn("--since COMMIT", caught.exception.hint)

    def test_branches_merge_or_their_conflicts_are_raised(self):
        self.load_people(3)
        self.graph.create_branch("side")
        rename = lambda name, **more: self.graph.mutate([{"op": "update", "node": "Person", "key": 1, "set": {"name": name}}], **more)
        self.assertEqual(self.graph.merge("side").outcome, "up-to-date")
        rename("theirs", branch="side")
        self.assertEqual(self.graph.merge("side").outcome, "fast-forward")
        rename("one", branch="side")
        rename("two")
        with self.assertRaises(sluice.MergeConflict) as caught:
            self.graph.merge("side")
        self.assertEqual([(c.kind, c.type, c.key, c.property) for c in caught.exception.conflicts], [("divergent-update", "Person", 1, "name")])
        self.assertFalse(caught.exception.committed)
        merged = self.graph.merge("side", on_conflict="ours", delete_source=True, message="mine")
        self.assertEqual((merged.outcome, merged.source_deleted, len(merged.receipt.commit)), ("merged", True, 36))
        self.assertEqual(self.graph.get("Person", 1)["name"], "two")
        self.assertEqual([b.name for b in self.graph.branches()], ["main"])

    def test_checkpoints_schemas_and_reverts(self):
        self.load_people(3)
        self.graph.create_checkpoint("three")
        self.graph.mutate([{"op": "delete", "node": "Person", "key": 1}])
        self.assertEqual([(c.name, c.generation) for c in self.graph.checkpoints()], [("three", 2)])
        self.assertEqual(self.graph.count("Person", at="three"), 3)
        self.assertEqual(len(self.graph.revert("three").commit), 36)
        self.assertEqual(self.graph.count("Person"), 3)
        wider = {"nodes": {"Person": {"key": "id", "properties": {"id": "int64", "age": "int64?"}}}, "edges": SCHEMA["edges"]}
        with self.assertRaises(sluice.SluiceError):
            self.graph.apply_schema(wider)
        self.assertIsNotNone(self.graph.apply_schema(wider, allow_data_loss=True).commit)
        self.assertEqual(self.graph.get("Person", 1), {"id": 1, "age": 1})
        self.graph.delete_checkpoint("three")
        self.assertEqual(self.graph.checkpoints(), [])

    def test_a_graph_is_copied_and_what_is_whole_of_a_damaged_one_saved(self):
        self.load_people(5000)
        copy, told = os.path.join(self.folder.name, "copy"), []
        self.assertTrue(self.graph.backup(copy, progress=told.append).first)
        self.assertGreater(told[-1].files, 0)
        self.graph.load({"Person": pyarrow.table({"id": [9000]})})
        again = self.graph.backup(copy)
        self.assertEqual((again.first, again.reused_files > 0), (False, True))
        with self.assertRaises(ZeroDivisionError):
            self.graph.backup(os.path.join(self.folder.name, "other"), progress=lambda so_far: 1 / 0)
        with sluice.Graph.open(copy) as other:
            self.assertEqual(other.count("Person"), 5001)
        names = [os.path.join(folder, name) for folder, _, found in os.walk(copy) for name in found if name.endswith(".arrow")]
        largest = max(names, key=os.path.getsize)
        with open(largest, "r+b") as file:
            file.seek(4000)
            file.write(b"damaged")
        saved = sluice.salvage(copy, "Person", os.path.join(self.folder.name, "saved"))
        self.assertFalse(saved.whole)
        self.assertTrue(saved.findings[0].lost)
        self.assertEqual(saved.lost_rows + saved.rows, 5001)
        with sluice.Graph.open(os.path.join(self.folder.name, "saved")) as anew:
            self.assertEqual(anew.count("Person"), saved.rows)
        with self.assertRaises(sluice.SluiceError) as caught:
            sluice.salvage(copy, "Person", os.path.join(self.folder.name, "saved"))
        self.assertEqual(caught.exception.code, "ALREADY_EXISTS")

    def test_bad_rows_are_left_out_and_named(self):
        path = os.path.join(self.folder.name, "bad.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write("id,name,age\n1,a,1\n2,b,x\n1,c,3\n")
        rejects = []
        receipt = self.graph.load({"Person": path}, on_error="skip", rejects=rejects, branch="new", create_branch=True)
        self.assertEqual((receipt.skipped, [(r.line, r.code) for r in rejects]), (2, [(3, "CONSTRAINT_TYPE"), (4, "KEY_CONFLICT")]))
        self.assertEqual((self.graph.count("Person"), self.graph.count("Person", branch="new")), (0, 1))
        with self.assertRaises(sluice.SluiceError):
            self.graph.load({"Person": path}, on_error="skip", max_errors=1)

    def test_snapshots_are_pinned_for_a_with_block(self):
        def pins():
            with open("/proc/self/maps", encoding="utf-8"), open("/proc/locks", encoding="utf-8") as locks:
                numbers = {line.split()[5].split(":")[2] for line in locks if " READ " in line and "OFDLCK" in line}
            return sum(str(os.stat(os.path.join(top, name)).st_ino) in numbers for top, _, names in os.walk(self.graph.path)
                       for name in names if name == "pins")
        self.load_people(2)
        with self.graph.snapshot() as snapshot:
            self.assertEqual(pins(), 1)
            reader = snapshot.scan("Person")
        self.assertEqual(pins(), 1)  # the reader goes on
        self.assertEqual(reader.read_all().num_rows, 2)
        del reader
        self.assertEqual(pins(), 0)

    def test_the_guide_gives_a_frame_in_six_lines(self):
        with open(os.path.join(SOURCE, "docs/embedding.md"), encoding="utf-8") as file:
            script = re.search(r"\n\$ python3 -c '\n(.*?)'\n", file.read(), re.S).group(1)
        self.assertEqual(len(script.splitlines()), 6)
        with open(os.path.join(self.folder.name, "people.csv"), "w", encoding="utf-8") as file:
            file.write("id,name,email,age\n1,Ada,,36\n2,Grace,,99\n")
        said = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, text=True, cwd=self.folder.name,
                              env=dict(os.environ, PYTHONPATH=os.path.join(SOURCE, "python"))).stdout
        self.assertIn("Grace", said)
        self.assertIn("shape: (1, 4)", said)

    def test_types_are_checked(self):
        try:
            import mypy  # noqa: F401
        except ImportError:
            self.skipTest("mypy is not there")
        package = self.copy_of_package()
        good = ("import sluice\n\ndef use(graph: sluice.Graph) -> int:\n    with graph.snapshot('main') as snapshot:\n"
                "        rows: int = snapshot.count('Person')\n    for change in graph.changes():\n        print(change.cursor)\n"
                "    return rows + graph.load({'Person': 'p.csv'}).inserted\n")
        for name, text in (("good.py", good), ("bad.py", good + "\nuse('not a graph')\n")):
            with open(os.path.join(self.folder.name, name), "w", encoding="utf-8") as file:
                file.write(text)
        said = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=skip", "--ignore-missing-imports", "--no-error-summary", "--cache-dir",
                               os.devnull, os.path.join(package, "sluice"), "good.py", "bad.py"], check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, cwd=self.folder.name, env=dict(os.environ, MYPYPATH=package)).stdout
        self.assertEqual([line.split(":")[0] for line in said.splitlines()], ["bad.py"], said)
        self.assertIn("[arg-type]", said)

    def test_errors_name_arguments_of_python_and_no_flags(self):
        for said, wanted in (
                ("--mode upsert updates what is there already, --on-error skip leaves such rows out",
                 "mode='upsert' updates what is there already, on_error='skip' leaves such rows out"),
                ("give --memory 64M or more, or fewer --workers", "give memory='64M' or more, or fewer workers"),
                ("did you mean \"a\"? (--ignore-unknown leaves it out)", "did you mean \"a\"? (ignore_unknown=True leaves it out)"),
                ("if this stands for no value, add: --null 'NA'", "if this stands for no value, add: null='NA'"),
                ("`sluice gc GRAPH --keep 1` makes room", "`sluice gc GRAPH --keep 1` makes room")):
            self.assertEqual(sluice._for_python(said), wanted)
        with sluice.Graph.create(os.path.join(self.folder.name, "flags"), SCHEMA) as graph:
            graph.load({"Person": pyarrow.table({"id": [1], "name": ["a"], "age": [3]})})
            with self.assertRaises(sluice.SluiceError) as caught:
                graph.load({"Person": pyarrow.table({"id": [1], "name": ["b"], "age": [4]})})
        self.assertEqual(caught.exception.code, "KEY_CONFLICT")
        self.assertIn("mode='upsert'", str(caught.exception))
        self.assertNotIn("--", caught.exception.hint)

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
        return shutil.copytree(os.path.join(SOURCE, "python"), os.path.join(self.folder.name, "package"))


if __name__ == "__main__":
    unittest.main()
