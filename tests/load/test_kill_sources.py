#!/usr/bin/env python3
"""Kills while a load spools standard input: what can be had only once ends the load, with nothing changed, when its worker dies
before the end of it, and goes on afterwards. (Loads of files: tests/matrix.)"""

import subprocess

from cli.kill import NEW, OLD, Kill
from support.program import main

MANY = {"SLUICE_TEST_CHUNK": "1000", "SLUICE_TEST_RANGE": "100", "SLUICE_SPLIT": "300", "SLUICE_TEST_SPILL": "5"}
PLACES = ("load.while_spooling", "load.after_spill@9", "load.after_fragment_write@3", "arm.after")


class KillSources(Kill):
    def setUp(self):
        super().setUp()
        with open(self.path("people.csv"), "rb") as file:
            self.people = file.read()

    def strike_with(self, source, place, action):
        point, _, passage = place.partition("@")
        where = "%s=%s@%s" % (point, action, passage or "1")
        graph = self.graph("G")
        words = ("load", graph, source, "KNOWS=knows.csv", "--workers", "2", "--json", "--memory", "64M")
        process = self.start(*words, stdin=subprocess.PIPE, env={"SLUICE_FAILPOINT": where, **MANY})
        try:
            process.stdin.write(self.people)
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
        for place in PLACES:
            result, counts, where = self.strike_with("Person=-", place, "kill")
            if place == "load.while_spooling":
                self.assertEqual((result.code, counts), (1, OLD), where)
                self.assertIs(result.error["committed"], False)
            else:
                self.assertEqual((result.code, counts), (0, NEW), where)

    def test_a_killed_pool(self):
        for place in PLACES:
            result, counts, where = self.strike_with("Person=-", place, "killpool")
            self.assertEqual(result.code, -9, where)
            self.assertIn(counts, (OLD, NEW), where)


if __name__ == "__main__":
    main()
