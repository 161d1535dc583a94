#!/usr/bin/env python3
"""The commands of the main path on real files: what they print, in which form, with which exit status."""

import json
import os
import re
import time
import uuid

from support.program import ProgramTest, main

SCHEMA = {
    "nodes": {"Person": {"key": "id",
                         "properties": {"id": "int64", "name": "string", "email": "string?", "age": "int32?",
                                        "joined": "timestamp?", "born": "date?", "score": "float64?", "ok": "bool?",
                                        "raw": "bytes?", "big": "uint64?"},
                         "unique": [["email"]],
                         "checks": {"age": {"min": 0, "max": 150}, "name": {"max_length": 20}}},
              "Note": {"properties": {"text": "string?"}},
              "Place": {"key": ["country", "city"], "properties": {"country": "string", "city": "string", "size": "int32?"}}},
    "edges": {"KNOWS": {"from": "Person", "to": "Person", "properties": {"since": "date?", "weight": "float64?"}, "key": []},
              "LIVES_IN": {"from": "Person", "to": "Place", "properties": {}},
              "SAID": {"from": "Person", "to": "Note", "properties": {}}}}

PEOPLE = ("id,name,email,age,joined,born,score,ok,raw,big\n"
          "1,Ada,ada@x,36,2026-01-31T12:34:56Z,1815-12-10,1.5,true,AAEC,18446744073709551615\n"
          '2,"Bob, ""B""\n",,,,,,,,\n'
          '-3,"",,0,2026-01-31T12:34:56.000001+01:00,0001-01-01,NaN,false,"",0\n'
          "9223372036854775807,Zoë,zoe@x,150,,,-Infinity,,,\n")
KNOWS = "from,to,since,weight\n1,2,2020-02-29,0.5\n2,1,,\n1,-3,,1e300\n"
PLACES = "country,city,size\nNO,Oslo,7\nDE,\"a,b\",\n"
LIVES = "from,to.country,to.city\n1,NO,Oslo\n2,DE,\"a,b\"\n"
NOTES = "_row_id,text\n10,hello\n11,\n12,\"\"\n"

UUID = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")


def new_operation():
    """A UUIDv7 of now."""
    value = int(time.time() * 1000) << 80 | uuid.uuid4().int & (1 << 80) - 1
    return str(uuid.UUID(int=value & ~(0xF << 76) & ~(3 << 62) | 7 << 76 | 2 << 62))


class Spine(ProgramTest):
    def fill(self, graph="G"):
        self.init(SCHEMA, graph)
        for name, text in (("people", PEOPLE), ("knows", KNOWS), ("places", PLACES), ("lives", LIVES), ("notes", NOTES)):
            self.write(name + ".csv", text)
        return self.load("Person=people.csv", "KNOWS=knows.csv", "Place=places.csv", "LIVES_IN=lives.csv", "Note=notes.csv",
                         graph=graph)

    def test_init_prints_path_and_id_and_will_not_do_it_twice(self):
        self.write("schema.json", SCHEMA)
        made = self.done("init", "G", "--schema", "schema.json", "--json").document
        self.assertEqual(made["path"], "G")
        self.assertRegex(made["graph_id"], UUID)
        self.assertEqual(os.stat(self.path("G")).st_mode & 0o777, 0o700)
        again = self.refused(8, "init", "G", "--schema", "schema.json", "--json")
        self.assertEqual(again.error["code"], "ALREADY_EXISTS")
        self.assertEqual(self.done("count", "G", "Person").out, "0\n")
        self.clean()

    def test_init_refuses_a_schema_that_is_wrong(self):
        self.write("bad.json", '{"nodes": {"P": {"key": "id", "properties": {"id": "int65"}}}}')
        said = self.refused(4, "init", "G", "--schema", "bad.json", "--json")
        self.assertIn("bad.json", said.err)
        self.assertEqual(said.error["code"], "INPUT_SYNTAX")
        self.assertFalse(os.path.exists(self.path("G")))
        self.refused(2, "init", "G", "--schema", "absent.json")
        self.refused(2, "init", "G")

    def test_load_prints_commit_rows_and_time(self):
        result = self.fill()
        self.assertRegex(result["commit"]["id"], UUID)
        self.assertEqual(result["commit"]["generation"], 2)
        self.assertEqual(result["commit"]["branch"], "main")
        self.assertEqual(result["rows"], {"Person": 4, "Note": 3, "Place": 2, "KNOWS": 3, "LIVES_IN": 2})
        self.assertEqual(result["rejected"], 0)
        self.assertGreaterEqual(result["seconds"], 0)
        self.clean()

    def test_scan_gives_typed_values(self):
        self.fill()
        rows = {row["id"]: row for row in self.rows("Person")}
        self.assertEqual(rows[1], {"id": 1, "name": "Ada", "email": "ada@x", "age": 36, "joined": rows[1]["joined"],
                                   "born": "1815-12-10", "score": 1.5, "ok": True, "raw": "AAEC",
                                   "big": 18446744073709551615})
        self.assertTrue(rows[1]["joined"].startswith("2026-01-31T12:34:56"))
        self.assertEqual(rows[2]["name"], 'Bob, "B"\n')
        self.assertIsNone(rows[2]["email"])
        self.assertEqual(rows[-3]["name"], "")
        self.assertEqual(rows[-3]["raw"], "")
        self.assertEqual(rows[-3]["score"], "NaN")
        self.assertTrue(rows[-3]["joined"].startswith("2026-01-31T11:34:56.000001"))
        self.assertEqual(rows[9223372036854775807]["name"], "Zoë")
        self.assertEqual([row["from"] for row in self.rows("KNOWS")], [1, 2, 1])
        self.assertEqual(self.rows("LIVES_IN")[1]["to"], ["DE", "a,b"])

    def test_scan_chooses_columns_rows_order_and_format(self):
        self.fill()
        self.assertEqual(self.done("scan", "G", "Person", "--columns", "name,id", "--where", "id > 1 and email != null",
                                   "--format=csv").out, "name,id\nZoë,9223372036854775807\n")
        self.assertEqual([r["id"] for r in self.rows("Person", "G", "--order-by", "key")], [-3, 1, 2, 9223372036854775807])
        self.assertEqual([r["id"] for r in self.rows("Person", "G", "--order-by", "key", "--limit", "2")], [-3, 1])
        self.assertEqual(len(self.rows("Person", "G", "--limit", "3")), 3)
        self.assertEqual(self.rows("Person", "G", "--limit", "0"), [])
        table = self.done("scan", "G", "Place").out
        self.assertEqual(table, "country  city  size\nNO       Oslo     7\nDE       a,b   null\n")
        self.assertEqual(len(self.rows("Note")), 3)
        self.assertEqual(set(self.rows("Note")[0]), {"_row_id", "text"})
        self.assertEqual(self.refused(2, "scan", "G", "Person", "--columns", "nam").code, 2)
        self.refused(2, "scan", "G", "Person", "--where", "name ~ 1")
        said = self.refused(2, "scan", "G", "Persn")
        self.assertIn("Person", said.err)

    def test_count_prints_a_number_or_one_per_type(self):
        self.fill()
        self.assertEqual(self.done("count", "G", "Person").out, "4\n")
        self.assertEqual(self.done("count", "G", "Person", "--json").document, {"Person": 4})
        self.assertEqual(self.done("count", "G", "--json").document,
                         {"Person": 4, "Note": 3, "Place": 2, "KNOWS": 3, "LIVES_IN": 2, "SAID": 0})
        self.assertIn("Person", self.done("count", "G").out)

    def test_get_prints_objects_and_ends_with_8_when_none_is_there(self):
        self.fill()
        found = self.done("get", "G", "Person", "1", "77", "-3", "--json")
        self.assertEqual([row["id"] for row in found.lines], [1, -3])
        self.assertIn("77", found.err)
        self.assertEqual(self.done("get", "G", "Place", '["DE", "a,b"]', "NO,Oslo", "--json").lines,
                         [{"country": "DE", "city": "a,b", "size": None}, {"country": "NO", "city": "Oslo", "size": 7}])
        self.assertIn("name: \"Ada\"", self.done("get", "G", "Person", "1").out)
        self.assertEqual(self.refused(8, "get", "G", "Person", "77", "--json").error["code"], "NOT_FOUND")
        self.refused(2, "get", "G", "Person", "x")
        self.refused(2, "get", "G", "KNOWS", "1")
        row_id = self.rows("Note")[0]["_row_id"]
        self.assertEqual(self.done("get", "G", "Note", str(row_id), "--json").lines, [{"_row_id": row_id, "text": "hello"}])

    def test_neighbors_are_reached_over_edges(self):
        self.fill()
        self.assertEqual(sorted(self.done("neighbors", "G", "Person", "2", "--edge", "KNOWS", "--json").lines,
                                key=str), [{"type": "Person", "key": 1, "depth": 1}])
        reached = self.done("neighbors", "G", "Person", "2", "--depth", "2", "--json").lines
        self.assertIn({"type": "Place", "key": ["DE", "a,b"], "depth": 1}, reached)
        self.assertIn({"type": "Person", "key": -3, "depth": 2}, reached)
        self.assertNotIn({"type": "Person", "key": 2, "depth": 2}, reached)
        self.assertEqual([r["key"] for r in self.done("neighbors", "G", "Place", "NO,Oslo", "--direction", "in", "--json").lines],
                         [1])
        self.refused(8, "neighbors", "G", "Person", "77")
        self.refused(2, "neighbors", "G", "Person", "1", "--edge", "Place")

    def test_export_and_load_give_an_equal_graph(self):
        self.fill()
        for form in ("csv",):
            told = self.done("export", "G", "out-" + form, "--format", form, "--json").document
            self.assertEqual(told["rows"]["Person"], 4)
            copy = "copy-" + form
            self.done("init", copy, "--schema", "schema.json")
            types = list(told["rows"])
            self.assertEqual(sorted(os.listdir(self.path("out-" + form))), sorted(name + "." + form for name in types))
            self.load(*("%s=out-%s/%s.%s" % (name, form, name, form) for name in types), graph=copy)
            first, second = self.content(), self.content(copy)
            for name in ("Person", "Place", "KNOWS", "LIVES_IN"):
                self.assertEqual(first[name], second[name])
            self.assertEqual(len(first["Note"]), len(second["Note"]))
        self.refused(8, "export", "G", "out-csv")
        self.done("export", "G", "out-csv", "--force")
        self.done("export", "G", "out-jsonl", "--format", "jsonl")
        self.assertEqual(json.loads(self.read("out-jsonl/Place.jsonl").splitlines()[0]),
                         {"country": "NO", "city": "Oslo", "size": 7})

    def test_log_and_show_tell_of_commits(self):
        result = self.fill()
        self.write("more.csv", "id,name\n50,Eve\n")
        second = self.done("load", "G", "Person=more.csv", "--json", "--message", "one more").document
        log = self.done("log", "G", "--json").lines
        self.assertEqual([entry["generation"] for entry in log], [3, 2, 1])
        self.assertEqual([entry["kind"] for entry in log], ["load", "load", "init"])
        self.assertEqual([entry["commit"] for entry in log][:2], [second["commit"]["id"], result["commit"]["id"]])
        self.assertEqual(set(log[0]), {"commit", "generation", "index", "parents", "kind", "actor", "time", "message",
                                       "operation_id"})
        self.assertEqual(log[0]["parents"], [log[1]["commit"]])
        self.assertEqual(log[0]["message"], "one more")
        self.assertRegex(log[0]["time"], TIME)
        self.assertEqual(len(self.done("log", "G", "-n", "1", "--json").lines), 1)
        self.assertIn(second["commit"]["id"], self.done("log", "G").out)
        shown = self.done("show", "G", second["commit"]["id"], "--json").document
        self.assertEqual((shown["commit"], shown["inserted"], shown["message"]), (second["commit"]["id"], 1, "one more"))
        self.assertEqual([(t["type"], t["rows"]) for t in shown["types"]], [("Person", 1)])
        self.assertEqual(self.done("show", "G", "2", "--json").document["commit"], result["commit"]["id"])
        self.assertIn("one more", self.done("show", "G", "head").out)
        self.refused(8, "show", "G", new_operation())
        self.refused(8, "show", "G", "99")
        self.refused(2, "show", "G", "x")

    def test_reading_at_an_older_place(self):
        first = self.fill()
        self.write("more.csv", "id,name\n50,Eve\n")
        self.load("Person=more.csv")
        self.assertEqual(self.done("count", "G", "Person").out, "5\n")
        self.assertEqual(self.done("count", "G", "Person", "--at", "2").out, "4\n")
        self.assertEqual(self.done("count", "G", "Person", "--at", "1").out, "0\n")
        self.assertEqual(self.done("count", "G", "Person", "--at", first["commit"]["id"]).out, "4\n")
        self.refused(8, "count", "G", "Person", "--at", "99")
        self.refused(8, "count", "G", "Person", "--branch", "nobody")

    def test_status_shows_branches_types_and_what_waits(self):
        self.fill()
        status = self.done("status", "G", "--json").document
        self.assertEqual([b["branch"] for b in status["branches"]], ["main"])
        branch = status["branches"][0]
        self.assertEqual((branch["generation"], branch["acknowledged"], branch["suspect"]), (2, 2, False))
        types = {t["type"]: t for t in branch["types"]}
        self.assertEqual(types["Person"]["rows"], 4)
        self.assertEqual(types["KNOWS"]["kind"], "edge")
        self.assertGreater(types["Person"]["bytes"], 0)
        self.assertGreater(types["Person"]["fragments"], 0)
        self.assertEqual((status["intents"], status["gates"]), ([], []))
        self.assertIn("branch main", self.done("status", "G").out)
        self.assertEqual(status["unknown_entries"], 0)
        with open(os.path.join(self.path("G"), "notes.txt"), "w") as file:
            file.write("not ours")
        self.assertEqual(self.done("status", "G", "--json").document["unknown_entries"], 1)
        self.assertIn("1 entry that is not Sluice's", self.done("status", "G").out)
        self.assertTrue(os.path.exists(os.path.join(self.path("G"), "notes.txt")))

    def test_verify_recover_and_gc_find_nothing_to_do(self):
        self.fill()
        self.assertEqual(self.done("verify", "G", "--json").document["ok"], True)
        self.assertTrue(self.done("verify", "G", "--quick").out.startswith("ok"))
        self.assertEqual(self.done("recover", "G", "--json").out, "")
        self.assertEqual(self.done("recover", "G", "--probe").out, "nothing to recover\n")
        self.assertEqual(self.done("gc", "G", "--json").document,
                         {"files": 0, "bytes": 0, "attempts": 0, "generations": 0, "segments": 0, "damaged": 0,
                          "dry_run": False})
        self.done("gc", "G", "--dry-run")
        self.clean()

    def test_verify_names_what_is_damaged_and_ends_with_6(self):
        self.fill()
        damaged = 0
        for folder, _, names in os.walk(self.path("G/tables")):
            for name in names:
                if not name.endswith(".arrow"):
                    continue
                file = os.path.join(folder, name)
                with open(file, "r+b") as handle:
                    handle.seek(os.path.getsize(file) // 2)
                    byte = handle.read(1)
                    handle.seek(-1, os.SEEK_CUR)
                    handle.write(bytes([byte[0] ^ 0x10]))
                said = self.refused(6, "verify", "G", "--json").document
                self.assertFalse(said["ok"])
                self.assertIn(name, json.dumps(said["problems"]))
                with open(file, "r+b") as handle:
                    handle.seek(os.path.getsize(file) // 2)
                    handle.write(byte)
                damaged += 1
        self.assertGreater(damaged, 0)
        self.clean()

    def test_schema_show_prints_a_schema_file(self):
        self.fill()
        shown = json.loads(self.done("schema", "show", "G").out)
        self.assertEqual(set(shown["nodes"]), {"Person", "Note", "Place"})
        self.write("shown.json", shown)
        self.done("init", "H", "--schema", "shown.json")
        self.assertEqual(json.loads(self.done("schema", "show", "H").out), shown)

    def test_the_same_operation_gives_the_first_result(self):
        self.fill()
        self.write("more.csv", "id,name\n50,Eve\n")
        self.write("other.csv", "id,name\n51,Eve\n")
        words = ("load", "G", "Person=more.csv", "--json", "--op-id", new_operation())
        first = self.done(*words).document
        second = self.done(*words).document
        self.assertEqual(first["commit"], second["commit"])
        self.assertTrue(second["repeated"])
        self.assertEqual(self.done("count", "G", "Person").out, "5\n")
        other = self.refused(9, "load", "G", "Person=other.csv", "--json", "--op-id", words[-1])
        self.assertEqual(other.error["code"], "IDEMPOTENCY_CONFLICT")
        self.assertEqual(self.done("count", "G", "Person").out, "5\n")

    def test_reading_writes_nothing(self):
        self.fill()
        before = self.fingerprint()
        for words in (("count", "G"), ("scan", "G", "Person"), ("get", "G", "Person", "1"), ("log", "G"), ("status", "G"),
                      ("verify", "G"), ("show", "G", "head"), ("recover", "G", "--probe")):
            self.done(*words)
        self.assertEqual(self.fingerprint(), before)

    def fingerprint(self):
        found = {}
        for folder, folders, names in os.walk(self.path("G")):
            for name in folders + names:
                path = os.path.join(folder, name)
                status = os.lstat(path)
                found[path] = (status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns)
                self.assertEqual(status.st_mode & 0o777, 0o700 if name in folders else 0o600, path)
        return found


if __name__ == "__main__":
    main()
