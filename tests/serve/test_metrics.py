#!/usr/bin/env python3
"""Metrics: their format is strict, each moves when its event happens, and none names anything of a user's."""

import os
import re
import signal
import socket
import unittest

from serve import prometheus
from serve.serving import ServeTest, insert
from support.program import main

SECRET = ("Geheimnis", "Vertraulich")


class Metrics(ServeTest):
    def setUp(self):
        super().setUp()
        self.graphs("G", "H")

    def get(self, path, method="GET"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(300)
            connection.connect(self.http_path)
            connection.sendall(("%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % (method, path)).encode())
            answer = b""
            while more := connection.recv(65536):
                answer += more
        head, _, body = answer.decode().partition("\r\n\r\n")
        return int(head.split()[1]), head, body

    def metrics(self):
        code, head, body = self.get("/metrics")
        self.assertEqual(code, 200)
        self.assertIn("Content-Type: text/plain; version=0.0.4; charset=utf-8", head)
        self.families, values = prometheus.parse(body)
        self.text = body
        return values

    def value(self, name, **labels):
        return self.metrics().get((name, tuple(sorted(labels.items()))), 0)

    def moved(self, before, name, **labels):
        """How much a series has grown since `before`."""
        key = (name, tuple(sorted(labels.items())))
        return self.after.get(key, 0) - before.get(key, 0)

    def start_serving(self, *graphs, failpoint="", **more):
        self.configure(*graphs, http=self.http_path, **more)
        self.serve(env={"SLUICE_FAILPOINT": failpoint})

    def mutation(self, text, *words):
        name = "m%d.jsonl" % len(os.listdir(self.folder))
        self.write(name, text)
        return self.say(self.start("mutate", "G", name, "--json", *words))

    def test_a_commit_moves_what_it_is_made_of(self):
        self.start_serving("G", "H")
        before = self.metrics()
        self.assertEqual(self.mutation(insert(1)).code, 0)
        self.after = self.metrics()
        for name, labels in [
                ("sluice_commits_total", {}), ("sluice_jobs_ended_total", {"exit": "0"}), ("sluice_job_seconds_count", {}),
                ("sluice_job_wait_seconds_count", {}), ("sluice_gate_wait_seconds_count", {}),
                ("sluice_gate_hold_seconds_count", {}), ("sluice_publish_group_commits_count", {}),
                ("sluice_publish_group_commits_sum", {}), ("sluice_publish_group_commits_bucket", {"le": "1"})]:
            self.assertEqual(self.moved(before, name, graph="1", **labels), 1, name)
            self.assertEqual(self.moved(before, name, graph="2", **labels), 0, name)
        for stage in ("barrier", "prepare", "gates", "revalidate", "arm", "publish", "finalize"):
            self.assertEqual(self.moved(before, "sluice_write_stage_seconds_count", graph="1", stage=stage), 1, stage)
            self.assertGreater(self.moved(before, "sluice_write_stage_seconds_sum", graph="1", stage=stage), 0, stage)
        syncs = self.moved(before, "sluice_fsyncs_total", graph="1", kind="file")
        self.assertGreaterEqual(syncs, 1)
        self.assertEqual(self.moved(before, "sluice_fsync_seconds_count", graph="1"), syncs)
        self.assertGreaterEqual(self.moved(before, "sluice_written_bytes_total", graph="1"), 4096)
        self.assertGreater(self.moved(before, "sluice_read_bytes_total", graph="1"), 0)
        self.assertGreaterEqual(self.moved(before, "sluice_requests_total"), 1)
        self.assertGreaterEqual(self.moved(before, "sluice_connections_accepted_total"), 1)
        self.assertGreater(self.after[("sluice_supervisor_memory_bytes", ())], 0)
        runners = [(labels, value) for (name, labels), value in self.after.items() if name == "sluice_runner_memory_bytes"]
        self.assertTrue(runners and all(value > 0 for _, value in runners))
        self.end()

    def test_failures_move_by_code(self):
        self.start_serving("G")
        before = self.metrics()
        head = self.mutation(insert(1)).document["commit"]["id"]
        self.assertEqual(self.mutation(insert(2)).code, 0)
        self.assertEqual(self.mutation(insert(3), "--if-head", head).code, 3)
        self.assertEqual(self.mutation('{"op":"assert","node":"P","key":1,"equals":{"v":"z"}}\n').code, 3)
        self.assertEqual(self.mutation(insert(1)).code, 4)
        self.after = self.metrics()
        self.assertEqual(self.moved(before, "sluice_conflicts_total", graph="1", code="READ_SET_CHANGED"), 1)
        self.assertEqual(self.moved(before, "sluice_conflicts_total", graph="1", code="WRITE_CONFLICT"), 1)
        self.assertEqual(self.moved(before, "sluice_write_failures_total", graph="1", code="KEY_CONFLICT"), 1)
        self.assertEqual(self.moved(before, "sluice_commits_total", graph="1"), 2)
        self.assertEqual(self.moved(before, "sluice_jobs_ended_total", graph="1", exit="3"), 2)
        self.end()

    def test_a_plan_that_is_made_again_counts(self):
        self.start_serving("G", failpoint="prepare.after_plan=stop@1")
        first = self.mutate('{"op":"upsert","node":"P","key":1,"set":{"v":"a"}}\n')
        runner = self.stopped()
        self.assertEqual(self.mutation('{"op":"upsert","node":"P","key":1,"set":{"v":"b"}}\n').code, 0)
        before = self.metrics()
        os.kill(runner, signal.SIGCONT)
        self.assertEqual(self.say(first).code, 0)
        self.after = self.metrics()
        self.assertEqual(self.moved(before, "sluice_write_restarts_total", graph="1"), 1)
        self.assertEqual(self.moved(before, "sluice_write_stage_seconds_count", graph="1", stage="prepare"), 2)
        self.end()

    def test_deaths_and_what_is_done_about_their_intents_count(self):
        self.write("p.csv", "id,v\n7,x\n")
        self.start_serving("G", failpoint="arm.after=kill@1")
        before = self.metrics()
        self.assertEqual(self.say(self.start("load", "G", "P=p.csv", "--json")).code, 0)
        self.after = self.metrics()
        self.assertEqual(self.moved(before, "sluice_worker_deaths_total", graph="1", process="worker"), 1)
        outcomes = {outcome: self.moved(before, "sluice_recoveries_total", graph="1", outcome=outcome)
                    for outcome in ("retired", "published", "discarded", "undone", "quarantined")}
        self.assertEqual(sum(outcomes.values()), 1, outcomes)
        self.assertEqual(outcomes["quarantined"], 0)
        self.assertEqual(self.moved(before, "sluice_commits_total", graph="1"), 1)
        self.end()

    def test_a_runner_that_dies_counts_and_gates_are_waited_for(self):
        self.start_serving("G", failpoint="gates.after=stop@1")
        client = self.mutate(insert(1))
        runner = self.stopped()
        before = self.metrics()
        self.assertEqual(before[("sluice_runners", (("graph", "1"), ("state", "busy")))], 1)
        os.kill(runner, signal.SIGKILL)
        self.assertEqual(self.say(client).code, 0)
        self.after = self.metrics()
        self.assertEqual(self.moved(before, "sluice_worker_deaths_total", graph="1", process="runner"), 1)
        self.assertEqual(self.moved(before, "sluice_commits_total", graph="1"), 1)
        self.end()

    def test_queues_and_refusals_are_seen(self):
        self.start_serving({"path": "G", "max_jobs": 1, "queue": 1}, failpoint="gates.after=stop@1")
        clients = [self.mutate(insert(1))]
        runner = self.stopped()
        clients.append(self.mutate(insert(2)))
        self.until("one waits", lambda: self.value("sluice_jobs_queued", graph="1") == 1)
        self.assertEqual(self.value("sluice_jobs_running", graph="1"), 1)
        self.assertEqual(self.value("sluice_workers_busy", lane="small"), 1)
        self.assertEqual(self.mutation(insert(3)).error["code"], "QUEUE_FULL")
        self.assertEqual(self.value("sluice_jobs_refused_total", graph="1", code="QUEUE_FULL"), 1)
        os.kill(runner, signal.SIGCONT)
        for client in clients:
            self.assertEqual(self.say(client).code, 0)
        self.assertEqual(self.value("sluice_jobs_queued", graph="1"), 0)
        self.end()

    def test_nothing_of_a_users_is_named(self):
        os.rename(self.path("G"), self.path(SECRET[0]))
        self.configure(SECRET[0], "H", http=self.http_path)
        self.serve(env={"SLUICE_LOG": "debug"})
        for value in (SECRET[1], SECRET[1]):
            self.write("m.jsonl", '{"op":"insert","node":"P","set":{"id":4711,"v":"%s"}}\n' % value)
            self.say(self.start("mutate", SECRET[0], "m.jsonl", "--json", "-m", SECRET[1]))
        self.say(self.start("branch", "create", SECRET[0], SECRET[1]))
        self.metrics()
        for text in (self.text, self.read("log")):
            for word in SECRET + ("4711", self.folder, self.sockets, "m.jsonl", '"P"'):
                self.assertNotIn(word, text)
        self.end()

    def test_labels_are_words_of_ours_and_bounded(self):
        self.start_serving("G", "H")
        count = []
        for round_ in range(2):
            for key in range(10):
                self.mutation(insert(10 * round_ + key))
            count.append(len(self.metrics()))
        self.assertEqual(count[0], count[1])
        allowed = {"graph": r"\d+", "runner": r"\d+", "exit": r"\d+", "code": "[A-Z_]+", "le": r"[0-9.e+-]+|\+Inf", "lane": "small|pool",
                   "stage": "[a-z]+", "outcome": "[a-z]+", "kind": "file|folder|allocated|active|resident", "process": "runner|worker", "state": "[a-z]+",
                   "version": r"[0-9a-z.+-]+", "task": "[a-z]+"}
        for name, labels in self.metrics():
            for label, value in labels:
                self.assertRegex(value, "^(%s)$" % allowed[label], name)
        self.end()

    def test_the_reference_lists_what_there_is(self):
        with open(os.path.join(os.environ["SLUICE_SOURCE_DIR"], "docs", "operations.md"), encoding="utf-8") as file:
            text = file.read().partition("### Metrics\n")[2].partition("\n### ")[0]
        listed = {}
        for name, kind, labels in re.findall(r"^\| `(sluice_\w+)` \| (\w+) \|([^|]*)\|", text, re.M):
            self.assertNotIn(name, listed)
            listed[name] = (kind, tuple(sorted(re.findall(r"`(\w+)`", labels))))
        self.start_serving("G", failpoint="gates.after=stop@1")
        first = self.mutate(insert(1))
        runner = self.stopped()
        os.kill(runner, signal.SIGCONT)
        self.say(first)
        self.mutation(insert(1))
        values = self.metrics()
        there = {}
        for (name, labels), _ in values.items():
            family = prometheus.family_of(name, {n: kind for n, (kind, _) in self.families.items()})
            there[family] = (self.families[family][0], tuple(sorted({label for label, _ in labels} - {"le"})))
        self.assertEqual(set(self.families), set(listed))
        if self.sanitized():  # no jemalloc, whose figures these are
            listed = {name: family for name, family in listed.items() if "_heap_" not in name}
        self.assertEqual(there, listed)
        self.end()


class Parser(unittest.TestCase):
    """The parser refuses what the format forbids."""

    def test_faults_are_found(self):
        head = "# HELP sluice_x_total Some.\n# TYPE sluice_x_total counter\n"
        self.assertEqual(prometheus.parse(head + 'sluice_x_total{a="\\\\\\"\\n"} 1\n')[1], {("sluice_x_total", (("a", '\\"\n'),)): 1.0})
        for text in (head + "sluice_x_total 1", head + "sluice_x_total 1\nsluice_x_total 1\n", "sluice_x_total 1\n",
                     head + 'sluice_x_total{a="\\x"} 1\n', head + "sluice_x_total -1\n", head + "sluice_x_total 1 \n",
                     head + "sluice_x_total x\n", head + 'sluice_x_total{a="1",a="2"} 1\n', head + 'sluice_x_total{a="1",} 1\n',
                     head.replace("_total", ""), head + head, head.replace("# HELP sluice_x_total Some.\n", "")):
            with self.subTest(text=text), self.assertRaises(prometheus.Fault):
                prometheus.parse(text)


if __name__ == "__main__":
    main()
