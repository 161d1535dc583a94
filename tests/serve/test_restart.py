#!/usr/bin/env python3
"""What a supervisor that was killed had taken on is reported by the next one: nothing is lost or done twice, whether it had ended, was
committed and not answered, at work, or waiting; and the same operation ids tell or do the rest."""

import os
import unittest

from serve.serving import ServeTest, insert, process_state, workers
from support.program import main

KINDS = ("finished", "committed", "at work", "waiting", "waiting, another kind")


def operation(key):
    return "01890000-0000-4000-8000-%012d" % key


class Restart(ServeTest):
    def write_key(self, key, **options):
        return self.start("mutate", "G", "m%d" % key, "--json", "--op-id", operation(key), **options)

    def kill_server(self):
        pids = [self.server.pid] + workers(self.server.pid)
        self.server.kill()
        self.server.communicate()
        return pids

    def serve_again(self, pids):
        self.serve()
        for pid in pids:
            self.until("nobody of the killed one is left", lambda: process_state(pid) in ("", "Z"))

    def settled(self, count):
        self.until("all is settled", lambda: len(self.jobs()) >= count and {job["state"] for job in self.jobs()} <= {"failed", "done"})
        return {job["operation_id"]: job for job in self.jobs()}

    def watch(self, job):
        connection = self.connect()
        answer = connection.ask("watch", job=job["job"])
        connection.close()
        return answer

    def test_jobs_of_every_state_are_reported_and_none_is_lost_or_done_twice(self):
        self.graphs("G")
        self.configure({"path": "G", "max_jobs": 2})
        # the first passes; the second stands still behind its commit, the third before it
        self.serve(env={"SLUICE_FAILPOINT": "publish.after_log_record_sync=stop@2,gates.after=stop@3"})
        for key in range(4):
            self.write("m%d" % key, insert(key))
        self.write("p.csv", "id,v\n4,x\n")
        finished = self.say(self.write_key(0))
        self.assertEqual(finished.code, 0)
        clients = [self.write_key(1)]
        self.stopped()
        clients.append(self.write_key(2))
        self.until("both stand still", lambda: [process_state(pid) for pid in workers(self.server.pid)].count("T") == 2)
        clients.append(self.write_key(3))
        self.until("one waits", lambda: self.graph_status("G")["queued"] == 1)
        clients.append(self.start("load", "G", "P=p.csv", "--json", "--op-id", operation(4)))
        self.until("two wait", lambda: self.graph_status("G")["queued"] == 2)
        before = {job["operation_id"]: job["job"] for job in self.jobs()}
        pids = self.kill_server()
        for client in clients:  # they are told that they do not know
            result = self.say(client)
            self.assertEqual((result.code, result.error["code"], result.error["committed"]), (1, "IO", None), result.err)
        self.serve_again(pids)
        jobs = self.settled(4)
        self.assertEqual(sorted(jobs), [operation(key) for key in range(1, 5)])
        for key in range(1, 5):
            self.assertEqual(jobs[operation(key)]["job"], before[operation(key)])
            error = self.watch(jobs[operation(key)])["error"]["data"]
            self.assertEqual((error["code"], error["committed"], error["operation_id"]), ("IO", key == 1, operation(key)), error)
        self.assertIn("event=jobs-interrupted graph=1 jobs=4", self.read("log"))
        self.assertEqual(self.keys(), [0, 1])
        # the same again: what was done is told, the rest is done
        told = [self.say(self.write_key(key)) for key in range(4)] + [
            self.say(self.start("load", "G", "P=p.csv", "--json", "--op-id", operation(4)))]
        self.assertEqual([result.code for result in told], [0] * 5, [result.err for result in told])
        self.assertEqual(told[0].document["commit"], finished.document["commit"])
        self.assertEqual(told[1].document["commit"]["id"], self.watch(jobs[operation(1)])["error"]["data"]["commit_id"])
        self.assertEqual(len({result.document["commit"]["id"] for result in told}), 5)
        self.assertEqual(self.keys(), [0, 1, 2, 3, 4])
        self.end()
        self.clean()

    def test_a_supervisor_that_is_killed_while_it_settles_leaves_it_to_the_next(self):
        self.graphs("G")
        self.configure("G")
        self.serve(env={"SLUICE_FAILPOINT": "publish.before_append=stop"})
        self.write("p.csv", "id,v\n1,x\n")
        load = ("load", "G", "P=p.csv", "--json", "--op-id", operation(1))
        client = self.start(*load)
        self.stopped()
        pids = self.kill_server()
        self.assertEqual(self.say(client).code, 1)
        for _ in range(3):
            self.serve(env={"SLUICE_FAILPOINT": "recover.before_publish=stop"})
            self.stopped()
            pids += self.kill_server()
        self.serve_again(pids)
        error = self.watch(self.settled(1)[operation(1)])["error"]["data"]
        self.assertIs(error["committed"], True)
        again = self.say(self.start(*load))
        self.assertEqual((again.code, again.document["commit"]["id"]), (0, error["commit_id"]))
        self.assertEqual(self.keys(), [1])
        self.end()
        self.clean()

    def test_what_was_kept_and_cannot_be_believed_is_passed_over(self):
        self.graphs("G")
        self.configure("G")
        record = b'{"job":"01890000-0000-4000-8000-000000000001","operation":"01890000-0000-4000-8000-000000000002","user":0,"command":"%s",' \
                 b'"params":{"words":[%s]}}\n'
        slots = [b"{", b"{}\n", b"[]\n", os.urandom(1024), record % (b"rm", b'"G"'), record % (b"mutate", b"1"), b"{" * 1024,
                 record % (b"mutate", b'"G"'), b'{"job":1,"operation":2,"user":"x","command":3,"params":[]}\n']
        with open(self.path("G/cache/jobs"), "wb") as file:
            file.write(b"".join(slot[:1024].ljust(1024, b"\0") for slot in slots) + b"{half")
        self.serve()
        self.assertEqual(list(self.settled(1)), ["01890000-0000-4000-8000-000000000002"])
        self.assertEqual(self.say(self.mutate(insert(1))).code, 0)
        self.end()
        self.clean()

    def test_a_supervisor_that_ends_in_order_leaves_nothing_to_report(self):
        self.graphs("G")
        self.configure("G")
        self.serve()
        self.assertEqual(self.say(self.mutate(insert(1))).code, 0)
        self.end()
        self.serve()
        self.assertEqual(self.jobs(), [])
        self.assertNotIn("jobs-interrupted", self.read("log"))
        self.end()


if __name__ == "__main__":
    main()
