#!/usr/bin/env python3
"""Rows of many megabytes, and one fragment per row: optimize writes them in batches of bounded size, in their order."""

import hashlib
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support.program import ProgramTest, main

SCHEMA = {"nodes": {"W": {"key": "id", "properties": {"id": "string", "text": "string?", "n": "int64?"}}}}

class WideRows(ProgramTest):
    def digest(self):
        return [(row["id"], row["text"] and hashlib.sha256(row["text"].encode()).hexdigest(), row["n"]) for row in self.rows("W")]

    def test_wide_rows_are_kept_in_order_and_small_ones_between_them(self):
        self.init(SCHEMA)
        wide = 0
        for k in range(4):
            lines = []
            for i in range(12):
                text = None if i % 5 == 4 else chr(97 + (i + k) % 26) * (3_000_000 if i % 3 == 0 else i)
                wide += text is not None and len(text) > 1000
                lines.append(json.dumps({"id": "%d-%d" % (k, i), "text": text, "n": i}) + "\n")
            self.write("w.jsonl", "".join(lines))
            self.load("W=w.jsonl")
        before = self.digest()
        self.assertEqual(wide, 12)
        self.done("optimize", "G")
        self.assertEqual(self.digest(), before)
        self.clean()
        self.done("optimize", "G", "--compress", "--workers", "1")
        self.assertEqual(self.digest(), before)
        size = self.done("status", "G", "--json").document["branches"][0]["types"][0]
        self.assertLess(size["bytes"], 1_000_000)
        self.assertIsNone(self.done("optimize", "G", "--json").document["commit"])
        self.clean()

if __name__ == "__main__":
    main()
