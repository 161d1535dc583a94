#!/usr/bin/env python3
"""revert: the state of an older commit is the branch's state again, rows, deletions and schema, and history goes on."""

import copy
import os
import signal

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string?"}, "unique": [["name"]]}, "N": {"properties": {"t": "string"}}},
          "edges": {"E": {"from": "P", "to": "P", "key": []}, "L": {"from": "N", "to": "P"}}}
OPERATION = "9b2d1c3e-0000-4000-8000-000000000001"


class Revert(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        self.write("p.csv", "id,name\n1,a\n2,b\n3,c\n")
        self.write("e.csv", "from,to\n1,2\n2,3\n")
        self.write("n.csv", "t\nx\ny\n")
        self.load("P=p.csv", "E=e.csv", "N=n.csv")
        self.done("checkpoint", "create", "G", "loaded")
        self.loaded = self.content()

    def mutate(self, *lines, branch="main"):
        self.write("m.jsonl", "".join(line + "\n" for line in lines))
        return self.done("mutate", "G", "m.jsonl", "--branch", branch, "--json").document

    def revert(self, to, *words):
        result = self.done("revert", "G", "--to", to, "--json", *words).document
        self.clean()
        return result

    def test_rows_come_back_as_they_were_and_nothing_of_the_history_goes(self):
        self.mutate('{"op":"delete","node":"P","key":3,"detach":true}', '{"op":"update","node":"P","key":1,"set":{"name":"z"}}',
                    '{"op":"insert","node":"P","set":{"id":9,"name":"c"}}', '{"op":"insert","edge":"E","from":9,"to":9}')
        self.mutate('{"op":"insert","node":"N","set":{"t":"new"}}')
        later = self.content()
        result = self.revert("loaded", "-m", "back")
        self.assertEqual((result["inserted"], result["updated"], result["deleted"]), (2, 1, 3))
        self.assertEqual(self.content(), self.loaded)
        log = self.done("log", "G", "--json").lines
        self.assertEqual((log[0]["kind"], log[0]["message"], len(log)), ("revert", "back", 5))
        self.assertIsNone(self.revert("loaded")["commit"])
        self.revert(log[1]["commit"])
        self.assertEqual(self.content(), later)
        self.revert("2")
        self.mutate('{"op":"insert","node":"P","set":{"id":10,"name":"d"}}', '{"op":"insert","edge":"E","from":10,"to":3}')
        self.assertEqual(self.done("neighbors", "G", "P", "10", "--json").document["key"], 3)
        self.write("bad.csv", "id,name\n77,c\n")
        self.refused(4, "load", "G", "P=bad.csv")
        self.clean()

    def test_the_first_commit_is_an_empty_graph(self):
        self.assertEqual(self.revert("1")["deleted"], 7)
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 0, "N": 0, "E": 0, "L": 0})
        self.load("P=p.csv", "E=e.csv")
        self.assertEqual(self.content()["E"], self.loaded["E"])
        self.clean()

    def test_the_schema_comes_back_and_dropped_types_live_again(self):
        schema = copy.deepcopy(SCHEMA)
        del schema["nodes"]["N"], schema["edges"]["L"]
        schema["nodes"]["P"]["properties"]["age"] = {"type": "int32", "default": 5}
        schema["nodes"]["Q"] = {"key": "id", "properties": {"id": "int64"}}
        self.write("new.json", schema)
        self.done("schema", "apply", "G", "new.json", "--allow-data-loss")
        self.write("q.csv", "id\n1\n")
        self.load("Q=q.csv")
        changed = self.content()
        self.revert("loaded")
        self.assertEqual(self.content(), self.loaded)
        self.refused(2, "scan", "G", "Q")
        self.revert(self.done("log", "G", "--json").lines[1]["commit"])
        self.assertEqual(self.content(), changed)

    def test_a_commit_of_another_branch_can_be_taken_by_its_checkpoint(self):
        self.done("branch", "create", "G", "f")
        self.mutate('{"op":"delete","edge":"E","from":1,"to":2}', branch="f")
        self.done("checkpoint", "create", "G", "other", "--branch", "f")
        self.mutate('{"op":"insert","node":"P","set":{"id":4,"name":"d"}}')
        self.revert("other")
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 3, "N": 2, "E": 1, "L": 0})
        self.revert("loaded", "--branch", "f")
        self.assertEqual(self.done("count", "G", "E", "--branch", "f").out, "2\n")

    def test_what_optimize_wrote_again_is_no_difference(self):
        for i in range(4, 8):
            self.mutate('{"op":"insert","node":"P","set":{"id":%d}}' % i)
        before = self.done("log", "G", "-n", "1", "--json").document["commit"]
        self.done("optimize", "G")
        self.assertIsNone(self.revert(before)["commit"])

    def test_it_is_refused_and_repeated_as_other_writes(self):
        self.refused(2, "revert", "G")
        self.refused(2, "revert", "G", "--to", "nowhere")
        self.refused(8, "revert", "G", "--to", "99")
        self.refused(8, "revert", "G", "--to", "1", "--branch", "missing")
        self.refused(3, "revert", "G", "--to", "1", "--if-head", OPERATION)
        first = self.revert("1", "--op-id", OPERATION)
        again = self.revert("1", "--op-id", OPERATION)
        self.assertEqual((again["commit"], again["repeated"]), (first["commit"], True))
        self.refused(9, "revert", "G", "--to", "2", "--op-id", OPERATION)

    def test_a_commit_in_the_meantime_makes_it_look_again(self):  # OW-019
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
        self.mutate('{"op":"delete","edge":"E","from":1,"to":2}')
        revert = self.start("revert", "G", "--to", "loaded", "--json", env={"SLUICE_FAILPOINT": "prepare.after_plan=stop"})
        self.assertTrue(os.WIFSTOPPED(os.waitpid(revert.pid, os.WUNTRACED)[1]))
        self.write("m.jsonl", '{"op":"insert","node":"P","set":{"id":4,"name":"d"}}\n')
        self.assertEqual(self.finish(self.start("mutate", "G", "m.jsonl")).code, 0)
        revert.send_signal(signal.SIGCONT)
        result = self.finish(revert)
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual((result.document["inserted"], result.document["deleted"]), (1, 1))
        self.assertEqual(self.content(), self.loaded)
        self.assertEqual(result.document["commit"]["generation"], 5)
        self.clean()


if __name__ == "__main__":
    main()
