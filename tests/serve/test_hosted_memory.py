#!/usr/bin/env python3
"""--memory of hosted commands bounds their own process: a merge that needs more is refused and changes nothing, and the supervisor goes on."""

from serve.serving import ServeTest
from support.program import main

ROWS = 120_000


class HostedMemory(ServeTest):
    def test_a_hosted_merge_and_diff_keep_to_their_memory(self):
        if self.sanitized():
            self.skipTest("the sanitizers' own memory is far beyond any bound")
        self.graphs("G")
        self.write("first.csv", "id,v\n0,a\n1,b\n")
        self.write("many.csv", "id,v\n" + "".join("%d,%s\n" % (i, "n" * 40) for i in range(10, 10 + ROWS)))
        self.done("load", "G", "P=first.csv")
        self.done("branch", "create", "G", "b")
        self.done("branch", "create", "G", "same")
        self.done("load", "G", "P=many.csv", "--branch", "b")
        for branch, key in (("b", 0), ("same", 1)):  # nodes changed on both sides: row by row
            self.write("m.jsonl", {"op": "update", "node": "P", "key": key, "set": {"v": branch}})
            self.done("mutate", "G", "m.jsonl", "--branch", branch)
        before = self.done("log", "G", "--branch", "same", "--json").out
        self.configure("G")
        self.serve()
        merge = ("merge", "G", "b", "--into", "same", "--json")
        said = self.say(self.start(*merge, "--memory", "24M"))
        self.assertEqual((said.code, said.error["code"], said.error["committed"]), (10, "RESOURCE_LIMIT", False), said.err)
        self.assertIn("--memory", said.err)
        self.assertEqual(self.say(self.start("log", "G", "--branch", "same", "--json")).out, before)
        connection = self.connect()
        words = ["G", "main", "b", "--json", "--memory", "24M"]
        answer = connection.ask("submit", graph="G", command="diff", words=words)["result"]
        self.assertEqual(answer["exit"], 0, answer["stderr"])
        self.assertIn('"inserted":%d,"updated":1' % ROWS, answer["stdout"])
        starved = connection.ask("submit", graph="G", command="diff", words=words[:-1] + ["1M"])["result"]
        self.assertEqual(starved["exit"], 10, starved)
        connection.close()
        self.assertEqual(self.say(self.start(*merge)).document["outcome"], "merged")
        self.end()
        self.assertEqual(self.done("count", "G", "P", "--branch", "same").out, "%d\n" % (ROWS + 2))
        self.clean()


if __name__ == "__main__":
    main()
