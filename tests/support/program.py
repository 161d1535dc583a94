"""Running the program in tests: a folder of its own for each test, bounded waits, no process left behind.

    class Case(ProgramTest):
        def test_x(self):
            self.init(SCHEMA)
            self.load("Person=people.csv")            # fails the test unless it ends with 0
            self.refused(4, "load", "G", "P=bad.csv")  # must end with this status; returns what it said

Under the sanitizers a process takes four times as long. What they look for is seen in few of many like runs; so there a test takes
some() of its cases, where an ordinary build, and SLUICE_LONG=1 in any, takes them all; and of the commands of one shape that succeed in a
class only the first looks for leaks as it ends (those that are refused all do).
"""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

TIMEOUT = 300
ORPHANS_END = 60
SANITIZED = os.path.basename(os.environ.get("SLUICE_BUILD_DIR", "")) == "asan"
SAMPLED = SANITIZED and not os.environ.get("SLUICE_LONG")

PR_SET_CHILD_SUBREAPER = 36


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def document(self):
        """The one JSON document on standard output."""
        return json.loads(self.out)

    @property
    def lines(self):
        """Standard output as JSON Lines."""
        return [json.loads(line) for line in self.out.split("\n") if line]

    @property
    def error(self):
        """The error document: the last line of standard output."""
        return json.loads(self.out.splitlines()[-1])["error"]


def become_subreaper():
    """Orphans of the program become our children, so that one left running is seen."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(pid):
    """All live descendants of a process, children before grandchildren."""
    found, frontier = [], [pid]
    while frontier:
        children = []
        for parent in frontier:
            try:
                for task in os.listdir("/proc/%d/task" % parent):
                    with open("/proc/%d/task/%s/children" % (parent, task)) as file:
                        children += [int(word) for word in file.read().split()]
            except OSError:
                continue
        found += children
        frontier = children
    return found


def workers(pid):
    """The live workers under a supervisor: each leads a session of its own, as no other child does (the leak check of a sanitized
    build has one, too, and waits for it for ever when it is killed)."""
    found = []
    for child in descendants(pid):
        try:
            if os.getsid(child) == child:
                found.append(child)
        except OSError:
            pass  # it ended just now
    return found


def process_state(pid):
    """The state letter of /proc; "" when there is no such process."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def end_of_orphans():
    """Waits for what a program left behind to end by itself, as workers do whose supervisor was killed. Who does not is killed,
    and returned."""
    deadline = time.monotonic() + ORPHANS_END
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return []
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    left = descendants(os.getpid())
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return left


def some(cases, count):
    """All cases; in a sampled run (see above) so many of them, spread over all."""
    cases = list(cases)
    return [cases[i * len(cases) // count] for i in range(count)] if SAMPLED and count < len(cases) else cases


class ProgramTest(unittest.TestCase):
    maxDiff = None
    leaks = True  # does a sanitized program look for leaks as it ends? That is a third of a small command's time
    shapes = None  # the commands that have done so

    @classmethod
    def setUpClass(cls):
        cls.program = os.environ["SLUICE"]
        cls.shapes = set()
        become_subreaper()

    def setUp(self):
        base = os.environ.get("SLUICE_TEST_DIR") or os.environ.get("SLUICE_BUILD_DIR") or os.getcwd()
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="sluice-cli-", dir=base))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLUICE_F", "SLUICE_W", "SLUICE_S"))}
        self.environment.update(NO_COLOR="1", LC_ALL="C.UTF-8", TZ="UTC")
        self.no_leaks = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        if not self.leaks:
            self.environment.update(self.no_leaks)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        if isinstance(content, (dict, list)):
            content = json.dumps(content)
        if isinstance(content, str):
            content = content.encode("utf-8")
        with open(self.path(name), "wb") as file:
            file.write(content)
        return name

    def read(self, name):
        with open(self.path(name), encoding="utf-8", newline="") as file:
            return file.read()

    def start(self, *words, env=None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options):
        return subprocess.Popen([self.program, *words], cwd=self.folder, env={**self.environment, **(env or {})}, stdin=stdin,
                                stdout=stdout, stderr=stderr, start_new_session=True, **options)

    def finish(self, process, timeout=TIMEOUT):
        """Waits for a started program; kills it, and fails, when it does not end or leaves somebody behind."""
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            for pid in [process.pid] + descendants(process.pid):
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            process.communicate()
            self.fail("%s did not end within %d s" % (process.args, timeout))
        return Result(process.returncode, (out or b"").decode("utf-8", "replace"), (err or b"").decode("utf-8", "replace"))

    def stopped_among(self, process, candidates):
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            for pid in candidates(process.pid):
                if process_state(pid) == "T":
                    return pid
            self.assertIsNone(process.poll(), "the program has ended before it was stopped")
            time.sleep(0.002)
        self.fail("nobody stopped")

    def stopped_worker(self, process):
        """Waits until a worker has stopped itself (failpoint action `stop`); its process id."""
        return self.stopped_among(process, workers)

    def stopped_process(self, process):
        """The same, of the command itself or a worker of its."""
        return self.stopped_among(process, lambda pid: [pid] + descendants(pid))

    def signal_masks(self, process):
        """The signals that a process has pending and those that it blocks, as bit masks."""
        with open("/proc/%d/status" % process.pid) as file:
            words = dict(line.split(":\t", 1) for line in file if line.startswith(("ShdPnd", "SigBlk")))
        return int(words["ShdPnd"], 16), int(words["SigBlk"], 16)

    def interrupt(self, process):
        """Ctrl-C to a supervisor: from when it looks for signals, until it has taken this one and waits again."""
        bit = 1 << (signal.SIGINT - 1)
        while process.poll() is None and not self.signal_masks(process)[1] & bit:
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGINT)
        while process.poll() is None and (self.signal_masks(process)[0] & bit or process_state(process.pid) != "S"):
            time.sleep(0.002)

    def run_program(self, *words, timeout=TIMEOUT, **options):
        result = self.finish(self.start(*words, **options), timeout)
        self.assertEqual(end_of_orphans(), [], "%s left processes running" % (words,))
        self.assertNotIn("Sanitizer", result.err)
        self.assertNotIn("runtime error:", result.err)
        self.assertNotIn("assertion failed", result.err)
        return result

    def done(self, *words, env=None, **options):
        shape = (tuple(re.sub(r"[0-9a-f]*[0-9][0-9a-f-]*", "0", word) for word in words), tuple(sorted(env or {})))
        if SAMPLED and shape in self.shapes:
            env = {**self.no_leaks, **(env or {})}
        self.shapes.add(shape)
        result = self.run_program(*words, env=env, **options)
        self.assertEqual(result.code, 0, "%s\n%s\n%s" % (" ".join(words), result.out, result.err))
        return result

    def refused(self, code, *words, **options):
        result = self.run_program(*words, **options)
        self.assertEqual(result.code, code, "%s\n%s\n%s" % (" ".join(words), result.out, result.err))
        self.assertTrue(result.err.startswith("sluice: ") or "\nsluice: " in result.err, result.err)
        return result

    # ---- graphs ----

    def init(self, schema, graph="G"):
        self.write("schema.json", schema)
        return self.done("init", graph, "--schema", "schema.json")

    def load(self, *words, graph="G"):
        return self.done("load", graph, *words, "--json").document

    def rows(self, type_name, graph="G", *words):
        return self.done("scan", graph, type_name, "--json", *words).lines

    def content(self, graph="G"):
        """Everything that the graph says it holds, in an order of its own."""
        counts = self.done("count", graph, "--json").document
        return {name: sorted(json.dumps(row, sort_keys=True) for row in self.rows(name, graph)) for name in counts}

    def clean(self, graph="G"):
        self.assertEqual(self.done("verify", graph, "--json").document["problems"], [])


def main():
    unittest.main(verbosity=2)
