#!/usr/bin/env python3
"""--memory: the anonymous memory of all processes of a load stays below it, as the kernel counts it, and the load writes the same
bytes as one that may have what it likes; a bound that is too small is refused with the least that would do."""

import hashlib
import os
import random
import shutil
import time

from support.program import ProgramTest, descendants, main

MIB = 1 << 20
SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "string", "n": "int64"}, "unique": [["n"]]}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {"w": "int32?"}}}}
NARROW = {"nodes": {"P": {"key": "id", "properties": {"id": "int64"}}}, "edges": {"K": {"from": "P", "to": "P"}}}


def anonymous(pid):
    """Bytes of anonymous memory of a process and of all that it has forked."""
    total = 0
    for one in [pid] + descendants(pid):
        try:
            with open("/proc/%d/smaps_rollup" % one) as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("Anonymous:")) * 1024
        except OSError:
            continue
    return total


class Memory(ProgramTest):
    def setUp(self):
        super().setUp()
        build = self.done("version", "--json").document["build"]
        self.sanitized, self.failpoints = bool(build["sanitizers"]), build["failpoints"]

    def contents(self, graph):
        """Digests of fragments and runs; names carry the attempt's id and do not count."""
        digests = []
        for folder, _, names in os.walk(self.path(graph + "/tables")):
            for name in names:
                if not folder.endswith("lists"):
                    with open(os.path.join(folder, name), "rb") as file:
                        digests.append(hashlib.file_digest(file, "sha256").hexdigest() + os.path.basename(folder))
        return sorted(digests)

    def watch(self, *words, **options):
        """Runs a load; its result and the most anonymous memory that was seen."""
        process = self.start(*words, **options)
        peak = 0
        while process.poll() is None:
            peak = max(peak, anonymous(process.pid))
            time.sleep(0.01)
        return self.finish(process), peak

    def check_bound(self, bound, operands, *options):
        for graph in ("free", "bound"):
            shutil.rmtree(self.path(graph), ignore_errors=True)
            self.done("init", graph, "--schema", "schema.json")
        free, without = self.watch("load", "free", *operands, *options, "--workers", "2", "--json")
        self.assertEqual(free.code, 0, free.err)
        said, peak = self.watch("load", "bound", *operands, *options, "--workers", "2", "--memory", "%dM" % bound, "--json")
        self.assertEqual(said.code, 0, said.err)
        print("bound %d MiB: %.1f MiB at most, without a bound %.1f MiB" % (bound, peak / MIB, without / MIB), flush=True)
        if not self.sanitized:
            self.assertLessEqual(peak, bound * MIB)
            self.assertLessEqual(said.document["memory_peak"], bound * MIB)
            self.assertGreater(said.document["memory_peak"], MIB)
        self.assertEqual(self.contents("bound"), self.contents("free"))
        self.assertEqual(os.listdir(self.path("bound/attempts")), [])
        return peak, without

    def skip_what_cannot_be_measured(self):
        if self.sanitized and not os.environ.get("SLUICE_LONG"):
            self.skipTest("the sanitizers' own memory is far beyond any bound")

    def test_short_rows_in_great_number(self):
        self.skip_what_cannot_be_measured()
        dice = random.Random(1)
        self.write("schema.json", NARROW)
        self.write("p.csv", "id\n" + "".join("%d\n" % i for i in range(100)))
        self.write("k.csv", "from,to\n" + "".join("%d,%d\n" % (dice.randrange(100), dice.randrange(100)) for _ in range(1500000)))
        peak, without = self.check_bound(64, ("P=p.csv", "K=k.csv"))
        if not self.sanitized:
            self.assertGreater(without, 64 * MIB, "this input does not need the bound")

    def write_long_keys(self):
        dice = random.Random(2)
        keys = ["%s-%d" % ("key" * 20, i) for i in range(60000)]
        self.write("schema.json", SCHEMA)
        self.write("p.csv", "id,n\n" + "".join("%s,%d\n" % (key, i) for i, key in enumerate(keys)))
        self.write("k.csv", "from,to,w\n" + "".join("%s,%s,\n" % (dice.choice(keys), dice.choice(keys)) for _ in range(100000)))

    def test_long_keys(self):
        self.skip_what_cannot_be_measured()
        self.write_long_keys()
        self.check_bound(64, ("P=p.csv", "K=k.csv"))

    def test_long_keys_in_compressed_fragments(self):
        self.write_long_keys()
        self.check_bound(80, ("P=p.csv", "K=k.csv"), "--compress")
        self.clean("bound")
        said, peak = self.watch("load", "bound", "K=k.csv", "--compress", "--memory", "80M", "--workers", "2")
        self.assertEqual(said.code, 0, said.err)
        if not self.sanitized:
            self.assertLessEqual(peak, 80 * MIB)
        self.write("l.csv", "from,to,w\nnobody,nobody,1\n")
        self.assertIn("l.csv:2", self.refused(4, "load", "bound", "K=l.csv").err)

    def test_runs_that_are_spilled_are_the_same(self):
        if not self.failpoints:
            self.skipTest("a build without failpoints")
        dice = random.Random(3)
        self.write("schema.json", SCHEMA)
        self.write("p.csv", "id,n\n" + "".join("k%d,%d\n" % (i, i * 7) for i in range(3000)))
        self.write("k.csv", "from,to,w\n" + "".join("k%d,k%d,%d\n" % (dice.randrange(20), dice.randrange(3000), i) for i in range(5000)))
        found = []
        for entries in ("", "1", "7", "1000", "2999"):
            graph = "G" + entries
            self.done("init", graph, "--schema", "schema.json")
            env = {"SLUICE_TEST_SPILL": entries} if entries else {}
            self.done("load", graph, "P=p.csv", "K=k.csv", env=env)
            found.append(self.contents(graph))
            self.clean(graph)
        self.assertEqual(found, found[:1] * len(found))

    def test_a_bound_that_is_too_small_says_the_least(self):
        self.write("schema.json", NARROW)
        self.done("init", "G", "--schema", "schema.json")
        self.write("p.csv", "id\n1\n")
        said = self.refused(10, "load", "G", "P=p.csv", "--memory", "10M", "--workers", "2", "--json")
        self.assertEqual(said.error["code"], "RESOURCE_LIMIT")
        self.assertIs(said.error["committed"], False)
        least = said.err.split("the least is ")[1].split()[0]
        self.done("load", "G", "P=p.csv", "--memory", least, "--workers", "2")
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 1, "K": 0})
        self.assertIn("--memory", self.refused(2, "load", "G", "P=p.csv", "--memory", "0").err)
        self.refused(2, "load", "G", "P=p.csv", "--memory", "much")

    def test_workers_that_nobody_asked_for_do_not_make_a_bound_too_small(self):
        self.write("schema.json", NARROW)
        self.done("init", "G", "--schema", "schema.json")
        self.write("p.csv", "id\n1\n")
        self.done("load", "G", "P=p.csv", "--memory", "40M")

    def test_a_record_beyond_the_bound_is_named_and_changes_nothing(self):
        self.write("schema.json", {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "text": "string"}}}})
        self.done("init", "G", "--schema", "schema.json")
        self.write("p.csv", "id,text\n1,short\n2,\"%s\"\n" % ("x" * (8 * MIB)))
        said = self.refused(10, "load", "G", "P=p.csv", "--memory", "36M", "--workers", "1", "--json")
        self.assertIn("p.csv:3", said.err)
        self.assertIn("--memory", said.err)
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 0})
        self.done("load", "G", "P=p.csv", "--memory", "256M", "--workers", "1")
        self.clean()

    def test_a_load_that_runs_out_of_memory_ends_nobody_else(self):
        self.write("schema.json", {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "text": "string"}}}})
        for graph in ("one", "two", "three"):
            self.done("init", graph, "--schema", "schema.json")
        self.write("many.csv", "id,text\n" + "".join("%d,row %d\n" % (i, i) for i in range(200000)))
        self.write("big.csv", "id,text\n-1,\"%s\"\n" % ("x" * (8 * MIB)))
        loads = [self.start("load", graph, "P=many.csv", "--workers", "2", "--json") for graph in ("one", "two")]
        starved = [self.start("load", graph, "P=big.csv", "--memory", "36M", "--workers", "1", "--json")
                   for graph in ("one", "three")]
        reader = self.finish(self.start("count", "two", "P"))
        self.assertIn((reader.code, reader.out), ((0, "0\n"), (0, "200000\n")))
        for process in starved:
            result = self.finish(process)
            self.assertEqual((result.code, result.error["code"], result.error["committed"]), (10, "RESOURCE_LIMIT", False))
        for process in loads:
            self.assertEqual(self.finish(process).code, 0)
        for graph, rows in (("one", 200000), ("two", 200000), ("three", 0)):
            self.assertEqual(self.done("count", graph, "P").out, "%d\n" % rows)
            self.clean(graph)


if __name__ == "__main__":
    main()
