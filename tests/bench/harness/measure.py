"""One program, measured: by the clock, in processor seconds and in memory, with all its children; and what it leaves."""

import json
import os
import subprocess
import sys
import time


class Failed(Exception):
    """A program that was measured ended badly; says how."""


def descendants(pid):
    found = [pid]
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, task)) as file:
                for word in file.read().split():
                    found += descendants(int(word))
    except OSError:
        pass
    return found


def anonymous(pid):
    """Bytes of memory that is no file's."""
    try:
        with open("/proc/%d/status" % pid) as file:
            return sum(int(line.split()[1]) for line in file if line.startswith(("RssAnon:", "RssShmem:"))) * 1024
    except OSError:
        return 0


def end_of(text):
    return " | ".join(text.decode("utf-8", "replace").strip().splitlines()[-3:]) or "it said nothing"


class Run:
    """What one run took: wall and processor seconds, most anonymous memory of all its processes together (looked at every 20
    ms), and what it printed."""

    def __init__(self, wall, cpu, anonymous_peak, output):
        self.wall, self.cpu, self.anonymous, self.output = wall, cpu, anonymous_peak, output

    def measures(self):
        """The JSON lines that a peer's program printed: {measure: (unit, value)}."""
        found = {}
        for line in self.output.decode("utf-8", "replace").splitlines():
            if line.startswith("{"):
                said = json.loads(line)
                found[said["measure"]] = (said["unit"], said["value"])
        return found


def run(words, folder, env=None):
    words = [str(word) for word in words]
    with open(os.path.join(folder, "stdout"), "w+b") as out, open(os.path.join(folder, "stderr"), "w+b") as errors:
        started = time.monotonic()
        process = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
                                   env=dict(os.environ, **(env or {})))
        peak = 0
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            peak = max(peak, sum(anonymous(one) for one in descendants(process.pid)))
            time.sleep(0.002 if time.monotonic() - started < 0.2 else 0.02)
        wall = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        for file in (out, errors):
            file.seek(0)
        output, said = out.read(), errors.read()
    if process.returncode != 0:
        raise Failed("%s ended with %d: %s" % (" ".join(words), process.returncode, end_of(said)))
    return Run(wall, usage.ru_utime + usage.ru_stime, peak, output)


def milliseconds_of(words):
    """Of a short program, from its start to its end, with nothing beside it; its output is thrown away."""
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    started = time.monotonic()
    pid = os.posix_spawn(words[0], [str(word) for word in words], os.environ, file_actions=quiet)
    _, status = os.waitpid(pid, 0)
    wall = time.monotonic() - started
    if status != 0:
        raise Failed("%s ended with %d" % (" ".join(map(str, words)), os.waitstatus_to_exitcode(status)))
    return wall * 1e3


def size_of(path):
    """Allocated bytes of a database: a folder, or a file with what lies beside it."""
    total = 0
    for end in ("", "-wal", "-shm", ".wal"):
        for folder, _, names in os.walk(path + end):
            total += sum(os.stat(os.path.join(folder, name)).st_blocks * 512 for name in names)
        if os.path.isfile(path + end):
            total += os.stat(path + end).st_blocks * 512
    return total


def say(text):
    print(text, file=sys.stderr, flush=True)
