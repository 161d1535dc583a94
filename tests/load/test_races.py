#!/usr/bin/env python3
"""One race for each thing that a load validates: when everything has been checked and nothing is decided, another pool commits what the
check relied on not to happen. A check that did not say what it read would let both stand (OW-021 to OW-024, OW-059, OW-099)."""

import os
import signal

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string?", "age": "int32?"}, "unique": [["name"]]}},
          "edges": {"K": {"from": "P", "to": "P", "key": []},
                    "Out": {"from": "P", "to": "P", "cardinality": {"out": "0..1"}},
                    "In": {"from": "P", "to": "P", "cardinality": {"in": "0..1"}}}}
BASE = "id,name,age\n1,a,1\n2,b,2\n3,c,3\n4,d,4\n"


class Races(ProgramTest):
    def setUp(self):
        super().setUp()
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
        self.write("base.csv", BASE)
        self.init(SCHEMA)
        self.load("P=base.csv")

    def race(self, what, text, rival, *words):
        """Loads `text` into `what`; at the end of its plan `rival` is committed. How the load ended."""
        self.write("x.csv", text)
        self.write("rival.jsonl", rival + "\n")
        process = self.start("load", "G", what + "=x.csv", "--workers", "1", "--json", *words,
                             env={"SLUICE_FAILPOINT": "prepare.after_plan=stop"})
        worker = self.stopped_worker(process)
        try:
            other = self.finish(self.start("mutate", "G", "rival.jsonl"))
        finally:
            os.kill(worker, signal.SIGCONT)
        self.assertEqual(other.code, 0, other.out + other.err)
        result = self.finish(process)
        self.clean()
        return result

    def loses(self, codes, *race):
        result = self.race(*race)
        self.assertNotEqual(result.code, 0, result.out)
        self.assertIn((result.code, result.error["code"]), codes, result.err)
        self.assertIs(result.error["committed"], False)

    def wins(self, *race):
        result = self.race(*race)
        self.assertEqual(result.code, 0, result.out + result.err)
        return result.document

    def person(self, key):
        return self.done("get", "G", "P", str(key), "--json").lines[0]

    def test_a_key_that_was_free(self):
        self.loses([(4, "KEY_CONFLICT")], "P", "id,name\n10,mine\n", '{"op":"insert","node":"P","set":{"id":10,"name":"theirs"}}')
        self.assertEqual(self.person(10)["name"], "theirs")

    def test_a_unique_value_that_was_free(self):
        self.loses([(4, "CONSTRAINT_UNIQUE")], "P", "id,name\n10,x\n", '{"op":"insert","node":"P","set":{"id":11,"name":"x"}}')

    def test_an_end_that_was_there(self):
        for key, edge in ((4, "1,4\n"), (3, "3,1\n")):
            self.loses([(4, "CONSTRAINT_ENDPOINT")], "K", "from,to\n" + edge, '{"op":"delete","node":"P","key":%d}' % key)

    def test_an_edge_that_was_not_there(self):
        self.loses([(4, "KEY_CONFLICT")], "K", "from,to\n1,2\n", '{"op":"insert","edge":"K","from":1,"to":2}')
        self.assertEqual(self.done("count", "G", "K").out, "1\n")

    def test_room_for_one_more_edge(self):
        self.loses([(4, "CONSTRAINT_CARDINALITY")], "Out", "from,to\n1,2\n", '{"op":"insert","edge":"Out","from":1,"to":3}')
        self.loses([(4, "CONSTRAINT_CARDINALITY")], "In", "from,to\n1,2\n", '{"op":"insert","edge":"In","from":3,"to":2}')

    def test_an_edge_that_would_lose_its_end(self):
        self.loses([(3, "WRITE_CONFLICT"), (4, "CONSTRAINT_ENDPOINT")], "P", "id,name\n1,a\n",
                   '{"op":"insert","edge":"K","from":1,"to":2}', "--mode", "overwrite")

    def test_a_row_that_was_completed(self):
        self.wins("P", "id,name\n1,mine\n", '{"op":"update","node":"P","key":1,"set":{"age":77}}', "--mode", "upsert")
        self.assertEqual(self.person(1), {"id": 1, "name": "mine", "age": 77})

    def test_a_row_that_was_new_and_one_that_was_there(self):
        self.wins("P", "id,name\n10,mine\n", '{"op":"insert","node":"P","set":{"id":10,"age":5}}', "--mode", "upsert")
        self.assertEqual(self.person(10), {"id": 10, "name": "mine", "age": 5})
        self.wins("P", "id,age\n4,44\n", '{"op":"delete","node":"P","key":4}', "--mode", "upsert")
        self.assertEqual(self.person(4), {"id": 4, "name": None, "age": 44})

    def test_why_a_row_was_left_out(self):
        for text, rival in (("id,name\n1,new\n30,good\n", '{"op":"delete","node":"P","key":1}'),
                            ("id,name\n20,b\n31,better\n", '{"op":"update","node":"P","key":2,"set":{"name":"free"}}')):
            told = self.wins("P", text, rival, "--on-error", "skip")
            self.assertEqual((told["rows"]["P"], told["rejected"]), (2, 0), text)

    def test_what_has_nothing_to_do_with_it(self):
        self.wins("P", "id,name\n10,mine\n", '{"op":"insert","node":"P","set":{"id":11,"name":"theirs"}}')
        self.wins("K", "from,to\n1,2\n", '{"op":"insert","edge":"K","from":1,"to":3}')


if __name__ == "__main__":
    main()
