#!/usr/bin/env python3
"""How stores of this kind fail, tried on real processes: those rows of the list of scenarios about commits, compaction, schema changes,
recovery and repeated requests that no other test is about (each test names its rows)."""

import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support import disk
from support.program import ProgramTest, main, process_state

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "n": "int32?"}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {}, "key": []}}}
OPERATION = "01890a5d-ac96-4b4b-8cce-b302099a8057"
LONG_AGO = (1000000000, 1000000000)


class Scenarios(ProgramTest):
    def setUp(self):
        super().setUp()
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
        self.init(SCHEMA)
        self.write("p.csv", "id,n\n1,1\n2,2\n")
        self.load("P=p.csv")

    def together(self, commands):
        return [self.finish(process) for process in [self.start(*words) for words in commands]]

    def beside(self, *words, code=0):
        """Runs a command while another program of ours runs."""
        result = self.finish(self.start(*words))
        self.assertEqual(result.code, code, result.out + result.err)
        return result

    def insert(self, key, name="one.jsonl", n=0):
        return self.write(name, json.dumps({"op": "insert", "node": "P", "set": {"id": key, "n": n}}) + "\n")

    def keys(self, *words):
        return sorted(row["id"] for row in self.rows("P", "G", *words))

    def dead(self, point, *words):
        """A command that is killed at a place."""
        self.assertEqual(self.run_program(*words, env={"SLUICE_FAILPOINT": point + "=killpool"}).code, -signal.SIGKILL)

    def stopped(self, point, *words):
        process = self.start(*words, env={"SLUICE_FAILPOINT": point + "=stop"})
        return process, self.stopped_worker(process)

    # ---- commit ----

    def test_of_many_who_make_one_graph_one_does_and_the_others_leave_nothing(self):  # R118
        results = self.together([("init", "H", "--schema", "schema.json", "--json")] * 8)
        self.assertEqual(sorted(r.code for r in results), [0] + [8] * 7, [r.err for r in results])
        made = next(r for r in results if r.code == 0)
        status = self.done("status", "H", "--json").document
        self.assertEqual((status["graph_id"], status["unknown_entries"]), (made.document["graph_id"], 0))
        self.load("P=p.csv", graph="H")
        self.clean("H")

    def test_on_a_read_only_mount_everything_is_read(self):  # R106
        if disk.possible():
            self.skipTest(disk.possible())
        try:
            small = disk.SmallDisk(self.path("image"), self.path("disk"), 24)
        except OSError as error:
            self.skipTest("no small disk can be mounted: %s" % error)
        self.addCleanup(small.unmount)
        self.done("init", "disk/G", "--schema", "schema.json")
        self.load("P=p.csv", graph="disk/G")
        subprocess.run(["mount", "-o", "remount,ro", self.path("disk")], check=True, timeout=300)
        self.assertEqual(self.done("count", "disk/G", "--json").document, {"P": 2, "K": 0})
        self.assertEqual(len(self.rows("P", "disk/G")), 2)
        for words in (("status", "disk/G"), ("log", "disk/G"), ("get", "disk/G", "P", "1"), ("export", "disk/G", "out")):
            self.done(*words)
        self.clean("disk/G")
        self.insert(3)
        self.refused(7, "mutate", "disk/G", "one.jsonl")

    # ---- concurrency ----

    def test_of_two_contents_that_replace_a_type_at_once_one_stands(self):  # R120
        for name, first in (("a", 100), ("b", 200)):
            self.write(name + ".csv", "id,n\n" + "".join("%d,0\n" % i for i in range(first, first + 50)))
        for _ in range(4):
            results = self.together([("load", "G", "P=%s.csv" % name, "--mode", "overwrite", "--workers", "2", "--json")
                                     for name in ("a", "b")])
            self.assertLessEqual({r.code for r in results}, {0, 3}, [r.err for r in results])
            self.assertIn(0, [r.code for r in results])
            self.assertIn(self.keys(), (list(range(100, 150)), list(range(200, 250))))
        self.clean()

    def test_many_who_come_after_a_death_all_succeed(self):  # R128
        self.write("q.csv", "id,n\n3,3\n")
        self.dead("arm.after", "load", "G", "P=q.csv")
        files = [self.insert(10 + i, "w%d.jsonl" % i) for i in range(6)]
        results = self.together([("mutate", "G", name) for name in files] + [("count", "G", "P")] * 6)
        self.assertEqual([r.code for r in results], [0] * 12, [r.err for r in results])
        self.assertEqual(self.keys(), [1, 2, 3] + list(range(10, 16)))  # what was confirmed was finished, once
        self.assertEqual(len(self.done("log", "G", "--json").lines), 9)
        self.clean()

    # ---- compaction ----

    def test_files_go_once_the_reader_that_holds_them_is_dead(self):  # R132
        for i in range(4):
            self.write("r.csv", "id,n\n" + "".join("%d,0\n" % (10000 * i + k) for k in range(100, 4000)))
            self.load("P=r.csv")
        want, fragments = self.keys(), self.path("G/tables/64/fragments")
        first, second = [self.start("scan", "G", "P", "--format", "jsonl") for _ in range(2)]  # more than a pipe takes: they wait
        self.assertEqual((first.stdout.read(1), second.stdout.read(1)), (b"{", b"{"))
        self.beside("mutate", "G", self.write("d.jsonl", '{"op":"delete","node":"P","key":1}\n'))
        self.beside("optimize", "G")
        self.beside("gc", "G", "--keep", "1")
        self.assertEqual(len(os.listdir(fragments)), 6)
        rest = b"{" + first.stdout.read()
        self.assertEqual(sorted(json.loads(line)["id"] for line in rest.splitlines()), want)
        self.assertEqual(self.finish(first).code, 0)

        second.kill()
        self.assertEqual(self.finish(second).code, -signal.SIGKILL)
        self.assertGreater(self.done("gc", "G", "--keep", "1", "--json").document["files"], 0)
        self.assertEqual(len(os.listdir(fragments)), 1)  # what stands; nothing has been folded for that
        self.assertEqual(self.keys(), sorted(set(want) - {1}))
        self.clean()

    def test_what_an_optimize_has_replaced_goes_with_the_history_that_needs_it(self):
        fragments = self.path("G/tables/64/fragments")
        for i in range(4):
            self.write("r.csv", "id,n\n" + "".join("%d,0\n" % (1000 * i + k) for k in range(100, 200)))
            self.load("P=r.csv")
        want = self.keys()
        self.done("optimize", "G")
        self.done("gc", "G", "--keep", "2")  # the state before it is one of the two
        self.assertEqual(len(os.listdir(fragments)), 6)
        self.assertEqual(self.keys("--at", "6"), want)
        self.done("checkpoint", "create", "G", "here", "--at", "7")
        self.done("gc", "G", "--keep", "1")
        self.assertEqual(len(os.listdir(fragments)), 1)
        self.write("o.csv", "id,n\n5,5\n6,6\n")
        self.load("P=o.csv", "--mode", "overwrite")
        self.done("gc", "G", "--keep", "1")
        self.assertEqual((self.keys(), self.keys("--at", "here")), ([5, 6], want))
        self.done("revert", "G", "--to", "here")
        self.done("checkpoint", "delete", "G", "here")
        self.done("gc", "G", "--keep", "1")
        self.assertEqual(self.keys(), want)
        self.done("optimize", "G")
        self.done("index", "G")
        self.done("gc", "G", "--keep", "1")
        self.assertEqual(self.keys(), want)
        self.clean()

    def test_work_in_progress_is_known_by_its_lock_and_never_by_its_age(self):  # R134, R138
        self.write("q.csv", "id,n\n" + "".join("%d,0\n" % i for i in range(10, 300)))
        self.dead("load.after_edits", "load", "G", "P=q.csv", "--workers", "2")
        process, stopped = self.stopped("load.after_edits", "load", "G", "P=q.csv", "--workers", "2", "--json")
        try:
            for folder, _, names in os.walk(self.path("G")):
                for name in names:
                    if not folder.endswith("locks"):
                        os.utime(os.path.join(folder, name), LONG_AGO)
            self.beside("mutate", "G", self.insert(5))
            self.assertEqual(len(os.listdir(self.path("G/attempts"))), 2)
            self.beside("gc", "G", "--keep", "1", "--older-than", "0s")
            self.assertEqual(len(os.listdir(self.path("G/attempts"))), 1)  # the dead one's went, though it is no older
        finally:
            os.kill(stopped, signal.SIGCONT)
        self.assertEqual(self.finish(process).code, 0)
        self.assertEqual(self.keys(), [1, 2, 5] + list(range(10, 300)))
        self.clean()

    # ---- schema ----

    def test_a_change_of_the_schema_that_is_refused_leaves_no_trace(self):  # R169
        before = self.done("status", "G", "--json").out
        wider = json.loads(json.dumps(SCHEMA))
        wider["nodes"]["P"]["properties"]["must"] = "string"
        said = self.refused(4, "schema", "apply", "G", self.write("wider.json", wider), "--json")
        self.assertIs(said.error["committed"], False)
        self.assertEqual(self.done("status", "G", "--json").out, before)
        for folder in ("attempts", "quarantine", "trash"):
            self.assertEqual(os.listdir(self.path("G/" + folder)), [], folder)
        self.assertEqual(self.done("recover", "G", "--json").lines, [])
        self.done("mutate", "G", self.insert(3))
        self.clean()

    def test_whoever_reads_while_a_property_is_added_reads_one_schema_and_its_rows(self):  # R167
        self.write("k.csv", "from,to\n1,2\n")
        self.load("K=k.csv")
        wider = json.loads(json.dumps(SCHEMA))
        wider["nodes"]["P"]["properties"]["more"] = "string?"
        self.write("wider.json", wider)
        reader = self.start("scan", "G", "P", "--json", env={"SLUICE_FAILPOINT": "volume.open=stop@9"})
        while process_state(reader.pid) != "T":
            self.assertIsNone(reader.poll(), "it did not stop")
        try:
            self.beside("schema", "apply", "G", "wider.json")
            self.beside("optimize", "G")
        finally:
            os.kill(reader.pid, signal.SIGCONT)
        rows = self.finish(reader).lines
        self.assertIn({tuple(row) for row in rows}, ({("id", "n")}, {("id", "n", "more")}))
        self.assertEqual([row["id"] for row in rows], [1, 2])
        self.assertEqual(self.rows("P"), [{"id": 1, "n": 1, "more": None}, {"id": 2, "n": 2, "more": None}])
        self.assertEqual(self.rows("P", "G", "--at", "3"), [{"id": 1, "n": 1}, {"id": 2, "n": 2}])
        for words in ((), ("--at", "3")):
            self.assertEqual([line["key"] for line in self.done("neighbors", "G", "P", "1", "--json", *words).lines], [2])

    # ---- recovery ----

    def test_foreign_files_among_the_intents_block_nobody(self):  # R173
        self.write("q.csv", "id,n\n3,3\n")
        self.dead("arm.after", "load", "G", "P=q.csv")
        shutil.copy(self.path("G/intents"), self.path("intents-copy"))
        for name in ("quarantine/intents (1)", "quarantine/x.bak", "quarantine/.swp", "intents.bak", "intents~", "audit/x.bak"):
            shutil.copy(self.path("intents-copy"), self.path("G/" + name))
        self.done("count", "G")
        self.done("mutate", "G", self.insert(4))
        self.assertEqual(self.keys(), [1, 2, 3, 4])
        self.done("recover", "G")
        for i in range(3):
            self.done("mutate", "G", self.insert(5 + i))
        self.done("gc", "G", "--keep", "1")
        self.done("verify", "G")
        self.assertEqual(self.keys(), list(range(1, 8)))

    def test_writers_of_many_branches_start_beside_each_others_recovery(self):  # R177
        names = ["b%d" % i for i in range(6)]
        for name in names:
            self.done("branch", "create", "G", name)
            self.write("q.csv", "id,n\n3,3\n")
            self.dead("arm.after", "load", "G", "P=q.csv", "--branch", name)
        files = [self.insert(10 + i, "w%d.jsonl" % i) for i in range(6)]
        results = self.together([("mutate", "G", file, "--branch", name) for file, name in zip(files, names)] +
                                [("recover", "G")] * 2)
        self.assertEqual([r.code for r in results], [0] * 8, [r.err for r in results])
        for i, name in enumerate(names):
            self.assertEqual(self.keys("--branch", name), [1, 2, 3, 10 + i])
        self.assertEqual(self.done("recover", "G", "--json").lines, [])
        self.clean()

    def test_an_update_that_fails_stands_in_no_others_way(self):  # R179
        lines = ['{"op":"update","node":"P","key":1,"set":{"n":"x"}}', '{"op":"update","node":"P","key":1,"set":{"n":99999999999}}',
                 '{"op":"update","node":"P","key":9,"set":{"n":1}}', '{"op":"update","node":"P","key":1,"set":{"id":7}}']
        for i, line in enumerate(lines):
            self.assertNotEqual(self.run_program("mutate", "G", self.write("bad.jsonl", line + "\n")).code, 0, line)
            self.done("mutate", "G", self.write("good.jsonl", '{"op":"update","node":"P","key":2,"set":{"n":%d}}\n' % (10 + i)))
            self.done("mutate", "G", self.write("good.jsonl", '{"op":"update","node":"P","key":1,"set":{"n":%d}}\n' % (20 + i)))
        self.assertEqual(self.rows("P"), [{"id": 2, "n": 13}, {"id": 1, "n": 23}])
        self.clean()

    # ---- idempotency ----

    def test_a_request_given_again_while_it_runs_learns_what_becomes_of_it(self):  # R232
        self.write("q.csv", "id,n\n" + "".join("%d,0\n" % i for i in range(10, 60)))
        words = ("load", "G", "P=q.csv", "--op-id", OPERATION, "--workers", "2", "--json")
        process, stopped = self.stopped("load.after_edits", *words)
        try:
            again = self.start(*words)  # it goes on while the first one stands still
            said = self.finish(again)
        finally:
            os.kill(stopped, signal.SIGCONT)
        first = self.finish(process)
        self.assertEqual((said.code, first.code), (0, 0), said.out + first.out)
        self.assertEqual(said.document["commit"], first.document["commit"])
        self.assertEqual(self.beside(*words).document["commit"], first.document["commit"])
        self.assertEqual(self.keys(), [1, 2] + list(range(10, 60)))
        self.assertEqual(len(self.done("log", "G", "--json").lines), 3)
        self.write("q.csv", "id,n\n99,0\n")
        self.refused(9, *words)
        self.clean()


if __name__ == "__main__":
    main()
