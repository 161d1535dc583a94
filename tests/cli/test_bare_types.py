#!/usr/bin/env python3
"""Types without any property: their rows are rows like others, though no column says how many there are."""

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"N": {"properties": {}}}, "edges": {"E": {"from": "N", "to": "N", "properties": {}}}}


class BareTypes(ProgramTest):
    def test_they_are_loaded_changed_packed_and_read_back(self):
        self.init(SCHEMA)
        self.write("n.jsonl", "".join('{"_row_id": %d}\n' % i for i in range(5)))
        self.write("e.jsonl", '{"from": 0, "to": 1}\n{"from": 4, "to": 4}\n')
        self.load("N=n.jsonl", "E=e.jsonl", "--workers", "2")
        self.load("N=n.jsonl")
        self.write("m.jsonl", '{"op": "insert", "node": "N", "set": {}}\n' * 3)
        self.done("mutate", "G", "m.jsonl")
        ids = {row["_row_id"] for row in self.rows("N")}
        self.assertEqual(len(ids), 13)
        edge = self.rows("E")[0]
        self.write("d.jsonl", '{"op": "delete", "node": "N", "key": %d, "detach": true}\n' % edge["from"])
        self.done("mutate", "G", "d.jsonl")
        ids.discard(edge["from"])
        for command in ("verify", "optimize", "verify", "index", "verify"):
            self.done(command, "G")
            self.assertEqual({row["_row_id"] for row in self.rows("N")}, ids)
        self.assertEqual(self.done("count", "G", "--json").document, {"N": 12, "E": 1})
        for form in ("csv", "jsonl", "arrow"):
            self.done("export", "G", "out-" + form, "--format", form)
            self.init(SCHEMA, "again-" + form)
            self.load("N=out-%s/N.%s" % (form, form), "E=out-%s/E.%s" % (form, form), graph="again-" + form)
            self.assertEqual(self.done("count", "again-" + form, "--json").document, {"N": 12, "E": 1})
            self.clean("again-" + form)


if __name__ == "__main__":
    main()
