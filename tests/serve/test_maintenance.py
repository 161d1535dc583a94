#!/usr/bin/env python3
"""Scheduled maintenance: off by default, decided by thresholds, one at a time, behind its graph's own jobs, visible."""

import os
import signal
import unittest
import unittest.mock

from serve.serving import ServeTest, insert
from support.program import main

OFTEN = {"every_seconds": 1}


class Maintenance(ServeTest):
    def setUp(self):
        super().setUp()
        self.graphs("G")

    def start_serving(self, maintenance=None, failpoint="", **more):
        self.configure({"path": "G", **({"maintenance": maintenance} if maintenance else {}), **more})
        self.serve(env={"SLUICE_FAILPOINT": failpoint, "SLUICE_LOG": "debug"})

    def load(self, *keys):
        name = "l%d.csv" % keys[0]
        self.write(name, "id,v\n" + "".join("%d,x\n" % key for key in keys))
        self.assertEqual(self.say(self.start("load", "G", "P=" + name)).code, 0)

    def maintenance(self):
        return self.graph_status("G")["maintenance"]

    def fragments(self):
        result = self.say(self.start("status", "G", "--json"))
        return result.document["branches"][0]["types"][0]["fragments"]

    def own_jobs(self):
        return [job for job in self.jobs() if job["maintenance"]]

    def test_small_fragments_are_put_together_once_there_are_enough(self):
        self.start_serving({**OFTEN, "optimize": {"fragments": 3}})
        self.load(1)
        self.load(2)
        looks = self.maintenance()["optimize"]["nothing"]
        self.until("it looked", lambda: self.maintenance()["optimize"]["nothing"] > looks + 1)
        self.assertEqual(self.fragments(), 2)
        self.assertEqual(self.maintenance()["optimize"]["done"], 0)
        self.load(3)
        self.until("it has been optimized", lambda: self.maintenance()["optimize"]["done"] == 1)
        self.assertEqual(self.fragments(), 1)
        self.assertEqual(self.keys(), [1, 2, 3])
        self.assertEqual((self.maintenance()["last_task"], self.maintenance()["last_outcome"]), ("optimize", "done"))
        status = self.graph_status("G")
        self.assertEqual((status["done"], status["failed"]), (3, 0))  # the users' jobs alone
        self.assertRegex(self.read("log"), r"event=maintenance-ended graph=1 task=optimize outcome=done exit=0 ")
        self.end()

    def test_edits_and_deleted_rows_are_reasons_too(self):
        self.load_before(range(100))
        self.start_serving({**OFTEN, "optimize": {"edits": 1000, "dead_bytes": 1}})
        self.until("it looked", lambda: self.maintenance()["optimize"]["nothing"] > 0)
        self.say(self.mutate("".join('{"op":"delete","node":"P","key":%d}\n' % key for key in range(50))))
        self.until("what was deleted is gone", lambda: self.maintenance()["optimize"]["done"] == 1)
        self.assertEqual(self.keys(), list(range(50, 100)))
        self.end()

    def load_before(self, keys):
        self.write("before.csv", "id,v\n" + "".join("%d,x\n" % key for key in keys))
        self.assertEqual(self.say(self.start("load", "G", "P=before.csv")).code, 0)

    def test_history_is_let_go_of_once_it_is_worth_it(self):
        self.start_serving({**OFTEN, "gc": {"bytes": 1, "keep": 1}})
        self.load(1)
        self.assertEqual(self.say(self.start("load", "G", "P=l1.csv", "--mode", "overwrite")).code, 0)
        self.until("it has been collected", lambda: self.maintenance()["gc"]["done"] >= 1)
        self.assertEqual(self.keys(), [1])
        self.until("nothing is left to collect", lambda: self.maintenance()["gc"]["nothing"] >= 1)
        self.end()

    def test_a_failure_is_seen_and_doubles_the_pause(self):
        self.start_serving({"every_seconds": 2, "optimize": {"fragments": 2}}, failpoint="maintain.after_list=error@1")
        self.load(1)
        self.load(2)
        self.until("it has failed", lambda: self.maintenance()["optimize"]["failed"] >= 1)
        state = self.maintenance()
        self.assertEqual((state["last_outcome"], state["failures_in_a_row"]), ("failed", state["optimize"]["failed"]))
        self.assertRegex(self.read("log"), r"level=warn event=maintenance-ended graph=1 task=optimize outcome=failed exit=[1-9]")
        if state["state"] == "backing-off":
            self.assertGreater(state["next_in_seconds"], 2 * 2 ** (state["failures_in_a_row"] - 1))
        self.end()

    def restart(self, how=signal.SIGKILL):
        self.server.send_signal(how)
        self.server.communicate()
        self.leave_nobody()
        self.serve(env={"SLUICE_LOG": "debug"})

    def test_a_start_puts_no_round_off(self):
        self.start_serving({"every_seconds": 1000, "optimize": {"fragments": 2}})
        self.until("it is planned", lambda: "next_in_seconds" in self.maintenance())
        self.until("time goes by", lambda: self.maintenance()["next_in_seconds"] < 999)
        before = self.maintenance()["next_in_seconds"]
        for how in (signal.SIGKILL, signal.SIGTERM):
            self.restart(how)
            self.until("it is planned", lambda: "next_in_seconds" in self.maintenance())
            self.assertLessEqual(self.maintenance()["next_in_seconds"], before)
        # what cannot be believed costs a pause at most
        for kept in ('', '{"format":"sluice-maintenance/1"', '{"format":"sluice-maintenance/1","due":"18446744073709551615","failures":"0"}\n',
                     '{"format":"sluice-maintenance/2","due":"1","failures":"0"}\n', "\0" * 5000):
            self.server.send_signal(signal.SIGKILL)
            self.server.communicate()
            self.leave_nobody()
            with open(self.path("G/cache/maintenance"), "w") as file:
                file.write(kept)
            self.serve()
            self.until("it is planned", lambda: "next_in_seconds" in self.maintenance())
            self.assertGreater(self.maintenance()["next_in_seconds"], 900)
        self.end()

    def test_a_round_that_was_due_meanwhile_comes_at_once_and_a_back_off_goes_on(self):
        self.load(1)
        self.load(2)
        self.start_serving({"every_seconds": 1000, "optimize": {"fragments": 2}}, failpoint="maintain.after_list=error@1")
        self.until("it is planned", lambda: "next_in_seconds" in self.maintenance())
        self.server.send_signal(signal.SIGKILL)
        self.server.communicate()
        self.leave_nobody()
        with open(self.path("G/cache/maintenance"), "w") as file:
            file.write('{"format":"sluice-maintenance/1","due":"1","failures":"0"}\n')
        self.serve(env={"SLUICE_FAILPOINT": "maintain.after_list=error@1"})
        self.until("it has failed", lambda: self.maintenance()["failures_in_a_row"] == 1)
        self.restart()
        self.until("it goes on", lambda: self.maintenance()["state"] == "backing-off")
        self.assertEqual(self.maintenance()["failures_in_a_row"], 1)
        self.assertGreater(self.maintenance()["next_in_seconds"], 1000)
        self.end()

    def test_a_process_that_dies_over_it_harms_no_other_job(self):
        self.load(1)
        self.load(2)
        self.start_serving({**OFTEN, "optimize": {"fragments": 2}}, failpoint="maintain.after_list=stop@1")
        worker = self.stopped()
        job = [process for process in self.status(detail=True)["processes"] if process["command"] == "optimize"][0]
        os.kill(job["pid"], signal.SIGKILL)
        self.until("it has failed", lambda: self.maintenance()["optimize"]["failed"] >= 1)
        self.assertNotEqual(self.graph_status("G")["state"], "crash-loop")
        self.assertEqual(self.say(self.mutate(insert(3))).code, 0)
        self.assertNotEqual(worker, job["pid"])
        self.end()

    def test_it_never_runs_twice_and_not_beside_the_same_by_hand(self):
        self.load(1)
        self.load(2)
        self.start_serving({**OFTEN, "optimize": {"fragments": 2}, "gc": {"bytes": 1}}, failpoint="maintain.after_list=stop@1")
        worker = self.stopped()
        running = [job for job in self.own_jobs() if job["state"] == "running"]
        since = self.status()["seconds"]
        self.until("some rounds could have come", lambda: self.status()["seconds"] > since + 1.5)
        self.assertEqual([job for job in self.own_jobs() if job["state"] in ("running", "queued")], [dict(running[0], seconds=unittest.mock.ANY)])
        self.assertEqual(self.maintenance()["state"], "running")
        os.kill(worker, signal.SIGCONT)
        self.until("it is done", lambda: self.maintenance()["optimize"]["done"] == 1)
        self.end()

    def test_jobs_of_users_go_first_also_in_mode_single(self):
        self.load(1)
        self.load(2)
        self.start_serving({**OFTEN, "optimize": {"fragments": 2}}, failpoint="maintain.after_list=stop@1", mode="single")
        worker = self.stopped()
        client = self.mutate(insert(3))
        self.until("it waits", lambda: self.graph_status("G")["queued"] == 1)
        os.kill(worker, signal.SIGCONT)
        self.assertEqual(self.say(client).code, 0)
        self.end()

    def test_it_is_off_until_a_reload_switches_it_on_and_off_again(self):
        self.load(1)
        self.load(2)
        self.start_serving()
        since = self.status()["seconds"]
        self.until("a second went by", lambda: self.status()["seconds"] > since + 1)
        self.assertEqual((self.maintenance()["state"], self.own_jobs(), self.fragments()), ("off", [], 2))
        self.configure({"path": "G", "maintenance": {**OFTEN, "optimize": {"fragments": 2, "branches": ["main"]}}})
        self.server.send_signal(signal.SIGHUP)
        self.until("it has been optimized", lambda: self.maintenance()["optimize"]["done"] == 1)
        self.configure("G")
        self.server.send_signal(signal.SIGHUP)
        self.until("it is off", lambda: self.maintenance()["state"] == "off")
        self.end()

    def test_it_is_taken_back_when_the_supervisor_ends(self):
        self.load(1)
        self.load(2)
        self.start_serving({**OFTEN, "optimize": {"fragments": 2}}, failpoint="maintain.after_list=stop@1")
        worker = self.stopped()
        self.server.send_signal(signal.SIGTERM)
        self.until("it drains", lambda: self.status()["state"] == "draining")
        os.kill(worker, signal.SIGCONT)
        self.finish(self.server)
        self.assertEqual(self.server.returncode, 0)
        self.assertNotIn("outcome=done", self.read("log"))
        self.assertEqual(self.fragments(), 2)

    def test_the_commands_conditions_pass_by_what_does_not_reach_them(self):
        for key in (1, 2):
            self.load(key)
        for words in (["--if-fragments", "3"], ["--if-edits", "1000"], ["--if-dead", "1K"]):
            self.assertIsNone(self.say(self.start("optimize", "G", "--json", *words)).document["commit"], words)
        self.assertIsNotNone(self.say(self.start("optimize", "G", "--json", "--if-edits", "1000", "--if-fragments", "2")).document["commit"])
        self.say(self.start("load", "G", "P=l1.csv", "--mode", "overwrite",
                            env={"SLUICE_FAILPOINT": "load.after_fragment_sync=killpool"}))  # leaves litter
        free = ["gc", "G", "--keep", "1", "--json"]
        would = self.say(self.start(*free, "--dry-run")).document
        self.assertGreater(min(would["bytes"], would["generations"]), 0)
        passed = self.say(self.start(*free, "--if-frees", str(would["bytes"] + 1))).document
        self.assertEqual((passed["files"], passed["generations"]), (0, 0))
        freed = self.say(self.start(*free, "--if-frees", str(would["bytes"]))).document
        self.assertEqual((freed["files"], freed["generations"]), (would["files"], would["generations"]))


if __name__ == "__main__":
    main()
