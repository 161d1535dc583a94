#!/usr/bin/env python3
"""Looking back: places by id, number and time; differences between two places; what recovery did."""

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"Person": {"key": "id", "properties": {"id": "int64", "name": "string?"}}, "Note": {"properties": {"text": "string"}}},
          "edges": {"KNOWS": {"from": "Person", "to": "Person", "key": []}, "SAW": {"from": "Person", "to": "Person"}}}


class History(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        self.write("one.csv", "id,name\n1,Ada\n2,Bob\n")
        self.write("two.csv", "id,name\n3,Cyd\n")
        self.write("edges.csv", "from,to\n1,2\n3,3\n")
        self.write("notes.csv", "text\nhello\n")
        self.load("Person=one.csv")
        self.load("Person=two.csv", "KNOWS=edges.csv", "SAW=edges.csv", "Note=notes.csv")
        self.commits = [line for line in self.done("log", "G", "--json").lines][::-1]  # oldest first: init, one, two

    def persons(self, at):
        return [row["id"] for row in self.rows("Person", "G", "--at", at)]

    def test_every_way_of_naming_a_place_leads_to_the_same_rows(self):
        for commit, wanted in zip(self.commits, ([], [1, 2], [1, 2, 3])):
            for at in (commit["commit"], str(commit["generation"]), commit["time"], commit["time"].replace("Z", "+00:00")):
                self.assertEqual(self.persons(at), wanted, at)
                self.assertEqual(self.done("show", "G", at, "--json").document["commit"], commit["commit"], at)
        self.assertEqual(self.persons("head"), [1, 2, 3])
        self.assertEqual(self.persons("9999-12-31"), [1, 2, 3])

    def test_places_that_are_not_there_are_refused(self):
        for at, code in (("1970-01-01", 8), ("0", 8), ("4", 8), ("99999999999999999999", 2), ("soon", 2), ("", 2),
                         ("2026-13-01", 2), ("00000000-0000-7000-8000-000000000000", 8)):
            self.refused(code, "scan", "G", "Person", "--at", at)
            self.refused(code, "show", "G", at)
            self.refused(code, "diff", "G", at, "head")
            self.refused(code, "diff", "G", "head", at)

    def test_a_difference_is_counted_by_type_and_told_row_by_row(self):
        self.assertEqual(self.done("diff", "G", "2", "3", "--json").lines,
                         [{"type": "Person", "inserted": 1, "updated": 0, "deleted": 0},
                          {"type": "Note", "inserted": 1, "updated": 0, "deleted": 0},
                          {"type": "KNOWS", "inserted": 2, "updated": 0, "deleted": 0},
                          {"type": "SAW", "inserted": 2, "updated": 0, "deleted": 0}])
        rows = self.done("diff", "G", "2", "head", "--keys", "--json").lines
        self.assertEqual([row["change"] for row in rows], ["inserted"] * 6)
        self.assertEqual(rows[0], {"type": "Person", "change": "inserted", "key": 3})
        self.assertEqual(sorted(rows[1]), ["_row_id", "change", "type"])
        self.assertEqual(rows[2], {"type": "KNOWS", "change": "inserted", "from": 1, "to": 2})
        self.assertEqual({name: rows[5][name] for name in ("type", "from", "to")}, {"type": "SAW", "from": 3, "to": 3})
        self.assertIn("_row_id", rows[5])
        back = self.done("diff", "G", "head", "2", "--keys", "--json").lines
        self.assertEqual([{**row, "change": "inserted"} for row in back], rows)
        self.assertIn("3 -> 3", self.done("diff", "G", "2", "3", "--keys").out)
        self.assertEqual(self.done("diff", "G", "main", "head", "--json").out, "")

    def test_a_difference_needs_two_places_that_exist(self):
        self.refused(2, "diff", "G", "1")
        self.refused(2, "diff", "G", "1", "nobranch")
        self.refused(8, "diff", "G", "1", "2", "--branch", "nobranch")

    def test_what_recovery_did_is_listed(self):
        self.assertEqual(self.done("log", "G", "--audit", "--json").out, "")
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")
        self.write("four.csv", "id,name\n4,Dan\n")
        self.run_program("load", "G", "Person=four.csv", "--workers", "1",
                         env={"SLUICE_FAILPOINT": "publish.before_append=killpool"})
        self.done("recover", "G")
        rows = self.done("log", "G", "--audit", "--json").lines
        self.assertEqual([(row["kind"], row["outcome"]) for row in rows], [("load", "committed")])
        self.assertEqual(self.done("log", "G", "-n", "1", "--json").document["commit"], rows[0]["commit"])
        self.assertIn("committed", self.done("log", "G", "--audit").out)
        self.assertEqual(self.done("log", "G", "--audit", "-n", "0", "--json").out, "")


if __name__ == "__main__":
    main()
