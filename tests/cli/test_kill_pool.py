#!/usr/bin/env python3
"""The whole pool is killed at every failpoint of a load."""

from cli.kill import Kill
from support.program import main


class KillPool(Kill):
    def test_the_pool_killed_at_every_failpoint(self):
        self.assertGreater(self.strike_all("killpool"), 0.2)


if __name__ == "__main__":
    main()
