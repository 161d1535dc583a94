"""One cell of the recovery matrix: a writer meets with something at a window, somebody recovers, and a model says what must hold.

    writer     tests/matrix/writers.py
    window     a failpoint and its passage; which ones a writer passes is found by tracing a run of it
    action     error: the place fails; the command itself answers
               kill: the process that passes it dies: a worker's work is taken over by another, any other command dies
               killpool: the supervisor of a pool dies with it
               stop: the process stops there, others read and write, then it goes on
    recoverer  who comes after a death: writer (the next write), recover, gc, reader (nobody settles anything)

Whatever happens: readers see the old state or the new one, whole; what was answered is true and stays; the next write works; of the
operation there is one commit or none, and one audit row at most (one, if it had left an intent); the graph verifies; nothing is left in
attempts/, intents, gates, trash/; the same request again gives the first result, or runs now.
"""

import copy
import fcntl
import gzip
import os
import re
import shutil
import signal
import struct
import time

from matrix.writers import BASE, FILES, SCHEMA, WIDER, WRITERS
from support.program import ProgramTest, end_of_orphans

OPERATION = "01890a5d-ac96-4b4b-8cce-b302099a8057"  # no time in it: it never expires
RIVAL, NEXT = (900, "rival"), (901, "next")
RECOVERERS = ("writer", "recover", "gc", "reader")
GRACE = 0.1  # for a rival that need not wait for the stopped process; whether it is over by then changes no verdict


class Cells(ProgramTest):
    leaks = False  # the same commands many hundred times; other tests look for theirs

    def setUp(self):
        super().setUp()
        build = self.done("version", "--json").document["build"]
        if not build["failpoints"]:
            self.skipTest("a build without failpoints")
        self.sanitizers = build["sanitizers"]
        for name, content in FILES.items():
            self.write(name, content)
        self.write("schema.json", SCHEMA)
        self.write("wider.json", WIDER)
        self.write("bad.csv.gz", gzip.compress(FILES["bad.csv"].encode()))
        for key, name in (RIVAL, NEXT):
            self.write(name + ".jsonl", '{"op":"insert","node":"P","set":{"id":%d,"name":"%s"}}\n' % (key, name))
        self.write("base.csv", "id,name\n" + "".join("%d,%s\n" % item for item in BASE["main"]["P"].items()))
        self.write("base-k.csv", "from,to\n" + "".join("%d,%d\n" % edge for edge in sorted(BASE["main"]["K"])))
        self.done("init", "base", "--schema", "schema.json")
        self.load("P=base.csv", "K=base-k.csv", graph="base")
        self.done("checkpoint", "create", "base", "early")
        self.made = {}

    # ---- templates ----

    def copy(self, template, to="G"):
        shutil.rmtree(self.path(to), ignore_errors=True)
        shutil.copytree(self.path(template), self.path(to))

    def fill(self, writer):
        """Makes the branch's active segment so full that the writer's commit opens the next one."""
        for fill in range(20):
            if fill >= 6:
                self.copy("G", "full")
                segments = len(os.listdir(self.path("G/branches/1/log")))
                self.done(*writer.words)
                opened = len(os.listdir(self.path("G/branches/1/log"))) > segments
                self.copy("full")
                if opened:
                    return
            self.write("fill.jsonl", '{"op":"update","node":"P","key":6,"set":{"note":"%s"}}\n' % (chr(ord("a") + fill) * 24000))
            self.done("mutate", "G", "fill.jsonl")
        self.fail("no segment was opened")

    def template(self, writer):
        """The graph that a writer begins with, what a reader says of it, the windows that the writer passes and how often."""
        if writer.name in self.made:
            return self.made[writer.name]
        self.copy("base")
        for words in writer.prepare:
            self.done(*words)
        if writer.dead:
            words, point = writer.dead
            self.assertEqual(self.run_program(*words, env={"SLUICE_FAILPOINT": point + "=killpool"}).code, -signal.SIGKILL)
        if writer.full:
            self.fill(writer)
        self.copy("G", "T-" + writer.name)
        old = self.see(writer)
        dead = len(self.probe())
        windows = {}
        self.write("trace", "")
        self.done(*self.words(writer), env={"SLUICE_FAILPOINT_TRACE": "trace", **writer.env})
        for line in self.read("trace").splitlines():
            name, count = line.split()
            windows[name] = max(int(count), windows.get(name, 0))
        new = self.see(writer)
        self.assertEqual(new["said"], writer.after(old)["said"], writer.name)
        if writer.layout:
            self.assertNotEqual(old["layout"], new["layout"], writer.name)
        self.made[writer.name] = (old, new, windows, dead)
        return self.made[writer.name]

    def words(self, writer):
        return [*writer.words, *(("--op-id", OPERATION) if writer.operation else ()), "--json"]

    # ---- looking ----

    def beside(self, *words):
        """Like done, while another program of ours runs."""
        result = self.finish(self.start(*words))
        self.assertEqual(result.code, 0, "%s\n%s%s" % (words, result.out, result.err))
        return result

    def see(self, writer):
        """What a reader says of the graph."""
        status = self.beside("status", "G", "--json").document
        branches, layout = {}, None
        for entry in status["branches"]:
            name = entry["branch"]
            if name not in writer.branches:
                continue
            place = ("--branch", name, "--at", str(entry["generation"]))  # where one worker is stopped, others may go on
            rows = self.beside("scan", "G", "P", "--json", *place).lines
            edges = self.beside("scan", "G", "K", "--json", *place).lines
            branches[name] = {"P": {row["id"]: row["name"] for row in rows}, "K": {(row["from"], row["to"]) for row in edges},
                              "properties": tuple(rows[0]) if rows else ()}
            self.assertEqual((len(rows), len(edges)), (len(branches[name]["P"]), len(branches[name]["K"])), "a row twice")
            if writer.layout:
                layout = [t[writer.layout] for t in entry["types"]]
        checkpoints = {line["checkpoint"] for line in self.beside("checkpoint", "list", "G", "--json").lines}
        return State(branches=branches, checkpoints=checkpoints, layout=layout)

    def probe(self):
        return self.beside("recover", "G", "--probe", "--json").lines

    # ---- the model ----

    def allowed(self, writer, old, *others):
        """The states that the writer and others may leave, in any order, the writer's part done or not."""
        def one(key, name):
            def does(state):
                state["branches"]["main"]["P"][key] = name
            return does

        states = {"old": [], "new": []}
        for part in range(1 << len(others)):
            first = [one(*other) for i, other in enumerate(others) if not part & 1 << i]
            then = [one(*other) for i, other in enumerate(others) if part & 1 << i]
            for outcome, middle in (("old", []), ("new", [writer.does]), ("new", [writer.halfway] if writer.halfway else [writer.does])):
                state = copy.deepcopy(old)
                for does in first + middle + then:
                    does(state)
                states[outcome].append(state["said"])
        return states

    def judge(self, writer, seen, states, layouts):
        """Is what is seen "old" or "new"? Anything else fails. (A writer that changes no row is told by its layout.)"""
        outcomes = [name for name in ("old", "new") if seen["said"] in states[name]]
        self.assertTrue(outcomes, "%s is none of %s" % (seen["said"], states))
        if len(outcomes) == 2:
            if not writer.layout:
                return "either"
            return "old" if self.is_old(writer, seen, layouts) else "new"
        return outcomes[0]

    def is_old(self, writer, seen, layouts):
        if writer.layout == "fragments":
            return sum(seen["layout"]) >= sum(layouts[0])
        return sum(seen["layout"]) <= sum(layouts[0])

    # ---- a cell ----

    def strike(self, writer, point, passage, action):
        """Runs the writer with the action at its window; the result, and what a reader saw while it stood still."""
        self.write("trace", "")
        words = self.words(writer)
        env = {"SLUICE_FAILPOINT": "%s=%s@%d" % (point, action, passage), "SLUICE_FAILPOINT_TRACE": "trace", **writer.env}
        meanwhile = None
        if action == "stop":
            process = self.start(*words, env=env)
            stopped = self.stopped_process(process)
            try:
                meanwhile = self.see(writer)
                rival = self.start("mutate", "G", "rival.jsonl")
                deadline = time.monotonic() + GRACE
                while rival.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.002)
                self.rivals_in_between += rival.poll() is not None
            finally:
                os.kill(stopped, signal.SIGCONT)
            result = self.finish(process)
            other = self.finish(rival)
            self.assertEqual(other.code, 0, other.out + other.err)
        else:
            result = self.finish(self.start(*words, env=env))
        self.assertEqual(end_of_orphans(), [])
        self.assertNotIn("Sanitizer", result.err)
        self.assertNotIn("runtime error:", result.err)
        self.assertNotIn("assertion failed", result.err)
        self.assertIn("%s %d %s" % (point, passage, action), self.read("trace").splitlines(), "the window was not reached")
        return result, meanwhile

    def check_answer(self, writer, action, result, outcome):
        """What the command said against what is seen before anybody recovers; whether it is known how it ended."""
        if result.code == 0:
            self.assertIn(outcome, ("new", "either"), result.out)
            return "new"
        if result.code < 0:
            self.assertIn(action, ("kill", "killpool"))
            self.assertEqual(result.code, -signal.SIGKILL)
            return None
        self.assertIn(action, ("error", "stop"), result.out + result.err)
        self.assertIn(result.code, (1, 5, 6) if action == "error" else (3,), result.out + result.err)
        error = result.error
        if not writer.operation:  # what they settle is others' work
            return None
        if error["committed"] is None:
            self.assertIn(result.code, (5, 6))
            return None
        self.assertIn(outcome, ("new" if error["committed"] else "old", "either"), result.out)
        return "new" if error["committed"] else "old"

    def run_cell(self, writer, point, passage, action, recoverer):
        old, new, _, dead = self.template(writer)
        layouts = (old["layout"], new["layout"])
        self.copy("T-" + writer.name)
        result, meanwhile = self.strike(writer, point, passage, action)
        others = [RIVAL] if action == "stop" else []
        states = self.allowed(writer, old, *others)
        if meanwhile:
            self.judge(writer, meanwhile, self.allowed(writer, old), layouts)

        seen = self.see(writer)
        outcome = self.judge(writer, seen, states, layouts)
        known = self.check_answer(writer, action, result, outcome)
        left = self.probe()
        self.assertTrue(all(line["outcome"] == "pending" for line in left), left)
        if outcome == "new" or any(line["stage"] == "confirmed" and line["id"] == OPERATION for line in left):
            known = "new"  # a confirmed write is finished: nothing here takes from it what it relies on
        elif outcome == "old" and not left:
            known = "old"

        # Somebody comes.
        if recoverer == "recover":
            self.done("recover", "G")
            self.assertEqual(self.probe(), [])
        elif recoverer == "gc":
            self.done("gc", "G")
        elif recoverer == "reader":
            self.beside("verify", "G")
            self.assertEqual(self.see(writer), seen)
        now = self.judge(writer, self.see(writer), states, layouts)
        if known and recoverer != "reader":
            self.assertIn(now, (known, "either") if recoverer in ("recover", "gc") else ("old", known, "either"))
        self.done("mutate", "G", "next.jsonl")
        if writer.branches[0] != "main":
            self.done("recover", "G")  # what does not write to main has nothing settled by a write to it
        others.append(NEXT)
        states = self.allowed(writer, old, *others)
        settled = self.judge(writer, self.see(writer), states, layouts)
        if known or now == "new":
            self.assertIn(settled, (known or now, "either"))
        if writer.settles:
            self.assertEqual(settled, writer.settles)
        if writer.halfway and result.code < 0 and settled == "new":  # whoever settles a commit does what follows it
            self.assertIn(self.see(writer)["said"], self.allowed(writer, old, NEXT)["new"][::2])
        self.check_left(writer, left, dead, settled)
        self.check_again(writer, result, states, settled, layouts)

    def check_left(self, writer, left, dead, settled):
        """Nothing but the outcome is left, and it is told once."""
        self.assertEqual(self.probe(), [])
        audit = [row for row in os.listdir(self.path("G/audit")) if row.endswith(".json")]
        self.assertEqual(len(audit), len(set(audit)))
        self.assertLessEqual(len(audit), max(1, dead))
        if left:
            self.assertEqual(len(audit), max(len(left), dead))
        self.done("gc", "G")
        status = self.done("status", "G", "--json").document
        self.assertEqual(status["intents"] + status["gates"], [])
        self.assertEqual(status["unknown_entries"], 0)
        for folder in ("attempts", "trash", "quarantine"):
            self.assertEqual(os.listdir(self.path("G/" + folder)), [], folder)
        self.assertEqual(len(os.listdir(self.path("G/branches"))), len(status["branches"]))
        self.assertEqual([entry["suspect"] or entry["damaged"] for entry in status["branches"]], [False] * len(status["branches"]))
        self.clean()
        if writer.commits and settled != "either":
            there = [line for line in self.commits(writer) if line["operation_id"] == OPERATION]
            self.assertEqual(len(there), 1 if settled == "new" else 0)

    def commits(self, writer):
        result = self.run_program("log", "G", "--branch", writer.branches[0], "--json")
        return result.lines if result.code == 0 else []

    def check_again(self, writer, result, states, settled, layouts):
        """The same request with the same id: its first result, or it runs now."""
        before = self.commits(writer) if writer.commits else []
        again = self.done(*self.words(writer), env=writer.env)
        self.assertEqual(self.judge(writer, self.see(writer), states, layouts) in ("new", "either"), True)
        if writer.commits and settled == "new":
            self.assertEqual(self.commits(writer), before)
            commit = [line["commit"] for line in before if line["operation_id"] == OPERATION]
            self.assertEqual([again.document["commit"]["id"]], commit)
        self.clean()


class State(dict):
    """What a reader says; `said` is what must be equal, the layout of files is told apart from it."""

    def __getitem__(self, name):
        if name == "said":
            return {"branches": super().__getitem__("branches"), "checkpoints": super().__getitem__("checkpoints")}
        return super().__getitem__(name)

    def __deepcopy__(self, memo):
        return State({name: copy.deepcopy(value, memo) for name, value in self.items()})
