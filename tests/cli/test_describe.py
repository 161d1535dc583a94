#!/usr/bin/env python3
"""describe says what the columns of a type hold, as a few lines of Python count it; and says where it estimates."""

import collections
import random

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"Thing": {"key": "id", "properties": {"id": "int64", "name": "string?", "flag": "bool?", "price": "float64?",
                                                          "day": "date?", "empty": "string?"}},
                    "Pair": {"key": ["a", "b"], "properties": {"a": "int32", "b": "string"}}},
          "edges": {"IN": {"from": "Thing", "to": "Pair", "properties": {}}}}


class Describe(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)

    def described(self, type_name, *words):
        document = self.done("describe", "G", type_name, "--json", *words).document
        self.assertEqual(document["type"], type_name)
        return document["rows"], {column.pop("column"): column for column in document["columns"]}

    def check(self, column, values, order=None):
        """Against the list of all values, None for null."""
        there = [value for value in values if value is not None]
        ordered = [value for value in there if value != "NaN"]
        counts = collections.Counter(there)
        self.assertEqual((column["values"], column["nulls"]), (len(there), len(values) - len(there)))
        self.assertEqual(column["minimum"], min(ordered, default=None))
        self.assertEqual(column["maximum"], max(ordered, default=None))
        if column["distinct_exact"]:
            self.assertEqual(column["distinct"], len(counts))
        else:
            self.assertLess(abs(column["distinct"] - len(counts)), 0.05 * len(counts))
        found = [(item["value"], item["count"]) for item in column["frequent"]]
        for value, count in found:
            self.assertEqual(counts[value], count, value)
        wanted = [count for _, count in counts.most_common(5) if count > 1 and (len(counts) <= 4096 or count > len(there) // 4097)]
        self.assertEqual([count for _, count in found], wanted)

    def test_without_a_type_all_are_listed(self):
        said = self.done("describe", "G").out.splitlines()
        self.assertRegex(said[0], r"^type +of +rows +columns$")
        self.assertEqual(sorted(line.split()[0] for line in said[1:]), sorted(self.done("count", "G", "--json").document))
        types = [document["type"] for document in self.done("describe", "G", "--json").lines]
        self.assertEqual(types, [line.split()[0] for line in said[1:]])

    def test_a_small_type_is_described_exactly(self):
        rows = [(i, ["Ada", "Bob", "", None, "Zoë"][i % 5] if i != 7 else "Ada", [True, None, True, False][i % 4],
                 [1.5, -0.0, 0.0, None, -2.25, "NaN", 1e300][i % 7], "2026-01-%02d" % (i % 28 + 1)) for i in range(200)]

        def text(value):
            return "" if value is None else '""' if value == "" else str(value).lower() if isinstance(value, bool) else str(value)

        self.write("things.csv", "id,name,flag,price,day,empty\n" + "".join(",".join(map(text, row)) + ",\n" for row in rows))
        self.load("Thing=things.csv")
        count, columns = self.described("Thing")
        self.assertEqual((count, list(columns)), (200, ["id", "name", "flag", "price", "day", "empty"]))
        for at, name in enumerate(("id", "name", "flag", "price", "day")):
            self.check(columns[name], [row[at] for row in rows])
        self.check(columns["empty"], [None] * 200)
        self.done("mutate", "G", stdin=self.open_text('{"op": "delete", "node": "Thing", "key": 0}\n'))
        self.check(self.described("Thing")[1]["id"], [row[0] for row in rows[1:]])
        self.check(self.described("Thing", "--at", "2")[1]["id"], [row[0] for row in rows])
        said = self.done("describe", "G", "Thing").out
        self.assertIn("199 rows", said)
        self.assertIn("most frequent", said)

    def open_text(self, text):
        self.write("text", text)
        file = open(self.path("text"), "rb")
        self.addCleanup(file.close)
        return file

    def test_many_values_are_estimated_and_what_is_frequent_is_found_and_counted(self):
        chance = random.Random(4)
        names = [chance.choice(("common", "usual", "often")) if chance.random() < 0.1 else "n%d" % chance.randrange(10**6)
                 for _ in range(40000)]
        self.write("things.csv", "id,name\n" + "".join("%d,%s\n" % (i, name) for i, name in enumerate(names)))
        self.load("Thing=things.csv", "--ignore-unknown")
        count, columns = self.described("Thing")
        self.assertEqual(count, 40000)
        self.assertFalse(columns["name"]["distinct_exact"])
        self.check(columns["id"], list(range(40000)))
        self.assertEqual([item["value"] for item in columns["id"]["frequent"]], [])
        counts = collections.Counter(names)
        self.assertEqual([(item["value"], item["count"]) for item in columns["name"]["frequent"]][:3], counts.most_common(3))
        for item in columns["name"]["frequent"]:
            self.assertEqual(counts[item["value"]], item["count"])
        self.assertIn("about ", self.done("describe", "G", "Thing").out)

    def test_keys_of_several_members_and_types_without_rows(self):
        self.write("pairs.csv", "a,b\n2,x\n1,y\n1,z\n")
        self.write("things.csv", "id\n1\n2\n")
        self.write("in.csv", "from,to.a,to.b\n1,2,x\n2,2,x\n1,1,y\n")
        for column in self.described("IN")[1].values():
            self.check(column, [])
        self.load("Pair=pairs.csv", "Thing=things.csv", "IN=in.csv")
        count, columns = self.described("IN")
        self.assertEqual(count, 3)
        self.assertEqual((columns["to"]["minimum"], columns["to"]["maximum"], columns["to"]["distinct"]), ([1, "y"], [2, "x"], 2))
        self.assertEqual(columns["to"]["frequent"], [{"value": [2, "x"], "count": 2}])
        self.done("describe", "G", "IN")

    def test_a_value_cannot_act_on_the_terminal_and_is_cut_between_characters(self):
        self.write("things.csv", "id,name\n1,\x1b[31mred\n2,%s\n" % ("x" + "ö" * 100))
        self.load("Thing=things.csv")
        said = self.done("describe", "G", "Thing").out
        self.assertNotIn("\x1b", said)
        self.assertIn("xööö", said)
        self.assertNotIn("\\x", said.replace("\\x1b", ""))
        self.refused(2, "describe", "G", "Thign")


if __name__ == "__main__":
    main()
