#!/usr/bin/env python3
"""Backups of a graph that is in use, taken over and over, each compared with a state that existed; backups that are killed; what is
refused.

Writers identify themselves: each commit of a writer adds the next number of its own to two types, so a copy is a state that existed
when no number below another is missing and both types hold the same.
"""

import json
import os
import shutil
import threading

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"A": {"key": "id", "properties": {"id": "string"}}, "B": {"key": "id", "properties": {"id": "string"}}},
          "edges": {}}
WRITES = 8


class Backup(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        self.write("a.csv", "id\n" + "".join("x-%d\n" % i for i in range(3)))
        self.load("A=a.csv", "B=a.csv")

    def quietly(self, *words, codes=(0,), **options):
        """Like done, without looking at other processes: beside threads."""
        result = self.finish(self.start(*words, **options))
        self.assertIn(result.code, codes, "%s\n%s\n%s" % (" ".join(words), result.out, result.err))
        return result

    def add(self, graph, name, *words):
        self.write(name + ".jsonl", "".join(json.dumps({"op": "insert", "node": t, "set": {"id": name}}) + "\n" for t in "AB"))
        self.quietly("mutate", graph, name + ".jsonl", *words)

    def backup(self, *words, graph="G"):
        return self.quietly("backup", graph, "D", "--json", *words).document

    def chains(self, graph):
        """The newest number of each writer, when the graph is a state that existed."""
        found = []
        for type_name in "AB":
            newest = {}
            for line in self.quietly("scan", graph, type_name, "--json").lines:
                writer, number = line["id"].split("-")
                newest.setdefault(writer, set()).add(int(number))
            for writer, numbers in newest.items():
                self.assertEqual(numbers, set(range(len(numbers))), writer)
            found.append({writer: len(numbers) for writer, numbers in newest.items()})
        self.assertEqual(found[0], found[1])
        return found[0]

    def test_backups_beside_writers_optimize_and_gc_are_states_that_existed(self):
        failed, before = [], {"x": 3}

        def guarded(work):
            try:
                work()
            except BaseException as problem:  # told by the main thread
                failed.append(problem)

        def write(name):
            for i in range(WRITES):
                self.add("G", "%s-%d" % (name, i))

        def maintain():
            for _ in range(3):
                self.quietly("optimize", "G", codes=(0, 3))
                self.quietly("gc", "G", "--keep", "2", codes=(0, 3))

        threads = [threading.Thread(target=guarded, args=(lambda name=name: write(name),)) for name in "pq"]
        threads.append(threading.Thread(target=guarded, args=(maintain,)))
        for thread in threads:
            thread.start()
        while True:
            last = not any(thread.is_alive() for thread in threads)
            self.backup()
            self.assertEqual(json.loads(self.quietly("verify", "D", "--json").out)["problems"], [])
            now = self.chains("D")
            self.assertTrue(all(now[writer] >= count for writer, count in before.items()), (before, now))
            before = now
            if last:
                break
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        self.assertEqual(before, {"x": 3, "p": WRITES, "q": WRITES})
        self.assertEqual(self.content("D"), self.content("G"))
        self.assertEqual(self.backup()["copied"], {"files": 0, "bytes": 0})

    def test_a_backup_has_branches_checkpoints_history_and_receipts(self):
        operation = "9b2d1c3e-0000-4000-8000-000000000007"
        self.add("G", "p-0", "--op-id", operation)
        self.done("checkpoint", "create", "G", "mark")
        self.done("branch", "create", "G", "a/b")
        self.add("G", "q-0", "--branch", "a/b")
        self.add("G", "q-0")
        self.assertTrue(self.backup()["first"])
        for words in (("log",), ("branch", "list"), ("checkpoint", "list"), ("schema", "show")):
            command, rest = (words[0], words[1:])
            self.assertEqual(self.done(command, *rest, "D", "--json").out, self.done(command, *rest, "G", "--json").out)
        self.assertEqual(self.rows("A", "D", "--at", "mark"), self.rows("A", "G", "--at", "mark"))
        again = self.done("mutate", "D", "p-0.jsonl", "--op-id", operation, "--json").document
        self.assertEqual(again["commit"]["id"], self.done("mutate", "G", "p-0.jsonl", "--op-id", operation, "--json").document["commit"]["id"])
        for folder, _, names in os.walk(self.path("D")):
            self.assertEqual(os.stat(folder).st_mode & 0o777, 0o700)
            for name in names:
                self.assertEqual(os.stat(os.path.join(folder, name)).st_mode & 0o777, 0o600)
        self.clean("D")
        # Copied back, it is the graph.
        shutil.rmtree(self.path("G"))
        shutil.copytree(self.path("D"), self.path("G"))
        self.add("G", "p-1")
        self.assertFalse(self.backup()["first"])
        self.assertEqual(self.content("D"), self.content("G"))

    def test_what_the_graph_has_no_more_goes(self):
        for i in range(40):
            self.add("G", "p-%d" % i)
        self.backup()
        self.done("branch", "create", "G", "gone")
        self.backup()
        self.done("branch", "delete", "G", "gone")
        self.done("optimize", "G")
        self.done("gc", "G", "--keep", "1")
        self.assertGreater(self.backup()["removed"]["files"], 0)
        self.clean("D")
        self.assertEqual(self.content("D"), self.content("G"))

        def objects(graph):
            return sorted(os.path.relpath(os.path.join(folder, name), self.path(graph))
                          for folder, _, names in os.walk(self.path(graph)) for name in names
                          if "/tables/" in folder or "/branches/" in folder)
        self.assertEqual(objects("D"), objects("G"))

    def test_a_killed_backup_leaves_the_state_before_and_is_finished_by_the_next(self):
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
        for first in (True, False):
            old = None if first else self.content("D")
            if not first:
                self.add("G", "p-0")
                self.done("branch", "create", "G", "b")
            for point in ("volume.publish=kill@2", "volume.sync=kill@9", "volume.sync_dir=kill@12", "volume.write=kill@15"):
                result = self.finish(self.start("backup", "G", "D", env={"SLUICE_FAILPOINT": point}))
                self.assertEqual(result.code, -9, result.err)
                if first:
                    self.assertIn("run the same", self.refused(7, "count", "D").err)
                    self.refused(8, "init", "D", "--schema", "schema.json")
                else:
                    self.assertEqual(self.content("D"), old)
                    self.assertEqual(len(self.done("branch", "list", "D", "--json").lines), 1)
                    self.clean("D")
            self.assertEqual(self.backup()["first"], first)
            self.assertEqual(self.content("D"), self.content("G"))
            self.clean("D")

    def test_a_folder_that_is_no_place_for_it_is_refused(self):
        self.refused(2, "backup", "G", "G")
        self.refused(2, "backup", "G", "G/inside")
        self.refused(2, "backup", "G", ".")
        self.refused(8, "backup", "G", "nowhere/D")
        os.mkdir(self.path("full"), 0o700)
        self.write("full/mine", "x")
        self.refused(8, "backup", "G", "full")
        self.assertEqual(os.listdir(self.path("full")), ["mine"])
        self.init(SCHEMA, "other")
        self.assertIn("another graph", self.refused(8, "backup", "G", "other").err)
        os.symlink("nothing", self.path("link"))
        self.assertNotEqual(self.run_program("backup", "G", "link").code, 0)
        self.backup()
        self.add("D", "q-0")
        held = self.content("D")
        error = self.refused(8, "backup", "G", "D", "--json").error
        self.assertEqual((error["code"], error["committed"]), ("ALREADY_EXISTS", False))
        self.assertEqual(self.content("D"), held)
        # A copy that is ahead of its graph: this one would go back.
        shutil.copytree(self.path("G"), self.path("old"))
        self.add("G", "q-0")
        self.quietly("backup", "G", "E")
        self.refused(8, "backup", "old", "E")

    def test_damage_in_the_graph_ends_it_and_the_backup_stays(self):
        self.backup()
        held = self.content("D")
        self.write("b.csv", "id\n" + "".join("y-%d\n" % i for i in range(500)))
        before = set(os.listdir(self.path("G/tables/64/fragments")))
        self.load("A=b.csv")
        (new,) = set(os.listdir(self.path("G/tables/64/fragments"))) - before
        with open(self.path("G/tables/64/fragments/" + new), "r+b") as file:
            file.seek(1000)
            byte = file.read(1)
            file.seek(1000)
            file.write(bytes([byte[0] ^ 1]))
        said = self.refused(6, "backup", "G", "D")
        self.assertIn(new, said.err)
        self.assertEqual(self.content("D"), held)
        self.clean("D")
        with open(self.path("G/tables/64/fragments/" + new), "r+b") as file:
            file.seek(1000)
            file.write(byte)
        self.backup()
        self.assertEqual(self.content("D"), self.content("G"))


if __name__ == "__main__":
    main()
