#!/usr/bin/env python3
"""What the supervisor tells a service manager and its log: readiness, reloads, the watchdog; logfmt and JSON that name nothing."""

import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from serve.serving import ServeTest, insert
from support.program import TIMEOUT, main, process_state

LOGFMT = re.compile(r'time=\d+\.\d{6} level=(error|warn|info|debug) event=[a-z-]+( [a-z_]+=([^\s"=]+|"[^"\n]*"))* ?\Z')
NAMES = {"graph", "code", "message", "weight", "max_jobs", "pid", "workers", "graphs", "clients", "attempt", "how", "signal", "task",
         "outcome", "exit", "milliseconds", "failures", "crashes", "time", "level", "event"}


class Manager(ServeTest):
    def setUp(self):
        super().setUp()
        self.graphs("G")
        self.notified = os.path.join(self.sockets, "notify")
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.manager.close)
        self.manager.bind(self.notified)
        self.manager.settimeout(TIMEOUT)

    def told(self):
        return self.manager.recv(4096).decode()

    def told_besides(self, *passed_over):
        while (said := self.told()) in passed_over:
            pass
        return said

    def serve_under(self, **environment):
        self.serve(env={"NOTIFY_SOCKET": self.notified, **environment})

    def test_readiness_reloads_and_the_end_are_told(self):
        self.configure("G")
        self.serve_under()
        self.assertEqual(self.told(), "READY=1")
        self.server.send_signal(signal.SIGHUP)
        self.assertRegex(self.told(), r"^RELOADING=1\nMONOTONIC_USEC=\d+$")
        self.assertEqual(self.told(), "READY=1")
        self.write("c.json", "{")
        self.server.send_signal(signal.SIGHUP)
        self.assertTrue(self.told().startswith("RELOADING=1"))
        self.assertEqual(self.told(), "READY=1")
        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.told(), "STOPPING=1")
        self.finish(self.server)
        self.assertEqual(self.server.returncode, 0)

    def test_the_watchdog_hears_of_the_loop_and_nothing_when_it_hangs(self):
        self.configure("G")
        self.serve_under(WATCHDOG_USEC="800000")
        self.assertEqual(self.told(), "READY=1")
        for _ in range(4):
            self.assertEqual(self.told(), "WATCHDOG=1")
        self.assertGreater(self.status()["seconds"], 3 * 0.4)  # each at half the interval, and not at every turn
        os.kill(self.server.pid, signal.SIGSTOP)
        self.until_stopped()
        while select.select([self.manager], [], [], 0)[0]:
            self.told()
        self.assertEqual(select.select([self.manager], [], [], 1.5)[0], [])
        os.kill(self.server.pid, signal.SIGCONT)
        self.assertEqual(self.told(), "WATCHDOG=1")
        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.told_besides("WATCHDOG=1"), "STOPPING=1")
        self.finish(self.server)

    def until_stopped(self):
        self.until("it stands still", lambda: process_state(self.server.pid) == "T")

    def test_a_watchdog_that_is_meant_for_another_is_none(self):
        self.configure("G")
        self.serve_under(WATCHDOG_USEC="200000", WATCHDOG_PID="1")
        self.assertEqual(self.told(), "READY=1")
        self.server.send_signal(signal.SIGHUP)
        self.assertTrue(self.told().startswith("RELOADING=1"))
        self.assertEqual(self.told(), "READY=1")
        self.end()

    def test_a_supervisor_that_drains_goes_on_telling_and_ends_its_jobs(self):
        self.configure("G")
        self.serve_under(WATCHDOG_USEC="400000", SLUICE_FAILPOINT="gates.after=stop@1")
        client = self.mutate(insert(1))
        runner = self.stopped()
        self.server.send_signal(signal.SIGTERM)
        while self.told() != "STOPPING=1":
            pass
        self.assertEqual(self.told(), "WATCHDOG=1")
        os.kill(runner, signal.SIGCONT)
        self.assertEqual(self.say(client).code, 0)
        self.finish(self.server)
        self.assertEqual(self.server.returncode, 0)

    def make_events(self, **config):
        os.rename(self.path("G"), self.path("Geheim"))
        self.configure({"path": "Geheim", "maintenance": {"every_seconds": 1, "optimize": {"fragments": 2}}}, "nowhere", **config)
        self.serve(env={"SLUICE_LOG": "debug", "SLUICE_FAILPOINT": "gates.after=stop@1"})
        client = self.mutate(insert(4711), "Geheim")
        os.kill(self.stopped(), signal.SIGKILL)
        self.assertEqual(self.say(client).code, 0)
        self.server.send_signal(signal.SIGHUP)
        self.until("it was read", lambda: "reloaded" in self.read("log"))
        kept = self.read("c.json")
        self.write("c.json", kept.replace('"workers"', '"wrokers"'))
        self.server.send_signal(signal.SIGHUP)
        self.until("it was refused", lambda: "not-reloaded" in self.read("log"))
        self.until("it has been looked after", lambda: "maintenance-ended" in self.read("log"))
        self.end()
        log = self.read("log")
        for word in ("Geheim", "4711", "nowhere", "m0.jsonl", "/tmp"):
            self.assertNotIn(word, re.sub(r"(?m)^sluice: .*\n", "", log))  # the operator's own file, for who sent the signal
        return log

    def test_logfmt_is_well_formed_and_names_nothing(self):
        lines = [line for line in self.make_events().splitlines() if not line.startswith("sluice: ")]
        for line in lines:
            self.assertRegex(line, LOGFMT)
            self.assertLessEqual(set(re.findall(r"([a-z_]+)=", re.sub(r'"[^"]*"', "", line))), NAMES, line)
        events = {re.search(r"event=(\S+)", line)[1] for line in lines}
        self.assertLessEqual({"serving", "graph-hosted", "graph-not-hosted", "runner-died", "reloaded", "not-reloaded", "maintenance-ended",
                              "draining", "ended"}, events)

    def test_json_has_the_same_members(self):
        for line in self.make_events(log="json").splitlines():
            document = json.loads(line)
            self.assertLessEqual({"time", "level", "event"}, set(document))
            self.assertLessEqual(set(document), NAMES)
            self.assertIsInstance(document["time"], float)
            for name in ("graph", "workers", "attempt", "exit"):
                self.assertIsInstance(document.get(name, 0), int)
            if document["event"] == "runner-died":
                self.assertEqual(document["how"], "signal 9")

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed: the unit is not verified")
    def test_the_unit_is_one_that_systemd_takes(self):
        with open(os.path.join(os.environ["SLUICE_SOURCE_DIR"], "packaging", "sluice.service"), encoding="utf-8") as file:
            unit = file.read()
        for line in ("Type=notify", "WatchdogSec=", "ExecReload=/bin/kill -HUP $MAINPID", "Restart=on-failure", "KillMode=mixed", "--check"):
            self.assertIn(line, unit)
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "sluice")
            shutil.copy(self.program, program)
            path = os.path.join(folder, "sluice.service")
            with open(path, "w", encoding="utf-8") as file:
                file.write(unit.replace("/usr/bin/sluice", program))
            result = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", path], capture_output=True, text=True,
                                    timeout=TIMEOUT, check=False)
        if re.search("Failed to (initialize|create) manager|Failed to setup", result.stderr):
            self.skipTest("systemd-analyze does not work here: the unit is not verified")
        self.assertEqual((result.returncode, [line for line in result.stderr.splitlines() if "sluice.service" in line]), (0, []))


if __name__ == "__main__":
    main()
