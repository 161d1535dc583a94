#!/usr/bin/env python3
"""Jobs whose processes die or stand still: what is said of them is what became of them."""

import os
import signal
import subprocess
import unittest

from serve.serving import ServeTest, insert, workers
from support.program import main


class Fates(ServeTest):
    def setUp(self):
        super().setUp()
        self.graphs("G")

    def load_piped(self, text=b"id,v\n1,a\n2,b\n", graph="G"):
        """A load whose input can be read once only, and so is not tried again."""
        client = self.start("load", graph, "P=-", "--format", "csv", "--json", stdin=subprocess.PIPE)
        client.stdin.write(text)
        client.stdin.close()
        client.stdin = None
        return client

    def test_a_load_that_cannot_be_tried_again_says_that_it_did_not_commit(self):
        self.configure("G")
        for point in ("load.while_spooling", "load.after_boundaries", "load.after_edits"):
            with self.subTest(point=point):
                self.serve(env={"SLUICE_FAILPOINT": point + "=killpool"})
                result = self.say(self.load_piped())
                self.assertEqual((result.code, result.error["code"]), (1, "INTERNAL"), result.err)
                self.assertEqual((result.error["committed"], result.error["acknowledged"]), (False, False))
                self.end()
                self.assertEqual(self.keys(), [])
                self.clean()

    def test_a_load_that_cannot_be_tried_again_says_that_it_did_commit(self):
        for number, point in enumerate(("arm.after", "publish.after_log_record_write", "publish.after_mark", "finalize.before_retire")):
            with self.subTest(point=point):
                key = 10 * number
                self.configure("G")
                self.serve(env={"SLUICE_FAILPOINT": point + "=killpool"})
                result = self.say(self.load_piped(b"id,v\n%d,a\n" % key))
                self.assertEqual((result.code, result.error["code"]), (1, "INTERNAL"), result.err)
                self.assertEqual((result.error["committed"], result.error["acknowledged"]), (True, True))
                self.assertIn(key, self.keys())
                newest = self.say(self.start("log", "G", "-n", "1", "--json")).document
                self.assertEqual(newest["commit"], result.error["commit_id"])
                self.assertEqual(newest["operation_id"], result.error["operation_id"])
                self.end()
                self.clean()

    def test_a_job_that_was_cancelled_too_late_says_that_it_did_commit(self):
        self.configure({"path": "G", "deadline_seconds": 1})
        self.serve(env={"SLUICE_FAILPOINT": "publish.after_mark=stop"})
        result = self.say(self.mutate(insert(1)))
        self.assertEqual((result.code, result.error["code"], result.error["committed"]), (1, "TIMEOUT", True), result.err)
        self.assertEqual(self.keys(), [1])
        self.end()

    def test_what_looks_for_the_fate_of_a_job_may_die_too(self):
        self.configure({"path": "G", "deadline_seconds": 1})
        self.serve(env={"SLUICE_FAILPOINT": "gates.after=stop"})
        client = self.mutate(insert(1))
        self.stopped()
        seen = set(workers(self.server.pid))
        killed = 0
        while client.poll() is None:
            for pid in set(workers(self.server.pid)) - seen:
                if killed < 2:
                    try:
                        os.kill(pid, signal.SIGKILL)
                        killed += 1
                    except ProcessLookupError:
                        pass
        result = self.say(client)
        self.assertEqual((result.code, result.error["code"]), (1, "TIMEOUT"), result.err)
        self.assertIn(result.error["committed"], (False, None))
        self.assertEqual(self.keys(), [])
        self.end()

    def test_a_worker_of_a_pool_that_stands_still_is_ended_and_its_work_done_by_another(self):
        self.configure("G", stopped_seconds=1)
        for point, code in (("load.after_boundaries", 0), ("gates.after", 0)):
            self.serve(env={"SLUICE_FAILPOINT": point + "=stop"})
            self.write("p.csv", "id,v\n%d,a\n" % len(point))
            result = self.say(self.start("load", "G", "P=p.csv", "--json"))
            self.assertEqual(result.code, code, result.err)
            self.assertEqual(self.jobs()[-1]["attempts"], 1)
            self.end()
        self.clean()


if __name__ == "__main__":
    main()
