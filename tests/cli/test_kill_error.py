#!/usr/bin/env python3
"""An error of the system at every failpoint of a load."""

from cli.kill import Kill
from support.program import main


class KillError(Kill):
    def test_an_error_at_every_failpoint(self):
        self.assertGreater(self.strike_all("error"), 0.2)


if __name__ == "__main__":
    main()
