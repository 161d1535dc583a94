#!/usr/bin/env python3
"""Random histories of loads in all modes against a model of graphs in this file: after each load, scans, points, counts,
neighbours and exports say what the model says; a load that the model refuses changes nothing.

SLUICE_SEED repeats a history; SLUICE_LONG=1 plays many.
"""

import json
import os
import random
import shutil

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "u": "string?", "n": "int64?"}, "unique": [["u"]]},
                    "Q": {"key": ["a", "b"], "properties": {"a": "int64", "b": "string", "v": {"type": "string", "default": "d"}}},
                    "N": {"properties": {"t": "string"}}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {"w": "int64?"}, "key": []},
                    "R": {"from": "P", "to": "Q", "properties": {"k": "int64", "w": "int64?"}, "key": ["k"]},
                    "M": {"from": "Q", "to": "P", "properties": {"w": "int64?"}},
                    "L": {"from": "N", "to": "N", "properties": {}}}}
NODES = ("P", "Q", "N")
ENDS = {"K": ("P", "P"), "R": ("P", "Q"), "M": ("Q", "P"), "L": ("N", "N")}
KEYS = {"P": ("id",), "Q": ("a", "b"), "K": ("from", "to"), "R": ("from", "to", "k")}
REST = {"P": ("u", "n"), "Q": ("v",), "K": ("w",), "R": ("w",), "M": ("w",)}
TYPES = ("P", "Q", "N", "K", "R", "M", "L")


class Refused(Exception):
    pass


def freeze(value):
    return tuple(value) if isinstance(value, list) else value


class Graph:
    """The model. Rows are dicts; ends are keys (of Q a pair, of N the text of the row)."""

    def __init__(self):
        self.rows = {name: [] for name in TYPES}

    def copy(self):
        other = Graph()
        other.rows = {name: [dict(row) for row in rows] for name, rows in self.rows.items()}
        return other

    def key(self, name, row):
        return tuple(row[part] for part in KEYS[name])

    def load(self, mode, inputs):
        """`inputs`: type -> (columns, rows). Raises Refused and is then as before."""
        new = self.copy()
        for name, (columns, rows) in inputs.items():
            if mode == "overwrite":
                new.rows[name] = []
            if name in KEYS and mode == "upsert":  # the last row of a key counts
                rows = list({self.key(name, row): row for row in rows}.values())
            if name in KEYS and len({self.key(name, row) for row in rows}) < len(rows):
                raise Refused("twice")
            known = {self.key(name, row): row for row in new.rows[name]} if name in KEYS else {}
            for row in rows:
                there = known.get(self.key(name, row)) if name in KEYS else None
                if there is not None and mode == "insert":
                    raise Refused("there")
                if there is not None:
                    there.update({column: row[column] for column in columns if column in REST.get(name, ())})
                    if there.get("v", "") is None:
                        there["v"] = "d"
                else:
                    full = dict(row)
                    for column in REST.get(name, ()):
                        full[column] = row.get(column)
                        if column == "v" and full["v"] is None:
                            full["v"] = "d"
                    new.rows[name].append(full)
        new.check()
        self.rows = new.rows

    def check(self):
        texts = [row["u"] for row in self.rows["P"] if row["u"] is not None]
        if len(set(texts)) < len(texts):
            raise Refused("unique")
        for name, ends in ENDS.items():
            for end, node in zip(("from", "to"), ends):
                there = self.nodes(node)
                if any(row[end] not in there for row in self.rows[name]):
                    raise Refused("end")

    def nodes(self, name):
        if name == "N":
            return {row["t"] for row in self.rows["N"]}
        return {row["id"] for row in self.rows["P"]} if name == "P" else {(row["a"], row["b"]) for row in self.rows["Q"]}

    def neighbours(self, name, key, edge, direction, depth):
        """(type, key) -> depth, breadth first."""
        found, frontier = {(name, key): 0}, [(name, key)]
        for step in range(1, depth + 1):
            reached = []
            for kind, ends in ENDS.items():
                if edge not in (None, kind):
                    continue
                for row in self.rows[kind]:
                    start, end = (ends[0], row["from"]), (ends[1], row["to"])
                    if direction in ("out", "both") and start in frontier:
                        reached.append(end)
                    if direction in ("in", "both") and end in frontier:
                        reached.append(start)
            frontier = []
            for node in reached:
                if node not in found:
                    found[node] = step
                    frontier.append(node)
        del found[(name, key)]
        return found


class History:
    """One graph beside its model."""

    def __init__(self, case, seed, graph):
        self.case, self.dice, self.graph, self.model, self.serial = case, random.Random(seed), graph, Graph(), 0
        case.done("init", graph, "--schema", "schema.json")

    # ---- making a load ----

    def some_rows(self, name, mode):
        dice, model = self.dice, self.model
        count = dice.choice((0, 1, 3, 12, 40))
        if name == "P":
            rows = [{"id": dice.randrange(60), "u": dice.choice((None, "u%d" % dice.randrange(90))), "n": dice.choice((None, dice.randrange(5)))}
                    for _ in range(count)]
        elif name == "Q":
            rows = [{"a": dice.randrange(6), "b": dice.choice(("x", "y,", "", "\"z\"")), "v": dice.choice((None, "v%d" % dice.randrange(3)))}
                    for _ in range(count)]
        elif name == "N":
            rows = []
            for _ in range(count):
                self.serial += 1
                rows.append({"t": "t%d" % self.serial})
            return ("t",), rows
        else:
            starts, ends = (sorted(model.nodes(node)) for node in ENDS[name])
            rows = [{"from": dice.choice(starts), "to": dice.choice(ends), "k": dice.randrange(2), "w": dice.choice((None, dice.randrange(9)))}
                    for _ in range(count)] if starts and ends else []
            for row in rows:
                if name != "R":
                    del row["k"]
                if name == "L":
                    del row["w"]
        if name in KEYS and dice.random() < (0.5 if mode == "upsert" else 0.9):  # mostly each key once
            rows = list({model.key(name, row): row for row in rows}.values())
        columns = [part for part in (rows[0] if rows else dict.fromkeys(KEYS.get(name, ("from", "to")))) if part not in REST.get(name, ())]
        columns += [part for part in REST.get(name, ()) if mode == "insert" or dice.random() < 0.6]
        dice.shuffle(columns)
        return tuple(columns), [{column: row.get(column) for column in columns} for row in rows]

    def text(self, value):
        return "" if value is None else '"%s"' % value.replace('"', '""') if isinstance(value, str) else str(value)

    def write(self, name, columns, rows, ids):
        """As CSV or JSON Lines; ends by their keys, of N by their row ids."""
        kind = self.dice.choice(("csv", "jsonl"))
        ends = ENDS.get(name, ())
        lines = []
        names = []
        for column in columns:
            if ends and column in ("from", "to") and ends[column == "to"] == "Q":
                names += [column + ".a", column + ".b"]
            else:
                names.append(column)
        if kind == "csv":
            lines.append(",".join(names))
        for row in rows:
            flat = []
            for column in columns:
                value = row[column]
                if ends and column in ("from", "to") and ends[column == "to"] == "Q":
                    flat += list(value)
                elif ends and column in ("from", "to") and ends[column == "to"] == "N":
                    flat.append(ids[value])
                else:
                    flat.append(value)
            lines.append(",".join(self.text(value) for value in flat) if kind == "csv" else
                         json.dumps({n: v for n, v in zip(names, flat) if not (n == "v" and v is None)}))
        return self.case.write("%s.%s" % (name, kind), "".join(line + "\n" for line in lines))

    def step(self):
        mode = self.dice.choice(("insert", "insert", "upsert", "upsert", "upsert", "overwrite"))
        allowed = [name for name in TYPES if mode != "upsert" or name in KEYS]
        names = self.dice.sample(allowed, self.dice.choice((1, 1, 2, 3)))
        inputs = {name: self.some_rows(name, mode) for name in names}
        if mode == "upsert":  # a JSON line without "v" keeps it, a CSV field that is empty is the default: the model has the latter
            for columns, rows in inputs.values():
                for row in rows:
                    if "v" in columns and row["v"] is None:
                        row["v"] = "d"
        words = []
        for name in names:
            columns, rows = inputs[name]
            words.append("%s=%s" % (name, self.write(name, columns, rows, self.ids)))
        before = self.model.copy()
        try:
            self.model.load(mode, inputs)
            code = 0
        except Refused:
            self.model = before
            code = 4
        result = self.case.run_program("load", self.graph, *words, "--mode", mode, "--json", "--workers", self.dice.choice("12"),
                                       env={"SLUICE_SPLIT": self.dice.choice(("7", "100", "100000"))})
        self.case.assertEqual(result.code, code, (words, mode, result.out, result.err))
        return mode, names

    # ---- looking ----

    def rows_of_export(self):
        folder = "out-" + self.graph
        self.case.done("export", self.graph, folder, "--format", "jsonl")
        rows = {name: [json.loads(line) for line in self.case.read("%s/%s.jsonl" % (folder, name)).splitlines()] for name in TYPES}
        shutil.rmtree(self.case.path(folder))
        return rows

    def look(self, where):
        case, dice, model = self.case, self.dice, self.model
        rows = self.rows_of_export()
        self.ids = {row["t"]: row["_row_id"] for row in rows["N"]}
        texts = {row["_row_id"]: row["t"] for row in rows["N"]}
        for name in TYPES:
            seen = []
            for row in rows[name]:
                row.pop("_row_id", None)
                for end, node in zip(("from", "to"), ENDS.get(name, ())):
                    # a key of several members is an object or a list of them, a row id a number
                    value = row[end]
                    value = tuple(value.values()) if isinstance(value, dict) else freeze(value)
                    row[end] = texts[int(value)] if node == "N" else value
                seen.append(json.dumps(row, sort_keys=True))
            wanted = [json.dumps(row, sort_keys=True) for row in model.rows[name]]
            case.assertEqual(sorted(seen), sorted(wanted), (where, name))
        case.assertEqual(case.done("count", self.graph, "--json").document, {name: len(model.rows[name]) for name in TYPES}, where)
        name = dice.choice(("P", "Q"))
        scanned = case.rows(name, self.graph)
        case.assertEqual(sorted(json.dumps(row, sort_keys=True) for row in scanned),
                         sorted(json.dumps(row, sort_keys=True) for row in model.rows[name]), where)
        self.look_at_points(where)

    def word(self, name, key):
        if name == "N":
            return str(self.ids[key])
        return str(key) if name == "P" else json.dumps([str(part) for part in key])

    def look_at_points(self, where):
        case, dice, model = self.case, self.dice, self.model
        for name in NODES:
            keys = sorted(model.nodes(name))
            if not keys:
                continue
            some = dice.sample(keys, min(2, len(keys)))
            got = case.done("get", self.graph, name, "--json", "--", *(self.word(name, key) for key in some)).lines
            for row in got:
                row.pop("_row_id", None)
            wanted = [next(row for row in model.rows[name] if key == (row["id"] if name == "P" else row["t"] if name == "N" else (row["a"], row["b"])))
                      for key in some]
            case.assertEqual(got, wanted, where)
            edge, direction, depth = dice.choice((None,) + tuple(ENDS)), dice.choice(("out", "in", "both")), dice.choice((1, 2, 5))
            said = case.done("neighbors", self.graph, name, self.word(name, some[0]), "--direction", direction, "--depth", str(depth), "--json",
                             *(("--edge", edge) if edge else ())).lines
            back = {number: text for text, number in self.ids.items()}
            found = {}
            for line in said:
                key = freeze(line["key"])
                found[(line["type"], back[int(key)] if line["type"] == "N" else key)] = line["depth"]
            case.assertEqual(len(found), len(said), where)
            case.assertEqual(found, model.neighbours(name, some[0], edge, direction, depth), (where, name, some[0], edge, direction, depth))

    def play(self, steps):
        self.ids = {}
        for number in range(steps):
            where = (self.graph, number) + self.step()
            if self.dice.random() < 0.2:  # changes nothing that can be seen
                where += (self.dice.choice(("optimize", "index")),)
                self.case.done(where[-1], self.graph)
            self.look(where)
        self.case.clean(self.graph)


class Model(ProgramTest):
    def test_histories_agree_with_the_model(self):
        self.write("schema.json", SCHEMA)
        seeds = range(1, 40) if os.environ.get("SLUICE_LONG") else (1, 20261201)
        if os.environ.get("SLUICE_SEED"):
            seeds = (int(os.environ["SLUICE_SEED"]),)
        for seed in seeds:
            print("SLUICE_SEED=%d" % seed, flush=True)
            History(self, seed, "G%d" % seed).play(14)
            shutil.rmtree(self.path("G%d" % seed))


if __name__ == "__main__":
    main()
