#!/usr/bin/env python3
"""docs/errors.md has a row for every code of include/sluice/error.h, in its order, and says the same of it."""

import os
import re
import sys

ROOT = os.environ.get("SLUICE_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main():
    with open(os.path.join(ROOT, "include/sluice/error.h"), encoding="utf-8") as file:
        codes = re.findall(r"^\s*X\((\w+), (\d+), (true|false), (\w+)\)", file.read(), re.M)
    with open(os.path.join(ROOT, "docs/errors.md"), encoding="utf-8") as file:
        rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (yes|no) \| (\w+) \| (\S.+) \|$", file.read(), re.M)
    wanted = [(code, status, "yes" if retryable == "true" else "no", action.lower()) for code, status, retryable, action in codes]
    told = [row[:4] for row in rows]
    wrong = [row for row in wanted if row not in told] + [row for row in told if row not in wanted]
    if len(codes) < 30 or wrong or wanted != told:
        print("docs/errors.md and include/sluice/error.h differ: %s" % (wrong or "in their order"))
        return 1
    print("%d codes are documented" % len(codes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
