#!/usr/bin/env python3
"""A graph whose files somebody has replaced: by links, pipes, folders, files of other people or with other modes. Each is refused by its
kind, nobody waits, nothing behind a link is read or changed, and with the file put back the graph goes on. SLUICE_LONG=1: all files."""

import json
import os
import shutil

from support.program import ProgramTest, main

LONG = bool(os.environ.get("SLUICE_LONG"))
SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "v": "string?"}}}, "edges": {}}
REFUSALS = {"UNSUPPORTED_FILESYSTEM": 7, "UNSUPPORTED_FORMAT": 7, "CORRUPT": 6, "PERMISSION": 2, "RECOVERY_REQUIRED": 5}


def symbolic_link(path, outside):
    os.rename(path, outside)
    os.symlink(outside, path)


def hard_link(path, outside):
    os.link(path, outside)


def pipe(path, outside):
    os.rename(path, outside)
    os.mkfifo(path, 0o600)


def folder(path, outside):
    os.rename(path, outside)
    os.mkdir(path, 0o700)


def for_others(path, outside):
    shutil.copy2(path, outside)
    os.chmod(path, 0o666)


def of_another(path, outside):
    shutil.copy2(path, outside)
    os.chown(path, 12345, 12345)


HAZARDS = [symbolic_link, hard_link, pipe, folder, for_others] + ([of_another] if os.geteuid() == 0 else [])
# What every command needs, and what those need that change control/. The others are for some, or are derived.
AUTHORITIES = ("FORMAT", "graph.json", "branches/1/CURRENT", "branches/1/log/1.seg")
CONTROL = ("control/CURRENT", "control/log/1.seg")


class Hazards(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        self.write("p.csv", "id,v\n1,a\n2,b\n")
        self.load("P=p.csv")
        self.done("branch", "create", "G", "b")
        self.key = 100

    def files(self):
        found = []
        for path, _, names in os.walk(self.path("G")):
            found += [os.path.relpath(os.path.join(path, name), self.path("G")) for name in names]
        return sorted(found)

    def write_one(self, *words):
        self.key += 1
        self.write("m.jsonl", json.dumps({"op": "insert", "node": "P", "set": {"id": self.key}}) + "\n")
        return self.finish(self.start("mutate", *(words or ("G",)), "m.jsonl", "--json"))

    def read_all(self):
        return self.finish(self.start("scan", "G", "P", "--json"))

    def check(self, result, what, refused):
        self.assertNotIn("Sanitizer", result.err, what)
        if result.code == 0:
            self.assertFalse(refused, what)
            return
        code = json.loads(result.out.splitlines()[-1])["error"]["code"]
        self.assertIn(code, REFUSALS, (what, result.err))
        self.assertEqual(result.code, REFUSALS[code], what)

    def put_back(self, hazard, path, outside):
        if hazard is hard_link:  # both names are the file
            os.remove(outside)
            return
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.remove(path)
        os.rename(outside, path)

    def meet(self, name, hazard):
        """Plants it, looks, and puts the file back."""
        path, outside, what = self.path("G/" + name), self.path("outside"), (name, hazard.__name__)
        hazard(path, outside)
        try:
            with open(outside, "rb") as file:
                before = file.read(), os.stat(outside).st_mtime_ns
            self.check(self.read_all(), what + ("read",), name in AUTHORITIES)
            self.key += 1
            self.check(self.write_one() if name not in CONTROL else
                       self.finish(self.start("checkpoint", "create", "G", "c%d" % self.key, "--json")), what + ("write",),
                       name in AUTHORITIES + CONTROL)
            if name in AUTHORITIES + CONTROL or hazard is not hard_link:
                with open(outside, "rb") as file:
                    self.assertEqual((file.read(), os.stat(outside).st_mtime_ns), before, what)
        finally:
            self.put_back(hazard, path, outside)

    def test_each_is_refused_and_nothing_behind_it_is_touched(self):
        names = self.files()
        self.assertLessEqual(set(AUTHORITIES + CONTROL), set(names))
        chosen = [name for name in names if name in AUTHORITIES + CONTROL or name in ("intents", "claims", "branches/1/acknowledged")
                  or name.startswith("refs/") or name.endswith(".arrow")]
        for number, name in enumerate(names if LONG else chosen):
            for hazard in HAZARDS if LONG or name == "branches/1/CURRENT" else HAZARDS[number % 2::2]:
                with self.subTest(name=name, hazard=hazard.__name__):
                    self.meet(name, hazard)
        rows = self.read_all()
        self.assertEqual(rows.code, 0, rows.err)
        self.assertEqual(self.write_one().code, 0)
        self.clean()

    def test_folders_that_are_links_are_never_walked(self):
        for name in ("branches/1", "branches", "tables", "refs", "control/log", "locks"):
            with self.subTest(name=name):
                path, outside = self.path("G/" + name), self.path("elsewhere")
                os.rename(path, outside)
                os.symlink(outside, path)
                before = sorted(os.listdir(outside))
                self.check(self.write_one(), (name,), True)
                self.assertEqual(sorted(os.listdir(outside)), before)
                os.remove(path)
                os.rename(outside, path)
        self.assertEqual(self.write_one().code, 0)
        self.clean()

    def test_a_link_in_the_path_of_a_graph_is_refused_wherever_it_stands(self):
        os.mkdir(self.path("a"))
        os.rename(self.path("G"), self.path("a/G"))
        os.symlink("a", self.path("b"))
        os.symlink("a/G", self.path("G"))
        for graph in ("b/G", "G", "./b/../b/G"):
            with self.subTest(graph=graph):
                result = self.write_one(graph)
                self.assertEqual((result.code, result.error["code"]), (7, "UNSUPPORTED_FILESYSTEM"), result.err)
                self.refused(7, "scan", graph, "P")
        self.assertEqual(self.write_one("a/G").code, 0)

    def test_a_root_that_others_may_write_to_or_own_takes_no_write(self):
        os.chmod(self.path("G"), 0o777)
        result = self.write_one()
        self.assertEqual((result.code, result.error["code"]), (2, "PERMISSION"))
        os.chmod(self.path("G"), 0o700)
        if os.geteuid() == 0:
            os.chown(self.path("G"), 12345, 12345)
            result = self.write_one()
            self.assertEqual((result.code, result.error["code"]), (2, "PERMISSION"))
            os.chown(self.path("G"), 0, 0)
        self.assertEqual(self.write_one().code, 0)


if __name__ == "__main__":
    main()
