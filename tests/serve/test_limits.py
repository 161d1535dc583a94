#!/usr/bin/env python3
"""What a tenant may take: disk while a job makes its files, memory of a job and of all together, and what becomes of a graph whose
jobs crash. SLUICE_LONG=1: sixteen tenants and larger files in 512 MB."""

import os
import signal
import tempfile
import unittest

from serve.serving import ServeTest, insert
from support.program import main

LONG = bool(os.environ.get("SLUICE_LONG"))
MIB = 1 << 20
ROWS = 20000


def disk_of(path):
    """Bytes of disk below a folder."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except FileNotFoundError:
                pass
    return total


class Group:
    """A control group with a limit of memory; None where this machine lets us make none."""

    def __init__(self, limit):
        self.path = None
        for parent, name in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
            try:
                path = tempfile.mkdtemp(prefix="sluice-test-", dir=parent)
            except OSError:
                continue
            try:
                with open(os.path.join(path, name), "r+") as file:  # no group has files of ours
                    file.write(str(limit))
                self.path = path
                return
            except OSError:
                os.rmdir(path)

    def enter(self):
        with open(os.path.join(self.path, "cgroup.procs"), "w") as file:
            file.write(str(os.getpid()))

    def kills(self):
        for name in ("memory.events", "memory.oom_control"):
            try:
                with open(os.path.join(self.path, name)) as file:
                    return dict(line.split() for line in file)["oom_kill"]
            except OSError:
                pass
        raise AssertionError("the group does not count kills")

    def leave(self):
        os.rmdir(self.path)


class Limits(ServeTest):
    def table(self, name, first, rows, width):
        self.write(name, "id,v\n" + "".join("%d,%s\n" % (first + row, os.urandom(width // 2).hex()) for row in range(rows)))
        return "P=" + name

    def test_a_job_that_comes_to_need_more_than_the_quota_fails_and_leaves_nothing(self):
        self.graphs("G", "H")
        before = disk_of(self.path("G"))
        self.configure({"path": "G", "quota": before + 5 * MIB}, "H")
        self.serve()
        large = self.table("large.csv", 0, ROWS, 400)
        for workers in ("1", "2"):
            failed = self.say(self.start("load", "G", large, "--workers", workers, "--json"))
            self.assertEqual((failed.code, failed.error["code"], failed.error["committed"]), (10, "QUOTA", False), failed.err)
            self.assertEqual(self.keys(), [])
            self.assertLess(disk_of(self.path("G")), before + MIB)
        self.assertEqual(self.say(self.start("load", "H", large)).code, 0)
        self.assertEqual(self.say(self.start("load", "G", self.table("small.csv", 0, 100, 100))).code, 0)
        self.end()
        self.clean()

    def test_the_least_quota_takes_rows_and_when_it_is_full_the_hint_makes_room(self):
        self.graphs("G", "H")
        self.configure({"path": "G", "quota": "8M"}, "H")
        self.serve()
        rows = self.table("rows.csv", 0, 2000, 600)
        loads = 0
        said = self.say(self.start("load", "G", rows, "--mode", "overwrite", "--json"))
        self.assertEqual(said.code, 0, said.err)
        while said.code == 0 and loads < 20:
            loads += 1
            said = self.say(self.start("load", "G", rows, "--mode", "overwrite", "--json"))
        self.assertEqual((said.code, said.error["code"]), (10, "QUOTA"), said.err)
        self.assertIn("`sluice gc G --keep 1`", said.err)
        self.assertEqual(self.say(self.start("gc", "G", "--keep", "1")).code, 0)
        self.assertEqual(self.say(self.start("load", "G", rows, "--mode", "overwrite")).code, 0)
        self.end()

    def test_a_job_beyond_its_memory_fails_and_its_process_goes_on(self):
        if self.sanitized():
            self.skipTest("the sanitizers' own memory is far beyond any bound")
        self.graphs("G")
        self.configure({"path": "G", "memory": "64M"})
        self.serve()
        failed = self.say(self.mutate("".join('{"op": "insert", "node": "P", "set": {"id": %d, "v": "%s"}}\n' % (key, "x" * 200)
                                              for key in range(300000))))
        self.assertEqual((failed.code, failed.error["code"], failed.error["committed"]), (10, "RESOURCE_LIMIT", False), failed.err)
        self.assertEqual((self.jobs()[-1]["attempts"], self.graph_status("G")["restarts"]), (1, 0))
        self.assertEqual(self.say(self.mutate(insert(1))).code, 0)
        self.assertEqual(self.keys(), [1])
        self.end()

    def test_many_tenants_in_little_memory_wait_and_nobody_is_killed(self):  # R228
        group = None if self.sanitized() else Group(512 * MIB)
        if not group or not group.path:
            self.skipTest("no control group can be made here")
        self.addCleanup(lambda: (self.leave_nobody(), group.leave()))
        names = ["G%d" % number for number in range(16 if LONG else 6)]
        self.graphs(*names)
        self.configure(*names, workers=8)
        self.serve(preexec_fn=group.enter)
        files = [self.table(name + ".csv", 0, 200000 if LONG else 20000, 200) for name in names]
        clients = [self.start("load", name, file, "--json") for name, file in zip(names, files)]
        for client, name in zip(clients, names):
            result = self.say(client)
            self.assertEqual(result.code, 0, result.err)
        self.assertEqual(group.kills(), "0")
        self.assertEqual([graph["restarts"] for graph in self.status()["graphs"]], [0] * len(names))
        self.end()
        for name in names:
            self.clean(name)

    def test_a_graph_whose_jobs_crash_says_so_until_one_comes_through(self):
        self.graphs("G", "H")
        self.configure("G", "H")
        self.serve(env={"SLUICE_FAILPOINT": ",".join("gates.after=stop@%d" % passage for passage in range(1, 6))})
        bad = self.mutate(insert(1))
        for crash in range(5):
            runner = self.stopped()
            self.assertEqual(self.graph_status("G")["state"], "working")
            os.kill(runner, signal.SIGSEGV)
            os.kill(runner, signal.SIGCONT)
        self.assertEqual(self.say(bad).code, 1)
        self.assertEqual((self.graph_status("G")["state"], self.graph_status("H")["state"]), ("crash-loop", "idle"))
        self.assertIn("event=crash-loop", self.read("log"))
        self.assertEqual(self.say(self.mutate(insert(1), "H")).code, 0)
        self.assertEqual(self.say(self.mutate(insert(2))).code, 0)
        self.assertEqual(self.graph_status("G")["state"], "idle")
        self.assertEqual(self.keys(), [2])
        self.end()


if __name__ == "__main__":
    main()
