#!/usr/bin/env python3
"""Odd circumstances of a supervisor: signals in a storm, a second supervisor, links and other things where its notes should be."""

import os
import shutil
import signal
import threading
import unittest

from serve.serving import Connection, ServeTest, insert
from support.program import main

WRITES = 12
OFTEN = {"every_seconds": 1, "optimize": {"fragments": 2}}


class Odd(ServeTest):
    def test_reloads_in_a_storm_disturb_no_graph_that_stays(self):
        self.graphs("G", "H")
        self.configure("G", "H")
        self.serve()
        ended, storms = threading.Event(), []

        def storm():
            while not ended.is_set():
                self.configure("G", *(["H"] if len(storms) % 2 else []))
                self.server.send_signal(signal.SIGHUP)
                storms.append(1)
        thread = threading.Thread(target=storm)
        thread.start()
        try:
            results = [self.say(self.mutate(insert(key))) for key in range(WRITES)]
        finally:
            ended.set()
            thread.join()
        self.assertEqual([result.code for result in results], [0] * WRITES, [result.err for result in results])
        self.configure("G", "H")
        self.server.send_signal(signal.SIGHUP)
        self.until("both are there", lambda: [graph["state"] for graph in self.status()["graphs"]] == ["idle", "idle"])
        self.assertEqual(self.keys(), list(range(WRITES)))
        self.assertLess(len(os.listdir("/proc/%d/fd" % self.server.pid)), 60)
        self.end()

    def test_a_second_supervisor_hosts_nothing_of_the_firsts_and_takes_nothing_from_it(self):
        self.graphs("G")
        self.configure("G")
        self.serve()
        same = self.say(self.start("serve", "--config", "c.json"))
        self.assertEqual(same.code, 8)
        self.write("other.json", {"socket": self.socket_path + "2", "workers": 1, "graphs": [{"path": "G"}]})
        with open(self.path("other-log"), "ab") as log:
            second = self.start("serve", "--config", "other.json", stdout=log, stderr=log)
        self.until("it listens", lambda: "event=serving" in self.read("other-log"))
        connection = Connection(self.socket_path + "2")
        graph = connection.ask("status")["result"]["graphs"][0]
        self.assertEqual((graph["state"], graph["problem"]), ("failed", "LIVE_WRITER_CONTENTION"))
        connection.close()
        job = self.say(self.mutate(insert(1)))
        self.assertEqual((job.code, len(self.jobs())), (0, 1))  # it went to the first
        second.send_signal(signal.SIGTERM)
        self.assertEqual(second.wait(timeout=120), 0)
        self.assertEqual(self.read("G/cache/host"), self.socket_path)
        self.end()

    def test_what_stands_in_place_of_its_notes_is_not_followed_and_stops_nothing(self):
        self.graphs("G")
        self.configure({"path": "G", "maintenance": OFTEN})
        notes = [self.path("G/cache/" + name) for name in ("host", "jobs", "maintenance")]

        def link(path):
            os.symlink(self.path("precious"), path)
        self.write("precious", "keep")
        for number, put in enumerate((link, os.mkfifo, os.mkdir)):
            for note in notes:
                if os.path.lexists(note):
                    os.remove(note)
                put(note)
            self.serve()
            client = self.mutate(insert(number), env={"SLUICE_SOCKET": self.socket_path})
            self.assertEqual(self.say(client).code, 0)
            self.assertEqual([job["graph"] for job in self.jobs() if not job["maintenance"]], ["G"])
            self.end()
            for note in notes:
                if os.path.isdir(note):
                    os.rmdir(note)
        self.assertEqual(self.read("precious"), "keep")
        shutil.rmtree(self.path("G/cache"))
        self.write("G/cache", "")  # nothing can be noted at all
        self.serve()
        self.assertEqual(self.say(self.mutate(insert(3), env={"SLUICE_SOCKET": self.socket_path})).code, 0)
        self.end()
        self.assertEqual(self.keys(), [0, 1, 2, 3])


if __name__ == "__main__":
    main()
