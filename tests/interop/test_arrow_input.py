#!/usr/bin/env python3
"""Arrow files and streams that pyarrow and polars write load as the CSV of the same rows does: every type that a property can
come from, dictionaries, compression, views, slices; what cannot be loaded is refused with its column, type and row."""

import datetime
import decimal
import gzip
import json
import os
import struct
import subprocess
import sys

try:
    import polars
    import pyarrow
    import pyarrow.feather
    import pyarrow.ipc
except ImportError as missing:
    if os.environ.get("CI"):
        raise
    print(f"skipped: {missing.name} is not installed (scripts/setup installs it)")
    sys.exit(77)

from support.program import ProgramTest, main, some

UTC = datetime.timezone.utc
KINDS = {"flag": "bool", "i32": "int32", "i64": "int64", "u64": "uint64", "f32": "float32", "f64": "float64", "text": "string",
         "blob": "bytes", "day": "date", "moment": "timestamp"}
ALL = {"nodes": {"T": {"key": "id", "properties": {"id": "int64", **{name: kind + "?" for name, kind in KINDS.items()}}}},
       "edges": {}}
EXACT = {"id": pyarrow.int64(), "flag": pyarrow.bool_(), "i32": pyarrow.int32(), "i64": pyarrow.int64(),
         "u64": pyarrow.uint64(), "f32": pyarrow.float32(), "f64": pyarrow.float64(), "text": pyarrow.string(),
         "blob": pyarrow.binary(), "day": pyarrow.date32(), "moment": pyarrow.timestamp("us", tz="UTC")}


def row(i):
    values = {"flag": i % 3 == 0, "i32": i * 7 - 1000, "i64": i * 1234567890123 - 5, "u64": 2**64 - 1 - i, "f32": i / 4,
              "f64": i / 8 - 100, "text": "" if i % 11 == 0 else f"row-{i}" + "\u00e9" * (i % 20),
              "blob": bytes([i & 255]) * (i % 17), "day": datetime.date(1970, 1, 1) + datetime.timedelta(days=i % 40000 - 3000),
              "moment": datetime.datetime(1970, 1, 1, tzinfo=UTC) + datetime.timedelta(microseconds=i * 1000003 - 10**9)}
    return {"id": i, **{name: None if i % 7 == c else value for c, (name, value) in enumerate(values.items())}}


def table(count, types=EXACT):
    return pyarrow.Table.from_pylist([row(i) for i in range(count)], schema=pyarrow.schema(types))


def one(name, kind, values, first=0):
    """A table of ids and one column."""
    column = values if isinstance(values, (pyarrow.Array, pyarrow.ChunkedArray)) else pyarrow.array(values, kind)
    return pyarrow.table({"id": pyarrow.array(range(first, first + len(values)), pyarrow.int64()), name: column})


class ArrowInput(ProgramTest):
    def setUp(self):
        super().setUp()
        self.graphs = {}
        self.made = 0
        self.cases = []

    def save(self, name, data, rows=None, stream=False, **options):
        new = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
        with new(self.path(name), data.schema, options=pyarrow.ipc.IpcWriteOptions(**options)) as writer:
            writer.write_table(data, max_chunksize=rows)
        return name

    def fresh(self, schema=ALL):
        self.made += 1
        self.init(schema, f"G{self.made}")
        return f"G{self.made}"

    def loaded(self, *inputs, schema=ALL, **options):
        graph = self.fresh(schema)
        self.done("load", graph, *inputs, **options)
        return self.content(graph)

    def all_equal(self, names):
        """Each file loads into a type of its own; all types hold the same rows then, which are returned."""
        types = {f"T{i}": ALL["nodes"]["T"] for i in range(len(names))}
        content = self.loaded(*(f"T{i}={name}" for i, name in enumerate(names)), schema={"nodes": types, "edges": {}})
        for i, name in enumerate(names):
            self.assertEqual(content[f"T{i}"], content["T0"], name)
        return content["T0"]

    def case(self, column, kind, values, expected, **options):
        """Keeps a file of one column, to be loaded with all others by `settle`."""
        first = 100 * len(self.cases)
        name = self.save(f"case-{len(self.cases)}.arrow", one(column, kind, values, first), **options)
        self.cases.append((name, column, first, expected))

    def settle(self):
        graph = self.fresh()
        self.done("load", graph, *(f"T={case[0]}" for case in self.cases))
        rows = {row["id"]: row for row in self.rows("T", graph)}
        for name, column, first, expected in self.cases:
            self.assertEqual([rows[first + i][column] for i in range(len(expected))], expected, (name, column))
        self.assertEqual(len(rows), sum(len(case[3]) for case in self.cases))

    def refuse(self, data, text, code=4, name="bad.arrow", schema=ALL, flags=()):
        graph = self.graphs.setdefault(str(schema), None) or self.fresh(schema)
        self.graphs[str(schema)] = graph
        if data is not None:
            self.save(name, data)
        said = self.refused(code, "load", graph, "T=" + name, *flags)
        self.assertIn(text, said.err)
        return said.err

    def tearDown(self):
        for graph in self.graphs.values():
            self.assertEqual(self.done("count", graph, "T").out, "0\n")
        super().tearDown()

    # ---- equal to CSV ----

    def test_every_producer_and_form_loads_as_the_csv_of_the_same_rows(self):
        data = table(500)
        graph = self.fresh()
        self.save("a.arrow", data)
        self.done("load", graph, "T=a.arrow")
        self.done("export", graph, "csv")
        self.done("export", graph, "arrow", "--format", "arrow")
        self.clean(graph)
        self.save("b.arrow", data, rows=7)
        self.save("c.arrows", data, rows=64, stream=True)
        self.save("lz4.arrow", data, rows=100, compression="lz4")
        self.save("zstd.arrows", data, rows=100, stream=True, compression="zstd")
        pyarrow.feather.write_feather(data, self.path("d.feather"))
        self.save("v4.arrow", data, rows=50, metadata_version=pyarrow.ipc.MetadataVersion.V4)
        self.save("early.arrows", data, rows=50, stream=True, use_legacy_format=True,
                  metadata_version=pyarrow.ipc.MetadataVersion.V4)
        names = ["csv/T.csv", "arrow/T.arrow", "a.arrow", "b.arrow", "c.arrows", "lz4.arrow", "zstd.arrows", "d.feather",
                 "v4.arrow", "early.arrows"]
        frame = polars.from_arrow(data)
        for compression in ("uncompressed", "lz4", "zstd"):
            names += [f"p-{compression}.arrow", f"old-{compression}.arrow", f"p-{compression}.arrows"]
            frame.write_ipc(self.path(f"p-{compression}.arrow"), compression=compression)
            frame.write_ipc(self.path(f"old-{compression}.arrow"), compression=compression,
                            compat_level=polars.CompatLevel.oldest())
            frame.write_ipc_stream(self.path(f"p-{compression}.arrows"), compression=compression)
        frame.lazy().filter(polars.col("id") >= 0).sink_ipc(self.path("sunk.arrow"))
        rows = [json.loads(row) for row in self.all_equal(names + ["sunk.arrow"])]
        self.assertEqual(len(rows), 500)
        self.assertEqual({row["id"]: row["text"] for row in rows}, {i: row(i)["text"] for i in range(500)})

    def test_every_width_and_layout_of_a_type_loads(self):
        whole = [0, 1, 100, None]
        for width in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
            for name in ("i32", "i64", "u64"):
                self.case(name, getattr(pyarrow, width)(), whole, whole)
        self.case("f64", pyarrow.int64(), [2**53 + 1, -1], [2.0**53, -1.0])
        halves = [0.0, -0.5, 65504.0, 2.0**-24, 1.0009765625, float("inf")]
        packed = pyarrow.py_buffer(b"".join(struct.pack("<e", half) for half in halves))
        self.case("f64", None, pyarrow.Array.from_buffers(pyarrow.float16(), 6, [None, packed]), halves[:5] + ["Infinity"])
        self.case("f32", pyarrow.float64(), [0.1, float("inf"), None], [0.1, "Infinity", None])
        texts = ["", "short", "a text that is longer than twelve bytes", "z\u00fcrich", None]
        for kind in (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()):
            self.case("text", kind, texts, texts)
        blobs = [b"", b"abc", b"\0" * 20, None]
        for kind in (pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary_view()):
            self.case("blob", kind, blobs, ["", "YWJj", "AAAAAAAAAAAAAAAAAAAAAAAAAAA=", None])
        self.case("blob", pyarrow.binary(3), [b"abc", b"def", None], ["YWJj", "ZGVm", None])
        self.case("i64", pyarrow.null(), [None, None], [None, None])
        self.settle()

    def test_dates_timestamps_and_decimals_load_exactly(self):
        days = [datetime.date(2024, 2, 29), datetime.date(1815, 12, 10), None]
        shown = ["2024-02-29", "1815-12-10", None]
        for kind in (pyarrow.date32(), pyarrow.date64()):
            self.case("day", kind, days, shown)
        self.case("moment", pyarrow.date32(), days, [day and day + "T00:00:00Z" for day in shown])
        for unit in ("s", "ms", "us", "ns"):
            for zone in (None, "UTC", "Europe/Paris", "+02:00"):
                midnight = datetime.datetime(2024, 2, 29, tzinfo=UTC if zone else None)
                self.case("moment", pyarrow.timestamp(unit, tz=zone), [midnight, None], ["2024-02-29T00:00:00Z", None])
        self.case("day", pyarrow.timestamp("ns"), [datetime.datetime(2024, 2, 29), None], ["2024-02-29", None])
        amounts = [decimal.Decimal("12.00"), decimal.Decimal("-7.00"), decimal.Decimal("0.00"), None]
        self.case("i64", pyarrow.decimal128(10, 2), amounts, [12, -7, 0, None])
        self.case("u64", pyarrow.decimal128(3, -2), [decimal.Decimal("1200")], [1200])
        amounts = [decimal.Decimal("12.25"), decimal.Decimal("-0.05"), decimal.Decimal("100.00"), None]
        for kind in (pyarrow.decimal128(10, 2), pyarrow.decimal64(10, 2), pyarrow.decimal32(9, 2)):
            self.case("f64", kind, amounts, [12.25, -0.05, 100.0, None])
        self.settle()

    def test_text_is_read_as_a_csv_value(self):
        for name, texts, values in (("i32", ["-5", None], [-5, None]), ("flag", ["true", "false"], [True, False]),
                                    ("day", ["2024-02-29"], ["2024-02-29"]), ("blob", ["YWJj"], ["YWJj"]),
                                    ("f64", ["1e3", "NaN"], [1000.0, "NaN"]),
                                    ("moment", ["2026-01-31T12:00:00+01:00"], ["2026-01-31T11:00:00Z"])):
            self.case(name, pyarrow.string(), texts, values)
        self.settle()
        self.refuse(one("i32", pyarrow.string(), ["1", "x"]), 'bad.arrow:2: column i32: "x" is not an int32 (CONSTRAINT_TYPE)')
        self.refuse(one("i32", pyarrow.string(), [""]), "bad.arrow:1: column i32")

    # ---- dictionaries ----

    def test_dictionaries_load_whatever_their_indexes_and_nulls(self):
        values = pyarrow.array(["red", None, "blue"])
        expected = ["red", "blue", None, None, "red"]
        for width in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
            indexes = pyarrow.array([0, 2, 1, None, 0], getattr(pyarrow, width)())
            for stream, compression in ((False, None), (True, "lz4")):
                self.case("text", None, pyarrow.DictionaryArray.from_arrays(indexes, values), expected, rows=2, stream=stream,
                          compression=compression)
        numbers = pyarrow.DictionaryArray.from_arrays(pyarrow.array([1, 0, None]), pyarrow.array([7, 2**40]))
        self.case("i64", None, numbers, [2**40, 7, None])
        frame = polars.DataFrame({"id": range(5000, 5003), "text": ["b", None, "a"]}, schema_overrides={"text": polars.Categorical})
        frame.write_ipc(self.path("d.arrow"))
        self.cases.append(("d.arrow", "text", 5000, ["b", None, "a"]))
        self.settle()

    def test_dictionaries_of_a_stream_are_replaced_and_continued(self):
        def part(values, indexes):
            return pyarrow.DictionaryArray.from_arrays(pyarrow.array(indexes, pyarrow.int8()), pyarrow.array(values))
        parts = [part(["a", "b"], [0, 1]), part(["a", "b", "c"], [2, 0]), part(["x"], [0, None]), part(["x", "y"], [1, 0])]
        schema = pyarrow.schema({"id": pyarrow.int64(), "text": parts[0].type})
        for deltas in (False, True):
            options = pyarrow.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)
            with pyarrow.ipc.new_stream(self.path("d.arrows"), schema, options=options) as writer:
                for i, texts in enumerate(parts):
                    writer.write_batch(pyarrow.record_batch([pyarrow.array([2 * i, 2 * i + 1]), texts], schema=schema))
            for workers in ("1", "8"):
                graph = self.fresh()
                self.done("load", graph, "T=d.arrows", "--workers", workers, env={"SLUICE_TEST_CHUNK": "256"})
                rows = sorted(self.rows("T", graph), key=lambda row: row["id"])
                self.assertEqual([row["text"] for row in rows], ["a", "b", "c", "a", "x", None, "y", "x"])
        options = pyarrow.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
        with pyarrow.ipc.new_file(self.path("d.arrow"), schema, options=options) as writer:
            for i, texts in enumerate(parts[:2]):
                writer.write_batch(pyarrow.record_batch([pyarrow.array([2 * i, 2 * i + 1]), texts], schema=schema))
        self.cases.append(("d.arrow", "text", 0, ["a", "b", "c", "a"]))
        self.settle()

    # ---- slices, batches ----

    def test_slices_with_offsets_that_are_no_multiple_of_eight_keep_their_nulls(self):
        data = pyarrow.table({"id": pyarrow.array(range(20)), "flag": pyarrow.array([i % 3 and i % 2 == 0 or None for i in range(20)]),
                              "text": pyarrow.array([None if i % 3 == 0 else str(i) for i in range(20)])})
        slices = {f"S{start}": data.slice(start, length) for start, length in ((5, 10), (1, 19), (8, 3), (19, 1))}
        graph = self.fresh({"nodes": {name: ALL["nodes"]["T"] for name in slices}, "edges": {}})
        self.done("load", graph, *(f"{name}=" + self.save(name + ".arrow", part) for name, part in slices.items()))
        for name, part in slices.items():
            rows = sorted(self.rows(name, graph), key=lambda row: row["id"])
            self.assertEqual([{k: row[k] for k in ("id", "flag", "text")} for row in rows], part.to_pylist())

    def test_files_without_rows_and_empty_batches_load(self):
        empty = table(0)
        self.save("none.arrow", empty)
        self.save("none.arrows", empty, stream=True)
        data = table(3)
        with pyarrow.ipc.new_file(self.path("holes.arrow"), data.schema) as writer:
            for batch in (empty, data.slice(0, 1), empty, empty, data.slice(1), empty):
                for part in batch.to_batches() or [pyarrow.RecordBatch.from_pylist([], schema=data.schema)]:
                    writer.write_batch(part)
        self.assertEqual(self.all_equal(["none.arrow", "none.arrows"]), [])
        self.assertEqual(len(self.all_equal([self.save("whole.arrow", data), "holes.arrow"])), 3)

    def test_results_do_not_depend_on_workers_pieces_or_chunks(self):
        data = table(2000)
        self.save("p.arrow", data, rows=700)
        self.save("z.arrow", data, rows=700, compression="zstd")
        polars.from_arrow(data).write_ipc(self.path("v.arrow"))
        types = {name: ALL["nodes"]["T"] for name in "PZV"}
        expected = None
        for workers, chunk in some((("1", "16777216"), ("3", "10000"), ("8", "70000")), 2):
            got = self.loaded("P=p.arrow", "Z=z.arrow", "V=v.arrow", "--workers", workers, schema={"nodes": types, "edges": {}},
                              env={"SLUICE_TEST_CHUNK": chunk, "SLUICE_SPLIT": "16"})
            expected = expected or got["P"]
            self.assertEqual(got, dict.fromkeys("PZV", expected), (workers, chunk))

    # ---- edges ----

    def test_ends_are_columns_structs_or_dotted_names(self):
        schema = {"nodes": {"P": {"key": "id", "properties": {"id": "int64"}},
                            "Place": {"key": ["country", "city"], "properties": {"country": "string", "city": "string"}}},
                  "edges": {"IN": {"from": "P", "to": "Place", "properties": {"since": "date?"}}}}
        self.save("p.arrow", pyarrow.table({"id": [1, 2]}))
        self.save("places.arrow", pyarrow.table({"country": ["NO", "DE"], "city": ["Oslo", "Bonn"]}))
        ends = [{"city": "Oslo", "country": "NO"}, {"city": "Bonn", "country": "DE"}]
        kind = pyarrow.struct({"city": pyarrow.string(), "country": pyarrow.dictionary(pyarrow.int8(), pyarrow.string())})
        nested = pyarrow.table({"to": pyarrow.array(ends, kind), "from": pyarrow.array([1, 2], pyarrow.uint8())})
        self.save("struct.arrow", nested)
        self.save("dotted.arrow", pyarrow.table({"from": [1, 2], "to.country": ["NO", "DE"], "to.city": ["Oslo", "Bonn"]}))
        polars.from_arrow(nested).rename({"from": "src"}).write_ipc(self.path("src.arrow"))
        expected = self.loaded("P=p.arrow", "Place=places.arrow", "IN=dotted.arrow", schema=schema)
        for name in ("struct.arrow", "src.arrow"):
            self.assertEqual(self.loaded("P=p.arrow", "Place=places.arrow", "IN=" + name, schema=schema), expected)
        graph = self.fresh(schema)
        self.save("null.arrow", pyarrow.table({"from": [1, 2], "to": pyarrow.array([ends[0], None], kind)}))
        said = self.refused(4, "load", graph, "P=p.arrow", "Place=places.arrow", "IN=null.arrow")
        self.assertIn("null.arrow:2: column to.city: there is no value", said.err)
        self.save("loose.arrow", pyarrow.table({"from": [1, 3], "to": pyarrow.array(ends, kind)}))
        said = self.refused(4, "load", graph, "P=p.arrow", "Place=places.arrow", "IN=loose.arrow")
        self.assertIn('loose.arrow:2: column from: there is no P with the key "3"', said.err)

    def test_an_export_loads_into_an_equal_graph(self):
        schema = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string?"}},
                            "Place": {"key": ["a", "b"], "properties": {"a": "string", "b": "int32"}},
                            "Note": {"properties": {"text": "string?"}}},
                  "edges": {"OF": {"from": "Note", "to": "Note", "properties": {}},
                            "IN": {"from": "P", "to": "Place", "properties": {"w": "float32?"}, "key": []},
                            "ON": {"from": "Place", "to": "P", "properties": {}}}}
        self.init(schema)
        self.write("p.csv", "id,name\n1,x\n2,\n")
        self.write("place.csv", "a,b\nq,1\nr,-2\n")
        self.write("in.csv", "from,to.a,to.b,w\n1,q,1,0.1\n2,r,-2,\n")
        self.write("on.csv", "from.a,from.b,to\nq,1,1\nq,1,2\n")
        self.write("note.csv", ":ID,text\nx,one\ny,\nz,three\n")
        self.write("of.csv", "from,to\nx,y\nz,x\n")
        self.load("P=p.csv", "Place=place.csv", "IN=in.csv", "ON=on.csv", "Note=note.csv", "OF=of.csv")
        self.done("export", "G", "out", "--format", "arrow")
        names = ("OF", "ON", "IN", "Place", "P", "Note")
        for name in names:
            with open(self.path(name + ".arrows"), "wb") as file:
                self.finish(self.start("scan", "G", name, "--format", "arrow", stdout=file))

        def content(graph):
            """With the texts of notes instead of their row ids."""
            texts = {row["_row_id"]: row["text"] for row in self.rows("Note", graph)}
            found = {name: rows for name, rows in self.content(graph).items() if name not in ("Note", "OF")}
            return found, sorted(texts.values(), key=str), [(texts[row["from"]], texts[row["to"]]) for row in self.rows("OF", graph)]

        expected = content("G")
        self.assertEqual(expected[2], [("one", None), ("three", "one")])
        for inputs in ([f"{name}=out/{name}.arrow" for name in names], [f"{name}={name}.arrows" for name in names]):
            graph = self.fresh(schema)
            self.done("load", graph, *inputs)
            self.assertEqual(content(graph), expected)

    # ---- where it comes from ----

    def test_compressed_files_pipes_and_standard_input_load(self):
        data = table(200)
        self.save("a.arrow", data)
        self.save("a.arrows", data, rows=50, stream=True)
        expected = self.loaded("T=a.arrow")
        for name in ("a.arrow", "a.arrows"):
            with open(self.path(name), "rb") as file:
                content = file.read()
            self.write(name + ".gz", gzip.compress(content))
            subprocess.run(["zstd", "-q", "-f", self.path(name)], check=True)
            self.assertEqual(self.all_equal([f"{name}.gz", f"{name}.zst"]), expected["T"])
            with open(self.path(name), "rb") as file:
                self.assertEqual(self.loaded("T=-", "--format", "arrow", stdin=file), expected)
            os.mkfifo(self.path(name + ".pipe"))
            graph = self.fresh()
            loading = self.start("load", graph, f"T={name}.pipe", "--format", "arrows")
            with open(self.path(name + ".pipe"), "wb") as pipe:
                pipe.write(content)
            self.assertEqual(self.finish(loading).code, 0)
            self.assertEqual(self.content(graph), expected)

    # ---- rules ----

    def test_columns_defaults_and_nulls_follow_the_rules_of_every_format(self):
        schema = {"nodes": {"T": {"key": "id", "properties": {
            "id": "int64", "name": {"type": "string", "default": "none"}, "age": {"type": "int32?", "default": 5},
            "free": "int32?"}, "checks": {"age": {"max": 150}}}}, "edges": {}}
        ids = pyarrow.array([0, 1])
        self.save("a.arrow", pyarrow.table({"id": ids, "age": pyarrow.array([None, 7])}))
        graph = self.fresh(schema)
        self.done("load", graph, "T=a.arrow")
        self.assertEqual(self.rows("T", graph), [{"id": 0, "name": "none", "age": None, "free": None},
                                                 {"id": 1, "name": "none", "age": 7, "free": None}])
        self.refuse(pyarrow.table({"id": ids, "name": ["a", None]}), "bad.arrow:2: column name: there is no value", schema=schema)
        self.refuse(pyarrow.table({"id": ids, "age": [7, 151]}), "bad.arrow:2: column age", schema=schema)
        self.refuse(pyarrow.table({"id": [1, 1]}), 'bad.arrow:2: column id: the key "1" is already on line 1', schema=schema)
        self.refuse(pyarrow.table({"id": [None, 1]}), "bad.arrow:1: column id: there is no value", schema=schema)
        self.refuse(pyarrow.table({"name": ["x"]}), 'column "id" of type T is missing', schema=schema)
        self.refuse(pyarrow.table([ids, ids], names=["id", "id"]), "is named twice", schema=schema)
        extra = pyarrow.table({"id": ids, "more": pyarrow.array([[1], [2, 3]])})
        self.refuse(extra, 'column "more": type T has no such property', schema=schema)
        self.save("extra.arrow", extra)
        nested = pyarrow.array([{"p": [{"q": None}], "s": pyarrow.scalar(1).as_py()}, None])
        self.save("nested.arrow", pyarrow.table({"n": nested, "id": ids, "m": pyarrow.array([[("k", 1)], []],
                  pyarrow.map_(pyarrow.string(), pyarrow.int64())), "free": pyarrow.array([3, None])}))
        for name in ("extra.arrow", "nested.arrow"):
            graph = self.fresh(schema)
            self.done("load", graph, "T=" + name, "--ignore-unknown")
            self.assertEqual(self.done("count", graph, "T").out, "2\n")
        self.assertEqual([row["free"] for row in self.rows("T", graph)], [3, None])

    def test_columns_of_any_other_type_are_passed_over(self):
        kinds = pyarrow.array([0, 1, 0, 1, 0], pyarrow.int8())
        words = pyarrow.array(["q", "r", None, "q", "r"]).dictionary_encode()
        data = pyarrow.table({
            "id": pyarrow.array(range(5)),
            "runs": pyarrow.RunEndEncodedArray.from_arrays(pyarrow.array([2, 5], pyarrow.int32()), pyarrow.array(["x", "y"])),
            "views": pyarrow.array([["a"], ["b"], None, [], ["c"]], pyarrow.list_view(pyarrow.string_view())),
            "dense": pyarrow.UnionArray.from_dense(kinds, pyarrow.array([0, 0, 1, 1, 2], pyarrow.int32()),
                                                   [pyarrow.array([1, 2, 3]), pyarrow.array(["a", "b"])]),
            "sparse": pyarrow.UnionArray.from_sparse(kinds, [pyarrow.array(range(5)), pyarrow.array(list("abcde"))]),
            "fixed": pyarrow.array([[1, 2], None, [3, 4], [5, 6], [7, 8]], pyarrow.list_(pyarrow.int8(), 2)),
            "times": pyarrow.array([(1, 2, 3)] * 5, pyarrow.month_day_nano_interval()),
            "deep": pyarrow.array([{"a": "x", "b": [{"c": 1}]}, None, {"a": None, "b": []}, {"a": "y", "b": None}, {"b": [None]}]),
            "words": pyarrow.ListArray.from_arrays(pyarrow.array([0, 1, 2, 2, 3, 5], pyarrow.int32()), words),
            "text": pyarrow.array(["t0", None, "t2 and more than twelve bytes", "t3", "t4"], pyarrow.string_view())})
        v4 = pyarrow.ipc.MetadataVersion.V4
        types = {f"T{i}": {"key": "id", "properties": {"id": "int64", "text": "string?"}} for i in range(4)}
        self.save("0.arrow", data)
        self.save("1.arrows", data, rows=2, stream=True, compression="zstd")
        self.save("2.arrow", data, rows=3, metadata_version=v4)
        polars.DataFrame({"id": range(5), "p": [["a text of more than twelve"], None, [], ["b"], ["c"]],
                          "i": polars.Series([1, 2, None, 4, 5], dtype=polars.Int128), "text": data["text"].to_pylist(),
                          "l": polars.Series([["q"], None, [], ["r"], ["q", "r"]], dtype=polars.List(polars.Categorical))}
                         ).write_ipc(self.path("3.arrow"), compression="lz4")
        content = self.loaded("T0=0.arrow", "T1=1.arrows", "T2=2.arrow", "T3=3.arrow", "--ignore-unknown",
                              schema={"nodes": types, "edges": {}})
        for name in types:
            rows = sorted((json.loads(row) for row in content[name]), key=lambda row: row["id"])
            self.assertEqual([row["text"] for row in rows], data["text"].to_pylist(), name)

    def test_types_that_cannot_become_a_property_are_refused_with_their_names(self):
        for name, values, kind, shown in (
                ("i32", [1.0], pyarrow.float64(), "float64 cannot become int32"),
                ("i64", [True], pyarrow.bool_(), "bool cannot become int64"),
                ("flag", [1], pyarrow.int8(), "int8 cannot become bool"),
                ("text", [1], pyarrow.int64(), "int64 cannot become string"),
                ("text", [b"x"], pyarrow.binary(), "binary cannot become string"),
                ("f64", [[1.0]], pyarrow.list_(pyarrow.float64()), "list cannot become float64"),
                ("day", [datetime.time(1)], pyarrow.time32("s"), "time cannot become date"),
                ("moment", [datetime.timedelta(1)], pyarrow.duration("us"), "duration cannot become timestamp"),
                ("moment", [1], pyarrow.int64(), "int64 cannot become timestamp"),
                ("f64", [decimal.Decimal(1)], pyarrow.decimal256(10, 2), "decimal256 cannot become float64")):
            said = self.refuse(one(name, kind, values), f"column {name}: Arrow's {shown}")
            self.assertIn("cast the column to", said)

    def test_values_that_do_not_fit_are_refused_with_their_row(self):
        ns = pyarrow.array([0, 1], pyarrow.int64()).cast(pyarrow.timestamp("ns"))
        for name, values, kind, shown in (
                ("i32", [1, 2**31], pyarrow.int64(), '"2147483648" is out of range for int32'),
                ("i64", [1, 2**63], pyarrow.uint64(), '"9223372036854775808" is out of range for int64'),
                ("u64", [1, -1], pyarrow.int8(), '"-1" is out of range for uint64'),
                ("f32", [1, 1e39], pyarrow.float64(), "out of range for float32"),
                ("moment", ns, None, "finer than microseconds"),
                ("moment", [0, 2**62], pyarrow.timestamp("s"), "out of range"),
                ("i64", [decimal.Decimal("1.00"), decimal.Decimal("1.50")], pyarrow.decimal128(5, 2), '"1.5" is not an int64'),
                ("day", [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, 1)], pyarrow.timestamp("us"), "not a date"),
                ("text", ["a", "b\0c"], pyarrow.string(), "NUL byte")):
            self.assertIn("bad.arrow:2: column " + name, self.refuse(one(name, kind, values), shown))
        bad = pyarrow.StringArray.from_buffers(2, pyarrow.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pyarrow.py_buffer(b"a\xff"))
        self.refuse(one("text", None, bad), "bad.arrow:2: column text: the value is not valid UTF-8")

    def test_the_least_error_is_told_at_any_worker_count(self):
        ids = [i if i not in (700, 2500) else 5 for i in range(3000)]
        ages = [2**40 if i in (1500, 2900) else i for i in range(3000)]
        data = pyarrow.table({"id": ids, "i32": ages})
        self.save("a.arrow", data, rows=100)
        self.save("b.arrow", pyarrow.table({"id": [2**30], "i32": [2**33]}))
        for workers in ("1", "2", "8"):
            graph = self.fresh()
            said = self.refused(4, "load", graph, "T=a.arrow", "T=b.arrow", "--workers", workers,
                                env={"SLUICE_TEST_CHUNK": "2048"})
            self.assertIn('a.arrow:701: column id: the key "5" is already on line 6 ', said.err)

    def test_bad_rows_can_be_skipped_and_are_shown_as_objects(self):
        data = pyarrow.table({"id": [0, 1, 2, 2], "i32": [1, 2**40, None, 5], "f64": [0.5, float("nan"), 1.0, 2.0],
                              "moment": pyarrow.array([0, 0, 1, 1000], pyarrow.int64()).cast(pyarrow.timestamp("ns")),
                              "text": ["a", 'b"', None, "d"], "left out": [1, 2, 3, 4]})
        graph = self.fresh()
        self.save("a.arrow", data, rows=2)
        result = self.done("load", graph, "T=a.arrow", "--on-error", "skip", "--rejects", "rejects", "--ignore-unknown", "--json")
        self.assertEqual(result.document["rejected"], 2)
        self.assertEqual([row["id"] for row in self.rows("T", graph)], [0, 2])
        rejects = [json.loads(line) for line in self.read("rejects").splitlines()]
        self.assertEqual([(one["line"], one["code"]) for one in rejects], [(2, "CONSTRAINT_TYPE"), (3, "CONSTRAINT_TYPE")])
        self.assertEqual(json.loads(rejects[0]["record"]), {"id": 1, "i32": 2**40, "f64": "NaN", "moment": "1970-01-01T00:00:00Z",
                                                            "text": 'b"'})
        self.assertEqual(json.loads(rejects[1]["record"])["moment"], "a timestamp of 1 ns is finer than microseconds")
        self.save("cut.arrows", data, rows=2, stream=True)
        with open(self.path("cut.arrows"), "r+b") as file:
            file.truncate(os.path.getsize(self.path("cut.arrows")) - 9)
        said = self.refused(4, "load", self.fresh(), "T=cut.arrows", "--on-error", "skip", "--ignore-unknown")
        self.assertIn("cut.arrows:3: the data ends in the middle", said.err)

    # ---- damage ----

    def test_what_is_no_arrow_is_told_apart(self):
        for name, content, text in (("a.arrow", b"id,text\n1,x\n", "neither a file nor a stream"), ("b.arrow", b"", "empty"),
                                    ("c.arrow", b"PAR1" + bytes(60), "Parquet"), ("d.feather", b"FEA1" + bytes(60), "Feather of version 1")):
            self.write(name, content)
            self.refuse(None, text, 7, name)

    def test_cut_files_are_refused_behind_their_last_whole_row(self):
        data = table(100)
        self.save("a.arrow", data, rows=10)
        self.save("a.arrows", data, rows=10, stream=True)
        for name, bad in (("a.arrow", "cut.arrow"), ("a.arrows", "cut.arrows")):
            with open(self.path(name), "rb") as file:
                content = file.read()
            for length in (1, 9, len(content) // 2, len(content) - 1):
                self.write(bad, content[:length])
                said = self.refuse(None, bad + ":", 7 if length == 1 else 4, bad)
                self.assertIn("hint: write it again" if length == 1 else "write it again, and close its writer", said)
        self.write("more.arrows", content + content)
        self.refuse(None, "more.arrows:101: there are bytes behind the end of the stream", 4, "more.arrows")
        self.write("open.arrows", content[:-8])
        self.refuse(None, "open.arrows:101: the data ends", 4, "open.arrows")


if __name__ == "__main__":
    main()
