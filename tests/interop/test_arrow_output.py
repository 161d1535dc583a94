#!/usr/bin/env python3
"""What scan and export write as Arrow is read by pyarrow and polars: exact types, nullability and values; the same rows as CSV
and JSON Lines show."""

import datetime
import io
import os
import sys

try:
    import polars
    import pyarrow
    import pyarrow.ipc
except ImportError as missing:
    if os.environ.get("CI"):
        raise
    print(f"skipped: {missing.name} is not installed (scripts/setup installs it)")
    sys.exit(77)

from support.program import ProgramTest, main

TYPES = {"flag": ("bool", pyarrow.bool_()), "i32": ("int32", pyarrow.int32()), "i64": ("int64", pyarrow.int64()),
         "u64": ("uint64", pyarrow.uint64()), "f32": ("float32", pyarrow.float32()), "f64": ("float64", pyarrow.float64()),
         "text": ("string", pyarrow.string()), "blob": ("bytes", pyarrow.binary()), "day": ("date", pyarrow.date32()),
         "moment": ("timestamp", pyarrow.timestamp("us", tz="UTC"))}
SCHEMA = {
    "nodes": {"T": {"key": "id", "properties": {"id": "int64", **{name: kind + "?" for name, (kind, _) in TYPES.items()}}},
              "Note": {"properties": {"text": "string?"}},
              "Place": {"key": ["country", "city"], "properties": {"country": "string", "city": "string"}}},
    "edges": {"LIVES": {"from": "T", "to": "Place", "properties": {"since": "date"}},
              "SAID": {"from": "T", "to": "Note", "properties": {}}}}
UTC = datetime.timezone.utc


def as_text(rows):
    """Rows as text, so that NaN equals itself; one zone is called by several names."""
    def plain(value):
        return value.astimezone(datetime.timezone.utc) if isinstance(value, datetime.datetime) else value
    return str([{name: plain(value) for name, value in row.items()} for row in rows])


class ArrowOutput(ProgramTest):
    def fill(self):
        self.init(SCHEMA)
        self.write("t.csv", "id,flag,i32,i64,u64,f32,f64,text,blob,day,moment\n"
                   "1,true,-2147483648,-9223372036854775808,18446744073709551615,0.1,1e300,\"Zoë, \"\"Z\"\"\",AAEC,2024-02-29,"
                   "2026-01-31T12:34:56.000001Z\n2,,,,,,,,,,\n3,false,0,0,0,NaN,-Infinity,\"\",\"\",1815-12-10,0001-01-01\n")
        self.write("notes.csv", ":ID,text\na,one\nb,\n")
        self.write("places.csv", "country,city\nNO,Oslo\n")
        self.write("lives.csv", "from,to.country,to.city,since\n1,NO,Oslo,2020-01-01\n")
        self.load("T=t.csv", "Note=notes.csv", "Place=places.csv", "LIVES=lives.csv")
        first, second = (row["_row_id"] for row in self.rows("Note"))
        self.write("said.csv", f"from,to\n1,{second}\n3,{first}\n")
        self.load("SAID=said.csv")

    def scanned(self, *words, graph="G"):
        process = self.start("scan", graph, *words, "--format", "arrow")
        out, err = process.communicate(timeout=300)
        self.assertEqual((process.returncode, err), (0, b""))
        table = pyarrow.ipc.open_stream(io.BytesIO(out)).read_all()
        table.validate(full=True)
        return table

    def test_types_nullability_and_values_are_those_of_the_schema(self):
        self.fill()
        table = self.scanned("T")
        self.assertEqual(table.schema, pyarrow.schema([pyarrow.field("id", pyarrow.int64(), nullable=False)]
                                                      + [pyarrow.field(name, kind) for name, (_, kind) in TYPES.items()]))
        first, second, third = table.to_pylist()
        self.assertEqual(first, {"id": 1, "flag": True, "i32": -2**31, "i64": -2**63, "u64": 2**64 - 1,
                                 "f32": 0.10000000149011612, "f64": 1e300, "text": 'Zoë, "Z"', "blob": b"\0\1\2",
                                 "day": datetime.date(2024, 2, 29),
                                 "moment": datetime.datetime(2026, 1, 31, 12, 34, 56, 1, UTC)})
        self.assertEqual(second, {"id": 2, **dict.fromkeys(TYPES)})
        self.assertNotEqual(third["f32"], third["f32"])
        self.assertEqual((third["f64"], third["text"], third["blob"], third["i32"]), (float("-inf"), "", b"", 0))
        self.assertEqual(third["moment"], datetime.datetime(1, 1, 1, tzinfo=UTC))

    def test_ends_are_columns_or_structs_and_nodes_without_key_have_a_row_id(self):
        self.fill()
        lives, said, notes = self.scanned("LIVES"), self.scanned("SAID"), self.scanned("Note")
        self.assertEqual(lives.to_pylist(), [{"from": 1, "to": {"country": "NO", "city": "Oslo"},
                                              "since": datetime.date(2020, 1, 1)}])
        self.assertFalse(any(field.nullable for field in lives.schema))
        self.assertFalse(any(field.nullable for field in lives.schema.field("to").type))
        self.assertEqual(notes.schema.names, ["_row_id", "text"])
        self.assertEqual(notes.schema.field("_row_id").type, pyarrow.uint64())
        self.assertEqual(said["to"].to_pylist(), notes["_row_id"].to_pylist()[::-1])
        for table in (lives, said, notes):
            self.assertTrue(all(b"sluice.property" not in (field.metadata or {}) for field in table.schema))

    def test_columns_filter_order_and_limit_apply(self):
        self.fill()
        self.assertEqual(self.scanned("T", "--columns", "text,id", "--where", "id >= 2").to_pylist(),
                         [{"text": None, "id": 2}, {"text": "", "id": 3}])
        self.assertEqual(self.scanned("T", "--columns", "id", "--limit", "2").to_pylist(), [{"id": 1}, {"id": 2}])
        self.assertEqual(self.scanned("T", "--columns", "id", "--limit", "0").num_rows, 0)
        self.assertEqual(self.scanned("T", "--order-by", "key", "--columns", "id")["id"].to_pylist(), [1, 2, 3])

    def test_an_empty_type_has_its_columns(self):
        self.init(SCHEMA)
        self.assertEqual(self.scanned("LIVES").schema.names, ["from", "to", "since"])
        self.done("export", "G", "out", "--format", "arrow")
        self.assertEqual(pyarrow.ipc.open_file(self.path("out/LIVES.arrow")).num_record_batches, 0)
        self.assertEqual(polars.read_ipc(self.path("out/Note.arrow")).columns, ["_row_id", "text"])

    def test_exported_files_open_in_pyarrow_and_polars_with_the_same_rows(self):
        self.fill()
        result = self.done("export", "G", "out", "--format", "arrow", "--json").document
        self.assertEqual(result["rows"], {"T": 3, "Note": 2, "Place": 1, "LIVES": 1, "SAID": 2})
        self.assertEqual(sorted(os.listdir(self.path("out"))), sorted(name + ".arrow" for name in result["rows"]))
        for name in result["rows"]:
            table = pyarrow.ipc.open_file(self.path(f"out/{name}.arrow")).read_all()
            table.validate(full=True)
            self.assertEqual(str(table.to_pylist()), str(self.scanned(name).to_pylist()))
            self.assertEqual(as_text(polars.read_ipc(self.path(f"out/{name}.arrow")).to_dicts()), as_text(table.to_pylist()))

    def test_many_fragments_and_rows_come_in_batches_of_bounded_size(self):
        self.init({"nodes": {"P": {"key": "id", "properties": {"id": "int64", "text": "string"}}}, "edges": {}})
        for part in range(3):
            self.write(f"{part}.csv", "id,text\n" + "".join(f"{part * 50000 + i},{'x' * (i % 40 + 1)}\n" for i in range(50000)))
            self.load(f"P={part}.csv")
        self.done("export", "G", "out", "--format", "arrow")
        reader = pyarrow.ipc.open_file(self.path("out/P.arrow"))
        sizes = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
        self.assertEqual((sum(sizes), max(sizes) <= 131072, len(sizes) < 4), (150000, True, True))
        table = reader.read_all()
        self.assertEqual(table["id"].to_pylist(), list(range(150000)))
        self.assertEqual(table["text"].to_pylist()[149999], "x" * (49999 % 40 + 1))


if __name__ == "__main__":
    main()
