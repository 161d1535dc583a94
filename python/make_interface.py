#!/usr/bin/env python3
"""Prints the declarations of include/sluice as cffi takes them: what the preprocessor leaves of our own headers. The package keeps
them in sluice/interface.cdef; tests/python compares.

    python3 python/make_interface.py > python/sluice/interface.cdef
"""

import os
import re
import subprocess
import sys


def interface(root):
    text = subprocess.run([os.environ.get("CC", "cc"), "-E", "-I" + os.path.join(root, "include"), "-x", "c",
                           os.path.join(root, "include/sluice/sluice.h")], check=True, stdout=subprocess.PIPE, text=True).stdout
    kept, ours = [], False
    for line in text.splitlines():
        mark = re.match(r'# \d+ "([^"]*)"', line)
        if mark:
            ours = "/include/sluice/" in mark.group(1)
        elif ours and line.strip():
            kept.append(re.sub(r"\b_Bool\b", "bool", line.rstrip()))
    return "\n".join(kept) + "\n"


if __name__ == "__main__":
    sys.stdout.write(interface(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
