#!/usr/bin/env python3
"""Loads of many tasks, hit at the places of the load itself: a worker killed, the pool killed, an error, at the first passage
and at later ones."""

from cli.kill import Kill
from support.program import main

MANY = {"SLUICE_TEST_CHUNK": "1000", "SLUICE_TEST_RANGE": "100", "SLUICE_SPLIT": "300", "SLUICE_TEST_SPILL": "7"}


class KillTasks(Kill):
    def strike_load(self, action, passages):
        points = [p for p in self.done("version", "--failpoints").out.split() if p.startswith("load.") and "spool" not in p]
        self.assertGreaterEqual(len(points), 8)
        codes = {}
        for point in points:
            for passage in passages:
                where = "%s=%s@%d" % (point, action, passage)
                graph = self.graph("G")
                result = self.run_program(*self.load_words(graph), env={"SLUICE_FAILPOINT": where, **MANY})
                codes[where] = result.code
                self.check_after(graph, result.code == 0, where + result.err)
        return codes

    def test_a_killed_worker_does_not_stop_the_load(self):
        self.assertEqual(set(self.strike_load("kill", (1, 3)).values()), {0})

    def test_an_error_ends_it_with_nothing_changed(self):
        self.assertIn(1, self.strike_load("error", (1, 3)).values())

    def test_a_killed_pool_leaves_the_old_state_or_the_new(self):
        self.assertIn(-9, self.strike_load("killpool", (1, 3)).values())


if __name__ == "__main__":
    main()
