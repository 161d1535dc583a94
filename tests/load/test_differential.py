#!/usr/bin/env python3
"""Random graphs as CSV and JSON Lines against a slow, simple reader in Python that knows all rules: the same rows, or the same first
error, at any number of workers, however files are cut, and in whatever order files come where that must not matter."""

import csv
import io
import json
import os
import random
import re

from support.program import ProgramTest, main

SCHEMA = {
    "nodes": {"P": {"key": "id", "properties": {"id": "int64", "mail": "string?", "ok": {"type": "bool", "default": True}, "day": "date?"},
                    "unique": [["mail"]], "checks": {"id": {"max": 10**6}}},
              "Q": {"key": ["a", "b"], "properties": {"a": "string", "b": "int32"}}},
    "edges": {"K": {"from": "P", "to": "Q", "properties": {"w": "float64?"}, "key": []},
              "L": {"from": "P", "to": "P", "properties": {"n": "int32"}, "cardinality": {"out": "0..2", "in": "0..*"}}}}
COLUMNS = {"P": ["id", "mail", "ok", "day"], "Q": ["a", "b"], "K": ["from", "to.a", "to.b", "w"], "L": ["from", "to", "n"]}
INTEGERS = {"id": 63, "b": 31, "from": 63, "to": 63, "to.b": 31, "n": 31}
REQUIRED = {"id", "a", "b", "from", "to", "to.a", "to.b", "n"}


class Bad(Exception):
    pass


class Absent:
    """No value at all: the default, where there is one."""


class Number(str):
    """The text of a number of JSON: no text for a column of texts."""


def value_of(name, text):
    """What the text of a value is read as; Bad when it is none."""
    if isinstance(text, Number) and name not in INTEGERS and name != "w":
        raise Bad
    if name in INTEGERS:
        if not re.fullmatch(r"-?[0-9]+", text) or not -2**INTEGERS[name] <= int(text) < 2**INTEGERS[name]:
            raise Bad
        if name == "id" and int(text) > 10**6:
            raise Bad
        return int(text)
    if name == "ok":
        if text not in ("true", "false"):
            raise Bad
        return text == "true"
    if name == "day":
        if not re.fullmatch(r"20[0-9]{2}-0[1-9]-[01][1-9]", text):
            raise Bad
        return text
    if name == "w":
        if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
            raise Bad
        return float(text)
    return text


def row_of(kind, given):
    """A row from the values of a record: name to text, None (null) or Absent."""
    row = {}
    for name in COLUMNS[kind]:
        text = given.get(name, Absent)
        if text is Absent and name == "ok":
            row[name] = True
        elif text is None or text is Absent:
            if name in REQUIRED or name == "ok":
                raise Bad
            row[name] = None
        else:
            row[name] = value_of(name, text)
    return row


class File:
    """What a file says: (line, row or None) for each record."""

    def __init__(self, kind, name, text):
        self.kind, self.name, self.text = kind, name, text
        self.records = list(self.read_csv() if name.endswith(".csv") else self.read_lines())

    def read_csv(self):
        line, header, at, text = 1, None, 0, self.text
        while at < len(text):
            if text.startswith(("\n", "\r\n"), at):     # an empty line
                at = text.index("\n", at) + 1
                line += 1
                continue
            begin, quoted, end = at, False, at
            while end < len(text) and (quoted or text[end] != "\n"):
                quoted ^= text[end] == '"'
                end += 1
            record = text[begin:end].removesuffix("\r")
            fields = next(csv.reader(io.StringIO(record, newline=""), strict=True))
            bare = self.bare_fields(record)
            if header is None:
                header = fields
            else:
                try:
                    if len(fields) != len(header):
                        raise Bad
                    yield line, row_of(self.kind, {n: Absent if f == "" and b else f for n, f, b in zip(header, fields, bare)})
                except Bad:
                    yield line, None
            line += text.count("\n", begin, end + 1)
            at = end + 1

    @staticmethod
    def bare_fields(record):
        """Which fields stand without quotes (the generator writes quotes around whole fields only)."""
        bare, start, quoted = [], True, False
        for char in record + ",":
            if start:
                bare.append(char != '"')
                start = False
            if char == '"':
                quoted = not quoted
            start |= char == "," and not quoted
        return bare

    def read_lines(self):
        for line, text in enumerate(self.text.split("\n"), 1):
            if text.strip(" \t\r") == "":
                continue
            try:
                yield line, self.row_of_line(text)
            except (Bad, ValueError):
                yield line, None

    def row_of_line(self, text):
        def pairs(items):
            if len({name for name, _ in items}) < len(items):
                raise Bad
            return dict(items)
        document = json.loads(text, object_pairs_hook=pairs, parse_int=Number, parse_float=Number)
        given = {}
        for name, value in document.items():
            if isinstance(value, dict):
                given.update({name + "." + member: inner for member, inner in value.items()})
            elif isinstance(value, list):
                given.update(zip(["to.a", "to.b"], value))
            else:
                given[name] = {True: "true", False: "false"}[value] if isinstance(value, bool) else value
        if set(given) - set(COLUMNS[self.kind]):
            raise Bad
        return row_of(self.kind, given)


def judge(files):
    """The content by type, or (None, "FILE:LINE" of the least fault)."""
    faults, content = set(), {kind: [] for kind in COLUMNS}
    places = {kind: [] for kind in COLUMNS}
    for argument, file in enumerate(files):
        for record, (line, row) in enumerate(file.records):
            place = (argument, record, "%s:%d:" % (file.name, line))
            if row is None:
                faults.add(place)
            else:
                content[file.kind].append(row)
                places[file.kind].append(place)
    def repeated(kind, key, limit=1):
        seen = {}
        for row, place in zip(content[kind], places[kind]):
            value = key(row)
            seen[value] = seen.get(value, 0) + 1
            if value is not None and seen[value] > limit:
                faults.add(place)
    repeated("P", lambda row: row["id"])
    repeated("P", lambda row: row["mail"])
    repeated("Q", lambda row: (row["a"], row["b"]))
    repeated("K", lambda row: (row["from"], row["to.a"], row["to.b"]))
    repeated("L", lambda row: row["from"], 2)
    people, others = {row["id"] for row in content["P"]}, {(row["a"], row["b"]) for row in content["Q"]}
    for kind in "KL":
        for row, place in zip(content[kind], places[kind]):
            if row["from"] not in people or (row["to"] not in people if kind == "L" else (row["to.a"], row["to.b"]) not in others):
                faults.add(place)
    return (None, min(faults)[2]) if faults else (content, None)


class Differential(ProgramTest):
    def text_of(self, dice, name, value):
        """A value as CSV text (None for nothing) and as JSON."""
        if value is None:
            return "", dice.choice(["null", None])
        if isinstance(value, bool):
            return str(value).lower(), str(value).lower()
        if isinstance(value, str) and name in ("mail", "a", "to.a", "day"):
            quoted = '"%s"' % value.replace('"', '""')
            plain = value and not set(value) & set(',"\n\r') and dice.random() < 0.6
            return value if plain else quoted, json.dumps(value, ensure_ascii=dice.random() < 0.5)
        return str(value), dice.choice(["%s", '"%s"']) % value

    def make_file(self, dice, kind, name, rows, spoil):
        columns = dice.sample(COLUMNS[kind], len(COLUMNS[kind]))
        end = dice.choice(["\n", "\n", "\r\n"])
        out = [] if name.endswith(".jsonl") else [",".join(columns) + end]
        for row in rows:
            while dice.random() < 0.1:
                out.append(end)
            texts = {n: self.text_of(dice, n, row[n]) for n in columns}
            if dice.random() < spoil:
                texts[dice.choice(columns)] = dice.choice([("x y", '"x y"'), ("", "null"), ("99999999999999999999", "99999999999999999999"), ("1.5", "1.5")])
            if not name.endswith(".jsonl"):
                out.append(",".join(texts[n][0] for n in columns) + (",surplus" if dice.random() < spoil / 3 else "") + end)
                continue
            dice.shuffle(columns)
            members = ['"%s": %s' % (n, texts[n][1]) for n in columns if texts[n][1] is not None]
            if kind == "K" and dice.random() < 0.5 and texts["to.a"][1] and texts["to.b"][1]:
                members = [m for m in members if not m.startswith('"to.')]
                members.append(dice.choice(['"to": {"b": %s, "a": %s}' % (texts["to.b"][1], texts["to.a"][1]),
                                            '"to": [%s, %s]' % (texts["to.a"][1], texts["to.b"][1])]))
            out.append("{" + ", ".join(members) + ("}" if dice.random() >= spoil / 3 else dice.choice(["", ",}", "} 1", ', "zz": 1}'])) + end)
        text = "".join(out)
        return File(kind, name, text.removesuffix(end) if dice.random() < 0.3 else text)

    def make_files(self, dice, spoil):
        people = dice.sample(range(-50, 300), 40)
        mails = ["m%d@é,\n\"x\"" % i for i in range(30)] + [None] * 10
        dice.shuffle(mails)
        rows = {"P": [{"id": i, "mail": mail, "ok": dice.random() < 0.5, "day": dice.choice([None, "2026-01-11", "2000-09-19"])}
                      for i, mail in zip(people, mails)],
                "Q": [{"a": a, "b": b} for a in ("", "a b", "z,\n\"") for b in (1, -2, 3)]}
        rows["K"] = [{"from": p, "to.a": q["a"], "to.b": q["b"], "w": dice.choice([None, 0.5, -3.0])} for p in people for q in rows["Q"] if dice.random() < 0.2]
        rows["L"] = [{"from": people[i % 40], "to": dice.choice(people), "n": i} for i in range(80)]
        if spoil and dice.random() < 0.7:   # a fault that only other records tell
            kind = dice.choice(["P", "Q", "K", "L"])
            again = dict(dice.choice(rows[kind]))
            again.update(dice.choice([{}, {"id": 7777}, {"from": 7777}]) if kind in "PKL" else {})
            rows[kind].insert(dice.randrange(len(rows[kind]) + 1), {n: again[n] for n in COLUMNS[kind]})
        files = []
        for kind, mine in rows.items():
            dice.shuffle(mine)
            cut = dice.randrange(len(mine) + 1)
            for number, part in enumerate([mine[:cut], mine[cut:]]):
                files.append(self.make_file(dice, kind, "%s%d.%s" % (kind, number, dice.choice(["csv", "jsonl"])), part, spoil))
        return files

    def run_load(self, dice, files, graph):
        for file in files:
            self.write(file.name, file.text)
        env = {"SLUICE_TEST_CHUNK": str(dice.choice([40, 300, 5000])), "SLUICE_TEST_RANGE": str(dice.choice([5, 1000])),
               "SLUICE_SPLIT": str(dice.choice([1, 13, 4096]))}
        self.done("init", graph, "--schema", "schema.json")
        return self.run_program("load", graph, *["%s=%s" % (file.kind, file.name) for file in files], "--workers", dice.choice("1237"), env=env)

    def stored(self, graph):
        """By type, with ends in columns as in the files."""
        content = {}
        for kind, columns in COLUMNS.items():
            rows = self.rows(kind, graph)
            for row in rows:
                if isinstance(row.get("to"), list):
                    row["to.a"], row["to.b"] = row.pop("to")
            content[kind] = sorted(json.dumps({n: row[n] for n in columns}) for row in rows)
        return content

    def test_random_files_load_as_the_reference_reads_them(self):
        self.write("schema.json", SCHEMA)
        rounds, outcomes = 120 if os.environ.get("SLUICE_LONG") else 8, [0, 0]
        for seed in range(rounds):
            dice = random.Random(seed)
            files = self.make_files(dice, dice.choice([0, 0, 0.01, 0.03]))
            for turn in range(2):
                dice.shuffle(files)
                want, least = judge(files)
                said = self.run_load(dice, files, "G%d-%d" % (seed, turn))
                outcomes[want is None] += 1
                if want is None:
                    self.assertEqual(said.code, 4, (seed, said.err))
                    self.assertTrue(said.err.split("sluice: ")[-1].startswith(least), (seed, least, said.err))
                else:
                    self.assertEqual(said.code, 0, (seed, said.err))
                    self.assertEqual(self.stored("G%d-%d" % (seed, turn)),
                                     {kind: sorted(json.dumps({n: row[n] for n in COLUMNS[kind]}) for row in rows) for kind, rows in want.items()})
        self.assertGreater(min(outcomes), rounds // 4)


if __name__ == "__main__":
    main()
