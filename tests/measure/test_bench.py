#!/usr/bin/env python3
"""scripts/bench holds together: a tiny run with SQLite beside it writes its files and says what is met and what is not; who cannot be
had, and who fails, is named, and the others go on."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["SLUICE_SOURCE_DIR"]
BUILD = os.environ["SLUICE_BUILD_DIR"]
sys.path.insert(0, os.path.join(SOURCE, "tests/bench"))

from harness import bars, bench, measure, report, results  # noqa: E402


class Whole(unittest.TestCase):
    def test_a_tiny_run_measures_every_part_and_writes_its_results(self):
        if not os.path.exists(os.path.join(BUILD, "tests/bench/peer_sluice")):
            self.skipTest("the programs that measure are not built under the sanitizers")
        with tempfile.TemporaryDirectory(dir=os.environ.get("SLUICE_TEST_DIR") or BUILD) as folder:
            found = os.path.join(folder, "results")
            ran = subprocess.run([sys.executable, os.path.join(SOURCE, "scripts/bench"), "--tiny", "--peers", "sqlite", "--build", BUILD,
                                  "--folder", folder, "--results", found], capture_output=True, text=True)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            with open(os.path.join(found, "rows.json")) as file:
                said = json.load(file)
            with open(os.path.join(found, "table.md")) as file:
                table = file.read()
            self.assertTrue(os.path.exists(os.path.join(found, "rows.csv")))
            again = subprocess.run([sys.executable, os.path.join(SOURCE, "scripts/bench"), "--tiny", "--only", "limits", "--peers", "sqlite",
                                    "--build", BUILD, "--folder", folder, "--results", found], capture_output=True, text=True)
            self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
            with open(os.path.join(found, "rows.json")) as file:
                self.others(said["rows"], json.load(file)["rows"], "limits")
            self.assertEqual(os.listdir(folder), ["results"])  # graphs and files are gone
        self.assertEqual(said["failures"], [])
        self.assertEqual(set(said["left out"]) - {"sqlite"}, {"lmdb", "rocksdb", "duckdb", "kuzu", "ladybug", "lancedb", "postgresql"})
        parts = {row["part"] for row in said["rows"]}
        self.assertEqual(parts, {"limits", "load", "commits", "history", "reads", "optimize", "gates", "command"})
        self.assertEqual(set(said["seconds of each part"]), parts)
        self.assertIn("| sluice get as a process, 1k + 5k |", table)
        self.assertIn("| load of 1k + 5k, 2 workers | kuzu | ≤ 0.3 | not measured |", table)
        if "sqlite" not in said["left out"]:
            answers = {row["value"] for row in said["rows"] if row["measure"] == "answer of 2-hop"}
            self.assertEqual(len(answers), 1)  # sluice and SQLite found the same

    def others(self, before, after, part):
        """A part that was run again has replaced its own rows, and nothing else."""
        def split(rows):
            own = [row for row in rows if row["part"] == part]
            return [row for row in rows if row["part"] != part], [{**row, "value": None} for row in own], own
        self.assertEqual(split(before)[:2], split(after)[:2])
        self.assertNotEqual(split(before)[2], split(after)[2])

    def test_an_unknown_part_is_refused(self):
        ran = subprocess.run([sys.executable, os.path.join(SOURCE, "scripts/bench"), "--only", "nothing"], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("limits", ran.stderr)


class Rules(unittest.TestCase):
    def test_a_bar_is_met_by_the_ratio_of_medians(self):
        found = results.Results()
        for run, value in enumerate((9.0, 1.0, 2.0)):
            found.add("load", "g", "sluice", "wall", "s", run, value)
        found.add("load", "g", "kuzu", "wall", "s", 0, 8.0)
        ours, theirs = ("load", "g", "sluice", "wall"), ("load", "g", "kuzu", "wall")
        most, least = bars.Bar("load", "kuzu", ours, theirs, 0.3), bars.Bar("load", "kuzu", ours, theirs, 0.3, least=True)
        self.assertEqual(most.value(found), 0.25)
        self.assertTrue(most.met(0.25) and not least.met(0.25))
        absent = bars.Bar("load", "duckdb", ours, ("load", "g", "duckdb", "wall"), 1)
        self.assertIsNone(absent.value(found))
        lines = report.bars_table(found, [most, least, absent])
        self.assertIn("| load | kuzu | ≤ 0.3 | 0.25 × | met |", lines)
        self.assertIn("| load | kuzu | ≥ 0.3 | 0.25 × | **missed** |", lines)
        self.assertIn("| load | duckdb | ≤ 1 | not measured |  |", lines)

    def test_subjects_take_turns_and_who_fails_is_named(self):
        found, order = results.Results(), []

        def fails(run):
            order.append("b%d" % run)
            raise measure.Failed("it is broken")
        one = bench.Bench("/nowhere", "/nowhere", sys.executable, bench.TINY, 3, found)
        one.in_turns("part", "case", {"a": lambda run: order.append("a%d" % run), "b": fails, "c": lambda run: order.append("c%d" % run)})
        self.assertEqual(order, ["a0", "b0", "c0", "c1", "a1", "a2", "c2"])
        self.assertEqual(found.failures, [{"part": "part", "case": "case", "subject": "b", "reason": "it is broken"}])

    def test_a_program_that_fails_says_why(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(measure.Failed, "ended with 3: one | two"):
                measure.run(["sh", "-c", "echo one >&2; echo two >&2; exit 3"], folder)
            ran = measure.run(["sh", "-c", 'echo \'{"measure": "m", "unit": "s", "value": 2}\''], folder)
            self.assertEqual(ran.measures(), {"m": ("s", 2)})

    def test_tables_replace_those_between_the_marks_of_a_document(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.md")
            with open(path, "w") as file:
                file.write("# Page\n\n%s\nold\n%s\n\nrest\n" % (report.BEGIN, report.END))
            for _ in range(2):
                report.put_into(path, "# Benchmark\n\nseen\n\n## load\n")
            with open(path) as file:
                self.assertEqual(file.read(), "# Page\n\n%s\nseen\n\n### load\n%s\n\nrest\n" % (report.BEGIN, report.END))
            with open(path, "w") as file:
                file.write("no marks\n")
            self.assertRaises(ValueError, report.put_into, path, "# Benchmark\n")

    def test_results_are_read_as_they_were_written(self):
        found = results.Results()
        found.add("part", "case", "sluice", "wall", "s", 0, 1.5)
        found.leave_out("kuzu", "it is not installed")
        found.durations["part"] = 2.0
        with tempfile.TemporaryDirectory() as folder:
            found.write(folder, {"size": "tiny"})
            again, about = results.read(os.path.join(folder, "rows.json"))
        self.assertEqual(again.without(["part"]).rows, [])
        self.assertEqual((again.rows, again.left_out, again.durations, about), (found.rows, found.left_out, found.durations, {"size": "tiny"}))


if __name__ == "__main__":
    unittest.main()
