#!/usr/bin/env python3
"""Merging from the command line: what is printed, how it ends, and schemas that changed on the way."""

import signal
import uuid

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string?"}}}}


class Merging(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        self.mutate("main", *('{"op":"insert","node":"P","set":{"id":%d}}' % i for i in range(3)))
        self.done("branch", "create", "G", "b")

    def mutate(self, branch, *lines):
        self.write("m.jsonl", "".join(line + "\n" for line in lines))
        return self.done("mutate", "G", "m.jsonl", "--branch", branch, "--json").document

    def rename(self, branch, key, name):
        self.mutate(branch, '{"op":"update","node":"P","key":%d,"set":{"name":"%s"}}' % (key, name))

    def table(self, branch="main"):
        return {row["id"]: row for row in self.done("scan", "G", "P", "--json", "--branch", branch).lines}

    def test_history_is_drawn(self):
        self.rename("b", 1, "x")
        self.rename("main", 0, "y")
        self.rename("b", 1, "z")
        self.assertEqual(self.done("merge", "G", "b", "--json").document["outcome"], "merged")
        told = self.done("log", "G", "--graph").out.splitlines()
        self.assertEqual([line[:3] for line in told[1:]], ["\u25c9\u2500\u256e", "\u2502 \u25cf", "\u25cf \u2502", "\u251c\u2500\u25cf",
                                                           "\u25cf  ", "\u25cf  "])
        ids = [line["commit"] for line in self.done("log", "G", "--graph", "--json").lines]
        self.assertEqual([commit for line in told for commit in line.split() if commit in ids and line.index(commit) < 9], ids)

    def test_the_document_says_what_was_done(self):
        self.assertEqual(self.done("merge", "G", "b", "--json").document["outcome"], "up-to-date")
        self.rename("b", 1, "x")
        told = self.done("merge", "G", "b", "--json").document
        self.assertEqual((told["outcome"], told["inserted"], told["updated"], told["commit"]["branch"]), ("fast-forward", 0, 1, "main"))
        shown = self.done("show", "G", told["commit"]["id"], "--json").document
        self.assertEqual((shown["kind"], len(shown["parents"]), shown["parents"][1]), ("merge", 2, told["source"]))
        self.rename("b", 1, "y")
        self.rename("main", 2, "z")
        self.assertIn("merged: inserted 0, updated 1, deleted 0", self.done("merge", "G", "b", "--delete-source", "-m", "why").out)
        self.assertEqual({key: row["name"] for key, row in self.table().items()}, {0: None, 1: "y", 2: "z"})
        self.assertEqual(self.done("log", "G", "--json", "-n", "1").lines[0]["message"], "why")
        self.refused(8, "merge", "G", "b")
        self.clean()

    def test_the_log_of_all_parents_lists_what_merges_brought_in_once(self):
        self.done("branch", "create", "G", "c", "--from", "b")
        for turn in range(3):
            self.rename("b", 1, "b%d" % turn)
            self.rename("c", 0, "c%d" % turn)
            self.rename("main", 2, "m%d" % turn)
            self.done("merge", "G", "c", "--into", "b")
            self.done("merge", "G", "b")
        lines = self.done("log", "G", "--all", "--json").lines
        mine = [line["commit"] for line in self.done("log", "G", "--json").lines]
        ids = [line["commit"] for line in lines]
        place = {commit: at for at, commit in enumerate(ids)}
        self.assertEqual(len(place), len(ids))
        self.assertEqual(len(ids), 2 + 3 * 5)
        self.assertEqual([commit for commit in ids if commit in mine], mine)
        for line in lines:
            for parent in line["parents"]:
                self.assertGreater(place[parent], place[line["commit"]])
        self.assertEqual([line["commit"] for line in self.done("log", "G", "--all", "-n", "4", "--json").lines], ids[:4])
        told = self.done("log", "G", "--all").out
        merges = [line["parents"][1] for line in lines if len(line["parents"]) == 2]
        self.assertEqual(len(merges), 6)
        for parent in merges:
            self.assertIn(parent, told)
        self.assertNotIn(ids[0], self.done("log", "G", "--all", "--branch", "b", "--json").out)
        self.done("branch", "delete", "G", "c")
        self.done("branch", "delete", "G", "b")
        self.done("gc", "G")
        left = [line["commit"] for line in self.done("log", "G", "--all", "--json").lines]
        self.assertEqual([commit for commit in left if commit in mine], mine)
        self.assertEqual(left, [commit for commit in ids if commit in set(left)])

    def test_memory_is_bounded_and_what_only_one_side_did_needs_none(self):
        if self.done("version", "--json").document["build"]["sanitizers"]:
            self.skipTest("the sanitizers' own memory is far beyond any bound")
        self.write("many.csv", "id,name\n" + "".join("%d,%s\n" % (i, "n" * 40) for i in range(10, 120_010)))
        self.done("load", "G", "P=many.csv", "--branch", "b")
        self.rename("b", 0, "x")
        self.done("branch", "create", "G", "same", "--from", "main")
        self.rename("same", 1, "y")                 # nodes changed on both sides: row by row
        before = self.done("log", "G", "--json", "--branch", "same").out
        said = self.refused(10, "merge", "G", "b", "--into", "same", "--memory", "24M", "--json")
        self.assertEqual((said.error["code"], said.error["committed"]), ("RESOURCE_LIMIT", False))
        self.assertIn("--memory", said.err)
        self.assertEqual(self.done("log", "G", "--json", "--branch", "same").out, before)
        self.refused(2, "merge", "G", "b", "--memory", "0")
        self.mutate("main", '{"op":"insert","node":"P","set":{"id":5}}')
        self.done("branch", "create", "G", "more", "--from", "main")
        self.write("more.csv", "id,name\n" + "".join("%d,%s\n" % (-i, "m" * 40) for i in range(1, 120_001)))
        self.done("load", "G", "P=more.csv", "--branch", "more")
        self.mutate("main", '{"op":"insert","node":"P","set":{"id":6}}')
        self.assertEqual(self.done("merge", "G", "more", "--memory", "24M", "--json").document["outcome"], "merged")
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 120_005})
        self.clean()

    def test_the_source_goes_by_recovery_and_its_failure_is_no_failure_of_the_merge(self):
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
        for point in ("arm.after", "publish.before_append", "publish.after_log_record_sync", "finalize.before_follow",
                      "branch.before_remove", "branch.after_remove", "finalize.before_retire"):
            name = "s-" + point
            self.done("branch", "create", "G", name)
            self.rename(name, 1, point)
            killed = self.run_program("merge", "G", name, "--delete-source", env={"SLUICE_FAILPOINT": point + "=kill"})
            self.assertEqual(killed.code, -signal.SIGKILL, point)
            self.done("recover", "G")
            self.assertEqual(self.table()[1]["name"], point)
            self.assertNotIn(name, [line["branch"] for line in self.done("branch", "list", "G", "--json").lines])
        self.rename("b", 2, "x")
        told = self.done("merge", "G", "b", "--delete-source", "--json", env={"SLUICE_FAILPOINT": "finalize.before_follow=error"}).document
        self.assertEqual((told["outcome"], told["branch_deleted"]), ("merged", False))
        self.assertTrue(told["reason"])
        self.assertIn("b", [line["branch"] for line in self.done("branch", "list", "G", "--json").lines])
        self.clean()

    def test_conflicts_are_listed_and_end_with_3(self):
        for branch in ("b", "main"):
            self.rename(branch, 1, "of " + branch)
            self.mutate(branch, '{"op":"insert","node":"P","set":{"id":9,"name":"%s"}}' % branch)
        before = self.table()
        said = self.refused(3, "merge", "G", "b", "--json", "--op-id", str(uuid.uuid4()))
        document = said.lines[0]
        self.assertEqual((document["outcome"], document["commit"], document["conflicts_found"]), ("conflict", None, 2))
        self.assertEqual(sorted((c["kind"], c["type"], c["key"], c["property"]) for c in document["conflicts"]),
                         [("divergent-insert", "P", "9", "name"), ("divergent-update", "P", "1", "name")])
        self.assertTrue(all(c["ours"] and c["theirs"] and c["ours"] != c["theirs"] for c in document["conflicts"]))
        self.assertEqual((said.error["code"], said.error["committed"]), ("MERGE_CONFLICT", False))
        self.assertIn("conflict divergent-update: P 1, property name", self.refused(3, "merge", "G", "b").out)
        self.assertEqual(self.table(), before)
        self.done("merge", "G", "b", "--on-conflict", "theirs")
        self.assertEqual(self.table(), self.table("b"))

    def test_a_schema_comes_along_and_what_both_added_under_one_name_is_a_conflict(self):
        wider = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "label": {"type": "string?", "renamed_from": "name"}, "n": "int64?"}},
                           "Q": {"key": "k", "properties": {"k": "int64"}}}}
        self.write("wider.json", wider)
        self.done("branch", "create", "G", "other")
        self.rename("b", 1, "x")
        self.done("schema", "apply", "G", "wider.json", "--branch", "b")
        self.mutate("b", '{"op":"insert","node":"Q","set":{"k":1}}', '{"op":"update","node":"P","key":0,"set":{"n":5}}')
        self.assertEqual(self.done("merge", "G", "b", "--json").document["outcome"], "fast-forward")
        self.assertEqual(self.table(), self.table("b"))
        self.assertEqual(self.table()[0], {"id": 0, "label": None, "n": 5})
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 3, "Q": 1})
        self.rename("other", 2, "old")          # a name of before: the property is the same
        self.done("merge", "G", "other")
        self.assertEqual(self.table()[2]["label"], "old")
        self.done("schema", "apply", "G", "wider.json", "--branch", "other")    # R165: other ids, so other properties
        self.mutate("other", '{"op":"insert","node":"P","set":{"id":7,"n":1}}')
        before = self.table()
        said = self.refused(3, "merge", "G", "other", "--json")
        self.assertEqual([(c["kind"], c["type"], c["property"]) for c in said.lines[0]["conflicts"]],
                         [("schema", "P", "n"), ("schema", "Q", None)])
        heads = {branch: self.done("log", "G", "-n", "1", "--json", "--branch", branch).document["commit"] for branch in ("main", "other")}
        self.assertEqual({(c["ours"], c["theirs"]) for c in said.lines[0]["conflicts"]}, {(heads["main"], heads["other"])})
        self.assertEqual(self.table(), before)
        self.clean()


if __name__ == "__main__":
    main()
