"""The peers: what each is, whether it can be had here, and how its program is called. Programs are in tests/bench/peers/."""

import glob
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = os.path.join(HERE, "peers")

# What scripts/bench --install asks for.
DEBIAN = ("libsqlite3-dev", "liblmdb-dev", "librocksdb-dev", "postgresql", "postgresql-contrib")
PYTHON = ("duckdb==1.4.2", "kuzu==0.11.3", "ladybug==0.22.0", "lancedb==0.40.0", "pyarrow==22.0.0", "matplotlib==3.11.2")


class Missing(Exception):
    """A peer that cannot be had here; says why."""


class Peer:
    """`words` begins every command line of its program; what it can do is in `does`."""

    def __init__(self, name, words, does, env=None):
        self.name, self.words, self.does, self.env = name, words, does, env


class CPeer:
    def __init__(self, name, library, does):
        self.name, self.library, self.does = name, library, does

    def make(self, folder, _python):
        program = os.path.join(folder, "peer_" + self.name)
        sources = [os.path.join(PROGRAMS, source) for source in ("peer.c", "files.c", self.name + ".c")]
        built = subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", program, *sources, "-l" + self.library, "-lpthread"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if built.returncode != 0:
            missing = "fatal error" in built.stdout or "cannot find -l" in built.stdout
            raise Missing("its library is not installed" if missing else "it does not build: " + built.stdout.strip().splitlines()[-1])
        return Peer(self.name, [program], self.does)


class PythonPeer:
    def __init__(self, name, module, does, script=None):
        self.name, self.module, self.does = name, module, does
        self.script = script or name + "_peer.py"

    def make(self, folder, python):
        if subprocess.run([python, "-c", "import " + self.module], capture_output=True).returncode != 0:
            raise Missing("the Python module %s is not installed for %s" % (self.module, python))
        return Peer(self.name, [python, os.path.join(PROGRAMS, self.script), self.module], self.does)


class PostgresPeer:
    name = "postgresql"

    def make(self, folder, python):
        folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not folders or not os.path.exists(os.path.join(folders[-1], "pgbench")):
            raise Missing("it is not installed")
        return Peer(self.name, [sys.executable, os.path.join(PROGRAMS, "postgresql_peer.py"), folders[-1]], ("commits",))


ALL = (CPeer("sqlite", "sqlite3", ("load", "commits", "history", "read")),
       CPeer("lmdb", "lmdb", ("load", "commits", "history", "read")),
       CPeer("rocksdb", "rocksdb", ("load", "commits", "history")),
       PythonPeer("duckdb", "duckdb", ("load", "commits", "history", "read")),
       PythonPeer("kuzu", "kuzu", ("load", "commits", "history", "read")),
       PythonPeer("ladybug", "ladybug", ("load", "commits", "history", "read"), "kuzu_peer.py"),
       PythonPeer("lancedb", "lancedb", ("load", "commits", "history", "optimize")),
       PostgresPeer())


def find(folder, python, results, wanted=None):
    """The peers that are here, by name; the others are left out by name, with the reason."""
    found = {}
    for one in ALL:
        if wanted is not None and one.name not in wanted:
            results.leave_out(one.name, "not asked for")
            continue
        try:
            found[one.name] = one.make(folder, python)
        except Missing as missing:
            results.leave_out(one.name, "%s; scripts/bench --install installs what can be had" % missing)
    return found


def install(venv):
    """What can be had of Debian's packages and Python's; what cannot is found missing later, by name."""
    as_root = [] if os.geteuid() == 0 else ["sudo"]
    for package in DEBIAN:
        subprocess.run([*as_root, "apt-get", "install", "-y", "-qq", package], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    if not os.path.exists(os.path.join(venv, "bin/python")):
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    for package in PYTHON:
        subprocess.run([os.path.join(venv, "bin/pip"), "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:", package])
