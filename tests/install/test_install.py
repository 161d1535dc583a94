#!/usr/bin/env python3
"""What is installed is enough: the program runs; a program of somebody else's finds the library by pkg-config (shared and static)
and by CMake, compiles as C and as C++, and runs; nothing but sluice_ is visible in it; the examples say what they should."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.environ["SLUICE_SOURCE_DIR"]
BUILD = os.environ["SLUICE_BUILD_DIR"]
SANITIZED = "asan" in BUILD
SANITIZERS = ["-fsanitize=address,undefined"] if SANITIZED else []
CC = os.environ.get("CC", "cc")

PEOPLE = """committed 5 objects as generation 2
3 people; number 2 is {"id":2,"name":"Grace","age":46}
from number 1:
  Person 2, 1 away
  Person 3, 2 away
40 and older:
  2 is 46
  3 is 56
  Person {"key":1} is new
  Person {"key":2} is new
  Person {"key":3} is new
  KNOWS {"from":1,"to":2} is new
  KNOWS {"from":2,"to":3} is new
  generation 2: 5 changes
"""

CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES C)
find_package(sluice 0.1 REQUIRED)
add_executable(people %s)
target_link_libraries(people PRIVATE sluice::sluice)
"""


def run(*words, **options):
    done = subprocess.run(words, check=False, timeout=300, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    assert done.returncode == 0, "%s\n%s\n%s" % (" ".join(words), done.stdout, done.stderr)
    return done.stdout


def find(root, name):
    for folder, _, names in os.walk(root):
        if name in names:
            return os.path.join(folder, name)
    raise AssertionError(name + " is not installed")


def check_names(shared, static):
    visible = [line.split() for line in run("nm", "-D", "--defined-only", shared).splitlines()]
    names = {words[-1].split("@")[0] for words in visible if words[-2] != "A"}
    local = {words[-1].split("@")[0] for words in visible if "@@SLUICE_0" in words[-1]}
    assert names and all(name.startswith("sluice_") for name in names), sorted(names)
    assert local == names, "not versioned: %s" % sorted(names - local)
    archived = {line.split()[-1] for line in run("nm", "-g", "--defined-only", static).splitlines() if len(line.split()) == 3}
    if not SANITIZED:  # it adds names of its own
        assert archived == names, sorted(archived ^ names)
    assert names == declared(), sorted(names ^ declared())


def declared():
    """The functions that the public headers declare, as the compiler sees them."""
    text = run(CC, "-E", "-P", "-I" + os.path.join(SOURCE, "include"), "-include", "sluice/sluice.h", "-x", "c", "/dev/null")
    return {name for name in re.findall(r"\b(sluice_\w+)\(", text) if not name.endswith("_fn")}


def check_guide():
    """What the guide shows is what is compiled and run here."""
    with open(os.path.join(SOURCE, "docs/embedding.md"), encoding="utf-8") as file:
        pieces = re.findall(r"```c\n(.*?)```", file.read(), re.S)
    with open(os.path.join(SOURCE, "examples/people.c"), encoding="utf-8") as file:
        example = file.read()
    assert len(pieces) >= 3
    for piece in pieces:
        assert piece in example, piece


def check_package(top):
    """The Debian package has what it needs and says what it depends on; made twice it is the same."""
    if not shutil.which("dpkg-shlibdeps"):
        print("no dpkg-shlibdeps: the Debian package is not tried")
        return
    packages = []
    for name in ("first", "second"):
        folder = os.path.join(top, name)
        run("cpack", "-G", "DEB", "-B", folder, cwd=BUILD, env=dict(os.environ, SOURCE_DATE_EPOCH="1700000000"))
        packages += [os.path.join(folder, file) for file in os.listdir(folder) if file.endswith(".deb")]
    assert len(packages) == 2, packages
    with open(packages[0], "rb") as first, open(packages[1], "rb") as second:
        assert first.read() == second.read(), "two packages of one build differ"
    fields = run("dpkg-deb", "--field", packages[0])
    assert re.search(r"^Package: sluice$", fields, re.M) and re.search(r"^Version: 0\.1\.0", fields, re.M), fields
    for library in ("libc6", "libcjson1", "libzstd1", "libmicrohttpd12"):
        assert re.search(r"^Depends: .*%s" % library, fields, re.M), fields
    whole = os.path.join(top, "package")
    run("dpkg-deb", "--raw-extract", packages[0], whole)
    assert "sluice-graph/1" in run(os.path.join(whole, "usr/bin/sluice"), "version")
    with open(find(whole, "sluice.service"), encoding="utf-8") as unit:
        text = unit.read()
    for path in re.findall(r"^Exec(?:Start|StartPre)=(\S+)", text, re.M):
        assert os.path.basename(path) == "sluice", path
    example = json.load(open(find(whole, "serve.json"), encoding="utf-8"))
    assert example["graphs"]
    for script in ("postinst", "prerm"):
        run("sh", "-n", os.path.join(whole, "DEBIAN", script))
        assert os.access(os.path.join(whole, "DEBIAN", script), os.X_OK)


def check_own_folder(top):
    """README's lines for a folder of one's own, as they stand, but for make: what is built is there."""
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        lines = re.search(r"```sh\nmake install PREFIX=(\S+)\n(.*?)```", file.read(), re.S)
    home = os.path.join(top, "home")
    os.mkdir(home)
    assert lines.group(1) == "$HOME/sluice"
    run("cmake", "--install", BUILD, "--prefix", home + "/sluice", env={name: value for name, value in os.environ.items() if name != "DESTDIR"})
    compiler = " ".join(["${CC:-cc}", *SANITIZERS])
    script = lines.group(2) + "set -e\nsluice version\n%s %s/examples/people.c $(pkg-config --cflags --libs sluice) -o people\n./people %s/g\n" % (
        compiler, SOURCE, home)
    said = run("bash", "-c", script, cwd=home, env=dict(os.environ, HOME=home))
    assert "sluice-graph/1" in said and PEOPLE in said, said
    assert "cpack -G DEB" in run("make", "-n", "package", cwd=SOURCE)


def main():
    check_guide()
    with tempfile.TemporaryDirectory(dir=os.environ.get("SLUICE_TEST_DIR") or BUILD) as top:
        top = os.path.realpath(top)
        run("cmake", "--install", BUILD, "--prefix", "/usr", env=dict(os.environ, DESTDIR=top))
        prefix = os.path.join(top, "usr")
        assert "sluice-graph/1" in run(os.path.join(prefix, "bin/sluice"), "version")
        shared, static = find(prefix, "libsluice.so"), find(prefix, "libsluice.a")
        check_names(shared, static)
        pc = find(prefix, "sluice.pc")
        environment = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(pc), LD_LIBRARY_PATH=os.path.dirname(shared))
        if not os.path.realpath(top).startswith("/usr"):
            environment["PKG_CONFIG_ALLOW_SYSTEM_CFLAGS"] = environment["PKG_CONFIG_ALLOW_SYSTEM_LIBS"] = "1"
        flags = run("pkg-config", "--cflags", "--libs", "sluice", env=environment).split()
        example = os.path.join(SOURCE, "examples/people.c")

        run(CC, "-Wall", "-Werror", "-o", top + "/shared", example, *flags, *SANITIZERS)
        assert run(top + "/shared", top + "/g1", env=environment) == PEOPLE

        libraries = run("pkg-config", "--static", "--libs-only-l", "sluice", env=environment).replace("-lsluice", "").split()
        run(CC, "-o", top + "/static", example, "-I" + os.path.join(prefix, "include"), static, *libraries, *SANITIZERS)
        assert "libsluice" not in run("ldd", top + "/static")
        assert run(top + "/static", top + "/g2") == PEOPLE

        os.mkdir(top + "/outside")
        with open(top + "/outside/CMakeLists.txt", "w", encoding="utf-8") as file:
            file.write(CMAKE % example)
        run("cmake", "-S", top + "/outside", "-B", top + "/outside/build", "-DCMAKE_PREFIX_PATH=" + prefix,
            "-DCMAKE_C_FLAGS=" + " ".join(SANITIZERS))
        run("cmake", "--build", top + "/outside/build")
        assert run(top + "/outside/build/people", top + "/g3", env=environment) == PEOPLE

        if shutil.which("c++"):
            with open(top + "/x.cc", "w", encoding="utf-8") as file:
                file.write("#include <sluice/sluice.h>\nint main() { return sluice_version()[0] == '0' ? 0 : 1; }\n")
            run("c++", "-Wall", "-Werror", "-pedantic", "-o", top + "/cxx", top + "/x.cc", *flags, *SANITIZERS)
            run(top + "/cxx", env=environment)

        for file, words in (("share/man/man1/sluice.1", ("help", "--man")), ("share/fish/vendor_completions.d/sluice.fish", ("completion", "fish")),
                            ("share/zsh/site-functions/_sluice", ("completion", "zsh")),
                            ("share/bash-completion/completions/sluice", ("completion", "bash"))):
            with open(os.path.join(prefix, file), encoding="utf-8") as text:
                assert text.read() == run(os.path.join(prefix, "bin/sluice"), *words), file

        check_own_folder(top)
        headers = sorted(os.listdir(os.path.join(prefix, "include/sluice")))
        assert headers == sorted(os.listdir(os.path.join(SOURCE, "include/sluice")))
        if not SANITIZED:
            check_package(top)
    print("installed, compiled, linked, run, packaged")
    return 0


if __name__ == "__main__":
    sys.exit(main())
