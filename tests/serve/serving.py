"""A supervisor for tests: started over graphs in the test's folder, spoken to through the program and through its socket."""

import array
import json
import os
import shutil
import signal
import socket
import struct
import tempfile
import time

from support.program import ProgramTest, TIMEOUT, end_of_orphans, process_state, workers

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "v": "string?"}}}, "edges": {}}


def insert(*keys):
    return "".join('{"op": "insert", "node": "P", "set": {"id": %d, "v": "x"}}\n' % key for key in keys)


class Connection:
    """One connection to the control socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.socket.connect(path)  # waits for its turn, as it would not with a time-out
            # who called listen(); a child of a killed supervisor may keep its socket for a moment
            self.listener = struct.unpack("3i", self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
            self.socket.settimeout(TIMEOUT)
        except OSError:
            self.socket.close()
            raise
        self.file = self.socket.makefile("rb")

    def send(self, method, request=1, descriptors=(), **params):
        line = json.dumps({"jsonrpc": "2.0", "id": request, "method": method, "params": params}).encode() + b"\n"
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        self.socket.sendmsg([line], rights)

    def receive(self):
        """The next document; None when the supervisor has closed the connection."""
        try:
            line = self.file.readline()
        except ConnectionResetError:
            return None
        return json.loads(line) if line else None

    def ask(self, method, **params):
        self.send(method, **params)
        return self.receive()

    def close(self):
        self.file.close()
        self.socket.close()


class ServeTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.server = None
        self.made = None
        self.addCleanup(self.leave_nobody)
        self.sockets = tempfile.mkdtemp(prefix="sluice-", dir="/tmp")  # the path of a socket is short, that of a build may be long
        self.addCleanup(shutil.rmtree, self.sockets, ignore_errors=True)
        self.socket_path = os.path.join(self.sockets, "s")
        self.http_path = os.path.join(self.sockets, "http")

    def leave_nobody(self):
        if self.server and self.server.poll() is None:
            self.server.kill()
            self.server.communicate()
        end_of_orphans()

    def sanitized(self):
        """The sanitizers' own memory is far beyond any bound."""
        return bool(json.loads(self.say(self.start("version", "--json")).out)["build"]["sanitizers"])

    def graphs(self, *names):
        for name in names:
            if not self.made:
                self.init(SCHEMA, name)
                self.made = name
            else:
                shutil.copytree(self.path(self.made), self.path(name))

    def configure(self, *graphs, **more):
        """A graph is a name, or a dict of what is configured for it."""
        entries = [{"path": graph} if isinstance(graph, str) else graph for graph in graphs]
        self.write("c.json", {"socket": self.socket_path, "workers": 2, "stopped_seconds": 0, "graphs": entries, **more})

    def serve(self, **options):
        """Starts the supervisor and waits until it listens."""
        with open(self.path("log"), "ab") as log:
            self.server = self.start("serve", "--config", "c.json", stdout=log, stderr=log, **options)
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            self.assertIsNone(self.server.poll(), self.read("log"))
            try:
                connection = self.connect()
                connection.close()
                if connection.listener == self.server.pid:
                    return
            except OSError:
                pass
            time.sleep(0.005)
        self.fail("the supervisor does not listen")

    def connect(self):
        return Connection(self.socket_path)

    def status(self, **more):
        connection = self.connect()
        answer = connection.ask("status", **more)["result"]
        connection.close()
        return answer

    def graph_status(self, name):
        return [graph for graph in self.status()["graphs"] if graph["name"] == name][0]

    def jobs(self):
        connection = self.connect()
        answer = connection.ask("list")["result"]["jobs"]
        connection.close()
        return answer

    def until(self, what, condition):
        """Waits for a state."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            if condition():
                return
            self.assertIsNone(self.server.poll(), self.read("log"))
            time.sleep(0.005)
        self.fail("it did not come to be: " + what)

    def end(self, signal_number=signal.SIGTERM, code=0):
        """Ends the supervisor and sees that nobody is left."""
        self.server.send_signal(signal_number)
        self.finish(self.server)
        self.assertEqual(self.server.returncode, code, self.read("log"))
        self.assertEqual(end_of_orphans(), [])
        log = self.read("log")
        for bad in ("Sanitizer", "runtime error:", "assertion failed"):
            self.assertNotIn(bad, log)

    def mutate(self, text, graph="G", **options):
        """Starts a mutation; its records come from a file."""
        name = "m%d.jsonl" % len(os.listdir(self.folder))
        self.write(name, text)
        return self.start("mutate", graph, name, "--json", **options)

    def say(self, process):
        """The end of a client of the supervisor, whose other children are none of its own."""
        out, err = process.communicate(timeout=TIMEOUT)
        from support.program import Result
        return Result(process.returncode, out.decode(), err.decode())

    def stopped(self):
        return self.stopped_worker(self.server)

    def keys(self, graph="G"):
        result = self.say(self.start("scan", graph, "P", "--json"))
        self.assertEqual(result.code, 0, result.err)
        return sorted(row["id"] for row in result.lines)


__all__ = ["ServeTest", "SCHEMA", "insert", "Connection", "process_state", "workers"]
