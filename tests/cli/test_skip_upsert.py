#!/usr/bin/env python3
"""Upserts that skip bad rows: against a small model, at any cut and worker count and after deaths; what is left out is as if its rows
were not in the files."""

import json
import os
import random
import shutil
import signal

from support.program import ProgramTest, main, some

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "n": "string?", "a": "int32", "b": "int32?"},
                          "unique": [["n"], ["a", "b"]]}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {"y": "int32", "w": "int32?", "u": "int32?"}, "key": ["y"],
                          "unique": [["u"]], "cardinality": {"out": "0..3", "in": "0..4"}}}}
PROPERTIES = {"P": ("id", "n", "a", "b"), "K": ("from", "to", "y", "w", "u")}
KEYS = {"P": ("id",), "K": ("from", "to", "y")}
UNIQUES = {"P": (("n",), ("a", "b")), "K": (("u",),)}
NEEDED = {"P": ("a",), "K": ()}
BAD = {"P": {"id": "bad", "a": 1}, "K": {"from": 1, "to": "bad", "y": 1}}
LIMITS = (("from", 3), ("to", 4))
SKIP = ("--mode", "upsert", "--on-error", "skip")
SMALL = {"SLUICE_SPLIT": "3", "SLUICE_TEST_CHUNK": "300", "SLUICE_TEST_RANGE": "7", "SLUICE_TEST_SLICE": "3", "SLUICE_TEST_SPILL": "5"}


def key_of(name, row):
    return tuple(row[member] for member in KEYS[name])


def tuple_of(row, unique):
    values = tuple(row.get(member) for member in unique)
    return None if None in values else values


class Model:
    """base: type -> key -> row. rows: (file, line, type, values or None where the row is bad by itself), in order of the input."""

    def __init__(self, base, rows):
        self.base, self.rows = base, rows
        self.codes = {i: "CONSTRAINT_TYPE" for i, row in enumerate(rows) if row[3] is None}
        self.counting = {}
        self.passed = {}
        for name in ("P", "K"):
            self.choose(name)
        self.whole = {i: {**dict.fromkeys(PROPERTIES[rows[i][2]]), **self.old(i), **rows[i][3]} for i in self.counting.values()}
        self.settle()
        self.check_ends()
        self.check_counts()
        for i, by in self.passed.items():
            if by in self.codes:
                self.codes[i] = "KEY_CONFLICT"

    def old(self, i):
        name = self.rows[i][2]
        return self.base[name].get(key_of(name, self.rows[i][3]), {})

    def alive(self, name=None):
        return [i for i in sorted(self.counting.values()) if i not in self.codes and name in (None, self.rows[i][2])]

    def choose(self, name):
        by_key = {}
        for i, (_, _, type_name, values) in enumerate(self.rows):
            if type_name == name and values is not None:
                by_key.setdefault(key_of(name, values), []).append(i)
        for key, group in by_key.items():
            strong = [i for i in group if key in self.base[name] or all(self.rows[i][3].get(p) is not None for p in NEEDED[name])]
            if strong:
                self.counting[name, key] = strong[-1]
            for i in group:
                if strong and i < strong[-1]:
                    self.passed[i] = strong[-1]
                elif i not in strong:
                    self.codes[i] = "CONSTRAINT_NULL"

    def changes(self, i, unique):
        return not self.old(i) or [self.old(i)[p] for p in unique] != [self.whole[i][p] for p in unique]

    def settle(self):
        while True:
            fallen = set()
            for name, uniques in UNIQUES.items():
                for unique in uniques:
                    fallen |= self.collide(name, unique)
            if not fallen:
                return
            self.codes.update(dict.fromkeys(fallen, "CONSTRAINT_UNIQUE"))

    def collide(self, name, unique):
        movers = [i for i in self.alive(name) if self.changes(i, unique)]
        gone = {key_of(name, self.rows[i][3]) for i in movers}
        held = {tuple_of(row, unique) for key, row in self.base[name].items() if key not in gone} - {None}
        fallen = set()
        for i in movers:
            value = tuple_of(self.whole[i], unique)
            if value in held:
                fallen.add(i)
            elif value is not None:
                held.add(value)
        return fallen

    def new_edges(self):
        return [i for i in self.alive("K") if not self.old(i)]

    def check_ends(self):
        nodes = {key[0] for key in self.base["P"]} | {self.whole[i]["id"] for i in self.alive("P")}
        for i in self.new_edges():
            if {self.whole[i]["from"], self.whole[i]["to"]} - nodes:
                self.codes[i] = "CONSTRAINT_ENDPOINT"

    def check_counts(self):
        fallen = set()
        for end, limit in LIMITS:
            counts = {}
            for row in self.base["K"].values():
                counts[row[end]] = counts.get(row[end], 0) + 1
            for i in self.new_edges():
                counts[self.whole[i][end]] = counts.get(self.whole[i][end], 0) + 1
                if counts[self.whole[i][end]] > limit:
                    fallen.add(i)
        self.codes.update(dict.fromkeys(fallen, "CONSTRAINT_CARDINALITY"))

    def rejects(self):
        return [(self.rows[i][0], self.rows[i][1], self.codes[i]) for i in sorted(self.codes)]

    def content(self):
        after = {name: dict(rows) for name, rows in self.base.items()}
        for i in self.alive():
            after[self.rows[i][2]][key_of(self.rows[i][2], self.rows[i][3])] = self.whole[i]
        return after


def random_row(dice, name, keys):
    if name == "P":
        row = {"id": dice.randrange(keys)}
        if dice.random() < 0.7:
            row["n"] = dice.choice((None, "n%d" % dice.randrange(keys)))
        if dice.random() < 0.6:
            row["a"] = dice.randrange(3)
        if dice.random() < 0.6:
            row["b"] = dice.choice((None, dice.randrange(6)))
        return row
    row = {"from": dice.randrange(keys), "to": dice.randrange(keys), "y": dice.randrange(2)}
    if dice.random() < 0.7:
        row["w"] = dice.randrange(9)
    if dice.random() < 0.5:
        row["u"] = dice.choice((None, dice.randrange(keys)))
    return row


class SkipUpsert(ProgramTest):
    def setUp(self):
        super().setUp()
        self.failpoints = self.done("version", "--json").document["build"]["failpoints"]
        if not self.failpoints:
            self.skipTest("a build without failpoints")
        self.write("schema.json", SCHEMA)
        self.hashes = {}  # the environment in which all runs of the graph are made

    def put_rows(self, name, rows):
        self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def base(self, rows, graph="G", env=None):
        """A graph of these rows, and what the model needs to know of it."""
        shutil.rmtree(self.path(graph), ignore_errors=True)
        self.done("init", graph, "--schema", "schema.json")
        words = []
        for name in ("P", "K"):
            self.put_rows("base-%s.jsonl" % name, rows.get(name, []))
            words.append("%s=base-%s.jsonl" % (name, name))
        self.done("load", graph, *words, "--on-error", "skip", "--rejects", "base-bad.jsonl", env=env)
        return self.state(graph)

    def state(self, graph="G"):
        shutil.rmtree(self.path("out"), ignore_errors=True)
        self.done("export", graph, "out", "--format", "jsonl", env=self.hashes)
        return {name: {key_of(name, row): row for row in map(json.loads, self.read("out/%s.jsonl" % name).splitlines())} for name in ("P", "K")}

    def put_files(self, files, left_out=()):
        """files: (name, type, rows; None stands for a bad one). Returns the rows for the model, and the words."""
        rows, words = [], []
        for name, type_name, values in files:
            lines = []
            for number, row in enumerate(values, 1):
                if (name, number) in left_out:
                    continue
                rows.append((name, number, type_name, row))
                lines.append(json.dumps(BAD[type_name] if row is None else row))
            self.write(name, "".join(line + "\n" for line in lines))
            words.append("%s=%s" % (type_name, name))
        return rows, words

    def check(self, files, base, env, *more):
        rows, words = self.put_files(files)
        model = Model(base, rows)
        result = self.done("load", "G", *words, *SKIP, "--rejects", "bad.jsonl", "--json", *more, env=env).document
        rejects = [json.loads(line) for line in self.read("bad.jsonl").splitlines()]
        self.assertEqual([(r["file"], r["line"], r["code"]) for r in rejects], model.rejects())
        self.assertEqual(result["rejected"], len(model.rejects()))
        self.assertEqual(self.state(), model.content())
        return model, [r["message"] for r in rejects]

    def check_remainder(self, files, model, graph):
        """The same files without what was named load without a fault, and give the same."""
        _, words = self.put_files(files, {reject[:2] for reject in model.rejects()})
        self.done("load", graph, *words, "--mode", "upsert", env=self.hashes)
        self.assertEqual(self.state(graph), model.content())

    def test_random_files_come_to_what_the_model_says(self):
        dice = random.Random(int(os.environ.get("SLUICE_SEED", "3")))
        for _ in some(range(60 if os.environ.get("SLUICE_LONG") else 4), 2):
            keys = dice.choice((6, 25, 60))
            # the base is loaded with skipping, too
            wanted = {name: [random_row(dice, name, keys) for _ in range(keys)] for name in ("P", "K")}
            files = [(name, name[0].upper(), [random_row(dice, name[0].upper(), keys) if dice.random() < 0.95 else None
                                              for _ in range(dice.randrange(2 * keys))]) for name in ("p1.jsonl", "k1.jsonl", "p2.jsonl", "k2.jsonl")]
            said = None
            for workers, env in (("1", {}), ("3", SMALL)):
                self.hashes = dice.choice(({}, {"SLUICE_TEST_EQUAL_HASHES": "1"})) if env else {}
                env = {**env, **self.hashes}
                base = self.base(wanted, env=env)
                shutil.copytree(self.path("G"), self.path("again"))
                model, messages = self.check(files, base, env, "--workers", workers, *dice.choice(((), ("--compress",))))
                said = said or messages
                self.assertEqual(messages, said)
                self.clean("G")
                self.check_remainder(files, model, "again")
                shutil.rmtree(self.path("again"))

    def test_a_value_that_comes_back_moves_through_a_long_row_of_updates(self):
        """Everybody takes the next one's value; the last one may not have what it wants. And in a ring everybody may."""
        count = 400
        people = [{"id": i, "a": i, "n": "n%d" % i} for i in range(count)]
        base = self.base({"P": people})
        moved = [{"id": i, "n": "n%d" % (i + 1)} for i in range(count - 1)]
        model, messages = self.check([("p.jsonl", "P", moved)], base, {})
        self.assertEqual(len(messages), count - 1)
        self.assertIn('column n: the unique value "n1" exists already in type P', messages[0])
        self.assertEqual(self.done("count", "G", "P", "--json").document, {"P": count})
        self.check([("p.jsonl", "P", moved + [{"id": count - 1, "n": "n0"}])], base, {})
        self.assertEqual({row["n"] for row in self.rows("P")}, {"n%d" % i for i in range(count)})
        self.assertEqual([row["n"] for row in self.rows("P") if row["id"] == 7], ["n8"])

    def test_of_rows_with_one_key_the_last_good_one_counts(self):
        base = self.base({"P": [{"id": 1, "a": 1, "n": "one"}, {"id": 2, "a": 2, "n": "two"}]})
        model, messages = self.check([("p.jsonl", "P", [
            {"id": 1, "n": "eins"}, None,                      # bad by itself: as if it were not there (the key is not even known)
            {"id": 3, "a": 3}, {"id": 3, "n": "drei"},         # a new key must have a: so the row before counts
            {"id": 4, "n": "vier"}, {"id": 4, "a": 4},         # and a row that cannot stand may be passed over
            {"id": 2, "n": "zwei"}, {"id": 2, "n": "drei"}, {"id": 2, "n": "eins"},  # falls by what it says at last, with all before it
        ])], base, {})
        self.assertEqual(model.rejects(), [("p.jsonl", 2, "CONSTRAINT_TYPE"), ("p.jsonl", 4, "CONSTRAINT_NULL"), ("p.jsonl", 7, "KEY_CONFLICT"),
                                           ("p.jsonl", 8, "KEY_CONFLICT"), ("p.jsonl", 9, "CONSTRAINT_UNIQUE")])
        self.assertEqual(messages[2], 'column id: the key "2" is again on line 9, and that row, which counts, is left out')
        self.assertEqual(messages[1], "column a: the key is new, and there is no value for this column, which may not be null")
        self.assertEqual({row["id"]: row["n"] for row in self.rows("P")}, {1: "eins", 2: "two", 3: None, 4: None})

    def test_a_refused_edge_leaves_the_old_one_as_it_is(self):
        base = self.base({"P": [{"id": i, "a": i} for i in range(9)],
                          "K": [{"from": 0, "to": i, "y": 0, "u": i} for i in (1, 2)]})
        model, _ = self.check([("k.jsonl", "K", [
            {"from": 0, "to": 1, "y": 0, "u": 2, "w": 1},  # 2 is not free, for the next line falls
            {"from": 0, "to": 2, "y": 0, "u": 7},          # 7 is the line's before that
            {"from": 0, "to": 3, "y": 0}, {"from": 0, "to": 4, "y": 0}, {"from": 0, "to": 3, "y": 0, "w": 4}]), ("k2.jsonl", "K", [{"from": 0, "to": 77, "y": 0}, {"from": 0, "to": 1, "y": 0, "w": 5}])], base, {})
        self.assertEqual(model.rejects(), [("k.jsonl", 3, "KEY_CONFLICT"), ("k.jsonl", 5, "CONSTRAINT_CARDINALITY"), ("k2.jsonl", 1, "CONSTRAINT_ENDPOINT")])
        edges = {(row["to"]): (row["u"], row["w"]) for row in self.rows("K")}
        self.assertEqual(edges, {1: (1, 5), 2: (7, None), 4: (None, None)})

    def test_a_completed_tuple_that_is_too_long_is_left_out(self):
        self.write("schema.json", {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "s": "string?", "t": "string?"}, "unique": [["s", "t"]]}}})
        self.done("init", "G", "--schema", "schema.json")
        self.write("p.csv", "id,s\n1,%s\n2,b\n" % ("x" * 900))
        self.done("load", "G", "P=p.csv")
        self.write("q.csv", "id,t\n2,%s\n1,%s\n1,y\n1,%s\n" % (("y" * 900,) * 3))
        said = self.done("load", "G", "P=q.csv", *SKIP, "--rejects", "bad.jsonl", "--json").document
        self.assertEqual((said["rejected"], said["updated"]), (1, 2))
        reject = json.loads(self.read("bad.jsonl"))
        self.assertEqual((reject["line"], reject["code"]), (5, "RESOURCE_LIMIT"))
        self.assertEqual({row["id"]: row["t"] for row in self.rows("P")}, {1: "y", 2: "y" * 900})

    def ordinary(self):
        if os.path.exists(self.path("template")):
            shutil.rmtree(self.path("G"))
            shutil.copytree(self.path("template"), self.path("G"))
            return self.prepared
        base = self.base({"P": [{"id": i, "a": i, "n": "n%d" % i} for i in range(12)], "K": [{"from": i, "to": 0, "y": 0, "u": i} for i in range(3)]})
        files = [("p.jsonl", "P", [{"id": i, "n": "n%d" % (i + 1)} for i in range(5)] + [None, {"id": 20, "n": "q"}, {"id": 21, "a": 1},
                                                                                         {"id": 21, "n": "n7"}, {"id": 22, "a": 0, "n": "q"}]),
                 ("k.jsonl", "K", [{"from": 0, "to": 21, "y": 1}, {"from": 1, "to": 0, "y": 0, "u": 2}, {"from": 2, "to": 0, "y": 0, "u": 3},
                                   {"from": 5, "to": 30, "y": 0}, {"from": 6, "to": 20, "y": 0}])]
        shutil.copytree(self.path("G"), self.path("template"))  # nobody has it open
        rows, words = self.put_files(files)
        self.prepared = Model(base, rows), ("load", "G", *words, *SKIP, "--rejects", "bad.jsonl", "--json")
        return self.prepared

    def check_outcome(self, model, result, where):
        self.assertEqual(result["rejected"], len(model.rejects()), where)
        self.assertEqual([(r["file"], r["line"], r["code"]) for r in map(json.loads, self.read("bad.jsonl").splitlines())], model.rejects(), where)
        self.assertEqual(self.state(), model.content(), where)
        self.clean("G")

    def test_a_dry_run_a_repetition_and_a_ceiling(self):
        model, words = self.ordinary()
        before = self.state()
        result = self.done(*words, "--dry-run").document
        self.assertIsNone(result["commit"])
        self.assertEqual((self.state(), result["rejected"]), (before, len(model.rejects())))
        self.write("bad.jsonl", "kept\n")
        few = len(model.rejects()) - 1
        said = self.refused(4, *words, "--max-errors", str(few), env=SMALL)
        self.assertIn("--max-errors allows %d" % few, said.err)
        self.assertEqual((self.read("bad.jsonl"), self.state()), ("kept\n", before))
        operation = "0193a1b2-0000-7000-8000-000000000001"
        first = self.done(*words, "--op-id", operation, "--max-errors", str(few + 1)).document
        self.check_outcome(model, first, "first")
        self.write("later.jsonl", '{"id": 21, "n": "else", "a": 1}\n')
        self.done("load", "G", "P=later.jsonl", "--mode", "upsert")
        self.write("bad.jsonl", "")
        again = self.done(*words, "--op-id", operation, "--max-errors", str(few + 1), env=SMALL).document
        self.assertEqual([again[k] for k in ("commit", "rows", "rejected")], [first[k] for k in ("commit", "rows", "rejected")])
        self.assertEqual(len(self.read("bad.jsonl").splitlines()), few + 1)
        self.assertEqual(os.listdir(self.path("G/attempts")), [])

    def test_the_death_of_a_worker_or_of_the_conductor_changes_nothing(self):
        points = ["worker.after_take=kill@2", "worker.after_take=kill@40"] + ["load.after_task_result=kill@%d" % n for n in (9, 14, 31)] + \
                 ["load.before_key_check=kill", "load.after_rejects=kill", "load.after_edits=kill", "arm.after=kill"]
        for point in some(points, 3):
            model, words = self.ordinary()
            self.check_outcome(model, self.done(*words, "--workers", "2", env={"SLUICE_FAILPOINT": point, **SMALL}).document, point)
            self.assertEqual(os.listdir(self.path("G/attempts")), [], point)

    def test_the_death_of_the_pool_leaves_the_old_state_or_the_new(self):
        for point in some(("load.after_task_result=killpool@9", "load.after_edits=killpool", "arm.after=killpool",
                           "publish.after_mark=killpool"), 2):
            model, words = self.ordinary()
            self.assertEqual(self.run_program(*words, env={"SLUICE_FAILPOINT": point, **SMALL}).code, -signal.SIGKILL)
            result = self.done(*words, env=SMALL).document
            if "arm" in point or "publish" in point:  # the first one was published; what is refused is judged by what it left
                self.assertIn(self.state(), (model.content(), Model(model.content(), model.rows).content()))
            else:
                self.check_outcome(model, result, point)
            self.done("gc", "G")
            self.assertEqual(os.listdir(self.path("G/attempts")), [], point)
            self.clean("G")


if __name__ == "__main__":
    main()
