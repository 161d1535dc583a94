#!/usr/bin/env python3
"""JSON Lines: what an export wrote loads to the same graph; ways in; and random files against Python's json, however they are cut."""

import base64
import gzip
import json
import os
import random
import re
import struct
import subprocess

from support.program import SAMPLED, TIMEOUT, ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "s": "string?", "n": "int64?", "u": "uint64?", "d": "float64?",
                                                      "b": "bool?", "x": "bytes?"}}}}
ALL = {"nodes": {"A": {"key": ["k", "day"], "properties": {
    "k": "string", "day": "date", "b": "bool?", "i": "int32?", "l": "int64?", "u": "uint64?", "f": "float32?", "d": "float64?",
    "x": "bytes?", "at": "timestamp?"}},
    "L": {"properties": {"s": "string?"}}},
    "edges": {"E": {"from": "A", "to": "A", "properties": {"w": "float64?", "w2": {"type": "int32", "default": 3}}, "key": []}}}


class Jsonl(ProgramTest):
    def test_exports_load_to_the_same_graph(self):
        self.init(ALL)
        text = ["", " ", "null", "é中😀", "a\nb\r\tc", "\"q\"\\", "\u0001\u007f\u2028", "{}"]
        numbers = [0, -1, 1, 2**31 - 1, -2**31]
        floats = ["NaN", "Infinity", "-Infinity", -0.0, 5e-324, 1.7976931348623157e308, 0.1]
        a = [{"k": text[i % len(text)] + str(i), "day": "20%02d-02-28" % (i % 100), "b": [True, False, None][i % 3],
              "i": numbers[i % 5], "l": [2**63 - 1, -2**63, None][i % 3], "u": [2**64 - 1, 0, None][i % 3],
              "f": ["NaN", 0.5, None, 16777217][i % 4], "d": floats[i % len(floats)],
              "x": base64.b64encode(bytes(range(i % 7))).decode(), "at": [None, "0001-01-01T00:00:00Z", "2026-11-30T12:00:00.000001+02:30"][i % 3]}
             for i in range(80)]
        self.write("a.jsonl", "".join(json.dumps(row) + "\n" for row in a))
        ends = [(row["k"], row["day"]) for row in a]
        edges = [{"from": list(ends[i]), "to": {"day": ends[-i][1], "k": ends[-i][0]}, "w": i / 3} for i in range(80)]
        self.write("e.ndjson", "".join(json.dumps(row, ensure_ascii=False) + "\r\n" for row in edges))
        self.write("l.jsonl", "".join(json.dumps({"_row_id": i, "s": t}) + "\n" for i, t in enumerate(text)))
        self.load("A=a.jsonl", "E=e.ndjson", "L=l.jsonl")
        want = self.content()
        self.assertEqual({name: len(rows) for name, rows in want.items()}, {"A": 80, "E": 80, "L": 8})
        for format in ("jsonl", "csv"):
            self.done("export", "G", format, "--format", format)
            graph = "copy-" + format
            self.done("init", graph, "--schema", "schema.json")
            for type_name in ("A", "L", "E"):
                self.load("%s=%s/%s.%s" % (type_name, format, type_name, format), graph=graph)
            got = self.content(graph)
            for content in (got, want):
                content["L"] = sorted(re.sub(r'"_row_id": \d+', "", row) for row in content["L"])
            self.assertEqual(got, want)
            self.clean(graph)

    def test_blank_lines_at_the_end_are_no_rows(self):
        self.init(SCHEMA)
        self.write("a.jsonl", '{"id": 1, "s": "a"}\n{"id": 2}\n\n')
        self.write("b.csv", "id,s\n3,c\n\n")
        self.write("c.csv", "id\n4\n\n")
        for name, rows in (("a.jsonl", 2), ("b.csv", 1), ("c.csv", 1)):
            self.assertEqual(self.load("P=" + name)["rows"], {"P": rows})
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 4})

    def test_streams_compressed_files_and_formats_mix_in_one_commit(self):
        self.init(SCHEMA)
        lines = ['{"id": %d, "s": "n%d"}\n' % (i, i) for i in range(90)]
        self.write("a.jsonl.gz", gzip.compress("".join(lines[:30]).encode()))
        self.write("b.data", "".join(lines[30:60]))
        self.write("c.csv", "id;s\n" + "".join("%d;n%d\n" % (i, i) for i in range(60, 90)))
        with open(self.path("b.data")) as stdin:
            got = self.done("load", "G", "P=a.jsonl.gz", "P=c.csv", "--delimiter", ";", "--json", "--workers", "2", stdin=stdin).document
            self.assertEqual(got["rows"], {"P": 60})
        with open(self.path("b.data")) as stdin:
            self.done("load", "G", "P=-", "--format", "ndjson", stdin=stdin)
        cat = subprocess.Popen(["cat", self.path("b.data")], stdout=subprocess.PIPE)
        said = self.refused(4, "load", "G", "P=/dev/stdin", "--format", "jsonl", "--json", stdin=cat.stdout)
        cat.stdout.close()
        cat.wait(TIMEOUT)
        self.assertEqual(said.error["code"], "KEY_CONFLICT")
        self.assertIn("/dev/stdin:1: column id: the key \"30\" exists already", said.err)
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 90})
        self.clean()

    def test_flags_of_csv_without_a_csv_input_are_a_mistake(self):
        self.init(SCHEMA)
        self.write("a.jsonl", '{"id": 1}\n')
        for words in (("--delimiter", ";"), ("--null", "NA"), ("--no-header",), ("--header", "first")):
            self.assertIn("no input is CSV", self.refused(2, "load", "G", "P=a.jsonl", *words).err)

    def test_refusals_name_line_column_and_text(self):
        self.init({"nodes": SCHEMA["nodes"], "edges": {"E": {"from": "P", "to": "P", "properties": {}, "key": []}}})
        cases = [
            ('{"id": 1}\n\n{"id": 1}\n', "bad.jsonl:3: column id: the key \"1\" is already on line 1", "KEY_CONFLICT", 4),
            ('{"id": 1}\n{"id": 2, "n": 1.5}\n', "bad.jsonl:2: column n: \"1.5\" is not an int64", "CONSTRAINT_TYPE", 4),
            ('{"id": 1}\n{"id": 2, "s": \n', "bad.jsonl:2: not one JSON object: the text ends too early", "INPUT_SYNTAX", 4),
            ('{"id": 1}\n{"id": 2, "nam": "x"}\n', "bad.jsonl:2: column \"nam\": type P has no such property", "INPUT_SYNTAX", 4),
            ('{"id": 1}\n{"s": "x"}\n', "bad.jsonl:2: column \"id\" of type P is missing", "CONSTRAINT_NULL", 4),
        ]
        for text, words, code, status in cases:
            self.write("bad.jsonl", text)
            for workers in ("1", "3"):
                said = self.refused(status, "load", "G", "P=bad.jsonl", "--json", "--workers", workers, env={"SLUICE_TEST_CHUNK": "8"})
                self.assertIn(words, said.err)
                self.assertEqual((said.error["code"], said.error["committed"]), (code, False))
        self.write("p.jsonl", '{"id": 1}\n')
        self.write("e.jsonl", '{"to": 1, "from": 1}\n{"to": 1, "from": 77}\n')
        said = self.refused(4, "load", "G", "P=p.jsonl", "E=e.jsonl")
        self.assertIn('e.jsonl:2: column from: there is no P with the key "77"', said.err)
        self.write("e.jsonl", '{"to": 1, "from": 1}\n{"source": 1, "target": {"id": 1}}\n')
        said = self.refused(4, "load", "G", "P=p.jsonl", "E=e.jsonl")
        self.assertIn('e.jsonl:2: columns source, to.id: the edge "1", "1" is already on line 1', said.err)
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 0, "E": 0})
        self.load("P=p.jsonl", "--ignore-unknown")

    # ---- random files ----

    def value(self, dice, kind):
        """A value as JSON text, and what it is read as; ValueError's text when it is refused."""
        if dice.random() < 0.1:
            return "null", None
        if kind == "s":
            text = "".join(dice.choice(["a", "é", "😀", "\\", "\"", "/", "\n", "\t", " ", "\u2028", "\x7f", "0"]) for _ in range(dice.randrange(9)))
            return json.dumps(text, ensure_ascii=dice.random() < 0.5), text
        if kind == "b":
            word = dice.random() < 0.5
            return json.dumps(word if dice.random() < 0.8 else json.dumps(word)), word
        if kind == "x":
            data = bytes(dice.randrange(256) for _ in range(dice.randrange(5)))
            return json.dumps(base64.b64encode(data).decode()), base64.b64encode(data).decode()
        if kind == "d":
            number = struct.unpack("<d", struct.pack("<Q", dice.getrandbits(64)))[0]
            if number != number or number in (float("inf"), float("-inf")):
                return '"NaN"', "NaN"
            return dice.choice(["%r", '"%r"', "%.17e"]) % number, number
        number = dice.getrandbits(dice.choice([1, 31, 53, 63])) if kind == "u" or dice.random() < 0.5 else -dice.getrandbits(63)
        return dice.choice(["%d", '"%d"']) % number, number

    def bad_value(self, dice, kind):
        return dice.choice({"s": ["1", "true", "[]", "{}"], "b": ["1", '"yes"', "[true]"], "x": ['"a"', "12"], "d": ['"1,5"', "true", '" 1"'],
                            "n": ["1.0", "1e1", "9223372036854775808", '"+1"', "false"], "u": ["-1", "18446744073709551616", '""']}[kind])

    def bad_line(self, dice):
        return dice.choice(['{', '[]', '{"id": 1]', '{"id": 1, }', '{"id": tru}', '{"id": "\\x"}', '{"id": 1} {}', '"id"', '{"id": 1, "id": 2}',
                            '{"id": 01}', '{"id": -}', "{'id': 1}", '{"s": "\\udc00", "id": 1}', '{"s": "\x02", "id": 1}', '{"id": 1, "zz": 1}',
                            '{"s": "no key"}', '{id: 1}', '\ufeff{"id": 1}', '{"id": null}'])

    def random_file(self, dice, first_id, errors):
        """Text, rows, and the line of the first error (None)."""
        text, rows, line, wrong = dice.choice(["", "\ufeff"]), [], 1, None
        for _ in range(dice.randrange(1, 40)):
            while dice.random() < 0.2:
                text += dice.choice(["\n", "\r\n", " \t \n"])
                line += 1
            names = ["id"] + [name for name in "snudbx" if dice.random() < 0.6]
            dice.shuffle(names)
            row, parts, bad = dict.fromkeys(["id", *"snudbx"]), [], dice.random() < errors
            at = dice.choice([name for name in names if name != "id"] or [None]) if bad and dice.random() < 0.5 else None
            for name in names:
                if name == "id":
                    row["id"] = first_id + len(rows)
                    written = str(row["id"])
                elif name == at:
                    written = self.bad_value(dice, name)
                else:
                    written, row[name] = self.value(dice, name)
                blank = dice.choice(["", " ", "\t "])
                spelled = "".join("\\u%04x" % ord(c) if dice.random() < 0.1 else c for c in name)
                parts.append('%s"%s"%s:%s%s' % (blank, spelled, blank, blank, written))
            record = self.bad_line(dice) if bad and at is None else "{" + ",".join(parts) + "}"
            if bad:
                wrong = wrong or line
            text += dice.choice(["", "", "  "]) + record + dice.choice(["\n", "\r\n", " \n"])
            line += 1
            rows.append(row)
        return (text if dice.random() < 0.7 else text.rstrip("\n")), rows, wrong

    def test_random_files_give_what_python_reads_at_any_cut(self):
        rounds = 150 if os.environ.get("SLUICE_LONG") else 8 if SAMPLED else 15
        dice = random.Random(20261130)
        self.init(SCHEMA)
        held, loads = {}, [0, 0]
        for round in range(rounds):
            texts = [self.random_file(dice, 1000000 * round + 1000 * i, dice.choice([0, 0, 0.05])) for i in range(2)]
            for i, (text, rows, wrong) in enumerate(texts):
                self.write("r%d.jsonl" % i, text)
            least = next(("r%d.jsonl:%d:" % (i, wrong) for i, (_, _, wrong) in enumerate(texts) if wrong), None)
            env = {"SLUICE_TEST_CHUNK": str(dice.choice([5, 17, 64, 700])), "SLUICE_SPLIT": str(dice.choice([1, 7, 64, 4096]))}
            words = ("load", "G", "P=r0.jsonl", "P=r1.jsonl", "--json", "--workers", dice.choice("124"))
            if least:
                said = self.refused(4, *words, env=env)
                self.assertIn(least, said.err, (round, texts))
            else:
                self.assertEqual(self.done(*words, env=env).document["rows"], {"P": sum(len(rows) for _, rows, _ in texts)})
                held.update({row["id"]: row for _, rows, _ in texts for row in rows})
            loads[bool(least)] += 1
        self.assertGreater(min(loads), rounds // 6)
        self.assertEqual({row["id"]: row for row in self.rows("P")}, held)
        self.clean()


if __name__ == "__main__":
    main()
