#!/usr/bin/env python3
"""Branches from the command line: names, places to begin at, history across the fork, deletion, exact retries, collection."""

import os
import signal
import uuid

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string?"}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {"w": "int64?"}, "key": []}}}


class Branches(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        self.put(1)

    def put(self, key, branch="main", *words):
        self.write("p.csv", "id,name\n%d,n%d\n" % (key, key))
        return self.done("load", "G", "P=p.csv", "--branch=" + branch, "--json", *words).document

    def keys(self, branch="main", *words):
        return [row["id"] for row in self.done("scan", "G", "P", "--json", "--branch=" + branch, *words).lines]

    def branches(self):
        return {line["branch"]: line for line in self.done("branch", "list", "G", "--json").lines}

    def head(self, branch="main"):
        return self.branches()[branch]["head"]

    def folders(self):
        return sorted(os.listdir(self.path("G/branches")), key=int)

    # ---- creating ----

    def test_a_branch_begins_where_its_source_stands_and_then_goes_its_own_way(self):
        made = self.done("branch", "create", "G", "b", "--json").document
        self.assertEqual(made["commit"]["id"], self.head())
        self.assertEqual(made["branch"], "b")
        self.put(2)
        self.put(3, "b")
        self.assertEqual(self.keys(), [1, 2])
        self.assertEqual(self.keys("b"), [1, 3])
        self.done("branch", "create", "G", "c", "--from", "b")
        self.put(4, "c")
        self.put(5, "b")
        self.assertEqual(self.keys("c"), [1, 3, 4])
        self.assertEqual(self.branches()["c"]["from"]["branch"], "b")
        self.clean()

    def test_a_branch_begins_at_any_commit_of_any_branch(self):
        first = self.head()
        self.put(2)
        self.done("branch", "create", "G", "b")
        on_b = self.put(3, "b")["commit"]["id"]
        self.put(4, "b")
        for name, words, keys in (("x", ("--from", first), [1]), ("y", ("--from", on_b), [1, 2, 3]), ("z", ("--from", "b", "--at", "2"), [1]),
                                  ("v", ("--from=b", "--at=" + on_b), [1, 2, 3])):
            self.done("branch", "create", "G", name, *words)
            self.assertEqual(self.keys(name), keys)
            self.put(100, name)
            self.assertEqual(self.keys(name), keys + [100])
        self.refused(8, "branch", "create", "G", "w", "--from", str(uuid.uuid4()))
        self.refused(8, "branch", "create", "G", "w", "--from", "nobody")
        self.refused(8, "branch", "create", "G", "w", "--at", "99")
        self.refused(2, "branch", "create", "G", "w", "--from", first, "--at", "2")
        self.clean()

    def test_a_name_is_data_and_never_a_path(self):
        odd = ["a", "a/b", "a/b/c", "A", "-x", "--from", "x y", "ä", "a.b", "a%2Fb", ".x", "x.", "main.json",
               "*", "$(id)", "n" * 255, "é" * 127, "refs/heads/a", "1", str(uuid.uuid4()), "a\\b", "C:", "'", '"', "|", "~"]
        for name in odd:
            self.done("branch", "create", "G", "--", name)
        self.assertEqual(set(self.branches()), set(odd) | {"main"})
        written = odd[:8]
        for number, name in enumerate(written):
            self.put(1000 + number, name)
        for number, name in enumerate(written):
            self.assertEqual(self.keys(name), [1, 1000 + number], name)
        for name in written:
            self.refused(8, "branch", "create", "G", "--", name)
        for name in ("", "/a", "a/", "a//b", "..", "a/../b", "x..y", "a\nb", "a\tb", "\x7f", "\u0085", "n" * 256):
            self.refused(2, "branch", "create", "G", "--", name)
            self.refused(2, "branch", "delete", "G", "--", name)
        for name in odd:
            self.done("branch", "delete", "G", "--", name)
        self.assertEqual(set(self.branches()), {"main"})
        self.assertEqual(self.keys(), [1])
        self.clean()

    def test_branch_control_says_how_it_is_used(self):
        self.assertIn("usage: sluice branch", self.refused(2, "branch", "make", "G", "x").err)
        self.refused(2, "branch", "create", "G")
        self.refused(2, "branch", "delete", "G")
        self.refused(2, "branch", "list", "G", "x")
        self.refused(2, "branch", "delete", "G", "x", "--from", "main")
        self.refused(8, "branch", "list", "nowhere")

    def test_creating_and_deleting_emit_no_commit(self):
        before = self.done("log", "G", "--json").out
        self.done("branch", "create", "G", "b")
        self.assertEqual(self.done("log", "G", "--json", "--branch", "b").out, before)
        self.done("branch", "delete", "G", "b")
        self.assertEqual(self.done("log", "G", "--json").out, before)

    # ---- history ----

    def test_history_leads_across_the_fork(self):
        shared = self.head()
        self.done("branch", "create", "G", "b")
        after = self.put(2)["commit"]["id"]
        own = self.put(3, "b")["commit"]["id"]
        self.done("branch", "create", "G", "c", "--from", "b")
        last = self.put(4, "c")["commit"]["id"]
        log = [line["commit"] for line in self.done("log", "G", "--branch", "c", "--json").lines]
        self.assertEqual(log[:3], [last, own, shared])
        self.assertEqual(len(log), 4)
        self.assertNotIn(after, log)
        parents = [line["parents"] for line in self.done("log", "G", "--branch", "c", "--json").lines]
        self.assertEqual(parents, [[own], [shared], [log[3]], []])
        self.assertEqual([line["commit"] for line in self.done("log", "G", "--branch", "c", "-n", "2", "--json").lines], log[:2])
        for place, keys in ((shared, [1]), (own, [1, 3]), (last, [1, 3, 4]), ("2", [1]), ("3", [1, 3]), ("4", [1, 3, 4])):
            self.assertEqual(self.keys("c", "--at", place), keys, place)
            self.assertEqual(self.done("show", "G", place, "--branch", "c", "--json").document["commit"], {"2": shared, "3": own, "4": last}.get(place, place))
        self.refused(8, "scan", "G", "P", "--branch", "c", "--at", after)
        self.refused(8, "show", "G", after, "--branch", "c")
        self.done("branch", "delete", "G", "b")
        self.done("gc", "G")
        self.assertEqual([line["commit"] for line in self.done("log", "G", "--branch", "c", "--json").lines], log)
        self.assertEqual(self.keys("c", "--at", own), [1, 3])
        self.assertEqual(self.done("show", "G", own, "--branch", "c", "--json").document["commit"], own)
        self.clean()

    # ---- deleting ----

    def test_a_deleted_branch_is_gone_and_main_stays(self):
        self.done("branch", "create", "G", "b")
        self.put(2, "b")
        told = self.done("branch", "delete", "G", "b", "--json").document
        self.assertEqual(told["commit"]["generation"], 3)
        for words in (("scan", "G", "P", "--branch", "b"), ("branch", "delete", "G", "b"), ("load", "G", "P=p.csv", "--branch", "b"),
                      ("log", "G", "--branch", "b"), ("get", "G", "P", "1", "--branch", "b")):
            self.refused(8, *words)
        said = self.refused(2, "branch", "delete", "G", "main", "--json")
        self.assertEqual(said.error["code"], "USAGE")
        self.assertEqual(self.keys(), [1])

    def test_deleting_can_be_conditional_on_the_head(self):
        self.done("branch", "create", "G", "b")
        old = self.head("b")
        self.put(2, "b")
        said = self.refused(3, "branch", "delete", "G", "b", "--if-head", old, "--json")
        self.assertEqual((said.error["code"], said.error["committed"]), ("READ_SET_CHANGED", False))
        self.assertEqual(self.keys("b"), [1, 2])
        self.done("branch", "delete", "G", "b", "--if-head", self.head("b"))
        self.assertNotIn("b", self.branches())

    def test_a_branch_made_again_is_another_one(self):
        self.done("branch", "create", "G", "b")
        first = self.branches()["b"]["incarnation"]
        self.put(2, "b")
        self.done("branch", "delete", "G", "b")
        self.done("branch", "create", "G", "b")
        self.assertEqual(self.keys("b"), [1])
        self.assertNotEqual(self.branches()["b"]["incarnation"], first)
        self.put(2, "b")
        self.done("gc", "G")
        self.assertEqual(self.keys("b"), [1, 2])
        self.clean()

    def test_collection_takes_the_folder_only_when_nothing_leads_into_it(self):
        for name, source in (("b", "main"), ("c", "b"), ("d", "c")):
            self.done("branch", "create", "G", name, "--from", source)
            self.put(ord(name), name)
        for name in ("b", "c"):
            self.done("branch", "delete", "G", name)
        for _ in range(2):
            self.done("gc", "G")
            self.assertEqual(self.folders(), ["1", "2", "3", "4"])
            self.assertEqual(self.keys("d"), [1, ord("b"), ord("c"), ord("d")])
            self.clean()
        shown = self.done("status", "G", "--json").document["branches"]
        self.assertEqual(sorted(branch["branch"] for branch in shown), ["d", "main"])
        self.done("branch", "delete", "G", "d")
        dry = self.done("gc", "G", "--dry-run", "--json").document
        self.assertEqual(self.folders(), ["1", "2", "3", "4"])
        freed = self.done("gc", "G", "--json").document
        self.assertGreaterEqual(freed["files"], dry["files"])
        self.assertEqual(self.folders(), ["1"])
        self.assertEqual(os.listdir(self.path("G/trash")), [])
        self.assertEqual(len(os.listdir(self.path("G/tables/64/fragments"))), 1)
        self.assertEqual(self.keys(), [1])
        self.clean()

    # ---- exact retries ----

    def test_a_repeated_request_gets_the_first_answer(self):
        create = ("branch", "create", "G", "b", "--json", "--op-id", str(uuid.uuid4()))
        first = self.done(*create).document
        self.assertFalse(first["repeated"])
        self.put(2)
        self.put(3, "b")
        again = self.done(*create).document
        self.assertTrue(again.pop("repeated") and not first.pop("repeated"))
        self.assertEqual(again, first)
        said = self.refused(9, *create[:4], "--from", first["commit"]["id"], *create[4:])
        self.assertEqual(said.error["code"], "IDEMPOTENCY_CONFLICT")
        self.done("branch", "create", "G", "other", *create[4:])    # ids belong to a branch

        delete = ("branch", "delete", "G", "b", "--json", "--op-id", str(uuid.uuid4()))
        gone = self.done(*delete).document
        self.assertEqual(self.done(*create).document["commit"], first["commit"])   # done, and deleted since: not made again
        self.assertNotIn("b", self.branches())
        self.assertEqual(self.done(*delete).document, {**gone, "repeated": True})
        self.done("branch", "create", "G", "b")
        self.assertEqual(self.done(*delete).document["incarnation"], gone["incarnation"])
        self.assertIn("b", self.branches())
        self.refused(9, "branch", "create", "G", "b", "--op-id", delete[-1])

    def test_of_many_who_create_one_branch_one_does(self):
        started = [self.start("branch", "create", "G", "b", "--json") for _ in range(8)]
        results = [self.finish(process) for process in started]
        self.assertEqual(sorted(result.code for result in results), [0] + [8] * 7, [r.err for r in results])
        self.assertEqual(set(self.branches()), {"b", "main"})
        identity = str(uuid.uuid4())
        started = [self.start("branch", "create", "G", "c", "--json", "--op-id", identity) for _ in range(8)]
        results = [self.finish(process) for process in started]
        self.assertEqual([result.code for result in results], [0] * 8, [r.err for r in results])
        self.assertEqual(len({result.document["incarnation"] for result in results}), 1)
        self.assertEqual([result.document["repeated"] for result in results].count(False), 1)
        self.done("gc", "G")
        self.assertEqual(len(self.folders()), 3)
        self.clean()

    # ---- damage ----

    def test_a_damaged_branch_is_shown_so_and_can_be_deleted(self):
        for name in ("b", "c"):
            self.done("branch", "create", "G", name)
        folder = self.path("G/branches/%s" % self.branches()["b"]["incarnation"])
        for damage in ("torn", "missing"):
            if damage == "torn":
                with open(folder + "/CURRENT", "r+b") as file:
                    file.write(b"x" * 8192)
            else:
                os.remove(folder + "/CURRENT")
            self.assertTrue(self.branches()["b"]["damaged"])
            shown = {branch["branch"]: branch["damaged"] for branch in self.done("status", "G", "--json").document["branches"]}
            self.assertEqual(shown, {"main": False, "b": True, "c": False})
            self.assertIn("CORRUPT", self.done("status", "G").out + self.done("branch", "list", "G").out)
            self.refused(6, "scan", "G", "P", "--branch", "b")
            self.refused(6, "verify", "G")
            self.put(10 + len(damage), "c")
        self.done("branch", "delete", "G", "b")
        self.assertEqual(set(self.branches()), {"main", "c"})
        self.done("gc", "G")
        self.clean()
        self.assertEqual(self.keys("c"), [1, 14, 17])

    def test_a_damaged_branch_with_a_dead_writers_intent_stands_in_nobodys_way(self):
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
        self.done("branch", "create", "G", "b")
        self.write("p.csv", "id,name\n5,x\n")
        killed = self.run_program("load", "G", "P=p.csv", "--branch", "b", "--workers", "1", env={"SLUICE_FAILPOINT": "arm.after=killpool"})
        self.assertEqual(killed.code, -signal.SIGKILL)
        with open(self.path("G/branches/%s/CURRENT" % self.branches()["b"]["incarnation"]), "r+b") as file:
            file.write(b"x" * 8192)
        self.done("branch", "create", "G", "c")
        self.put(6, "c")
        self.put(7, "d", "--create-branch")
        self.done("branch", "delete", "G", "c")
        self.done("branch", "delete", "G", "b")
        self.done("recover", "G")
        self.done("gc", "G")
        self.assertEqual(self.done("status", "G", "--json").document["intents"], [])
        self.assertEqual(self.keys("d"), [1, 7])
        self.clean()

    def test_an_unreadable_ref_concerns_its_name_only(self):
        self.done("branch", "create", "G", "b")
        names = os.listdir(self.path("G/refs"))
        for name in names:
            with open(self.path("G/refs/" + name)) as file:
                if '"b"' in file.read():
                    damaged = self.path("G/refs/" + name)
        with open(damaged, "w") as file:
            file.write("{}\n")
        for words in (("create", "G", "b"), ("delete", "G", "b")):
            self.refused(6, "branch", *words)
        with open(damaged) as file:
            self.assertEqual(file.read(), "{}\n")
        self.assertEqual([line["damaged"] for line in self.done("branch", "list", "G", "--json").lines], [False, True])
        self.done("status", "G")
        self.put(2)
        self.done("branch", "create", "G", "c")
        self.assertEqual(self.keys("c"), [1, 2])
        self.refused(6, "gc", "G")

    # ---- loads that make their branch ----

    def test_a_load_makes_its_branch_in_the_same_step(self):
        told = self.put(2, "b", "--create-branch")
        self.assertEqual((told["commit"]["branch"], told["commit"]["generation"], told["rows"]), ("b", 3, {"P": 1}))
        self.put(3, "c", "--create-branch", "--from", "b")
        self.put(4, "d", "--create-branch", "--from", self.head())
        for name, keys in (("main", [1]), ("b", [1, 2]), ("c", [1, 2, 3]), ("d", [1, 4])):
            self.assertEqual(self.keys(name), keys)
        said = self.refused(8, "load", "G", "P=p.csv", "--branch", "b", "--create-branch", "--json")
        self.assertEqual((said.error["code"], said.error["committed"]), ("ALREADY_EXISTS", False))
        self.refused(8, "load", "G", "P=p.csv", "--branch", "e", "--create-branch", "--from", "nobody")
        self.refused(2, "load", "G", "P=p.csv", "--branch", "e/", "--create-branch")
        self.refused(2, "load", "G", "P=p.csv", "--create-branch")
        self.refused(2, "load", "G", "P=p.csv", "--branch", "b", "--from", "main")
        self.write("bad.csv", "id,name\nx,y\n")
        self.refused(4, "load", "G", "P=bad.csv", "--branch", "e", "--create-branch")
        self.done("load", "G", "P=p.csv", "--branch", "e", "--create-branch", "--from", "c", "--dry-run")
        self.assertNotIn("e", self.branches())
        self.write("empty.csv", "id,name\n")
        self.assertIsNone(self.done("load", "G", "P=empty.csv", "--branch", "e", "--create-branch", "--json").document["commit"])
        self.assertEqual(self.keys("e"), [1])
        self.done("gc", "G")
        self.assertEqual(len(self.folders()), 5)
        self.assertEqual(os.listdir(self.path("G/attempts")), [])
        self.clean()

    def test_a_repeated_load_that_made_its_branch_gets_the_first_answer(self):
        identity = str(uuid.uuid4())
        first = self.put(2, "b", "--create-branch", "--op-id", identity)
        again = self.put(2, "b", "--create-branch", "--op-id", identity)
        self.assertEqual((again["commit"], again["rows"], again["repeated"]), (first["commit"], first["rows"], True))
        self.write("p.csv", "id,name\n9,x\n")
        self.refused(9, "load", "G", "P=p.csv", "--branch", "b", "--create-branch", "--op-id", identity)
        self.done("branch", "delete", "G", "b")
        self.done("gc", "G")
        gone = self.put(2, "b", "--create-branch", "--op-id", identity)
        self.assertEqual((gone["commit"], gone["repeated"]), (first["commit"], True))
        self.assertEqual(set(self.branches()), {"main"})

    def test_a_repeated_load_without_rows_that_made_its_branch_gets_the_first_answer(self):
        identity = str(uuid.uuid4())
        self.write("empty.csv", "id,name\n")
        words = ("load", "G", "P=empty.csv", "--branch", "e", "--create-branch", "--op-id", identity, "--json")
        first, again = self.done(*words).document, self.done(*words).document
        self.assertEqual((first["commit"], again["commit"], again["repeated"]), (None, None, True))
        self.write("empty.csv", "id,name\n1,x\n")
        self.refused(9, *words)
        self.write("empty.csv", "id,name\n")
        self.refused(9, "branch", "create", "G", "e", "--op-id", identity)
        self.done("branch", "delete", "G", "e")
        self.assertTrue(self.done(*words).document["repeated"])
        self.assertEqual(set(self.branches()), {"main"})

    def test_an_error_before_the_name_is_touched_is_no_change_of_it(self):
        """Whatever stands in control/ by then: it is answered as not committed, and the same request again does it."""
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
        for verb, there in (("create", False), ("delete", True)):
            for point in ("publish.after_log_record_write", "publish.after_log_record_sync"):
                words = ("branch", verb, "G", "b", "--op-id", str(uuid.uuid4()), "--json")
                self.assertEqual("b" in self.branches(), there)
                said = self.run_program(*words, env={"SLUICE_FAILPOINT": point + "=error"})
                self.assertIn(said.code, (1, 5), said.out)
                self.assertIs(said.error["committed"], False, said.out)
                self.assertEqual("b" in self.branches(), there)
                self.done(*words)
                self.assertEqual("b" in self.branches(), not there)
                self.done("branch", "delete" if verb == "create" else "create", "G", "b")
            if verb == "create":
                self.done("branch", "create", "G", "b")
        self.clean()

    # ---- a writer whose branch goes ----

    def test_a_load_whose_branch_is_deleted_and_made_again_ends_typed_and_touches_neither(self):
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
        for point in ("prepare.after_pin", "prepare.after_plan"):
            name = "b-" + point
            self.done("branch", "create", "G", name)
            self.write("q.csv", "id,name\n7,q\n")
            load = self.start("load", "G", "P=q.csv", "--branch", name, "--workers", "1", "--json",
                              env={"SLUICE_FAILPOINT": point + "=stop"})
            stopped = self.stopped_process(load)
            for verb in ("delete", "create"):
                self.assertEqual(self.finish(self.start("branch", verb, "G", name)).code, 0)
            os.kill(stopped, signal.SIGCONT)
            result = self.finish(load)
            self.assertIn(result.code, (3, 8), result.err)
            self.assertFalse(result.error["committed"])
            self.assertEqual(self.keys(name), [1])
            self.done("gc", "G")
            self.assertEqual(self.keys(name), [1])
        self.clean()


if __name__ == "__main__":
    main()
