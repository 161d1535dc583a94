"""Actors of all kinds at once on one graph, whom somebody kills and stops: makes the history that the checker judges.

Embedded actors are processes that use the library (actor/actor.c); commands are run by threads here, each command a process or a pool of
its own. Killed actors are followed by new ones; what a dead one had given away is asked for again under its operation id, by a command.
"""

import json
import os
import random
import signal
import subprocess
import threading
import time
import uuid

from history.checker import check, transaction
from support.program import TIMEOUT, Result, end_of_orphans, workers

SCHEMA = {"nodes": {"R": {"key": "id", "properties": {"id": "int64", "v": "string"}},
                    "I": {"key": "id", "properties": {"id": "int64", "tag": "string"}}},
          "edges": {"E": {"from": "R", "to": "I", "properties": {}, "key": []}}}
# What a write may meet here; all of it says that nothing was changed. KEY_CONFLICT: an item that somebody deleted.
REFUSALS = {"WRITE_CONFLICT", "READ_SET_CHANGED", "REBASE_EXHAUSTED", "KEY_CONFLICT", "CONSTRAINT_ENDPOINT", "WRITER_BUSY", "QUEUE_FULL",
            "LIVE_WRITER_CONTENTION", "NOT_FOUND"}


def lists(reads):
    return {int(register): value.split() for register, value in reads.items()}


class Storm:
    """`case` is the test (support.program.ProgramTest); the graph is G in its folder."""

    def __init__(self, case, seed, registers=6, hosted=False):
        self.hosted = hosted
        self.case, self.registers, self.seed = case, registers, seed
        self.chance = random.Random(seed)
        self.lock = threading.Lock()
        self.history, self.problems = [], []
        self.victims = {}       # processes that may be struck: pid -> is it a pool
        self.answers = 0        # lines of history so far: progress
        self.names = 0
        self.kills = self.stops = 0
        self.actor = os.path.join(os.environ["SLUICE_BUILD_DIR"], "tests", "history_actor")

    def prepare(self, mode="optimistic"):
        self.case.write("schema.json", SCHEMA)
        self.case.done("init", "G", "--schema", "schema.json", "--mode", mode)
        self.case.write("r.csv", "id,v\n" + "".join('%d,""\n' % i for i in range(self.registers)))
        self.case.load("R=r.csv")

    def name(self, kind):
        with self.lock:
            self.names += 1
            return "%s%d" % (kind, self.names), self.names * 1000000

    # ---- commands ----

    def command(self, *words, mortal=True):
        process = self.case.start(*words)
        with self.lock:
            self.victims[process.pid] = mortal
        out, err = process.communicate(timeout=TIMEOUT)
        with self.lock:
            del self.victims[process.pid]
            self.answers += 1
        return Result(process.returncode, out.decode(), err.decode())

    def read_command(self, *words):
        """A command that nobody kills (its reader would have nothing to say); it may be stopped."""
        result = self.command(*words, "--json", mortal=False)
        if result.code != 0:
            raise AssertionError("%s: %s" % (words, result.err))
        return result.lines

    def place_now(self):
        newest = self.read_command("log", "G", "-n", "1")[0]
        return newest["commit"], (newest["generation"], newest["index"])

    def view(self, name):
        begin = time.monotonic_ns()
        commit, place = self.place_now()
        rows = {kind: self.read_command("scan", "G", kind, "--at", commit) for kind in ("R", "I", "E")}
        self.add(transaction(name, begin=begin, end=time.monotonic_ns(), at=place, reads={row["id"]: row["v"].split() for row in rows["R"]},
                             items={row["id"]: row["tag"] for row in rows["I"]},
                             edges=[(row["from"], row["to"]) for row in rows["E"]]))

    def add(self, one):
        with self.lock:
            self.history.append(one)

    def settle(self, one, result):
        """What a command said, written to the transaction. False: it was killed, and nobody knows."""
        if result.code < 0 or (result.code and not result.out.strip()):
            if result.code >= 0:
                raise AssertionError("%s said nothing: %s" % (one["id"], result.err))
            return False
        one["end"] = time.monotonic_ns()
        if result.code == 0:
            commit = result.document["commit"]
            one.update(outcome="ok", place=(commit["generation"], commit["index"]))
            return True
        error = result.error
        if error["committed"] is False:
            if error["code"] not in REFUSALS | {"IO"}:
                raise AssertionError("%s was refused with %s: %s" % (one["id"], error["code"], result.err))
            one["outcome"] = "fail" if error["code"] != "IO" else one["outcome"]  # a worker died as often as is borne
            return True
        return False

    def write_command(self, name, words):
        """A write of a register, or a load of items, by a command; asked for again when it was killed."""
        number, item = name.split(".")[1], int(words)
        begin, kind = time.monotonic_ns(), self.chance.randrange(3)
        one = transaction(name, op=str(uuid.UUID(int=self.chance.getrandbits(128), version=4)), begin=begin, outcome="unknown")
        if kind:
            commit, one["at"] = self.place_now()
            register = self.chance.randrange(self.registers)
            seen = self.read_command("get", "G", "R", str(register), "--at", commit)[0]["v"]
            one.update(reads={register: seen.split()}, appends={register: 1}, guarded=True)
            file = self.case.write(name + ".jsonl", "".join(json.dumps(record) + "\n" for record in (
                {"op": "assert", "node": "R", "key": register, "equals": {"v": seen}},
                {"op": "update", "node": "R", "key": register, "set": {"v": (seen + " " + name + ".0").strip()}})))
            command = ("mutate", "G", file)
        else:
            one["inserts"] = [(item + i, (item + i) % self.registers) for i in range(20)]
            self.case.write(name + "-i.csv", "id,tag\n" + "".join("%d,%s\n" % (i, name) for i, _ in one["inserts"]))
            self.case.write(name + "-e.csv", "from,to\n" + "".join("%d,%d\n" % (r, i) for i, r in one["inserts"]))
            command = ("load", "G", "I=%s-i.csv" % name, "E=%s-e.csv" % name, "--workers", "2")
        one["sent"] = time.monotonic_ns()
        self.add(one)
        for attempt in range(1 + int(number) % 3):  # some are never asked about again
            if self.settle(one, self.command(*command, "--op-id", one["op"], "--json")):
                if attempt and one["outcome"] == "fail" and (self.hosted or not kind):
                    one["outcome"] = "unknown"  # what was asked for first may still be on its way: its job, or an orphan of its pool
                break

    def commands(self, writes, views, maintenance):
        name, item = self.name("c")
        work = ["write"] * writes + ["view"] * views + list(maintenance)
        self.chance.shuffle(work)
        for number, what in enumerate(work):
            if what == "write":
                self.write_command("%s.%d" % (name, number), item + number * 100)
            elif what == "view":
                self.view("%s.%d" % (name, number))
            else:
                self.command(*what.split(), "--json")

    # ---- embedded actors ----

    def embedded(self, count):
        """`count` transactions, by as many processes as it takes."""
        left = count
        while left > 0:
            name, item = self.name("e")
            path = self.case.path(name + ".history")
            with open(path, "wb") as out:
                process = subprocess.Popen([self.actor, "G", name, str(self.seed * 1000 + self.names), str(left), str(self.registers), str(item)],
                                           cwd=self.case.folder, env=self.case.environment, stdout=out, stderr=subprocess.PIPE)
            with self.lock:
                self.victims[process.pid] = True
            _, err = process.communicate(timeout=10 * TIMEOUT)
            with self.lock:
                del self.victims[process.pid]
            if process.returncode not in (0, -signal.SIGKILL):
                raise AssertionError("%s ended with %d: %s" % (name, process.returncode, err.decode()))
            left -= self.take(path)

    def take(self, path):
        """The history of an actor that has ended; what it had not been told is asked for again, sometimes. How many there were."""
        with open(path, "rb") as file:
            lines = [json.loads(line) for line in file.read().split(b"\n")[:-1]]  # a torn last line was cut short by the kill
        open_one, count = None, 0
        for line in lines:
            count += line["t"] != "end"
            if line["t"] == "end":
                open_one["outcome"], open_one["end"] = line["outcome"], line["end"]
                open_one["place"] = tuple(line["place"]) if "place" in line else None
                if line["outcome"] == "fail" and line["code"] not in REFUSALS:
                    raise AssertionError("%s was refused with %s" % (line["id"], line["code"]))
                open_one = None
                continue
            one = transaction(line["id"], begin=line["begin"], at=tuple(line["at"]), reads=lists(line["reads"]))
            if line["t"] == "view":
                one.update(end=line["end"], items={int(item): tag for item, tag in line["items"].items()},
                           edges=[tuple(edge) for edge in line["edges"]])
            else:
                one.update(op=line["op"], sent=line["sent"], outcome="unknown", guarded=line["guarded"], deletes=line["deletes"],
                           appends={int(register): words for register, words in line["appends"].items()},
                           inserts=[tuple(pair) for pair in line["inserts"]], lines=line["lines"])
                open_one = one
            self.add(one)
        if open_one is not None and self.chance.random() < 0.7:
            file = self.case.write(open_one["id"] + ".jsonl", open_one["lines"])
            self.settle(open_one, self.command("mutate", "G", file, "--op-id", open_one["op"], "--json"))
        return max(count, 1)

    # ---- somebody strikes ----

    def progress(self):
        """Something that grows as long as anybody gets anything done."""
        size = 0
        for entry in os.scandir(self.case.folder):
            if entry.name.endswith(".history"):
                size += entry.stat().st_size
        return size + self.answers

    def strike(self, done, kills):
        while not done.is_set():
            before, waited = self.progress(), 0
            while not done.is_set() and self.progress() < before + 3000 * self.chance.random() and waited < 200:
                done.wait(0.005)
                waited += 1
            with self.lock:
                victims = sorted(self.victims.items())
            if not victims:
                continue
            pid, mortal = self.chance.choice(victims)
            below = workers(pid)
            if below and self.chance.random() < 0.5:
                pid, mortal = self.chance.choice(below), True
            try:
                if mortal and self.kills < kills and self.chance.random() < 0.6:
                    os.kill(pid, signal.SIGKILL)
                    self.kills += 1
                else:
                    os.kill(pid, signal.SIGSTOP)
                    self.stops += 1
                    now, waited = self.progress(), 0
                    while self.progress() < now + 2000 and waited < 20 and not done.is_set():
                        done.wait(0.005)
                        waited += 1
                    os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass

    def guarded(self, work, *arguments):
        try:
            work(*arguments)
        except BaseException as problem:  # told by the main thread
            with self.lock:
                self.problems.append(problem)

    def run(self, work, kills):
        """Runs all of `work` (functions with their arguments) at once, with somebody who strikes."""
        done = threading.Event()
        striker = threading.Thread(target=self.strike, args=(done, kills))
        threads = [threading.Thread(target=self.guarded, args=each) for each in work]
        for thread in threads + [striker]:
            thread.start()
        for thread in threads:
            thread.join()
        done.set()
        striker.join()
        if self.problems:
            for pid in self.victims:  # whom their threads gave up
                os.kill(pid, signal.SIGKILL)
            raise self.problems[0]

    def judge(self):
        """The last look, the checker's verdict, and what verify says. Returns whether write skew was seen."""
        self.case.assertEqual(end_of_orphans(), [])
        self.case.done("recover", "G")
        self.view("last.0")
        log = [(entry["generation"], entry["index"], entry["operation_id"] if entry["kind"] in ("mutate", "load") else None)
               for entry in self.case.done("log", "G", "--json").lines]
        first = min(entry[:2] for entry in log if entry[2])  # what made the registers
        log = [entry if entry[:2] != first else entry[:2] + (None,) for entry in log]
        findings, skew = check(self.history, log, range(self.registers))
        told = {outcome: sum(one["outcome"] == outcome and one["op"] is not None for one in self.history) for outcome in ("ok", "fail", "unknown")}
        print("%d transactions, writes %s, %d kills, %d stops, write skew %s" % (len(self.history), told, self.kills, self.stops, skew), flush=True)
        if findings:
            keep = os.path.join(os.environ["SLUICE_BUILD_DIR"], "history-%d.json" % self.seed)
            with open(keep, "w", encoding="utf-8") as file:
                json.dump({"history": self.history, "log": log}, file, indent=1)
            self.case.fail("the history is in %s: %s" % (keep, findings[:10]))
        self.case.clean()
        return skew
