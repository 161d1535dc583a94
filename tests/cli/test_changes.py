#!/usr/bin/env python3
"""The change feed: every kind of commit is told so that whoever applies it has the branch's rows; cursors go on exactly where they
were left, by another process, in the middle of a commit, after kill -9; what was collected is a gap, and says so."""

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading

from support.program import TIMEOUT, ProgramTest, main, process_state

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string?", "age": "int32?"}},
                    "Two": {"key": ["a", "b"], "properties": {"a": "string", "b": "int32", "v": "float64?"}},
                    "Note": {"properties": {"text": "string?"}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {"w": "int32?"}, "key": []},
                    "SAW": {"from": "P", "to": "Two", "properties": {"at": "date?"}}}}


class Mirror:
    """Who applies a feed: rows by type and name, as a scan gives them."""

    def __init__(self):
        self.rows = {}
        self.commits = []

    def name(self, line):
        return json.dumps([line.get(part) for part in ("key", "from", "to", "_row_id")])

    def apply(self, line):
        if line["change"] == "commit":
            self.commits.append(line["commit"])
            return
        if line["change"] == "schema":
            return
        rows, name = self.rows.setdefault(line["type"], {}), self.name(line)
        if line["change"] == "insert":
            assert name not in rows and line["before"] is None, line
            rows[name] = dict(line["after"], **({"_row_id": line["_row_id"]} if "_row_id" in line and "from" not in line else {}))
        elif line["change"] == "update":
            assert set(line["before"]) == set(line["after"]) and line["before"] != line["after"], line
            assert {key: rows[name].get(key) for key in line["before"]} == line["before"], (rows[name], line)
            rows[name].update(line["after"])
        else:
            before = {key: value for key, value in rows.pop(name).items() if key != "_row_id"}
            assert before == line["before"] and line["after"] is None, (before, line)

    def content(self):
        return {name: sorted(json.dumps(row, sort_keys=True) for row in rows.values()) for name, rows in self.rows.items() if rows}


class Follower:
    """A running `changes --follow`; its lines are read one by one."""

    def __init__(self, test, *words, **options):
        self.test = test
        test.followers += 1
        self.process = test.start("changes", "G", "--follow", *words, **options)
        self.guard = threading.Timer(TIMEOUT, self.process.kill)
        self.guard.daemon = True
        self.guard.start()
        test.addCleanup(self.process.stderr.close)
        test.addCleanup(self.process.stdout.close)  # again is nothing
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)
        test.addCleanup(self.guard.cancel)

    def line(self):
        line = self.process.stdout.readline()
        self.test.assertTrue(line, "it ended: " + (self.process.stderr.read() or b"").decode() if not line else "")
        return json.loads(line)

    def until(self, commit):
        lines = [self.line()]
        while not (lines[-1]["change"] == "commit" and lines[-1]["commit"] == commit):
            lines.append(self.line())
        return lines

    def end(self):
        out, err = self.process.communicate(timeout=TIMEOUT)
        return self.process.returncode, out.decode(), err.decode()


def told_cursor(err):
    return [line.split()[-1] for line in err.splitlines() if line.startswith("sluice: cursor ")][-1]


class Changes(ProgramTest):
    def setUp(self):
        super().setUp()
        self.followers = 0
        self.init(SCHEMA)

    def run_program(self, *words, timeout=TIMEOUT, **options):
        if self.followers == 0:
            return super().run_program(*words, timeout=timeout, **options)
        return self.finish(self.start(*words, **options), timeout)  # a follower is no orphan

    def mutate(self, *records, branch=None):
        self.write("m.jsonl", "".join(json.dumps(record) + "\n" for record in records))
        words = ["--branch", branch] if branch else []
        return self.done("mutate", "G", "m.jsonl", "--json", *words).document["commit"]["id"]

    def person(self, number, op="upsert", **values):
        return {"op": op, "node": "P", "key": number, "set": values}

    def changes(self, *words):
        return self.done("changes", "G", *words)

    def content_at(self, at, *words):
        folder, found = "at-" + at, {}
        self.done("export", "G", folder, "--format", "jsonl", "--at", at, *words)
        for name in os.listdir(self.path(folder)):
            rows = [json.loads(line) for line in self.read(os.path.join(folder, name)).splitlines()]
            if rows:
                found[name.partition(".")[0]] = sorted(json.dumps(row, sort_keys=True) for row in rows)
        return found

    kept = None  # a copy of the graph that make_history made

    def history(self):
        """One commit of every kind, and some of several changes."""
        cls = type(self)
        if cls.kept is None:
            self.make_history()
            cls.kept = tempfile.mkdtemp(prefix="sluice-history-", dir=os.path.dirname(self.folder))
            self.addClassCleanup(shutil.rmtree, cls.kept, ignore_errors=True)
            shutil.copytree(self.path("G"), os.path.join(cls.kept, "G"))
        else:
            shutil.rmtree(self.path("G"))
            shutil.copytree(os.path.join(cls.kept, "G"), self.path("G"))

    def make_history(self):
        self.write("p.csv", "id,name,age\n" + "".join("%d,n%d,%d\n" % (i, i, i) for i in range(40)))
        self.write("two.csv", 'a,b,v\n"x",1,0.5\n"y,z",2,\n')
        self.write("k.csv", "from,to,w\n1,2,7\n2,3,\n3,1,9\n")
        self.write("saw.csv", "from,to.a,to.b,at\n1,x,1,2026-01-31\n1,x,1,2026-01-31\n2,\"y,z\",2,\n")
        self.load("P=p.csv", "Two=two.csv", "K=k.csv", "SAW=saw.csv")
        self.mutate(self.person(1, name="Ada"), self.person(1, age=5), self.person(100, name="new"),
                    {"op": "insert", "node": "Note", "set": {"text": "one"}}, {"op": "insert", "node": "Note", "set": {"text": "\u00fc\n\""}})
        self.mutate(self.person(2, name=None), {"op": "delete", "edge": "K", "from": 2, "to": 3},
                    {"op": "delete", "node": "P", "key": 100})
        self.write("up.csv", "id,age\n3,33\n200,20\n4,4\n")
        self.load("P=up.csv", "--mode", "upsert")
        self.write("kk.csv", "from,to,w\n1,2,8\n5,6,1\n")
        self.load("K=kk.csv", "--mode", "overwrite")
        self.done("optimize", "G")
        self.done("index", "G")
        self.done("branch", "create", "G", "side")
        self.mutate(self.person(7, name="seven"), {"op": "delete", "node": "P", "key": 30}, branch="side")
        self.mutate(self.person(8, name="eight"))
        self.done("merge", "G", "side")
        self.done("branch", "create", "G", "forward")
        self.mutate(self.person(300, name="forward"), branch="forward")
        self.mutate(self.person(301, name="forward"), branch="forward")
        self.done("merge", "G", "forward")
        self.done("revert", "G", "--to", "3")
        self.mutate({"op": "delete", "node": "P", "key": 1, "detach": True})

    def test_whoever_applies_the_feed_has_the_rows_of_every_commit(self):
        self.history()
        mirror = Mirror()
        lines = self.changes().lines
        log = [commit for commit in self.done("log", "G", "--json").lines][::-1]
        for line in lines:
            mirror.apply(line)
            if line["change"] == "commit":
                self.assertEqual(mirror.content(), self.content_at(line["commit"]), line)
        self.assertEqual(mirror.commits, [commit["commit"] for commit in log[1:]])
        self.assertEqual([line["kind"] for line in lines if line["change"] == "commit"], [commit["kind"] for commit in log[1:]])
        by_commit = {commit["commit"]: commit for commit in log}
        for line in lines:
            commit = by_commit[line["commit"]]
            for name in ("generation", "index", "time", "operation_id"):
                self.assertEqual(line[name], commit[name])
            self.assertEqual(line["branch"], "main")
        quiet = [line["changes"] for line in lines if line["change"] == "commit" and line["kind"] in ("optimize", "index")]
        self.assertTrue(quiet and not any(quiet), quiet)
        self.assertEqual([line["before"] for line in lines if line["change"] == "update"][0], {"name": "n1", "age": 1})

    def test_every_cursor_leads_to_exactly_what_comes_behind_it(self):
        self.history()
        lines = self.changes().out.splitlines()
        for i in random.Random(7).sample(range(len(lines)), 15) + [len(lines) - 1]:
            said = self.changes("--since", json.loads(lines[i])["cursor"])
            self.assertEqual(said.out.splitlines(), lines[i + 1:])
            self.assertEqual(told_cursor(said.err), json.loads(lines[-1])["cursor"])

    def test_a_feed_begins_behind_any_place_of_the_branch(self):
        self.history()
        lines = self.changes().lines
        for line in [line for line in lines if line["change"] == "commit"][::3]:
            behind = lines[lines.index(line) + 1:]
            self.assertEqual(self.changes("--since", line["commit"]).lines, behind)
            self.assertEqual(self.changes("--since", str(line["generation"])).lines, behind)
        self.done("checkpoint", "create", "G", "here", "--at", "4")
        self.assertEqual(self.changes("--since", "here").lines, self.changes("--since", "4").lines)
        self.assertEqual(self.changes("--since", "head").out, "")
        self.refused(2, "changes", "G", "--since", "soon")
        self.refused(8, "changes", "G", "--since", "999")

    def test_a_branch_has_the_history_that_it_was_forked_with(self):
        self.mutate(self.person(1, name="a"))
        middle = self.mutate(self.person(2, name="b"))
        self.mutate(self.person(3, name="c"))
        self.done("branch", "create", "G", "side", "--from", middle)
        self.mutate(self.person(4, name="d"), branch="side")
        self.done("branch", "create", "G", "deep", "--from", "side")
        self.mutate(self.person(5, name="e"), branch="deep")
        keys = lambda *words: [line["key"] for line in self.changes(*words).lines if line["change"] == "insert"]
        self.assertEqual(keys("--branch", "deep"), [1, 2, 4, 5])
        self.assertEqual(keys("--branch", "side"), [1, 2, 4])
        self.assertEqual(keys(), [1, 2, 3])
        self.assertEqual(keys("--branch", "deep", "--since", middle), [4, 5])
        for line in self.changes("--branch", "deep").lines:
            self.assertEqual(line["branch"], "deep")
            self.assertIn("another branch", self.refused(8, "changes", "G", "--since", line["cursor"]).err)

    def test_each_member_of_a_group_is_told_by_itself(self):
        group = os.path.join(os.environ["SLUICE_BUILD_DIR"], "tests", "test_group")
        names = [self.write("g%d.jsonl" % i, json.dumps(self.person(i, name="g%d" % i)) + "\n" + json.dumps(self.person(100 + i)) + "\n")
                 for i in range(5)]
        subprocess.run([group, "--mutate", "G", *names], cwd=self.folder, env=self.environment, timeout=TIMEOUT, check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        lines = self.changes().lines
        self.assertEqual([(line["generation"], line["index"], line["changes"]) for line in lines if line["change"] == "commit"],
                         [(2, i, 2) for i in range(5)])
        for i, line in enumerate(lines):
            self.assertEqual(self.changes("--since", line["cursor"]).lines, lines[i + 1:])

    def test_a_change_of_the_schema_is_told_with_what_it_does_to_rows(self):
        self.mutate(self.person(1, name="a", age=3), {"op": "insert", "node": "Two", "set": {"a": "x", "b": 1}})
        schema = json.loads(json.dumps(SCHEMA))
        schema["nodes"]["P"]["properties"]["full"] = {"type": "string?", "renamed_from": "name"}
        del schema["nodes"]["P"]["properties"]["name"], schema["nodes"]["P"]["properties"]["age"]
        del schema["nodes"]["Two"], schema["edges"]["SAW"]
        schema["nodes"]["City"] = {"key": "name", "properties": {"name": "string"}}
        self.write("next.json", schema)
        self.done("schema", "apply", "G", "next.json", "--allow-data-loss")
        self.mutate(self.person(1, full="b"), {"op": "insert", "node": "City", "set": {"name": "Bern"}})
        lines = self.changes().lines
        kinds = [(line["change"], line.get("type")) for line in lines]
        self.assertEqual(kinds, [("insert", "P"), ("insert", "Two"), ("commit", None), ("schema", None), ("delete", "Two"), ("commit", None),
                                 ("update", "P"), ("insert", "City"), ("commit", None)])
        self.assertEqual((sorted(lines[3]["before"]["nodes"]), sorted(lines[3]["after"]["nodes"])),
                         (["Note", "P", "Two"], ["City", "Note", "P"]))
        self.assertEqual((lines[6]["before"], lines[6]["after"]), ({"full": "a"}, {"full": "b"}))
        self.assertEqual(lines[4]["before"], {"a": "x", "b": 1, "v": None})
        for i, line in enumerate(lines):
            self.assertEqual(self.changes("--since", line["cursor"]).lines, lines[i + 1:])

    def test_cursors_that_are_none_are_refused(self):
        self.mutate(self.person(1))
        cursor = self.changes().lines[0]["cursor"]
        for bad in (cursor[:-1], cursor + "A", cursor[:20] + ("A" if cursor[20] != "A" else "B") + cursor[21:], cursor[:-1] + "/"):
            self.assertIn("no whole cursor", self.refused(2, "changes", "G", "--since", bad).err)
        self.done("init", "H", "--schema", "schema.json")
        for i in range(3):
            self.write("m.jsonl", json.dumps(self.person(i)) + "\n")
            self.done("mutate", "H", "m.jsonl")
        self.assertIn("another graph", self.refused(8, "changes", "H", "--since", cursor).err)

    def test_arrow_says_what_json_lines_say(self):
        try:
            import pyarrow
        except ImportError:
            self.skipTest("no pyarrow")
        self.history()
        with open(self.path("changes.arrows"), "wb") as file:
            process = self.start("changes", "G", "--format", "arrow", stdout=file)
            self.assertEqual(self.finish(process).code, 0)
        with pyarrow.OSFile(self.path("changes.arrows")) as file:
            rows = pyarrow.ipc.open_stream(file).read_all().to_pylist()
        lines = self.changes().lines
        self.assertEqual(len(rows), len(lines))
        for row, line in zip(rows, lines):
            for name in ("change", "commit", "generation", "index", "branch", "operation_id", "cursor"):
                self.assertEqual(row[name], line[name])
            for name in ("type", "changes"):
                self.assertEqual(row[name], line.get(name))
            for name in ("before", "after"):
                self.assertEqual(json.loads(row[name] or "null"), line.get(name))
            self.assertEqual(row["time"].strftime("%Y-%m-%dT%H:%M:%S.%fZ"), line["time"])
            key = json.loads(row["key"] or "{}")
            self.assertEqual(key, {name: line[name] for name in ("key", "from", "to", "_row_id") if name in line})

    # ---- gaps ----

    def test_what_was_collected_is_a_gap_and_its_hint_works(self):
        for i in range(6):
            self.mutate(self.person(i))
        lines = [line for line in self.changes().lines if line["change"] == "commit"]
        self.done("gc", "G", "--keep", "2", "--older-than", "0s")
        for words in ([], ["--since", lines[1]["cursor"]]):
            refused = self.refused(8, "changes", "G", "--json", *words)
            error = refused.error
            self.assertEqual((error["code"], error["details"]["gap"]), ("NOT_FOUND", True))
        self.assertIn("sluice export G DIR --at COMMIT", refused.err)
        at = self.done("log", "G", "-n", "1", "--json").document["commit"]
        self.done("export", "G", "whole", "--at", at)
        self.mutate(self.person(50))
        self.assertEqual([line.get("key") for line in self.changes("--since", at).lines], [50, None])
        self.assertEqual(self.changes("--since", lines[-1]["cursor"]).lines, self.changes("--since", at).lines)

    def test_a_follower_keeps_the_place_where_it_stands(self):
        first = self.mutate(self.person(1))
        follower = Follower(self, "--since", "1")
        follower.until(first)
        for i in range(2, 6):
            follower.until(self.mutate(self.person(i)))
            self.done("gc", "G", "--keep", "1", "--older-than", "0s")
        follower.until(self.mutate(self.person(9)))
        follower.process.send_signal(signal.SIGINT)
        self.assertEqual(follower.end()[0], 0)

    # ---- following ----

    def waits_without_looking(self, process):
        """Asleep in epoll_wait without a bound, as far as the system tells."""
        try:
            with open("/proc/%d/syscall" % process.pid) as file:
                words = file.read().split()
        except OSError:
            return True
        if os.uname().machine != "x86_64" or words[0] == "running":
            return words[0] != "running"
        return words[0] == "232" and int(words[4], 16) & 0xFFFFFFFF == 0xFFFFFFFF

    def test_a_follower_is_told_and_ends_with_its_cursor(self):
        follower = Follower(self)
        seen = []
        for i in range(5):
            commit = self.mutate(self.person(i, name="n"))
            seen += follower.until(commit)
        self.assertEqual([line.get("key") for line in seen], [0, None, 1, None, 2, None, 3, None, 4, None])
        while not self.waits_without_looking(follower.process):
            self.assertIsNone(follower.process.poll())
        follower.process.send_signal(signal.SIGINT)
        code, out, err = follower.end()
        self.assertEqual((code, out), (0, ""))
        self.assertEqual(told_cursor(err), seen[-1]["cursor"])
        self.assertEqual(self.changes("--since", told_cursor(err)).out, "")

    def test_a_follower_ends_when_nobody_reads(self):
        follower = Follower(self)
        commit = self.mutate(self.person(1))
        lines = follower.until(commit)
        follower.process.stdout.close()
        follower.process.wait(TIMEOUT)  # without a further change
        err = follower.process.stderr.read().decode()
        self.assertEqual(follower.process.returncode, 0, err)
        self.assertEqual(told_cursor(err), lines[-1]["cursor"])

    def test_a_slow_reader_is_waited_for_and_an_interrupt_ends_that_too(self):
        self.write("p.csv", "id,name\n" + "".join("%d,%s\n" % (i, "x" * 200) for i in range(5000)))
        self.load("P=p.csv")
        follower = Follower(self)
        first = follower.line()
        while process_state(follower.process.pid) != "S":
            pass
        follower.process.send_signal(signal.SIGINT)
        follower.process.wait(TIMEOUT)
        out, err = follower.process.stdout.read().decode(), follower.process.stderr.read().decode()
        self.assertEqual(follower.process.returncode, 0, err)
        written = [first] + [json.loads(line) for line in out.splitlines()[:-1]]  # the last one may be cut
        self.assertLess(len(written), 5000)
        whole, cursor = self.changes().lines, told_cursor(err)
        self.assertEqual(written, whole[:len(written)])
        at = [line["cursor"] for line in whole].index(cursor) + 1 if cursor in {line["cursor"] for line in whole} else 0
        self.assertLessEqual(at, len(written) + 1)
        self.assertEqual(self.changes("--since", cursor).lines, whole[at:])

    def test_kill_and_resume_loses_and_doubles_nothing(self):
        stop, commits = threading.Event(), []

        def write():
            number = 0
            while not stop.is_set() or number < 20:
                number += 1
                self.write("w.jsonl", "".join(json.dumps({"op": "insert", "node": "P", "set": {"id": number * 10 + k, "name": "x" * 500}}) + "\n"
                                              for k in range(5)))
                done = subprocess.run([self.program, "mutate", "G", "w.jsonl", "--json"], cwd=self.folder, env=self.environment,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT)
                commits.append(json.loads(done.stdout)["commit"]["id"])

        writer = threading.Thread(target=write)
        writer.start()
        kept, words, choice = [], [], random.Random(3)
        for _ in range(8):
            follower = Follower(self, *words)
            for _ in range(choice.randrange(1, 12)):
                kept.append(follower.line())
            follower.process.kill()
            follower.process.wait()
            words = ["--since", kept[-1]["cursor"]]
        stop.set()
        writer.join()
        kept += self.changes(*words).lines
        self.assertEqual(kept, self.changes().lines)
        self.assertEqual([line["commit"] for line in kept if line["change"] == "commit"], commits)

    def test_a_branch_that_is_deleted_under_its_follower_ends_it(self):
        self.done("branch", "create", "G", "side")
        follower = Follower(self, "--branch", "side", "--json")
        lines = follower.until(self.mutate(self.person(1), branch="side"))
        self.done("branch", "delete", "G", "side")
        code, out, err = follower.end()
        self.assertEqual((code, json.loads(out)["error"]["code"]), (8, "NOT_FOUND"))
        self.assertIn("was deleted", err)
        self.assertEqual(told_cursor(err), lines[-1]["cursor"])
        self.done("branch", "create", "G", "side")
        self.mutate(self.person(2), branch="side")
        self.assertIn("deleted", self.refused(8, "changes", "G", "--branch", "side", "--since", lines[-1]["cursor"]).err)

    def test_what_is_not_acknowledged_is_not_told(self):
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
        first = self.mutate(self.person(1))
        self.write("m.jsonl", json.dumps(self.person(2)) + "\n")
        self.run_program("mutate", "G", "m.jsonl", env={"SLUICE_FAILPOINT": "publish.after_log_record_write=kill"})
        self.assertEqual(len(self.rows("P")), 2)  # it is whole in the log
        lines = self.changes().lines
        self.assertEqual(lines[-1]["commit"], first)
        follower = Follower(self, "--since", lines[-1]["cursor"])
        third = self.mutate(self.person(3))  # makes it acknowledged before it builds on it
        self.assertEqual([line.get("key") for line in follower.until(third)], [2, None, 3, None])

    def test_a_read_only_follower_writes_nothing(self):
        self.mutate(self.person(1))
        before = sorted((path, os.stat(os.path.join(path, name)).st_mtime_ns) for path, _, names in os.walk(self.path("G")) for name in names)
        self.changes()
        self.assertEqual(sorted((path, os.stat(os.path.join(path, name)).st_mtime_ns) for path, _, names in os.walk(self.path("G"))
                                for name in names), before)


if __name__ == "__main__":
    main()
