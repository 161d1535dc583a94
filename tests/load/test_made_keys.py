#!/usr/bin/env python3
"""Keys that were made so that their hashes follow each other: ends are found all the same, and one that is missing is named."""

import shutil

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"N": {"key": "id", "properties": {"id": "int64"}}}, "edges": {"E": {"from": "N", "to": "N", "properties": {}}}}
WORD = (1 << 64) - 1


def key_of(value):
    """The int64 whose hash (docs/format.md) is `value`: each step of the hash undone."""
    value ^= value >> 31 ^ value >> 62
    value = value * pow(0x94D049BB133111EB, -1, 1 << 64) & WORD
    value ^= value >> 27 ^ value >> 54
    value = value * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & WORD
    value ^= value >> 30 ^ value >> 60
    return value - (1 << 64) if value >> 63 else value


class MadeKeys(ProgramTest):
    def setUp(self):
        super().setUp()
        self.keys = [key_of(value) for value in list(range(3000)) + [WORD]]
        self.write("nodes.csv", "id\n" + "".join("%d\n" % key for key in self.keys))

    def test_ends_are_found(self):
        self.assertEqual(self.keys[0], 0)
        self.write("edges.csv", "from,to\n" + "".join("%d,%d\n" % (key, self.keys[i // 2]) for i, key in enumerate(self.keys)))
        self.init(SCHEMA)
        self.done("load", "G", "N=nodes.csv", "E=edges.csv")
        self.assertEqual(self.done("count", "G", "--json").document, {"N": 3001, "E": 3001})

    def test_a_missing_end_is_named(self):
        for missing in (3000, 1 << 62, WORD - 1):
            self.write("edges.csv", "from,to\n%d,%d\n%d,%d\n" % (self.keys[0], self.keys[-1], self.keys[5], key_of(missing)))
            self.init(SCHEMA)
            self.assertIn("edges.csv:3:", self.refused(4, "load", "G", "N=nodes.csv", "E=edges.csv").err)
            shutil.rmtree(self.path("G"))


if __name__ == "__main__":
    main()
