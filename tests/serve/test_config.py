#!/usr/bin/env python3
"""The configuration of a supervisor: what is wrong in it is named by file, line and the way to it."""

import json
import unittest

from serve.serving import ServeTest
from support.program import main

GOOD = {"socket": "s", "graphs": [{"path": "G"}]}


class Config(ServeTest):
    def check(self, text):
        self.write("c.json", text)
        return self.say(self.start("serve", "--config", "c.json", "--check", "--json"))

    def test_a_configuration_with_everything_is_in_order(self):
        result = self.check({
            "socket": "/run/x/s", "socket_mode": "0660", "http": "127.0.0.1:9187", "http_names": True, "log": "json", "workers": 8, "connections": 10,
            "requests_per_second": 5, "stopped_seconds": 0,
            "graphs": [{"path": "/a/b", "name": "n", "weight": 3, "max_jobs": 2, "queue": 1, "memory": "512M", "quota": 1 << 30,
                        "mode": "queued", "deadline_seconds": 10, "uids": [0, 1000], "readers": [1001],
                        "maintenance": {"every_seconds": 60, "optimize": {"fragments": 64, "edits": 48, "dead_bytes": "256M",
                                                                          "branches": ["main", "x y"]},
                                        "gc": {"bytes": "64M", "keep": 100, "older_than": "30d"}}}, {"path": "c/d/"}]})
        self.assertEqual((result.code, json.loads(result.out)), (0, {"ok": True, "graphs": 2}))

    def test_what_is_wrong_is_named_by_line_and_path(self):
        graph = lambda **more: {"socket": "s", "graphs": [{"path": "G", **more}]}
        for value, said in [
                ({}, 'c.json:1: "socket" is missing'),
                ({"socket": "s"}, '"graphs" is missing'),
                ([], "an object was expected, not an array"),
                ({**GOOD, "sokcet": 1}, "sokcet: unknown name"),
                ({**GOOD, "workers": 0}, "workers: 0 is not a whole number from 1 to 256"),
                ({**GOOD, "workers": -1}, "workers: -1 is not a whole number"),
                ({**GOOD, "workers": 1.5}, "workers: 1.5 is not a whole number"),
                ({**GOOD, "workers": 1 << 70}, "is not a whole number"),
                ({**GOOD, "workers": "2"}, "workers: a number was expected, not a string"),
                ({**GOOD, "socket": ""}, "socket: this is no path"),
                ({**GOOD, "socket": "/" + "x" * 200}, "socket: the path of a socket has at most 107 bytes"),
                ({**GOOD, "socket_mode": "777"}, "socket_mode: \"777\" is not one of"),
                ({**GOOD, "socket_mode": "0777"}, "socket_mode: \"0777\" is not one of"),
                ({**GOOD, "http": "0.0.0.0:80"}, "http: \"0.0.0.0:80\" is neither"),
                ({**GOOD, "log": "xml"}, 'log: "xml" is neither logfmt nor json'),
                ({**GOOD, "http_names": 1}, "http_names: "),
                ({**GOOD, "http": "127.0.0.1:99999"}, "is neither"),
                ({"socket": "s", "graphs": [{}]}, "graphs[0]: \"path\" is missing"),
                ({"socket": "s", "graphs": [1]}, "graphs[0]: an object was expected"),
                (graph(pfad=1), "graphs[0].pfad: unknown name"),
                (graph(weight=0), "graphs[0].weight: 0 is not"),
                (graph(max_jobs=65), "graphs[0].max_jobs: 65 is not"),
                (graph(memory="lots"), "graphs[0].memory: \"lots\" is not a size"),
                (graph(memory="1M"), "graphs[0].memory: \"1M\" is too little: the least is 64M"),
                (graph(quota="4M"), "graphs[0].quota: \"4M\" is too little: the least is 8M"),
                (graph(quota=4128768), "graphs[0].quota: 4128768 is not a whole number from 8388608"),
                (graph(memory="99999999999T"), "is not a size"),
                (graph(mode="fast"), "graphs[0].mode: \"fast\" is not one of optimistic, queued, single"),
                (graph(uids=["root"]), "graphs[0].uids[0]: a number was expected"),
                (graph(readers=["me"]), "graphs[0].readers[0]: a number was expected"),
                (graph(uids=[-1]), "graphs[0].uids[0]: -1 is no user id"),
                (graph(maintenance={}), 'graphs[0].maintenance: what is not said: "optimize" or "gc"'),
                (graph(maintenance={"gc": {}}), 'graphs[0].maintenance.gc: "bytes" is missing'),
                (graph(maintenance={"gc": {"bytes": 0}}), "graphs[0].maintenance.gc.bytes: 0 is not a whole number"),
                (graph(maintenance={"gc": {"bytes": 1, "older_than": "30"}}), 'maintenance.gc.older_than: "30" is no duration'),
                (graph(maintenance={"gc": {"bytes": 1, "older_than": "1y"}}), '"1y" is no duration'),
                (graph(maintenance={"gc": {"bytes": 1, "keep": 0}}), "maintenance.gc.keep: 0 is not"),
                (graph(maintenance={"optimize": {}}), 'maintenance.optimize: when is not said'),
                (graph(maintenance={"optimize": {"fragments": 1}}), "maintenance.optimize.fragments: 1 is not"),
                (graph(maintenance={"optimize": {"edits": 1, "branches": []}}), "maintenance.optimize.branches: 1 to 16"),
                (graph(maintenance={"optimize": {"edits": 1, "branches": [""]}}), "branches[0]: this is no branch"),
                (graph(maintenance={"every_seconds": 0, "gc": {"bytes": 1}}), "maintenance.every_seconds: 0 is not"),
                (graph(maintenance={"every_second": 1}), "maintenance.every_second: unknown name"),
                (graph(name="a/b"), "graphs[0].name: a name has"),
                (graph(name=""), "graphs[0].name: a name has"),
                ({"socket": "s", "graphs": [{"path": "G"}, {"path": "G"}]}, "graphs[1]: this path is the path of graphs[0], too"),
                ({"socket": "s", "graphs": [{"path": "a/G"}, {"path": "b/G"}]},
                 "graphs[1]: the name \"G\" is the name of graphs[0], too"),
                ('{"socket": "s",\n "graphs": [\n  {"path": "G", "path": "H"}]}', "c.json:3:"),
                ("{", "c.json:1:"), ("", "c.json:1:"), ('{"socket": "s"} x', "c.json:1:"), (b"{\"\xff\": 1}", "c.json:1:")]:
            with self.subTest(said=said):
                result = self.check(value)
                self.assertEqual(result.code, 4, result.err)
                self.assertEqual(result.error["code"], "INPUT_SYNTAX")
                self.assertIn(said, result.err)
                self.assertTrue(result.err.startswith("sluice: c.json:"), result.err)

    def test_a_missing_file_or_flag_is_a_mistake_of_use(self):
        self.assertEqual(self.say(self.start("serve", "--config", "none")).code, 2)
        self.assertEqual(self.say(self.start("serve")).code, 2)
        self.assertEqual(self.say(self.start("jobs")).code, 2)
        self.assertEqual(self.say(self.start("jobs", "--socket", "none")).code, 8)

    def test_a_near_name_is_hinted_at(self):
        self.assertIn('hint: did you mean "graphs"?', self.check({"socket": "s", "graps": []}).err)


if __name__ == "__main__":
    main()
