#!/usr/bin/env python3
"""What a supervisor shows of itself: metrics, health, the page, top; and what its processes are held back from."""

import fcntl
import os
import pty
import signal
import socket
import struct
import termios
import unittest

from serve import prometheus
from serve.serving import ServeTest, insert, workers
from support.program import main


class Observed(ServeTest):
    def setUp(self):
        super().setUp()
        self.graphs("G", "H")

    def http(self, request):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(300)
            connection.connect(self.http_path)
            connection.sendall(request)
            answer = b""
            while more := connection.recv(65536):
                answer += more
        head, _, body = answer.decode().partition("\r\n\r\n")
        return int(head.split()[1]), head, body

    def get(self, path):
        return self.http(("GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path).encode())

    def metrics(self):
        code, head, body = self.get("/metrics")
        self.assertEqual(code, 200)
        self.assertIn("text/plain; version=0.0.4", head)
        return {name + ("{%s}" % ",".join('%s="%s"' % pair for pair in labels) if labels else ""): value
                for (name, labels), value in prometheus.parse(body)[1].items()}

    def test_metrics_count_what_was_done(self):
        self.configure("G", "H", http=self.http_path)
        self.serve()
        for key in (1, 2, 2):
            self.say(self.mutate(insert(key)))
        values = self.metrics()
        self.assertEqual(values['sluice_jobs_ended_total{exit="0",graph="1"}'], 2)
        self.assertEqual(values['sluice_jobs_ended_total{exit="4",graph="1"}'], 1)
        self.assertEqual(values['sluice_job_seconds_count{graph="1"}'], 3)
        self.assertEqual(values['sluice_job_seconds_bucket{graph="1",le="+Inf"}'], 3)
        self.assertEqual(values['sluice_jobs_ended_total{exit="0",graph="2"}'], 0)
        self.assertEqual(values['sluice_graph_up{graph="2"}'], 1)
        self.assertGreaterEqual(values['sluice_fsyncs_total{graph="1",kind="file"}'], 2)
        self.assertEqual(self.get("/healthz")[::2], (200, "ok\n"))
        code, _, page = self.get("/")
        self.assertEqual(code, 200)
        self.assertIn('<td><a href="/graph/1">1</a></td><td class="state idle">idle</td><td>optimistic</td>', page)
        self.assertEqual(self.get("/other")[0], 404)
        self.assertEqual(self.http(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc")[0], 405)
        self.end()
        self.assertFalse(os.path.exists(self.http_path))

    def test_health_says_when_it_drains(self):
        self.configure("G", http=self.http_path)
        self.serve(env={"SLUICE_FAILPOINT": "gates.after=stop"})
        client = self.mutate(insert(1))
        runner = self.stopped()
        self.server.send_signal(signal.SIGTERM)
        self.until("it drains", lambda: self.status()["state"] == "draining")
        self.assertEqual(self.get("/healthz")[0], 503)
        os.kill(runner, signal.SIGCONT)
        self.assertEqual(self.say(client).code, 0)
        self.finish(self.server)

    def test_top_shows_the_graphs_once_where_there_is_no_terminal(self):
        self.configure("G", {"path": "H", "mode": "queued"})
        self.serve()
        self.say(self.mutate(insert(1)))
        result = self.say(self.start("top", env={"SLUICE_SOCKET": self.socket_path}))
        self.assertEqual(result.code, 0, result.err)
        lines = result.out.splitlines()
        self.assertIn("of 2 workers busy", lines[0])
        self.assertEqual([line.split()[:6] for line in lines[3:5]],
                         [["1", "G", "idle", "0", "0", "1"], ["2", "H", "idle", "0", "0", "0"]])
        self.end()

    def test_top_as_json_is_a_document_for_each_look(self):
        self.configure("G")
        self.serve()
        self.say(self.mutate(insert(1)))
        lines = self.say(self.start("top", "--json", "-n", "2", env={"SLUICE_SOCKET": self.socket_path})).lines
        self.assertEqual([line["graphs"][0]["done"] for line in lines], [1, 1])
        self.assertEqual([line["workers"] for line in lines], [2, 2])
        self.assertEqual(lines[0]["graphs"][0]["maintenance"]["state"], self.status()["graphs"][0]["maintenance"]["state"])
        self.end()

    def test_top_fits_the_terminal(self):
        self.configure({"path": "G", "name": "ä" * 30 + "x" * 30}, "H")
        self.serve()
        self.say(self.mutate(insert(1)))
        for width, there, missing in ((60, ("failed",), ("commits", "maintenance")), (80, ("commits", "seconds_mean"), ("refused",)),
                                      (160, ("maintenance", "conflicts"), ())):
            near, far = pty.openpty()
            fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
            process = self.start("top", "-n", "1", "--socket", self.socket_path, stdout=far, stderr=far)
            os.close(far)
            text = b""
            try:
                while more := os.read(near, 65536):
                    text += more
            except OSError:
                pass  # its end
            os.close(near)
            self.assertEqual(process.wait(), 0)
            screen = text.decode().replace("\r", "")
            self.assertTrue(screen.startswith("\033[H\033[J"))
            lines = screen[6:].split("\n")
            table = lines[2:5]
            for name in there:
                self.assertIn(name, table[0])
            for name in missing:
                self.assertNotIn(name, table[0])
            self.assertLessEqual(max(map(len, table)), width)
        self.end()

    def test_a_process_at_work_is_held_to_its_graph(self):
        self.configure("G")
        self.serve(env={"SLUICE_FAILPOINT": "gates.after=stop"})
        client = self.mutate(insert(1))
        runner = self.stopped()
        with open("/proc/%d/status" % runner) as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file)
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        names = [os.readlink("/proc/%d/fd/%s" % (runner, fd)) for fd in os.listdir("/proc/%d/fd" % runner)]
        self.assertEqual([name for name in names if name.startswith(self.folder) and not name.startswith(self.path("G"))], [])
        os.kill(runner, signal.SIGCONT)
        self.assertEqual(self.say(client).code, 0)
        self.end()

    def test_descriptors_stay_as_many_after_many_jobs(self):
        self.configure("G")
        self.serve()

        def descriptors():
            return [len(os.listdir("/proc/%d/fd" % pid)) for pid in [self.server.pid] + workers(self.server.pid)]
        connection = self.connect()
        for key in range(10):
            connection.ask("submit", graph="G", command="mutate", words=["G"], text=insert(key))
        before = descriptors()
        for key in range(10, 110):
            answer = connection.ask("submit", graph="G", command="mutate", words=["G"], text=insert(key))
            self.assertEqual(answer["result"]["exit"], 0)
        after = descriptors()
        self.assertEqual(after[0], before[0])
        self.assertLess(max(after[1:]), 30)  # a few segments of the log are kept open
        connection.close()
        self.end()


if __name__ == "__main__":
    main()
