#!/usr/bin/env python3
"""neighbors says the same, in the same order, with adjacency, without it, and with what is stale, partial, damaged or gone
(O-13, OW-046, L-043, N-03; R136, R143): against a search over the scanned edges, on random graphs with loops, parallel edges and
several kinds of keys."""

import glob
import json
import os
import random
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "w": "float64?"}},
                    "C": {"key": "code", "properties": {"code": "string"}},
                    "S": {"key": ["x", "y"], "properties": {"x": "int32", "y": "string"}},
                    "D": {"key": "day", "properties": {"day": "date"}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {"n": "int64?"}},
                    "L": {"from": "P", "to": "C", "properties": {}, "key": []},
                    "V": {"from": "S", "to": "P", "properties": {}},
                    "T": {"from": "C", "to": "D", "properties": {}}}}
OFF = {"SLUICE_NO_INDEXES": "1"}
ALL_OFF = {**OFF, "SLUICE_NO_RUNS": "1", "SLUICE_NO_PINS": "1", "SLUICE_NO_GATES": "1"}
PEOPLE, CITIES = 60, 12


def day(i):
    return "2026-01-%02d" % (1 + i)


class Index(ProgramTest):
    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("SLUICE_SEED", 20261201))
        print("SLUICE_SEED=%d" % self.seed, flush=True)
        self.random = random.Random(self.seed)
        self.init(SCHEMA)
        self.write("p.csv", "id\n" + "".join("%d\n" % i for i in range(PEOPLE)))
        self.write("c.csv", "code\n" + "".join("c%d\n" % i for i in range(CITIES)))
        self.write("s.csv", "x,y\n" + "".join("%d,s%d\n" % (i % 3 - 1, i) for i in range(CITIES)))
        self.write("d.csv", "day\n" + "".join(day(i) + "\n" for i in range(CITIES)))
        self.load("P=p.csv", "C=c.csv", "S=s.csv", "D=d.csv")
        self.lived = set()

    def more_edges(self, count):
        pick = lambda n: self.random.randrange(n)
        lives = []
        while len(lives) < count // 3:
            pair = (pick(PEOPLE), pick(CITIES))
            if pair not in self.lived:
                self.lived.add(pair)
                lives.append(pair)
        self.write("k.csv", "from,to,n\n" + "".join("%d,%d,%d\n" % (pick(PEOPLE) // 2, pick(PEOPLE), i) for i in range(count)))
        self.write("l.csv", "from,to\n" + "".join("%d,c%d\n" % pair for pair in lives))
        spots = [pick(CITIES) for _ in range(count // 3)]
        self.write("v.csv", "from.x,from.y,to\n" + "".join("%d,s%d,%d\n" % (i % 3 - 1, i, pick(PEOPLE)) for i in spots))
        self.write("t.csv", "from,to\n" + "".join("c%d,%s\n" % (pick(CITIES), day(pick(CITIES))) for _ in range(count // 3)))
        people = {row["id"] for row in self.rows("P")}
        self.keep("k.csv", lambda f: int(f[0]) in people and int(f[1]) in people)
        self.keep("l.csv", lambda f: int(f[0]) in people)
        self.keep("v.csv", lambda f: int(f[2]) in people)
        self.load("K=k.csv", "L=l.csv", "V=v.csv", "T=t.csv")

    def keep(self, name, wanted):
        head, *lines = self.read(name).splitlines()
        self.write(name, "\n".join([head] + [line for line in lines if wanted(line.split(","))]) + "\n")

    def reach(self, start, direction, depth, only=None):
        """{(type, key): depth}, by a search over the edges as they are scanned."""
        steps = {}
        for name, edge in SCHEMA["edges"].items():
            if only not in (None, name):
                continue
            for row in self.edges[name]:
                a, b = (edge["from"], json.dumps(row["from"])), (edge["to"], json.dumps(row["to"]))
                if direction != "in":
                    steps.setdefault(a, []).append(b)
                if direction != "out":
                    steps.setdefault(b, []).append(a)
        found, frontier = {start: 0}, [start]
        for level in range(1, depth + 1):
            fresh = []
            for node in frontier:
                for other in steps.get(node, []):
                    if other not in found:
                        found[other] = level
                        fresh.append(other)
            frontier = fresh
        del found[start]
        return found

    def compare(self, samples=6):
        self.edges = {name: self.rows(name) for name in SCHEMA["edges"]}
        starts = [("P", (str(i),), i) for i in self.random.sample([r["id"] for r in self.rows("P")], 3)]
        starts += [("C", ("c3",), "c3"), ("S", ('["-1", "s3"]',), [-1, "s3"]), ("D", (day(2),), day(2))]
        for type_name, words, key in starts[:samples]:
            direction, depth = self.random.choice(["out", "in", "both"]), self.random.randrange(1, 5)
            only = self.random.choice([None, None, "K"])
            command = ["neighbors", "G", type_name, *words, "--direction", direction, "--depth", str(depth), "--json"]
            command += ["--edge", only] if only else []
            out = self.done(*command).out
            self.assertEqual(out, self.done(*command, env=self.random.choice([OFF, ALL_OFF])).out, command)
            said = {(row["type"], json.dumps(row["key"])): row["depth"] for row in map(json.loads, out.splitlines())}
            self.assertEqual(said, self.reach((type_name, json.dumps(key)), direction, depth, only), command)

    def coverage(self):
        types = self.done("status", "G", "--json").document["branches"][0]["types"]
        return {t["type"]: (t["indexed"], t["fragments"]) for t in types if t["kind"] == "edge"}

    def test_neighbours_are_the_same_with_any_index_and_none(self):
        self.more_edges(150)
        self.more_edges(100)
        self.compare()
        document = self.done("index", "G", "--json").document
        self.assertEqual(document["tables"]["K"]["before"]["indexed"], 0)
        self.assertEqual(self.coverage(), {name: (2, 2) for name in SCHEMA["edges"]})
        self.assertIsNone(self.done("index", "G", "--json").document["commit"])
        self.clean()
        self.compare()
        self.more_edges(60)  # not covered
        self.assertEqual(self.coverage()["K"], (2, 3))
        self.compare()
        lines = "".join(json.dumps({"op": "delete", "node": "P", "key": key, "detach": True}) + "\n" for key in (3, 17, 31))
        self.write("gone.jsonl", lines)
        self.done("mutate", "G", "gone.jsonl")
        self.compare()
        self.done("optimize", "G", "K", "V")  # what comes in has adjacency, as what went had
        self.assertEqual(self.coverage()["K"], (1, 1))
        self.assertEqual(self.coverage()["V"], (1, 1))
        self.assertEqual(self.coverage()["L"][0], 2)
        self.clean()
        self.compare()
        self.more_edges(30)
        self.assertEqual(self.done("index", "G", "K", "--json").document["tables"]["K"]["before"]["indexed"], 1)
        self.assertEqual(self.coverage()["K"], (2, 2))
        self.compare()
        self.done("index", "G")
        self.assertTrue(all(indexed == fragments for indexed, fragments in self.coverage().values()))
        self.clean()
        self.done("gc", "G")  # R136: what an index needs is never collected
        self.clean()
        self.compare()

    def test_hashes_that_collide_change_no_answer(self):
        """All hashes alike: every edge is a candidate everywhere, and told apart by its keys."""
        self.environment["SLUICE_TEST_EQUAL_HASHES"] = "1"
        shutil.rmtree(self.path("G"))
        self.init(SCHEMA)
        self.load("P=p.csv", "C=c.csv", "S=s.csv", "D=d.csv")
        self.more_edges(80)
        self.done("index", "G")
        self.clean()
        self.compare()

    def test_a_replaced_node_type_leaves_no_wrong_neighbours(self):
        """Ends are known by their keys: an overwrite of the nodes, which gives them other row ids, changes no adjacency."""
        self.more_edges(80)
        self.done("index", "G")
        self.load("P=p.csv", "--mode", "overwrite")
        self.compare()

    def test_a_damaged_or_lost_index_changes_no_answer_and_is_told_and_rebuilt(self):
        self.more_edges(150)
        self.done("index", "G")
        table = next(t for t in os.listdir(self.path("G/tables")) if glob.glob(self.path("G/tables/%s/indexes/*" % t)))
        files = sorted(glob.glob(self.path("G/tables/%s/indexes/*" % table)))
        self.assertEqual(len(files), 2)
        with open(files[0], "rb") as file:
            whole = file.read()
        places = [100, len(whole) // 2, len(whole) - 200, len(whole) - 1]
        for place in places:
            os.chmod(files[0], 0o600)
            with open(files[0], "r+b") as file:
                file.seek(place)
                file.write(bytes([whole[place] ^ 0x10]))
            self.compare(3)
            self.refused_verify(os.path.relpath(files[0], self.path("G")))
            with open(files[0], "wb") as file:
                file.write(whole)
        self.clean()
        for path in files:
            os.remove(path)
        self.compare(3)
        self.done("index", "G")
        self.compare(3)
        self.assertEqual(len(glob.glob(self.path("G/tables/%s/indexes/*" % table))), 2)

    def refused_verify(self, path):
        result = self.run_program("verify", "G", "--json")
        self.assertEqual(result.code, 6)
        self.assertIn(path, [problem["object"] for problem in result.document["problems"]])

    def test_lost_runs_are_made_again(self):
        self.more_edges(60)
        before = {p: os.stat(p).st_size for p in glob.glob(self.path("G/tables/*/keys/*.run"))}
        self.assertTrue(before)
        for path in before:
            os.remove(path)
        self.assertEqual(self.done("get", "G", "P", "7", "--json").lines[0]["id"], 7)  # read without them
        self.refused(4, "load", "G", "P=p.csv")
        self.done("index", "G")
        after = glob.glob(self.path("G/tables/*/keys/*.run"))
        self.assertEqual(sorted(map(os.path.getsize, after)), sorted(before.values()))
        self.assertEqual(self.done("get", "G", "P", "7", "--json").lines[0]["id"], 7)
        self.refused(4, "load", "G", "P=p.csv")
        self.assertIsNone(self.done("index", "G", "--json").document["commit"])
        self.compare(3)

    def test_keys_are_found_by_look_up_and_by_scan_alike_after_everything(self):
        """R143: updates, deletes, optimize, index."""
        self.write("u.jsonl", "".join(json.dumps({"op": "update", "node": "P", "key": i, "set": {"w": i / 2}}) + "\n"
                                      for i in range(0, PEOPLE, 3)) +
                   "".join(json.dumps({"op": "delete", "node": "P", "key": i, "detach": True}) + "\n" for i in range(1, PEOPLE, 7)))
        self.more_edges(40)
        self.done("mutate", "G", "u.jsonl")
        before = self.content()
        for command in ("index", "optimize", "index"):
            self.done(command, "G")
            self.assertEqual(self.content(), before, command)
        scanned = {row["id"]: row for row in self.rows("P")}
        for key in range(0, PEOPLE, 5):
            found = self.run_program("get", "G", "P", str(key), "--json")
            self.assertEqual(found.lines if found.code == 0 else [], [scanned[key]] if key in scanned else [])
        self.clean()


if __name__ == "__main__":
    main()
