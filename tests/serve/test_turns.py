#!/usr/bin/env python3
"""Requests take little from others: answers to `status` are made seldom however many are asked for, and never older than what a client
knows; a client with many requests has its turns beside the others; the jobs of one graph are told by themselves."""

import os
import signal
import socket
import time
import unittest

from serve import prometheus
from serve.serving import Connection, ServeTest, insert, process_state
from support.program import main

REQUESTS = 4000
KEPT_MS = 10
TURN_LINES = 64
STRANGER = 65533


class Turns(ServeTest):
    def setUp(self):
        super().setUp()
        self.graphs("G", "H")

    def renderings(self):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.http_path)
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            answer = b""
            while more := client.recv(65536):
                answer += more
        return prometheus.parse(answer.decode().partition("\r\n\r\n")[2])[1][("sluice_status_renderings_total", ())]

    def test_many_status_requests_are_few_renderings(self):
        self.configure("G", "H", http=self.http_path, requests_per_second=1000000)
        self.serve()
        connections = [self.connect() for _ in range(4)]
        before, began = self.renderings(), time.monotonic()
        for _ in range(REQUESTS // 100):
            for connection in connections:
                connection.socket.sendall(b'{"jsonrpc": "2.0", "id": 1, "method": "status"}\n' * 25)
            for connection in connections:
                for _ in range(25):
                    self.assertEqual(connection.receive()["result"]["state"], "serving")
        made, spent = self.renderings() - before, time.monotonic() - began
        # one per so many milliseconds, however long it took; and at most one for each connection that had just been made
        self.assertLessEqual(made, spent * 1000 / KEPT_MS + 1 + len(connections))
        self.assertGreater(made, 0)
        for connection in connections:
            connection.close()
        self.end()

    def test_a_status_is_never_older_than_what_the_client_was_told(self):
        self.configure("G", "H")
        self.serve()
        first, second = self.connect(), self.connect()
        for key in range(40):
            second.ask("status")  # an answer that would be kept
            self.assertEqual(first.ask("submit", graph="G", command="mutate", words=["G"], text=insert(key))["result"]["exit"], 0)
            asked = first if key % 2 else self.connect()  # whoever comes later knows as much
            status = [graph for graph in asked.ask("status")["result"]["graphs"] if graph["name"] == "G"][0]
            self.assertEqual((status["done"], status["commits"], status["queued"], status["running"]), (key + 1, key + 1, 0, 0))
            if asked is not first:
                asked.close()
        first.close()
        second.close()
        self.end()

    def test_a_reload_that_takes_a_graph_away_is_seen_at_once(self):
        self.configure("G", "H")
        self.serve()
        connection = self.connect()
        self.assertEqual(len(connection.ask("status")["result"]["graphs"]), 2)
        self.configure("G")
        self.server.send_signal(signal.SIGHUP)
        self.until("it is read", lambda: "event=reloaded" in self.read("log"))
        self.assertNotIn("idle", [graph["state"] for graph in connection.ask("status")["result"]["graphs"] if graph["name"] == "H"])
        connection.close()
        self.end()

    def test_a_client_with_many_requests_has_its_turns_beside_others(self):
        self.configure("G", "H", requests_per_second=1000000)
        self.serve()
        greedy, modest = self.connect(), self.connect()
        for connection in (greedy, modest):
            connection.ask("list")
        self.server.send_signal(signal.SIGSTOP)  # both are there when it goes on, the greedy one first
        self.until("it is stopped", lambda: process_state(self.server.pid) == "T")
        greedy.socket.sendall(b'{"jsonrpc":"2.0","id":1,"method":"list"}\n' * 1000)
        modest.send("submit", graph="G", command="mutate", words=["G"], text=insert(1))
        self.server.send_signal(signal.SIGCONT)
        seen = [len(greedy.receive()["result"]["jobs"]) for _ in range(1000)]
        self.assertEqual(seen, sorted(seen))
        self.assertLessEqual(seen.index(1), 6 * TURN_LINES)  # the other's request was taken between turns
        self.assertEqual(modest.receive()["result"]["exit"], 0)
        # whoever closes its side is answered all the same
        greedy.socket.sendall(b'{"jsonrpc":"2.0","id":1,"method":"list"}\n' * 1000)
        greedy.socket.shutdown(socket.SHUT_WR)
        answers = 0
        while greedy.receive():
            answers += 1
        self.assertEqual(answers, 1000)
        greedy.close()
        modest.close()
        self.end()

    def test_jobs_of_a_graph_are_those_of_that_graph(self):
        self.configure("G", "H")
        self.serve()
        for graph, count in (("G", 2), ("H", 1)):
            for key in range(count):
                self.assertEqual(self.say(self.mutate(insert(key), graph)).code, 0)
        for words, graphs in [(("jobs", "G"), ["G", "G"]), (("jobs", self.path("H")), ["H"]),
                              (("jobs", "--socket", self.socket_path, "H"), ["H"]), (("jobs", "--socket", self.socket_path), ["G", "G", "H"])]:
            listed = self.say(self.start(*words, "--json"))
            self.assertEqual((listed.code, [job["graph"] for job in listed.lines]), (0, graphs), listed.err)
        missing = self.say(self.start("jobs", "--socket", self.socket_path, "nowhere", "--json"))
        self.assertEqual((missing.code, missing.error["code"]), (8, "NOT_FOUND"))
        self.end()

    @unittest.skipUnless(os.getuid() == 0, "needs root, to be somebody else")
    def test_jobs_of_a_graph_of_somebody_else_are_not_there(self):
        self.configure("G", {"path": "H", "uids": [STRANGER]}, socket_mode="0666")
        os.chmod(self.sockets, 0o755)
        self.serve()
        self.assertEqual(self.say(self.mutate(insert(1))).code, 0)
        self.assertEqual(self.say(self.mutate(insert(1), "H")).code, 0)
        os.seteuid(STRANGER)
        try:
            stranger = Connection(self.socket_path)
        finally:
            os.seteuid(0)
        folder = os.stat(self.path("G"))
        for graph in ({"graph": "G"}, {"device": folder.st_dev, "inode": folder.st_ino}, {"graph": "nowhere"}):
            answer = stranger.ask("list", **graph)
            self.assertEqual(answer["error"]["data"]["code"], "NOT_FOUND", answer)
        self.assertEqual([job["graph"] for job in stranger.ask("list", graph="H")["result"]["jobs"]], ["H"])
        self.assertEqual([graph["name"] for graph in stranger.ask("status")["result"]["graphs"]], ["H"])
        stranger.close()
        self.assertEqual(len(self.status()["graphs"]), 2)  # and the operator is not given the stranger's answer
        self.end()


if __name__ == "__main__":
    main()
