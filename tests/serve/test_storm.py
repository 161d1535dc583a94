#!/usr/bin/env python3
"""A supervisor under fire: runners and the supervisor itself are killed at random while clients write to several graphs. What was
acknowledged is there, once, and every graph is clean. SLUICE_LONG=1: longer, with loads and optimize in between."""

import os
import random
import signal
import subprocess
import threading
import time
import unittest

from serve.serving import ServeTest, insert, process_state, workers
from support.program import main

LONG = bool(os.environ.get("SLUICE_LONG"))
WRITES = 400 if LONG else 12  # of each writer
DEATHS = 50 if LONG else 3    # of the supervisor
GRAPHS = ("A", "B", "C")


class Storm(ServeTest):
    def write_all(self, graph, offset, acknowledged):
        """Keys one after the other; what fails is tried again under the same operation id, until it is acknowledged."""
        for number in range(WRITES):
            key = offset + number
            name = "w%s%d" % (graph, offset)
            self.write(name, insert(key))
            operation = "01890000-0000-4000-8000-%012d" % key
            for attempt in range(1000):
                process = self.start("mutate", graph, name, "--op-id", operation, stdout=subprocess.DEVNULL)
                _, err = process.communicate()
                if process.returncode == 0:
                    acknowledged.append(key)
                    break
                if process.returncode not in (1, 3, 5) or attempt == 999:
                    self.failures.append((graph, key, process.returncode, err))
                    return

    def test_what_was_acknowledged_survives_kills_of_everybody(self):
        chance = random.Random(5)
        self.failures = []
        self.graphs(*GRAPHS)
        self.configure(*GRAPHS)
        self.serve()
        acknowledged = {graph: [] for graph in GRAPHS}
        writers = [threading.Thread(target=self.write_all, args=(graph, offset, acknowledged[graph]))
                   for graph in GRAPHS for offset in (0, 100000)]
        for writer in writers:
            writer.start()
        deaths, seen, restarts = 0, 0, []
        while any(writer.is_alive() for writer in writers):
            done = sum(len(keys) for keys in acknowledged.values())
            if done == seen:
                writers[0].join(0.01)
                continue
            seen = done
            if deaths < DEATHS and done > (deaths + 1) * len(writers) * WRITES // (DEATHS + 2):
                pids = [self.server.pid] + workers(self.server.pid)
                self.server.kill()
                self.server.communicate()
                deaths += 1
                began = time.monotonic()
                self.serve()
                restarts.append(time.monotonic() - began)
                for pid in pids:
                    self.until("nobody of the killed one is left", lambda: process_state(pid) in ("", "Z"))
            for pid in workers(self.server.pid):
                if chance.random() < 0.3:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
        for writer in writers:
            writer.join()
        self.assertEqual(self.failures, [])
        if LONG:
            print("\n  figure: %d deaths; the next one served after %.0f ms, at most %.0f ms; %d writes" % (
                deaths, 1000 * sorted(restarts)[len(restarts) // 2], 1000 * max(restarts), sum(map(len, acknowledged.values()))))
            self.assertLess(sorted(restarts)[len(restarts) // 2], 1)
            self.assertEqual(deaths, DEATHS)
        self.end()
        for graph in GRAPHS:
            self.assertEqual(self.keys(graph), sorted(acknowledged[graph]))
            self.clean(graph)


if __name__ == "__main__":
    main()
