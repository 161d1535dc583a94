#!/usr/bin/env python3
"""A supervisor of several graphs: hosted commands answer as they do by themselves, and what dies is done again or told."""

import json
import os
import signal
import subprocess
import unittest

from serve.serving import ServeTest, insert, process_state, workers
from support.program import TIMEOUT, main


READS = ("get", "scan", "count", "describe", "neighbors", "log", "show", "diff", "verify")


def shape(result):
    """A result without what differs from run to run."""
    def fold(value, name=""):
        if isinstance(value, dict):
            return {key: fold(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [fold(item, name) for item in value]
        if isinstance(value, (int, float)) and name in ("seconds", "memory_peak", "generation", "index", "bytes"):
            return "number"
        if isinstance(value, str) and name in ("time", "graph_id", "path", "cursor"):
            return "text"
        return "id" if isinstance(value, str) and len(value) == 36 and value.count("-") == 4 else value
    lines = [result.out] if result.out.startswith("{\n") else result.out.splitlines()  # a schema is printed for people
    return result.code, [fold(json.loads(line)) for line in lines], [
        line for line in result.err.splitlines() if "operation 0" not in line and "committed as" not in line and "cursor" not in line and '"event"' not in line]


class Hosted(ServeTest):
    def run_both(self, *words, **options):
        """The same words on a graph that is hosted and on one that is not."""
        results = []
        for graph in ("G", "F"):
            here = {"GRAPH": graph, "DIR": "dir-" + graph, "BACKUP": "copy-" + graph, "SALVAGED": "new-" + graph}
            with subprocess.Popen([self.program, *[here.get(word, word) for word in words], "--json"],
                                  cwd=self.folder, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE) as process:
                out, err = process.communicate(options.get("stdin", b""))
            from support.program import Result
            said = err.decode()
            for end in " `":  # commands in hints name the graph
                said = said.replace(" %s%s" % (graph, end), " GRAPH" + end)
            results.append(Result(process.returncode, out.decode(), said))
        self.assertEqual(shape(results[0]), shape(results[1]))
        results[0].words = words
        return results[0]

    def test_every_command_says_of_a_hosted_graph_what_it_says_by_itself(self):
        self.graphs("G", "F")
        self.configure("G")
        self.serve()
        self.write("m.jsonl", insert(1, 2))
        self.write("m2.jsonl", insert(3))
        self.write("other.jsonl", '{"op": "upsert", "node": "P", "key": 1, "set": {"v": "other"}}\n')
        self.write("mine.jsonl", '{"op": "upsert", "node": "P", "key": 1, "set": {"v": "mine"}}\n')
        self.write("p.csv", "id,v\n4,a\n")
        self.write("s2.json", {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "v": "string?", "w": "int64?"}}},
                               "edges": {}})
        rows = [
            (0, "mutate", "GRAPH", "m.jsonl"), (0, "branch", "create", "GRAPH", "b"), (0, "branch", "list", "GRAPH"),
            (0, "mutate", "GRAPH", "m2.jsonl", "--branch", "b"), (0, "merge", "GRAPH", "b"), (8, "merge", "GRAPH", "nobody"),
            (0, "mutate", "GRAPH", "other.jsonl", "--branch", "b"), (0, "mutate", "GRAPH", "mine.jsonl"), (3, "merge", "GRAPH", "b"),
            (0, "merge", "GRAPH", "b", "--on-conflict", "ours"), (0, "load", "GRAPH", "P=p.csv"), (2, "load", "GRAPH", "P=no.csv"),
            (0, "get", "GRAPH", "P", "1"), (8, "get", "GRAPH", "P", "99"), (2, "scan", "GRAPH", "Nobody"),
            (0, "scan", "GRAPH", "P", "--order-by", "key"), (0, "count", "GRAPH"), (0, "describe", "GRAPH", "P"),
            (0, "neighbors", "GRAPH", "P", "1"), (0, "log", "GRAPH"), (0, "show", "GRAPH", "head"),
            (0, "diff", "GRAPH", "main", "b"), (0, "changes", "GRAPH"), (0, "status", "GRAPH"), (0, "verify", "GRAPH"),
            (0, "checkpoint", "create", "GRAPH", "c"), (8, "checkpoint", "create", "GRAPH", "c"), (0, "checkpoint", "list", "GRAPH"),
            (0, "optimize", "GRAPH"), (0, "index", "GRAPH"), (0, "schema", "show", "GRAPH"), (0, "schema", "plan", "GRAPH", "s2.json"),
            (0, "schema", "apply", "GRAPH", "s2.json"), (4, "schema", "apply", "GRAPH", "p.csv"), (0, "revert", "GRAPH", "--to", "c"),
            (0, "checkpoint", "delete", "GRAPH", "c"), (0, "branch", "delete", "GRAPH", "b"), (8, "branch", "delete", "GRAPH", "b"),
            (0, "recover", "GRAPH"), (0, "gc", "GRAPH", "--dry-run"), (0, "export", "GRAPH", "DIR"), (0, "backup", "GRAPH", "BACKUP"),
            (0, "salvage", "GRAPH", "P", "--into", "SALVAGED")]
        read = self.connect()
        for code, *words in rows:
            with self.subTest(words=words):
                result = self.run_both(*words)
                self.assertEqual(result.code, code, result.err)
                if words[0] in READS:  # a client that sees the files goes by them; here it is asked to
                    words = ["G" if word == "GRAPH" else word for word in words[1:]] + ["--json"]
                    answer = read.ask("submit", graph="G", command=result.words[0], words=words)["result"]
                    self.assertEqual((answer["exit"], answer["stdout"]), (result.code, result.out), answer["stderr"])
        read.close()
        listed = self.say(self.start("help")).out.partition("commands:\n")[2].partition("\n\n")[0].splitlines()
        about_itself = {"init", "serve", "jobs", "cancel", "top", "version", "completion", "help"}
        self.assertEqual({line.split()[0] for line in listed} - about_itself, {words[0] for _, *words in rows})
        self.end()
        self.clean()

    def test_a_hosted_write_whose_result_cannot_be_printed_is_not_said_to_be_undone(self):
        self.graphs("G")
        self.configure("G")
        self.serve()
        self.write("m.jsonl", insert(1))
        with open("/dev/full", "wb") as full:
            said = subprocess.run([self.program, "mutate", "G", "m.jsonl", "--json"], cwd=self.folder, env=self.environment,
                                  stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, timeout=TIMEOUT)
        self.assertIn(said.returncode, (1, 10))
        self.assertIn(b"`sluice jobs`", said.stderr)
        self.assertEqual(self.keys(), [1])
        self.end()
        self.clean()

    def test_hosted_commands_say_what_they_say_by_themselves(self):
        self.graphs("G", "F")
        self.configure("G")
        self.serve()
        self.write("p.csv", "id,v\n1,a\n2,b\n")
        self.write("bad.csv", "id,v\n3,a\nx,b\n")
        self.write("m.jsonl", insert(10, 11))
        self.write("wrong.jsonl", '{"op": "insert", "node": "Q", "set": {}}\n')
        self.write("s2.json", {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "v": "string?", "w": "int64?"}}},
                               "edges": {}})
        for code, words, stdin in [
                (0, ("load", "GRAPH", "P=p.csv"), b""), (4, ("load", "GRAPH", "P=p.csv"), b""),
                (4, ("load", "GRAPH", "P=bad.csv"), b""), (2, ("load", "GRAPH", "P=none.csv"), b""),
                (2, ("load", "GRAPH", "Nobody=p.csv"), b""),
                (0, ("load", "GRAPH", "P=-", "--format", "csv"), b"id,v\n5,e\n"),
                (0, ("load", "GRAPH", "P=bad.csv", "--on-error", "skip", "--rejects", "rejects"), b""),
                (0, ("mutate", "GRAPH", "m.jsonl"), b""), (4, ("mutate", "GRAPH", "m.jsonl"), b""),
                (0, ("mutate", "GRAPH"), insert(12).encode()), (0, ("mutate", "GRAPH"), b""),
                (4, ("mutate", "GRAPH", "wrong.jsonl"), b""), (4, ("mutate", "GRAPH"), b"{\xff}\n"),
                (0, ("branch", "create", "GRAPH", "b"), b""), (8, ("branch", "create", "GRAPH", "b"), b""),
                (0, ("merge", "GRAPH", "b"), b""), (0, ("checkpoint", "create", "GRAPH", "c"), b""),
                (0, ("optimize", "GRAPH"), b""), (0, ("index", "GRAPH"), b""), (0, ("revert", "GRAPH", "--to", "c"), b""),
                (0, ("schema", "apply", "GRAPH", "s2.json"), b""), (0, ("count", "GRAPH"), b""),
                (0, ("recover", "GRAPH"), b""), (2, ("load", "GRAPH", "P=p.csv", "--no-such-flag"), b"")]:
            with self.subTest(words=words):
                self.assertEqual(self.run_both(*words, stdin=stdin).code, code)
        done = {job["command"] for job in self.jobs()}
        self.assertLessEqual({"load", "mutate", "branch", "merge", "checkpoint", "optimize", "index", "revert", "schema"}, done)
        self.assertEqual(self.read("rejects").count("\n"), 1)
        self.end()
        self.clean()

    def test_a_large_mutation_travels_as_a_file(self):
        self.graphs("G")
        self.configure("G")
        self.serve()
        text = insert(*range(20000))
        result = self.say(self.mutate(text))
        self.assertEqual(result.document["inserted"], 20000, result.err)
        with subprocess.Popen([self.program, "mutate", "G", "--json"], cwd=self.folder, env=self.environment,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            out, _ = process.communicate(insert(*range(20000, 40000)).encode())
        self.assertEqual(json.loads(out)["inserted"], 20000)
        self.assertEqual(len(self.jobs()), 2)
        self.end()

    def test_the_same_operation_again_gets_the_first_result(self):
        self.graphs("G")
        self.configure("G")
        self.serve()
        operation = "01890000-0000-4000-8000-000000000001"
        self.write("m", insert(1))
        first = self.say(self.start("mutate", "G", "m", "--json", "--op-id", operation))
        again = self.say(self.start("mutate", "G", "m", "--json", "--op-id", operation))
        self.assertEqual(first.document["commit"], again.document["commit"])
        self.write("m", insert(2))
        self.assertEqual(self.say(self.start("mutate", "G", "m", "--json", "--op-id", operation)).code, 9)
        self.assertEqual(self.keys(), [1])
        self.end()

    def test_the_result_of_an_operation_is_kept_over_a_death_of_the_supervisor(self):
        self.graphs("G")
        self.configure("G")
        self.write("p.csv", "id,v\n7,a\n")
        self.write("m", insert(1))
        commands = [("mutate", "G", "m"), ("load", "G", "P=p.csv"), ("branch", "create", "G", "b"), ("checkpoint", "create", "G", "c")]
        operations = ["01890000-0000-4000-8000-%012d" % number for number in range(len(commands))]
        results = []
        for _ in range(2):
            self.serve()
            results.append([self.say(self.start(*words, "--json", "--op-id", operation))
                            for words, operation in zip(commands, operations)])
            self.server.kill()
            self.server.communicate()
        for first, again in zip(*results):
            self.assertEqual((again.code, again.document.get("commit")), (0, first.document.get("commit")), again.err)
        self.assertEqual(self.keys(), [1, 7])
        self.clean()

    def test_a_runner_that_is_killed_is_followed_by_another_that_finishes_its_job(self):
        points = ("prepare.after_plan", "publish.before_append", "publish.after_log_record_sync")
        self.graphs(*points)
        for point in points:
            with self.subTest(point=point):
                self.configure(point)
                self.serve(env={"SLUICE_FAILPOINT": point + "=kill"})
                result = self.say(self.mutate(insert(1), point))
                self.assertEqual(result.code, 0, result.err)
                self.assertEqual(self.keys(point), [1])
                self.assertEqual(self.jobs()[-1]["attempts"], 2)
                self.end()
                self.clean(point)

    def test_small_mutations_that_come_together_share_a_flush(self):
        self.graphs("G")
        self.configure("G", workers=3)
        self.serve(env={"SLUICE_FAILPOINT": ",".join("publish.after_line=stop@%d" % passage for passage in (1, 2, 3))})
        clients = [self.mutate(insert(key)) for key in (1, 2, 3)]

        def in_line():
            return [pid for pid in workers(self.server.pid) if process_state(pid) == "T"]
        self.until("three stand in line", lambda: len(in_line()) == 3)
        first, *others = in_line()
        os.kill(first, signal.SIGCONT)
        self.until("one has published", lambda: "done" in [job["state"] for job in self.jobs()])
        for pid in others:
            os.kill(pid, signal.SIGCONT)
        commits = [self.say(client).document["commit"] for client in clients]
        self.assertEqual(len({commit["generation"] for commit in commits}), 1)
        self.assertEqual(sorted(commit["index"] for commit in commits), [0, 1, 2])
        self.assertEqual(self.keys(), [1, 2, 3])
        self.end()
        self.clean()

    def test_who_leads_a_group_may_die(self):
        self.graphs("G")
        self.configure("G", workers=3)
        self.serve(env={"SLUICE_FAILPOINT": "publish.after_line=stop@1,publish.after_line=stop@2,publish.before_decide=kill"})
        clients = [self.mutate(insert(key)) for key in (1, 2)]

        def in_line():
            return [pid for pid in workers(self.server.pid) if process_state(pid) == "T"]
        self.until("two stand in line", lambda: len(in_line()) == 2)
        for pid in in_line():
            os.kill(pid, signal.SIGCONT)
        for client in clients:
            self.assertEqual(self.say(client).code, 0)
        self.assertEqual(self.keys(), [1, 2])
        self.end()
        self.clean()

    def test_a_load_goes_on_in_another_runner(self):
        self.graphs("G")
        self.configure("G")
        self.serve(env={"SLUICE_FAILPOINT": "load.after_boundaries=stop"})
        self.write("p.csv", "id,v\n1,a\n2,b\n")
        client = self.start("load", "G", "P=p.csv", "--json")
        self.stopped()
        runners = [pid for pid in workers(self.server.pid) if self.parent(pid) == self.server.pid and self.children(pid)]
        for pid in runners:
            os.kill(pid, signal.SIGKILL)
        self.until("another runner", lambda: self.jobs()[-1]["attempts"] == 2)
        os.kill(self.stopped(), signal.SIGCONT)
        result = self.say(client)
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual(self.keys(), [1, 2])
        self.end()
        self.clean()

    def parent(self, pid):
        try:
            with open("/proc/%d/stat" % pid) as file:
                return int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            return 0

    def children(self, pid):
        return [child for child in workers(self.server.pid) if self.parent(child) == pid]

    def test_a_job_that_crashes_every_runner_fails_and_leaves_other_graphs_alone(self):
        self.graphs("G", "H")
        self.configure("G", "H")
        self.serve(env={"SLUICE_FAILPOINT": ",".join("gates.after=stop@%d" % passage for passage in range(1, 6))})
        bad = self.mutate(insert(1))
        for _ in range(5):
            runner = self.stopped()
            os.kill(runner, signal.SIGABRT)
            os.kill(runner, signal.SIGCONT)
        result = self.say(bad)
        self.assertEqual((result.code, result.error["code"], result.error["committed"]), (1, "INTERNAL", False))
        self.assertIn("5 times, the last time by signal 6", result.err)
        self.assertEqual(self.say(self.mutate(insert(1), "H")).code, 0)
        self.assertEqual(self.say(self.mutate(insert(1))).code, 0)
        self.assertEqual((self.graph_status("G")["restarts"], self.graph_status("H")["restarts"]), (5, 0))
        self.end()

    def test_a_runner_that_stands_still_is_ended_and_its_job_done_by_another(self):
        self.graphs("G")
        self.configure("G", stopped_seconds=1)
        self.serve(env={"SLUICE_FAILPOINT": "gates.after=stop"})
        self.assertEqual(self.say(self.mutate(insert(1))).code, 0)
        self.assertEqual(self.jobs()[-1]["attempts"], 2)
        self.end()

    def test_a_graph_beyond_its_quota_takes_no_more_and_others_do(self):
        self.graphs("G", "H")
        self.write("wide.csv", "id,v\n" + "".join("%d,%s\n" % (100 + row, os.urandom(50000).hex()) for row in range(50)))
        self.done("load", "G", "P=wide.csv")
        self.configure({"path": "G", "quota": "8M"}, "H")
        self.serve()
        refused = self.say(self.mutate(insert(1)))
        self.assertEqual((refused.code, refused.error["code"], refused.error["committed"]), (10, "QUOTA", False))
        self.write("p.csv", "id,v\n1,a\n")
        self.assertEqual(self.say(self.start("load", "G", "P=p.csv")).code, 10)
        self.assertEqual(self.say(self.start("gc", "G")).code, 0)
        self.assertEqual(self.say(self.mutate(insert(1), "H")).code, 0)
        self.configure({"path": "G", "quota": "1G"}, "H")
        self.server.send_signal(signal.SIGHUP)
        self.until("it was read", lambda: "event=reloaded" in self.read("log"))
        self.assertEqual(self.say(self.mutate(insert(1))).code, 0)
        self.end()

    def test_a_job_that_takes_longer_than_its_graph_allows_is_ended(self):
        self.graphs("G")
        self.configure({"path": "G", "deadline_seconds": 1})
        self.serve(env={"SLUICE_FAILPOINT": "gates.after=stop"})
        result = self.say(self.mutate(insert(1)))
        self.assertEqual((result.code, result.error["code"]), (1, "TIMEOUT"))
        self.assertIn("hint: try again; with the same operation id it is done once", result.err)
        self.assertTrue(result.error["operation_id"])
        self.end()
        self.configure("G")
        self.serve()
        self.assertEqual(self.say(self.mutate(insert(1))).code, 0)
        self.end()

    def test_an_admitted_job_outlives_its_client(self):
        self.graphs("G")
        self.configure("G")
        self.serve(env={"SLUICE_FAILPOINT": "gates.after=stop"})
        client = self.mutate(insert(1))
        runner = self.stopped()
        client.kill()
        client.communicate()
        os.kill(runner, signal.SIGCONT)
        self.until("the job is done", lambda: self.jobs()[-1]["state"] == "done")
        self.assertEqual(self.keys(), [1])
        self.end()

    def test_cancel_takes_back_what_waits_and_what_is_not_armed(self):
        self.graphs("G")
        self.configure({"path": "G", "max_jobs": 1})
        self.serve(env={"SLUICE_FAILPOINT": "prepare.after_plan=stop"})
        first = self.mutate(insert(1))
        runner = self.stopped()
        second = self.mutate(insert(2))
        self.until("one waits", lambda: [job["state"] for job in self.jobs()] == ["running", "queued"])
        running, waiting = [job["job"] for job in self.jobs()]
        socket = {"SLUICE_SOCKET": self.socket_path}
        self.assertEqual(self.say(self.start("cancel", waiting, env=socket)).code, 0)
        self.assertEqual(self.say(second).code, 130)
        self.assertEqual(self.say(self.start("cancel", running, env=socket)).code, 0)
        os.kill(runner, signal.SIGCONT)
        self.assertEqual(self.say(first).code, 130)
        self.assertEqual(self.keys(), [])
        self.assertEqual(self.say(self.start("cancel", "01890000-0000-4000-8000-000000000001", env=socket)).code, 8)
        self.end()

    def test_control_c_at_the_client_cancels_its_job(self):
        self.graphs("G")
        self.configure("G")
        self.serve(env={"SLUICE_FAILPOINT": "prepare.after_plan=stop"})
        client = self.mutate(insert(1))
        runner = self.stopped()
        self.interrupt(client)
        self.until("the supervisor has heard it", lambda: self.jobs()[-1]["state"] == "cancelling")
        os.kill(runner, signal.SIGCONT)
        self.assertEqual(self.say(client).code, 130)
        self.assertEqual(self.keys(), [])
        self.end()

    def test_queued_mode_runs_in_order_and_its_queue_has_an_end(self):
        self.graphs("G")
        self.configure({"path": "G", "mode": "queued", "queue": 2})
        self.serve(env={"SLUICE_FAILPOINT": "gates.after=stop"})
        clients = [self.mutate(insert(1))]
        runner = self.stopped()
        for key in (2, 3):
            clients.append(self.mutate(insert(key)))
            self.until("it waits", lambda: len(self.jobs()) == key)
        refused = self.say(self.mutate(insert(4)))
        self.assertEqual((refused.code, refused.error["code"]), (3, "QUEUE_FULL"))
        self.assertIn("hint: try again later, or give the graph a longer \"queue\"", refused.err)
        self.assertEqual(self.keys(), [])  # readers stand in no queue
        begun = self.say(self.start("cancel", self.jobs()[0]["job"], "--json", env={"SLUICE_SOCKET": self.socket_path}))
        self.assertEqual((begun.code, begun.error["code"]), (3, "WRITER_BUSY"))
        os.kill(runner, signal.SIGCONT)
        generations = [self.say(client).document["commit"]["generation"] for client in clients]
        self.assertEqual(generations, sorted(generations))
        self.end()

    def test_single_mode_refuses_a_second_writer(self):
        self.graphs("G")
        self.configure({"path": "G", "mode": "single"})
        self.serve(env={"SLUICE_FAILPOINT": "gates.after=stop"})
        first = self.mutate(insert(1))
        runner = self.stopped()
        second = self.say(self.mutate(insert(2)))
        self.assertEqual((second.code, second.error["code"]), (3, "WRITER_BUSY"))
        self.assertIn("hint: try again", second.err)
        os.kill(runner, signal.SIGCONT)
        self.assertEqual(self.say(first).code, 0)
        self.assertEqual(self.say(self.mutate(insert(2))).code, 0)
        self.end()

    def test_term_finishes_what_runs_and_refuses_what_waits(self):
        self.graphs("G")
        self.configure({"path": "G", "max_jobs": 1})
        self.serve(env={"SLUICE_FAILPOINT": "gates.after=stop"})
        first = self.mutate(insert(1))
        runner = self.stopped()
        second = self.mutate(insert(2))
        self.until("one waits", lambda: len(self.jobs()) == 2)
        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.say(second).code, 3)
        self.assertEqual(self.status()["state"], "draining")
        os.kill(runner, signal.SIGCONT)
        self.assertEqual(self.say(first).code, 0)
        self.finish(self.server)
        self.assertEqual(self.server.returncode, 0)
        self.assertFalse(os.path.exists(self.socket_path))
        self.assertEqual(self.keys(), [1])

    def test_a_second_term_ends_at_once(self):
        self.graphs("G")
        self.configure("G")
        self.serve(env={"SLUICE_FAILPOINT": "gates.after=stop"})
        client = self.mutate(insert(1))
        self.stopped()
        self.server.send_signal(signal.SIGTERM)
        self.until("it drains", lambda: self.status()["state"] == "draining")
        self.server.send_signal(signal.SIGTERM)
        self.finish(self.server)
        self.assertNotEqual(self.say(client).code, 0)
        self.assertEqual(self.say(self.mutate(insert(1))).code, 0)  # by itself: nothing is in the way

    def test_a_killed_supervisor_takes_its_runners_along_and_the_next_one_serves(self):
        self.graphs("G", "H")
        self.configure("G", "H")
        acknowledged = []
        for number in range(3):
            self.serve(env={"SLUICE_FAILPOINT": "gates.after=stop@2"})
            self.assertEqual(self.say(self.mutate(insert(number))).code, 0)
            acknowledged.append(number)
            client = self.mutate(insert(100 + number))
            self.stopped()
            pids = workers(self.server.pid)
            self.server.kill()
            self.server.communicate()
            self.assertEqual(self.say(client).code, 1)
            for pid in pids:
                while process_state(pid) not in ("", "Z"):
                    os.sched_yield()
        self.serve()
        said = self.say(self.mutate(insert(1000)))
        self.assertEqual(said.code, 0, said.err + self.read("log")[-1500:])
        self.assertLessEqual(set(acknowledged + [1000]), set(self.keys()))
        self.end()
        self.clean()

    def test_hup_adds_removes_and_changes_graphs(self):
        self.graphs("G", "H")
        self.configure("G")
        self.serve()
        self.configure({"path": "G", "weight": 7}, "H")
        self.server.send_signal(signal.SIGHUP)
        self.until("two graphs", lambda: len(self.status()["graphs"]) == 2)
        self.assertEqual(self.graph_status("G")["weight"], 7)
        self.assertEqual(self.say(self.mutate(insert(1), "H")).code, 0)
        self.assertEqual(self.jobs()[-1]["graph"], "H")
        self.write("c.json", "{")
        self.server.send_signal(signal.SIGHUP)
        self.until("it is told", lambda: "not-reloaded" in self.read("log"))
        self.configure("H")
        self.server.send_signal(signal.SIGHUP)
        self.until("one graph", lambda: [graph["name"] for graph in self.status()["graphs"]] == ["H"])
        self.assertEqual(self.say(self.mutate(insert(1), "G")).code, 0)  # by itself
        self.end()

    def test_a_graph_that_cannot_be_hosted_does_not_keep_others_from_it(self):
        self.graphs("G", "H")
        os.mkdir(self.path("empty"))
        self.configure("G", "none", "empty", "H")
        self.serve()
        states = {graph["name"]: graph["state"] for graph in self.status()["graphs"]}
        self.assertEqual(states, {"G": "idle", "none": "failed", "empty": "failed", "H": "idle"})
        self.assertEqual(self.say(self.mutate(insert(1), "H")).code, 0)
        self.write("c2.json", self.read("c.json").replace(self.socket_path, self.socket_path + "2"))
        with open(self.path("log2"), "wb") as log:
            second = self.start("serve", "--config", "c2.json", stdout=log, stderr=log)
        self.until("it does not host what is hosted", lambda: "LIVE_WRITER_CONTENTION" in self.read("log2"))
        second.send_signal(signal.SIGTERM)
        second.communicate()
        third = self.say(self.start("serve", "--config", "c.json"))
        self.assertEqual(third.code, 8, third.err)  # the socket is taken
        self.end()

    def test_logs_name_nothing(self):
        self.graphs("Secretgraph")
        self.configure({"path": "Secretgraph", "name": "secretname"})
        self.serve(env={"SLUICE_LOG": "debug"})
        self.assertEqual(self.say(self.mutate('{"op": "insert", "node": "P", "set": {"id": 1, "v": "secretvalue"}}\n',
                                              "Secretgraph")).code, 0)
        refused = self.say(self.mutate('{"op": "insert", "node": "P", "set": {"id": 1, "v": "secretvalue"}}\n', "Secretgraph"))
        self.assertEqual(refused.code, 4)
        self.end()
        log = self.read("log").lower()
        self.assertIn("event=serving", log)
        self.assertRegex(log, r"event=job-failed graph=\d+ exit=4 ")
        for word in ("secret", self.folder.lower(), os.uname().nodename.lower()):
            self.assertNotIn(word, log)


if __name__ == "__main__":
    main()
