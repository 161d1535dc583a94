#!/usr/bin/env python3
"""A worker is killed at every failpoint of a load: the load goes on, or the command died with it."""

from cli.kill import Kill
from support.program import main


class KillWorker(Kill):
    def test_a_process_killed_at_every_failpoint(self):
        self.strike_all("kill")


if __name__ == "__main__":
    main()
