#!/usr/bin/env python3
"""Writers of a queued graph have their turns in the order in which they came, whichever process they are: hosted, with a pool of their
own, or by themselves. What waits can be taken back and leaves nothing; the dead and the late are passed over; readers wait for nobody."""

import os
import signal
import unittest

from serve.serving import SCHEMA, ServeTest, insert, process_state
from support.program import main

LINE = 1 << 60
NOBODY = {"SLUICE_SOCKET": "/nowhere"}  # works by itself though a supervisor hosts the graph


class Queue(ServeTest):
    def queued(self):
        self.write("schema.json", SCHEMA)
        self.done("init", "G", "--schema", "schema.json", "--mode", "queued")

    def in_line(self):
        """How many places of the branch's line are taken, as the kernel tells."""
        inode = os.stat(self.path("G/branches/1/locks")).st_ino
        count = 0
        with open("/proc/locks") as file:
            for line in file:
                words = line.split()
                if words[1] == "OFDLCK" and words[5].split(":")[2] == str(inode) and LINE <= int(words[6]) < 2 * LINE:
                    count += 1
        return count

    def wait_in_line(self, count):
        self.until("%d wait" % count, lambda: self.in_line() == count)

    def alone(self, key, **options):
        """A mutation that goes to no supervisor."""
        return self.mutate(insert(key), env={**NOBODY, **options})

    def stop_first(self, key=1):
        """A writer by itself that stands still where it has been admitted."""
        client = self.alone(key, SLUICE_FAILPOINT="gates.after=stop")
        self.until("it stands still", lambda: process_state(client.pid) == "T")
        return client, client.pid

    def test_processes_of_a_supervisor_and_others_write_in_the_order_in_which_they_came(self):
        self.queued()
        self.configure("G")
        self.serve()
        self.assertEqual(self.graph_status("G")["mode"], "queued")
        clients = [self.stop_first()]
        first, stopped = clients[0]
        clients = [first]
        self.write("p.csv", "id,v\n30,x\n31,y\n")
        for number, begin in enumerate([lambda: self.alone(2), lambda: self.mutate(insert(3)),
                                        lambda: self.start("load", "G", "P=p.csv", "--workers", "2", "--json", env=NOBODY),
                                        lambda: self.alone(5)]):
            clients.append(begin())
            self.wait_in_line(number + 1)
        clients.append(self.mutate(insert(6)))  # behind the other hosted one, which is told by the supervisor
        self.until("it is admitted", lambda: [job["state"] for job in self.jobs()] == ["running", "queued"])
        self.assertEqual(self.keys(), [])  # readers stand in no line
        os.kill(stopped, signal.SIGCONT)
        results = [self.say(client) for client in clients]
        self.assertEqual([result.code for result in results], [0] * 6, [result.err for result in results])
        generations = [result.document["commit"]["generation"] for result in results]
        self.assertEqual(generations, sorted(generations))
        self.assertEqual(self.keys(), [1, 2, 3, 5, 6, 30, 31])
        self.end()
        self.clean()

    def test_what_waits_is_taken_back_and_the_dead_are_passed_over(self):
        self.queued()
        self.configure("G")
        self.serve()
        first, stopped = self.stop_first()
        taken_back = self.alone(2)
        self.wait_in_line(1)
        dead = self.alone(3)
        self.wait_in_line(2)
        last = self.alone(4)
        self.wait_in_line(3)
        hosted = self.mutate(insert(5))
        self.wait_in_line(4)
        taken_back.send_signal(signal.SIGINT)
        result = self.say(taken_back)
        self.assertEqual((result.code, result.error["code"], result.error["committed"]), (130, "CANCELLED", False), result.err)
        self.wait_in_line(3)
        dead.kill()
        dead.communicate()
        self.wait_in_line(2)
        begun = self.say(self.start("cancel", self.jobs()[0]["job"], "--json", env={"SLUICE_SOCKET": self.socket_path}))
        self.assertEqual((begun.code, begun.error["code"]), (3, "WRITER_BUSY"))  # the supervisor gave it its turn already
        self.assertEqual(os.listdir(self.path("G/attempts")), [])
        os.kill(stopped, signal.SIGCONT)
        for client in (first, last, hosted):
            self.assertEqual(self.say(client).code, 0)
        self.assertEqual(self.keys(), [1, 4, 5])
        self.assertEqual(self.in_line(), 0)
        self.end()
        self.clean()

    def test_a_writer_that_is_killed_is_followed_by_the_next_in_line(self):
        self.queued()
        self.configure("G")
        self.serve()
        first, stopped = self.stop_first()
        second = self.mutate(insert(2))
        self.wait_in_line(1)
        first.kill()
        first.communicate()
        self.assertEqual(self.say(second).code, 0)
        self.assertEqual(self.keys(), [2])
        self.end()
        self.clean()

    def test_jobs_that_do_not_begin_in_time_leave_the_queue_to_the_others(self):
        self.queued()
        self.configure({"path": "G", "queue": 2})
        self.serve(env={"SLUICE_FAILPOINT": "gates.after=stop@1"})
        first = self.mutate(insert(1))
        runner = self.stopped()
        connection = self.connect()
        late = connection.ask("submit", graph="G", command="mutate", words=["G"], text=insert(2), start_within_ms=1)
        self.assertEqual((late["error"]["data"]["code"], late["error"]["data"]["committed"]), ("TIMEOUT", False))
        waiting = [self.mutate(insert(3))]
        self.until("it waits", lambda: self.graph_status("G")["queued"] == 1)
        self.write("p.csv", "id,v\n40,x\n")
        waiting.append(self.start("load", "G", "P=p.csv", "--json"))  # of another kind, in the same queue
        self.until("it waits", lambda: self.graph_status("G")["queued"] == 2)
        full = self.say(self.mutate(insert(5)))
        self.assertEqual((full.code, full.error["code"], full.error["committed"]), (3, "QUEUE_FULL", False))
        os.kill(runner, signal.SIGCONT)
        self.assertEqual(self.say(first).code, 0)
        os.kill(self.stopped(), signal.SIGCONT)  # the load, whose pool counts for itself
        generations = [self.say(client).document["commit"]["generation"] for client in waiting]
        self.assertEqual(generations, sorted(generations))
        self.assertEqual(self.keys(), [1, 3, 40])
        connection.close()
        self.end()

    def test_readers_wait_for_no_writer_and_no_full_queue(self):
        self.queued()
        for mode in ({}, {"mode": "single"}):
            with self.subTest(mode=mode):
                self.configure({"path": "G", "queue": 1, **mode})
                self.serve(env={"SLUICE_FAILPOINT": "gates.after=stop@1"})
                first = self.mutate(insert(len(mode) + 1))
                runner = self.stopped()
                second = self.mutate(insert(10))
                if mode:
                    self.assertEqual(self.say(second).error["code"], "WRITER_BUSY")
                else:
                    self.until("one waits", lambda: self.graph_status("G")["queued"] == 1)
                connection = self.connect()
                for words in (["count", "G"], ["branch", "list", "G"], ["checkpoint", "list", "G"], ["schema", "show", "G"]):  # as for those who cannot see the folder
                    answer = connection.ask("submit", graph="G", command=words[0], words=words[1:])
                    self.assertEqual(answer.get("result", {}).get("exit"), 0, answer)
                connection.close()
                os.kill(runner, signal.SIGCONT)
                self.assertEqual(self.say(first).code, 0)
                if not mode:
                    self.assertEqual(self.say(second).code, 0)
                self.end()

    def test_many_writers_at_once_each_have_one_end_and_no_conflict(self):
        self.queued()
        self.configure({"path": "G", "queue": 64, "max_jobs": 4})
        self.serve()
        clients = [self.mutate(insert(key)) if key % 2 else self.alone(key) for key in range(16)]
        results = [self.say(client) for client in clients]
        self.assertEqual([result.code for result in results], [0] * 16, [result.err for result in results])
        self.assertEqual(len({result.document["commit"]["generation"] for result in results}), 16)
        self.assertEqual(self.keys(), list(range(16)))
        self.end()
        self.clean()


if __name__ == "__main__":
    main()
