#!/usr/bin/env python3
"""Kills while a load unpacks, spools standard input, and spills: workers (the conductor among them), the whole pool. What is read
from a file goes on with another worker; what can be had only once ends the load, with nothing changed."""

import gzip
import os
import subprocess

from cli.kill import NEW, OLD, Kill
from support.program import main

MANY = {"SLUICE_TEST_CHUNK": "1000", "SLUICE_TEST_RANGE": "100", "SLUICE_SPLIT": "300", "SLUICE_TEST_SPILL": "5"}
PLACES = ("load.while_spooling", "load.after_spill@1", "load.after_spill@9", "load.after_fragment_write@3", "load.after_key_check",
          "arm.after", "publish.after_log_record_write")


class KillSources(Kill):
    def setUp(self):
        super().setUp()
        with open(self.path("people.csv"), "rb") as file:
            self.people = file.read()
        self.write("people.csv.gz", gzip.compress(self.people))
        slow = self.done("version", "--json").document["build"]["sanitizers"] and not os.environ.get("SLUICE_LONG")
        self.places = PLACES[1::3] if slow else PLACES

    def strike_with(self, source, place, action):
        point, _, passage = place.partition("@")
        where = "%s=%s@%s" % (point, action, passage or "1")
        graph = self.graph("G")
        words = ("load", graph, source, "KNOWS=knows.csv", "--workers", "2", "--json", "--memory", "64M")
        process = self.start(*words, stdin=subprocess.PIPE, env={"SLUICE_FAILPOINT": where, **MANY})
        try:
            process.stdin.write(self.people if source.endswith("=-") else b"")
            process.stdin.close()
        except BrokenPipeError:
            pass  # the load ended before its input
        process.stdin = None
        result = self.finish(process)
        where += " " + source + result.err
        counts = self.counts(graph)
        self.check_after(graph, result.code == 0, where)
        return result, counts, where

    def test_a_killed_worker(self):
        for source in ("Person=people.csv.gz", "Person=-"):
            for place in self.places:
                result, counts, where = self.strike_with(source, place, "kill")
                if source.endswith("=-") and place == "load.while_spooling":
                    self.assertEqual((result.code, counts), (1, OLD), where)
                    self.assertIs(result.error["committed"], False)
                else:
                    self.assertEqual((result.code, counts), (0, NEW), where)

    def test_a_killed_pool(self):
        for source in ("Person=people.csv.gz", "Person=-"):
            for place in self.places:
                result, counts, where = self.strike_with(source, place, "killpool")
                self.assertEqual(result.code, -9, where)
                self.assertIn(counts, (OLD, NEW), where)


if __name__ == "__main__":
    main()
