#!/usr/bin/env python3
"""Workers are killed at random moments of a load: no row lost or doubled, and the load still succeeds."""

import os
import random
import signal
import time

from cli.kill import NEW, PIECES, Kill
from support.program import main, workers


class KillRandom(Kill):
    def test_workers_killed_at_random_moments(self):
        dice = random.Random(self.seed)
        graph = self.graph("R")
        began = time.monotonic()
        self.done(*self.load_words(graph), env=PIECES)
        span = time.monotonic() - began
        for number in range(200 if os.environ.get("SLUICE_LONG") else 15):
            graph = self.graph("R%d" % number)
            process = self.start(*self.load_words(graph), env=PIECES)
            time.sleep(dice.uniform(0, span))
            alive = workers(process.pid)
            if alive:
                try:
                    os.kill(dice.choice(alive), signal.SIGKILL)
                except ProcessLookupError:
                    pass  # it ended just now
            result = self.finish(process)
            self.assertEqual(result.code, 0, "number %d: %s" % (number, result.err))
            self.assertEqual(self.counts(graph), NEW)
            self.clean(graph)


if __name__ == "__main__":
    main()
