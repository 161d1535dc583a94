#!/usr/bin/env python3
"""What an operator must be able to see of a supervisor (docs/operations.md "Seen"): tenants that go on beside one whose jobs crash,
writers that are stopped and fenced, memory and descriptors after many jobs, and status requests beside commits. Each has a short
form; SLUICE_LONG=1 runs the real one and prints its figures."""

import json
import os
import random
import signal
import socket
import threading
import time
import unittest

from serve import prometheus
from serve.serving import Connection, ServeTest, insert, process_state, workers
from support.program import main

LONG = bool(os.environ.get("SLUICE_LONG"))
SECONDS = float(os.environ.get("SLUICE_SIGHT_SECONDS", 600 if LONG else 2))  # of the first sight
PHASE = 10 if LONG else 1
JOBS = 100000 if LONG else 600
ROWS = 20000 if LONG else 200
STATUS_PER_SECOND = 10000
IDLE = 1000 if LONG else 100


def figure(text, *values):
    if LONG:
        print("\n  figure: " + text % values, flush=True)


def anonymous(pid):
    """Private memory of a process, in KiB."""
    with open("/proc/%d/smaps_rollup" % pid) as file:
        words = dict(line.split(":", 1) for line in file if ":" in line)
    return int(words["Anonymous"].split()[0])


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


class Tenant(threading.Thread):
    """Commits one key after the other over one connection, until it is told to end; what is acknowledged is remembered."""

    def __init__(self, test, graph, first):
        super().__init__(daemon=True)
        self.test, self.graph, self.first = test, graph, first
        self.acknowledged, self.problems, self.ends = [], [], False

    def commit(self, connection, key):
        answer = connection.ask("submit", graph=self.graph, command="mutate", words=[self.graph, "--json"], text=insert(key),
                                operation_id="01890000-0000-4000-8000-%012d" % key)
        if "result" in answer and answer["result"]["exit"] == 0:
            return True
        retryable = answer["error"]["data"]["retryable"] if "error" in answer else answer["result"]["exit"] in (3, 5)
        if not retryable:
            self.problems.append(answer)
            self.ends = True
        return False

    def run(self):
        connection = self.test.connect()
        key = self.first
        while not self.ends:
            if self.commit(connection, key):
                self.acknowledged.append(key)
                key += 1
        connection.close()


class Repeated(threading.Thread):
    """Runs commands of the program one after the other, until it is told to end; their exit statuses are counted."""

    def __init__(self, test, words):
        super().__init__(daemon=True)
        self.test, self.words, self.ends, self.exits, self.runs, self.said = test, words, False, {}, 0, b""
        self.process = None

    def leave(self):
        """Ends now: a job in a crash loop takes its time."""
        self.ends = True
        if self.process:
            self.process.kill()

    def run(self):
        while not self.ends:
            self.process = process = self.test.start(*self.words(self.runs))
            _, err = process.communicate()
            self.exits[process.returncode] = self.exits.get(process.returncode, 0) + 1
            self.said = err if process.returncode not in (0, 3) else self.said
            self.runs += 1


class Sights(ServeTest):
    def join(self, threads):
        for thread in threads:
            thread.ends = True
        for thread in threads:
            thread.join()

    def load_words(self, graph, offset):
        def words(run):
            name = "load-%s.csv" % graph
            self.write(name, "id,v\n" + "".join("%d,x\n" % (offset + run * ROWS + row) for row in range(ROWS)))
            return "load", graph, "P=" + name
        return words

    def kill_somebody(self, chance):
        pids = workers(self.server.pid)
        if pids:
            try:
                os.kill(chance.choice(pids), signal.SIGKILL)
            except ProcessLookupError:
                pass

    def test_tenants_go_on_beside_one_whose_jobs_crash_while_workers_are_killed(self):
        chance = random.Random(7)
        self.graphs("A", "B", "C")
        self.configure("A", "B", "C", workers=4)
        # the third tenant's input makes whoever works on it crash
        self.serve(env={"SLUICE_FAILPOINT": "gates.after=crash@*", "SLUICE_FAILPOINT_GRAPH": "C"})
        tenants = [Tenant(self, graph, first) for graph in "AB" for first in (0, 100000000)]
        others = [Repeated(self, self.load_words("A", 200000000)), Repeated(self, self.load_words("B", 200000000)),
                  Repeated(self, lambda run: ("optimize", "AB"[run % 2])), Repeated(self, lambda run: ("count", "AB"[run % 2]))]
        disturbers = []
        for thread in tenants + others:
            thread.start()
        done, spent = {True: 0, False: 0}, {True: 0.0, False: 0.0}
        began = time.monotonic()
        disturbed = False
        while time.monotonic() - began < SECONDS or not spent[True]:
            if disturbed:
                disturbers += [Repeated(self, self.load_words("C", 0)), Repeated(self, lambda run: ("mutate", "C", "bad"))]
                self.write("bad", insert(1))
                for thread in disturbers[-2:]:
                    thread.start()
            start, before = time.monotonic(), sum(len(tenant.acknowledged) for tenant in tenants)
            while time.monotonic() - start < PHASE or sum(len(tenant.acknowledged) for tenant in tenants) == before:
                time.sleep(min(1, PHASE) * 0.9)  # the storm's own rate: one death a second
                self.kill_somebody(chance)
            spent[disturbed] += time.monotonic() - start
            done[disturbed] += sum(len(tenant.acknowledged) for tenant in tenants) - before
            if disturbed:
                for thread in disturbers:
                    thread.leave()
            disturbed = not disturbed
        self.assertTrue(done[True] and done[False])
        self.join(tenants + others + disturbers)
        self.assertEqual([tenant.problems for tenant in tenants], [[]] * len(tenants))
        rate = {key: done[key] / spent[key] for key in done if spent[key]}
        status = {graph: self.graph_status(graph) for graph in "ABC"}
        figure("%.1f commits a second beside the disturber, %.1f without: %.0f %%; %d loads, %d optimizes; deaths A %d, B %d, C %d",
               rate[True], rate[False], 100 * rate[True] / rate[False], others[0].runs + others[1].runs, others[2].runs,
               *(status[graph]["restarts"] for graph in "ABC"))
        for other in others:
            self.assertLessEqual(set(other.exits), {0, 3}, other.said)
        if LONG:
            self.assertGreaterEqual(rate[True], 0.8 * rate[False])
        self.end()
        for graph in "AB":
            keys = set(self.keys(graph))
            for tenant in tenants:
                if tenant.graph == graph:
                    self.assertLessEqual(set(tenant.acknowledged), keys)
        self.assertEqual(self.keys("C"), [])
        for graph in "ABC":
            self.clean(graph)

    def test_a_writer_that_is_stopped_fenced_and_resumed_publishes_nothing_more_and_says_what_it_has(self):
        # where it stands still, and whether its record is in the log by then
        points = {"gates.after": False, "publish.before_append": False, "publish.after_log_record_write": True, "publish.before_decide": True}
        if LONG:
            points.update({"publish.after_line": False, "publish.after_take": False, "publish.after_mark": True})
        self.graphs(*points)
        for number, (point, committed) in enumerate(points.items()):
            with self.subTest(point=point):
                self.configure(point, stopped_seconds=1)
                self.serve(env={"SLUICE_FAILPOINT": point + "=stop", "SLUICE_FENCE_ONLY": "1"})
                first = self.mutate(insert(1), point)
                runner = self.stopped()
                self.until("it is fenced", lambda: self.read("log").count("event=runner-fenced") > number)
                os.kill(runner, signal.SIGCONT)
                result = self.say(first)
                self.assertEqual((result.code, result.error["code"]), (5, "FENCED"), result.err)
                self.assertEqual((result.error["committed"], result.error["commit_id"] is not None), (committed, committed), result.out)
                self.until("it is gone", lambda: process_state(runner) in ("", "Z"))
                self.assertEqual(self.keys(point), [1] if committed else [])
                self.assertEqual(self.say(self.mutate(insert(2), point)).code, 0)
                self.assertEqual(self.keys(point), [1, 2] if committed else [2])
                self.end()
                self.clean(point)

    def test_a_fenced_writer_whose_write_another_has_in_hand_says_what_became_of_it(self):
        self.graphs("G")
        self.configure("G", stopped_seconds=1)
        # the first one leads, and takes its time with the second one's write in hand
        self.serve(env={"SLUICE_FAILPOINT": "publish.after_lock=sleep:1500@1,publish.after_take=sleep:2500@1", "SLUICE_FENCE_ONLY": "1"})
        connection = self.connect()
        jobs = [connection.ask("submit", graph="G", command="mutate", words=["G", "--json"], text=insert(1), wait=False)]
        self.until("it leads", lambda: "publish" in [process["stage"] for process in self.status(detail=True)["processes"]])
        leader = [process["pid"] for process in self.status(detail=True)["processes"] if process["state"] == "busy"]
        jobs.append(connection.ask("submit", graph="G", command="mutate", words=["G", "--json"], text=insert(2), wait=False))
        self.until("both publish", lambda: [process["stage"] for process in self.status(detail=True)["processes"]].count("publish") == 2)
        member = [process["pid"] for process in self.status(detail=True)["processes"]
                  if process["state"] == "busy" and process["pid"] not in leader][0]
        os.kill(member, signal.SIGSTOP)
        self.until("it is fenced", lambda: "event=runner-fenced" in self.read("log"))
        os.kill(member, signal.SIGCONT)
        ends = []
        for job in jobs:
            connection.send("watch", job=job["result"]["job"])
            while "id" not in (answer := connection.receive()):
                pass
            ends.append(answer["result"])
        self.assertEqual(ends[0]["exit"], 0)
        said = json.loads(ends[1]["stdout"].splitlines()[-1]) if ends[1]["stdout"] else {}
        if ends[1]["exit"] == 0:  # decided before it looked
            said = {"error": {"committed": True}}
        self.assertEqual(said["error"]["committed"], 2 in self.keys(), said)
        connection.close()
        self.end()
        self.clean()

    @unittest.skipUnless(LONG, "waits for the bound of every wait, 30 s")
    def test_others_wait_no_longer_than_their_bound_for_a_stopped_writer_which_is_then_ended(self):
        self.graphs("G")
        self.configure("G", stopped_seconds=40)
        self.serve(env={"SLUICE_FAILPOINT": "publish.before_append=stop"})
        began = time.monotonic()
        first = self.mutate(insert(1))
        self.stopped()
        second = self.say(self.mutate(insert(2)))
        waited = time.monotonic() - began
        self.assertEqual((second.code, second.error["code"], second.error["committed"]), (3, "LIVE_WRITER_CONTENTION", False))
        self.assertEqual(self.say(first).code, 0)
        figure("contention after %.1f s, the stopped writer's work done by another after %.1f s", waited, time.monotonic() - began)
        self.assertEqual(self.jobs()[0]["attempts"], 2)
        self.assertEqual(self.keys(), [1])
        self.assertEqual(self.say(self.mutate(insert(2))).code, 0)
        self.end()
        self.clean()

    def run_jobs(self, connection, first, count):
        """So many mutations, some of them at work at any time; ends when all are answered. One in four changes something."""
        sent = answered = 0
        while answered < count:
            while sent < count and sent - answered < 32:
                upsert = '{"op": "upsert", "node": "P", "key": %d, "set": {"v": "%d"}}\n' % ((first + sent) % 100, sent)
                connection.send("submit", sent, graph="G", command="mutate", words=["G"], text=upsert if sent % 4 == 0 else "")
                sent += 1
            answer = connection.receive()
            self.assertEqual(answer.get("result", {}).get("exit"), 0, answer)
            answered += 1

    def heaps(self):
        """By process and kind, in KiB, as the allocators count it."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.http_path)
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            answer = b""
            while more := client.recv(65536):
                answer += more
        found = {}
        for (name, labels), value in prometheus.parse(answer.decode().partition("\r\n\r\n")[2])[1].items():
            if name.endswith("_heap_bytes"):
                key = (name.split("_")[1], dict(labels)["kind"])
                found[key] = max(found.get(key, 0), int(value) // 1024)
        return found

    def test_memory_and_descriptors_are_flat_after_many_jobs(self):
        self.graphs("G")
        self.configure("G", requests_per_second=1000000, http=self.http_path)
        self.serve()
        connection = self.connect()
        self.run_jobs(connection, 0, JOBS // 5)

        def sizes():
            self.until("nobody works", lambda: self.status()["workers_busy"] == 0)
            pids = [self.server.pid] + workers(self.server.pid)
            return [anonymous(pid) for pid in pids], [descriptors(pid) for pid in pids], self.heaps()
        before = sizes()
        began = time.monotonic()
        self.run_jobs(connection, JOBS // 5, JOBS - JOBS // 5)
        spent = time.monotonic() - began
        after = sizes()
        figure("after %d and %d jobs (%.0f a second): KiB %s and %s, descriptors %s and %s (the supervisor, then idle workers)",
               JOBS // 5, JOBS, (JOBS - JOBS // 5) / spent, before[0], after[0], before[1], after[1])
        figure("the allocators say, in KiB: %s and %s (the supervisor, then the largest of the idle workers)", before[2], after[2])
        if not self.sanitized():
            self.assertEqual(len(after[2]), 6)
            # What is given out is flat but for what a graph's handle keeps, which has a bound and goes up by steps of up to 1 MiB (42,000 jobs:
            # 2.7 MiB, then 3.7); what is kept for it may go by whole chunks.
            for name, most in after[2].items():
                self.assertLess(most - before[2][name], 2048 if name[1] == "allocated" else 8192, name)
            self.assertLess(after[0][0] - before[0][0], 1024)
            self.assertLess(max(after[0][1:]) - max(before[0][1:]), 8192)
        self.assertLessEqual(after[1][0], before[1][0] + 3)  # one more worker, at most
        self.assertLess(max(after[1][1:]), 30)
        connection.close()
        self.end()
        self.clean()

    def ask_status(self, seconds, asked):
        """Status requests at a steady rate over a few connections; counts the answers."""
        request = b'{"jsonrpc": "2.0", "id": 1, "method": "status"}\n'
        batch, streams = 25, [socket.socket(socket.AF_UNIX) for _ in range(4)]
        for stream in streams:
            stream.connect(self.socket_path)
        began, number = time.monotonic(), 0
        while (now := time.monotonic() - began) < seconds:
            if number * batch > now * STATUS_PER_SECOND:
                time.sleep(0.0005)
                continue
            stream = streams[number % len(streams)]
            stream.sendall(request * batch)
            lines = 0
            while lines < batch:
                lines += stream.recv(1 << 18).count(b"\n")
            number += 1
        asked.append(number * batch / (time.monotonic() - began))
        for stream in streams:
            stream.close()

    def test_status_requests_and_idle_clients_do_not_slow_commits(self):
        self.graphs("G", "H", "I")
        self.configure("G", "H", "I", connections=IDLE + 100, requests_per_second=1000000)
        self.serve()
        tenants = [Tenant(self, "G", first) for first in (0, 100000000)]
        for tenant in tenants:
            tenant.start()
        rates, asked = {True: [], False: []}, []
        for phase in range(20 if LONG else 2):
            busy = phase % 2 == 1
            idle = [self.connect() for _ in range(IDLE)] if busy else []
            child = os.fork() if busy else 0  # a process of its own: threads of one share an interpreter
            if busy and child == 0:
                said = []
                try:
                    self.ask_status(PHASE, said)
                finally:
                    os._exit(0 if said and said[0] > STATUS_PER_SECOND * 0.9 else 1)
            start, before = time.monotonic(), sum(len(tenant.acknowledged) for tenant in tenants)
            if busy:
                asked.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0)
            else:
                time.sleep(PHASE)
            rates[busy].append((sum(len(tenant.acknowledged) for tenant in tenants) - before) / (time.monotonic() - start))
            for connection in idle:
                connection.close()
        self.join(tenants)
        self.assertEqual([tenant.problems for tenant in tenants], [[]] * len(tenants))
        mean = {busy: sum(values) / len(values) for busy, values in rates.items()}
        figure("%.1f commits a second with %d idle clients and %d status requests a second (reached in %d of %d phases), %.1f without: %.0f %%",
               mean[True], IDLE, STATUS_PER_SECOND, sum(asked), len(asked), mean[False], 100 * mean[True] / mean[False])
        if LONG:
            self.assertGreaterEqual(mean[True], 0.9 * mean[False])
        self.assertGreater(mean[True], 0)
        self.end()


if __name__ == "__main__":
    main()
