#!/usr/bin/env python3
"""Tenants apart: what a user may not use is not there for it, in any method; what a process of one graph may open is that graph; and
clients that are slow, torn, huge or many take nothing from others. SLUICE_LONG=1: waits for a line that never ends to be cut off."""

import contextlib
import os
import select
import socket
import time
import unittest

from serve.serving import Connection, ServeTest, insert
from support.program import main

LONG = bool(os.environ.get("SLUICE_LONG"))
ROOT = os.getuid() == 0
WRITER, READER, STRANGER = 65531, 65532, 65533
IDLE = 1000


class Tenants(ServeTest):
    def setUp(self):
        super().setUp()
        self.graphs("G", "H")

    def open_to_all(self, *graphs, **more):
        self.configure(*graphs, socket_mode="0666", **more)
        os.chmod(self.sockets, 0o755)

    @contextlib.contextmanager
    def being(self, user):
        """The kernel tells the supervisor who connects: the effective user of that moment."""
        groups = os.getgroups()
        os.setgroups([])
        os.setegid(user)
        os.seteuid(user)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(groups)

    def connect_as(self, user):
        with self.being(user):
            connection = Connection(self.socket_path)
        self.addCleanup(connection.close)
        return connection

    def code(self, answer):
        return answer["error"]["data"]["code"] if "error" in answer else "OK"

    @unittest.skipUnless(ROOT, "needs root, to be somebody else")
    def test_each_method_shows_and_does_what_the_user_may(self):
        self.open_to_all({"path": "G", "uids": [WRITER], "readers": [READER]}, {"path": "H", "uids": [STRANGER]})
        self.serve(env={"SLUICE_FAILPOINT": "gates.after=stop"})
        writer, reader, stranger = (self.connect_as(user) for user in (WRITER, READER, STRANGER))
        job = writer.ask("submit", graph="G", command="mutate", words=["G"], text=insert(1), wait=False)["result"]["job"]
        runner = self.stopped()
        folder = os.stat(self.path("G"))
        submit = dict(command="count", words=["G"])
        for user, seen, codes in [
                (writer, ["G"], {"watch": "OK", "count": "OK", "mutate": "OK", "create": "OK"}),
                (reader, ["G"], {"watch": "OK", "count": "OK", "mutate": "PERMISSION", "create": "PERMISSION", "cancel": "PERMISSION"}),
                (stranger, ["H"], {"watch": "NOT_FOUND", "count": "NOT_FOUND", "mutate": "NOT_FOUND", "create": "NOT_FOUND",
                                   "cancel": "NOT_FOUND"})]:
            self.assertEqual([graph["name"] for graph in user.ask("status")["result"]["graphs"]], seen)
            self.assertEqual({listed["graph"] for listed in user.ask("list")["result"]["jobs"]}, {"G"} if seen == ["G"] else set())
            asked = {"count": user.ask("submit", graph="G", **submit),
                     "mutate": user.ask("submit", graph="G", command="mutate", words=["G"], text=insert(2), wait=False),
                     "create": user.ask("submit", graph="G", command="branch", words=["--json", "list", "G"], wait=False),
                     "cancel": user.ask("cancel", job=job) if user is not writer else {}}
            if "OK" not in codes["watch"]:
                asked["watch"] = user.ask("watch", job=job)
                self.assertEqual(self.code(user.ask("submit", device=folder.st_dev, inode=folder.st_ino, **submit)), "NOT_FOUND")
            for method, code in codes.items():
                if method in asked:
                    self.assertEqual(self.code(asked[method]), code, (method, asked[method]))
        self.assertEqual(self.code(reader.ask("submit", graph="G", command="branch", words=["list", "G"])), "OK")
        reader.send("watch", job=job)
        self.assertEqual(self.code(writer.ask("cancel", job=job)), "OK")
        os.kill(runner, 18)
        while "result" not in (answer := reader.receive()) and "error" not in answer:
            pass
        self.end()

    @unittest.skipUnless(ROOT, "needs root, to be somebody else")
    def test_metrics_are_for_operators(self):
        self.open_to_all({"path": "G", "uids": [STRANGER]}, http=self.http_path)
        self.serve()
        with self.being(STRANGER), socket.socket(socket.AF_UNIX) as client, self.assertRaises(PermissionError):
            client.connect(self.http_path)
        self.end()

    def test_a_path_in_a_request_opens_nothing_outside_of_the_graph(self):
        self.configure("G", "H")
        self.serve()
        self.write("outside.csv", "id,v\n1,a\n")
        with open(self.path("H/cache/inside.csv"), "w") as file:
            file.write("id,v\n2,b\n")
        connection = self.connect()
        for command, words in [("load", ["G", "P=" + self.path("outside.csv"), "--json"]),
                               ("load", ["G", "P=" + self.path("H/cache/inside.csv"), "--json"]),
                               ("load", ["G", "P=/etc/passwd", "--json"]), ("schema", ["apply", "G", "/etc/passwd", "--json"]),
                               ("load", ["G", "P=G/../H/cache/inside.csv", "--json"])]:
            answer = connection.ask("submit", graph="G", command=command, words=words)["result"]
            self.assertEqual(answer["exit"], 2, answer)
            self.assertNotIn("root", answer["stdout"] + answer["stderr"])
        connection.close()
        self.assertEqual(self.keys(), [])
        self.end()

    @unittest.skipUnless(ROOT, "needs root, to be somebody else")
    def test_one_user_cannot_take_all_connections_or_descriptors(self):
        self.open_to_all({"path": "G", "uids": [STRANGER, WRITER]}, connections=8)
        self.serve()
        self.until("nobody is connected", lambda: self.status()["connections"] == 1)
        greedy = [self.connect_as(STRANGER) for _ in range(8)]
        served = [connection for connection in greedy if self.answers(connection)]
        self.assertEqual(len(served), 4)
        self.assertTrue(self.answers(self.connect_as(WRITER)))
        self.assertEqual(self.status()["state"], "serving")
        for connection in served:
            connection.close()
        self.until("they are gone", lambda: self.status()["connections"] <= 2)
        holders = [self.connect_as(STRANGER) for _ in range(3)]
        with open(os.devnull) as null:
            for _ in range(4):
                for holder in holders:
                    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, (null.fileno()).to_bytes(4, "little") * 60)]
                    try:
                        holder.socket.sendmsg([b"x"], rights)
                    except OSError:
                        pass
        self.until("whoever holds more than 64 is cut off", lambda: self.status()["connections"] <= 2)
        self.end()

    def answers(self, connection):
        try:
            return connection.ask("status") is not None
        except OSError:
            return False

    def test_slow_torn_and_meaningless_clients_take_nothing_from_others(self):
        self.configure("G", connections=IDLE + 24)
        self.serve()
        request = b'{"jsonrpc": "2.0", "id": 7, "method": "status"}\n'
        idle = [self.connect() for _ in range(IDLE)]
        slow = self.connect()
        for byte in request:
            slow.socket.sendall(bytes([byte]))
        self.assertEqual(slow.receive()["id"], 7)
        for text in (request[:20], os.urandom(100000), b"\n" * 1000, b'{"a":' * 50000, request[:-1] + b"\0\n"):
            torn = self.connect()
            try:
                torn.socket.sendall(text)
                torn.socket.shutdown(socket.SHUT_WR)
                while torn.receive() is not None:
                    pass
            except OSError:
                pass
            torn.close()
        deaf = self.connect()  # asks and never listens
        try:
            deaf.socket.settimeout(1)
            while True:
                deaf.socket.sendall(request * 100)
        except OSError:
            pass
        self.assertEqual(self.say(self.mutate(insert(1))).code, 0)
        self.assertEqual(self.status()["state"], "serving")
        for connection in (idle[0], idle[-1]):
            self.assertEqual(connection.ask("status")["result"]["connections"] // IDLE, 1)
        if LONG:
            half, began = self.connect(), time.monotonic()
            while time.monotonic() - began < 60:
                try:
                    half.socket.sendall(b" ")
                except OSError:
                    break
                if select.select([half.socket], [], [], 1)[0]:
                    break
            self.assertIsNone(half.receive())
            self.assertGreater(time.monotonic() - began, 29)
            half.close()
        for connection in idle + [slow, deaf]:
            connection.close()
        self.end()


if __name__ == "__main__":
    main()
