#!/usr/bin/env python3
"""What is installed is enough: the program runs, and a program compiles and links with what pkg-config says."""

import os
import subprocess
import sys
import tempfile

SOURCE = r"""
#include <sluice/error.h>
#include <stdio.h>
int main(void)
{
    printf("%s %d\n", sluice_status_name(SLUICE_KEY_CONFLICT), sluice_status_exit(SLUICE_KEY_CONFLICT));
    return 0;
}
"""


def run(*words, **options):
    return subprocess.run(words, check=True, timeout=120, stdout=subprocess.PIPE, text=True, **options).stdout


def main():
    with tempfile.TemporaryDirectory(dir=os.environ["SLUICE_BUILD_DIR"]) as prefix:
        run("cmake", "--install", os.environ["SLUICE_BUILD_DIR"], "--prefix", prefix)
        assert "sluice-graph/1" in run(os.path.join(prefix, "bin/sluice"), "version")
        pc = next(os.path.join(folder, "sluice.pc") for folder, _, names in os.walk(prefix) if "sluice.pc" in names)
        with open(pc, encoding="utf-8") as file:
            text = file.read().split("\n", 1)
        with open(pc, "w", encoding="utf-8") as file:  # the prefix was chosen when the build was configured
            file.write("prefix=%s\n%s" % (prefix, text[1]))
        flags = run("pkg-config", "--cflags", "--libs", pc).split()
        with open(os.path.join(prefix, "x.c"), "w", encoding="utf-8") as file:
            file.write(SOURCE)
        sanitizers = ["-fsanitize=address,undefined"] if "asan" in os.environ["SLUICE_BUILD_DIR"] else []
        run(os.environ.get("CC", "cc"), "-o", prefix + "/x", prefix + "/x.c", *flags, *sanitizers)
        assert run(prefix + "/x") == "KEY_CONFLICT 4\n"
        headers = sorted(os.listdir(os.path.join(prefix, "include/sluice")))
        assert headers == sorted(n for n in os.listdir(os.path.join(os.environ["SLUICE_SOURCE_DIR"], "include/sluice")))
    print("installed, compiled, linked, run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
