#!/usr/bin/env python3
"""The control socket: what is not understood is refused, what is too much is cut off, and who may not see a graph does not."""

import json
import os
import resource
import signal
import unittest

from serve.serving import Connection, ServeTest, insert
from support.program import main


class Protocol(ServeTest):
    def setUp(self):
        super().setUp()
        self.graphs("G")

    def raw(self, *lines):
        """Sends lines as they are; the answers, up to the end of the connection."""
        connection = self.connect()
        for line in lines:
            try:
                connection.socket.sendall(line)
            except OSError:
                break
        try:
            connection.socket.shutdown(1)
        except OSError:
            pass
        answers = []
        while (answer := connection.receive()) is not None:
            answers.append(answer)
        connection.close()
        return answers

    def test_requests_that_are_none_get_an_error_and_the_next_one_is_answered(self):
        self.configure("G")
        self.serve()
        good = b'{"jsonrpc": "2.0", "id": "x", "method": "status"}\n'
        for line, code in [(b"nonsense\n", -32700), (b"\n", -32700), (b"[]\n", -32600), (b'{"jsonrpc": "2.0", "id": 1}\n', -32600),
                           (b'{"jsonrpc": "1.0", "id": 1, "method": "list"}\n', -32600), (b'\x00\xff\n', -32700),
                           (b'{"jsonrpc": "2.0", "id": 1, "method": "list", "params": []}\n', -32600),
                           (b'{"jsonrpc": "2.0", "id": {}, "method": "list"}\n', -32600), (b"[" * 5000 + b"\n", -32700),
                           (b'{"jsonrpc": "2.0", "id": 1, "method": "drop"}\n', -32601),
                           (b'{"jsonrpc": "2.0", "id": 1, "method": "submit"}\n', -32602),
                           (b'{"jsonrpc": "2.0", "id": 1, "method": "submit", "params": {"graph": "G", "command": "mutate"}}\n', -32602),
                           (b'{"jsonrpc": "2.0", "id": 1, "method": "submit", "params": {"graph": "G", "command": "init", "words": []}}\n',
                            -32602),
                           (b'{"jsonrpc": "2.0", "id": 1, "method": "submit", "params": {"graph": "G", "command": "mutate", "words": [1]}}\n',
                            -32602),
                           (b'{"jsonrpc": "2.0", "id": 1, "method": "submit", "params": {"graph": "G", "command": "load", '
                            b'"words": ["G", "P=f"], "inputs": ["f"]}}\n', -32602)]:
            with self.subTest(line=line[:80]):
                first, second = self.raw(line, good)
                self.assertEqual(first["error"]["code"], code)
                self.assertEqual((second["id"], second["result"]["state"]), ("x", "serving"))
        self.assertEqual(self.raw(b'{"jsonrpc": "2.0", "method": "list"}\n'), [])
        self.end()

    def test_a_line_without_an_end_is_cut_off(self):
        self.configure("G")
        self.serve()
        self.assertEqual(self.raw(*[b"x" * 65536] * 40), [])
        self.assertEqual(self.status()["state"], "serving")
        self.end()

    def test_more_connections_and_requests_than_allowed_are_refused(self):
        self.configure("G", connections=3, requests_per_second=10)
        self.serve()
        self.until("nobody is connected", lambda: self.status()["connections"] == 1)
        few = [self.connect() for _ in range(3)]
        for connection in few:
            self.assertIn("result", connection.ask("status"))
        fourth = self.connect()
        self.assertIsNone(fourth.receive())
        fourth.close()
        for connection in few[:2]:
            connection.close()
        answers = 0
        try:
            few[2].socket.sendall(b'{"jsonrpc": "2.0", "id": 1, "method": "status"}\n' * 100)
        except OSError:
            pass
        while few[2].receive() is not None:
            answers += 1
        self.assertLess(answers, 100)
        few[2].close()
        self.end()

    def test_a_supervisor_without_descriptors_goes_on(self):
        self.configure("G")
        self.serve(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30)))
        crowd = []
        try:
            for _ in range(40):
                connection = Connection(self.socket_path)
                connection.socket.settimeout(0.2)
                crowd.append(connection)
        except OSError:
            pass
        for connection in crowd:
            connection.close()
        self.assertEqual(self.status()["state"], "serving")
        self.assertEqual(self.say(self.mutate(insert(1))).code, 0)
        self.end()

    def test_a_job_can_be_left_and_watched_by_another_connection(self):
        self.configure("G")
        self.serve(env={"SLUICE_FAILPOINT": "gates.after=stop"})
        first, second = self.connect(), self.connect()
        job = first.ask("submit", graph="G", command="mutate", words=["G", "--json"], text=insert(1), wait=False)["result"]
        runner = self.stopped()
        first.close()
        second.send("watch", job=job["job"])
        os.kill(runner, signal.SIGCONT)
        messages = [second.receive()]
        while "id" not in messages[-1]:
            messages.append(second.receive())
        said = "".join(message["params"]["text"] for message in messages[:-1])
        self.assertEqual(json.loads(said)["inserted"], 1)
        self.assertEqual(messages[-1]["result"]["exit"], 0)
        self.assertEqual(second.ask("watch", job=job["job"])["result"]["stdout"], said)
        second.close()
        self.end()

    def test_what_does_not_begin_in_time_is_not_begun(self):
        self.configure({"path": "G", "max_jobs": 1})
        self.serve(env={"SLUICE_FAILPOINT": "gates.after=stop"})
        first = self.mutate(insert(1))
        runner = self.stopped()
        connection = self.connect()
        late = connection.ask("submit", graph="G", command="mutate", words=["G"], text=insert(2), start_within_ms=1)
        connection.close()
        self.assertEqual((late["error"]["data"]["code"], late["error"]["data"]["committed"]), ("TIMEOUT", False))
        os.kill(runner, signal.SIGCONT)
        self.assertEqual(self.say(first).code, 0)
        self.assertEqual(self.keys(), [1])
        self.end()

    def test_two_requests_of_one_operation_at_once_are_one_job(self):
        self.configure("G")
        self.serve(env={"SLUICE_FAILPOINT": "gates.after=stop"})
        request = dict(graph="G", command="mutate", words=["G", "--json", "--op-id", "01890000-0000-4000-8000-000000000001"],
                       text=insert(1), operation_id="01890000-0000-4000-8000-000000000001")
        first, second = self.connect(), self.connect()
        first.send("submit", **request)
        runner = self.stopped()
        second.send("submit", **request)
        second.send("status", 2)
        self.assertEqual(second.receive()["id"], 2)
        os.kill(runner, signal.SIGCONT)
        answers = [connection.receive()["result"] for connection in (first, second)]
        self.assertEqual(answers[0]["job"], answers[1]["job"])
        self.assertEqual(answers[0]["stdout"], answers[1]["stdout"])
        first.close()
        second.close()
        self.end()

    @unittest.skipUnless(os.getuid() == 0, "needs root, to be somebody else")
    def test_another_user_has_only_the_graphs_that_are_its_own(self):
        self.graphs("H")
        self.configure({"path": "G", "uids": [65533]}, {"path": "H", "uids": [65534]}, socket_mode="0666")
        self.serve()
        self.write("p.csv", "id,v\n1,x\n")
        os.chmod(self.folder, 0o755)  # as others see it
        os.chmod(self.sockets, 0o755)
        other = dict(user=65534, group=65534, extra_groups=[], env={"SLUICE_SOCKET": self.socket_path})
        os.chmod(self.path("p.csv"), 0o644)
        try:
            self.assertEqual(self.say(self.start("version", **other)).code, 0)
        except OSError:
            self.skipTest("another user cannot reach the program or the test's folder")
        self.assertEqual(self.say(self.start("load", "H", "P=p.csv", **other)).code, 0)
        self.assertEqual(self.say(self.start("count", "H", **other)).out.split()[-1], "1")
        refused = self.say(self.start("load", "H", "P=p.csv", "--on-error", "skip", "--rejects", "r", "--json", **other))
        self.assertEqual((refused.code, refused.error["code"]), (2, "PERMISSION"))
        self.assertNotEqual(self.say(self.start("load", "G", "P=p.csv", **other)).code, 0)
        self.assertEqual([json.loads(line)["graph"] for line in
                          self.say(self.start("jobs", "--json", **other)).out.splitlines()], ["H"] * 3)
        self.assertEqual(self.keys("G"), [])
        self.write("secret.csv", "id,v\n7,x\n")
        os.chmod(self.path("secret.csv"), 0o600)
        self.assertEqual(self.say(self.start("load", "H", "P=secret.csv", **other)).code, 2)
        self.end()


if __name__ == "__main__":
    main()
