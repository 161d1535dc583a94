#!/usr/bin/env python3
"""A load writes the same fragments and runs, byte for byte, whatever the number of workers and the pieces that are read."""

import hashlib
import json
import os
import random

from support.program import ProgramTest, main, some

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "string", "text": "string?", "n": "int32?"}, "unique": [["n"]]}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {"w": "float64"}, "key": ["w"]}}}


class SameBytes(ProgramTest):
    def contents(self, graph):
        """Digests of what the tables hold, by table and kind; names carry the attempt's id and do not count."""
        found = {}
        for folder, _, names in os.walk(self.path(graph + "/tables")):
            digests = []
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    digests.append(hashlib.sha256(file.read()).hexdigest())
            kind = os.path.relpath(folder, self.path(graph + "/tables"))
            if not kind.endswith("lists"):  # edits name files
                found[kind] = sorted(digests)
        return found

    def test_any_workers_and_any_cut(self):
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("chunks cannot be made small in this build")
        dice = random.Random(5)
        texts = ["plain", "\"a,\nb\"", "\"say \"\"so\"\"\"", "", "\"\"", "é中"]
        people = ["id,text,n"] + ["k%d,%s,%d" % (i, dice.choice(texts), i) for i in range(600)]
        edges = ["from,to,w"] + ["k%d,k%d,%r" % (dice.randrange(600), dice.randrange(600), i / 4) for i in range(900)]
        self.write("p.csv", "\n".join(people[:400]) + "\n")
        self.write("q.csv", "id,text,n\r\n" + "\r\n".join(people[400:]))
        self.write("k.csv", "\n".join(edges))
        first = None
        for workers, piece in some((("1", None), ("1", "1"), ("2", "16"), ("7", None), ("7", "64"), ("3", "1000")), 3):
            graph = "G-%s-%s" % (workers, piece)
            env = {"SLUICE_TEST_CHUNK": "1500", "SLUICE_TEST_RANGE": "100", **({"SLUICE_SPLIT": piece} if piece else {})}
            self.init(SCHEMA, graph)
            self.done("load", graph, "P=p.csv", "K=k.csv", "P=q.csv", "--workers", workers, env=env)
            result = self.contents(graph), self.rows("P", graph), self.rows("K", graph)
            self.assertGreater(len([d for kind, d in result[0].items() if kind.endswith("fragments") for d in d]), 10)
            first = first or result
            self.assertEqual(result, first, graph)
            self.clean(graph)

    def test_lines_of_json_at_any_workers_and_any_cut(self):
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("chunks cannot be made small in this build")
        dice = random.Random(6)
        people = [{"id": "k%d" % i, "text": dice.choice(["plain", "a,\nb", "é中", "", None, "\\"]), "n": i} for i in range(400)]
        edges = [{"from": "k%d" % dice.randrange(400), "to": "k%d" % dice.randrange(400), "w": i / 4} for i in range(500)]
        for name, rows in (("p.jsonl", people), ("k.ndjson", edges)):
            lines = [json.dumps(dict(dice.sample(list(row.items()), len(row))), ensure_ascii=dice.random() < 0.5) for row in rows]
            self.write(name, "".join(dice.choice(["", "  ", "\n", "\t\r\n"]) + line + dice.choice(["\n", "\r\n"]) for line in lines))
        first = None
        for workers, piece in some((("1", None), ("3", "1"), ("7", "64")), 2):
            graph = "J-%s-%s" % (workers, piece)
            self.init(SCHEMA, graph)
            self.done("load", graph, "P=p.jsonl", "K=k.ndjson", "--workers", workers,
                      env={"SLUICE_TEST_CHUNK": "1500", **({"SLUICE_SPLIT": piece} if piece else {})})
            result = self.contents(graph), self.rows("P", graph), self.rows("K", graph)
            first = first or result
            self.assertEqual(result, first, graph)
        self.assertEqual(sorted(row["n"] for row in first[1]), list(range(400)))


if __name__ == "__main__":
    main()
