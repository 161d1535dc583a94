#!/usr/bin/env python3
"""Prints the module sluice/interface.py: the declarations of include/sluice (what the preprocessor leaves of our own headers), read by
cffi ahead of time, so that no process has to. tests/python compares.

    build/venv/bin/python python/make_interface.py > python/sluice/interface.py
"""

import contextlib
import os
import re
import subprocess
import sys
import tempfile

import cffi


def declarations(root):
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


def interface(root):
    ffi = cffi.FFI()
    ffi.cdef(declarations(root))
    ffi.set_source("sluice.interface", None)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "interface.py")
        with contextlib.redirect_stdout(sys.stderr):  # it says what it does
            ffi.emit_python_code(path)
        with open(path, encoding="utf-8") as file:
            return file.read()


if __name__ == "__main__":
    sys.stdout.write(interface(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
