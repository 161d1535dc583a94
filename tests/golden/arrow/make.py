"""Makes the samples beside it: small Arrow files of other producers, with pyarrow and polars (scripts/setup installs them)."""
import datetime
import decimal
import os

import polars
import pyarrow
import pyarrow.ipc

HERE = os.path.dirname(os.path.abspath(__file__))
UTC = datetime.timezone.utc
ROWS = 11


def column(kind, value):
    return pyarrow.array([None if i % 3 == 2 else value(i) for i in range(ROWS)], kind)


def wide():
    """Every kind that is read, and some that are passed over."""
    day = datetime.date(2024, 2, 29)
    return pyarrow.table({
        "bool": column(pyarrow.bool_(), lambda i: i % 2 == 0), "i8": column(pyarrow.int8(), lambda i: -i),
        "u64": column(pyarrow.uint64(), lambda i: 2**64 - 1 - i), "f32": column(pyarrow.float32(), lambda i: i / 4),
        "f64": column(pyarrow.float64(), lambda i: i / 8), "text": column(pyarrow.string(), lambda i: "t" * i),
        "long": column(pyarrow.large_binary(), lambda i: b"b" * i), "fixed": column(pyarrow.binary(2), lambda i: b"xy"),
        "view": column(pyarrow.string_view(), lambda i: "view " * i), "day": column(pyarrow.date64(), lambda i: day),
        "moment": column(pyarrow.timestamp("ms", "UTC"), lambda i: datetime.datetime(2024, 1, 1, tzinfo=UTC)),
        "decimal": column(pyarrow.decimal128(9, 2), lambda i: decimal.Decimal(i) / 4),
        "list": column(pyarrow.list_(pyarrow.list_(pyarrow.int8())), lambda i: [[i], []]),
        "map": column(pyarrow.map_(pyarrow.string(), pyarrow.int8()), lambda i: [("k", i)]),
        "struct": column(pyarrow.struct({"a": pyarrow.int16(), "b": pyarrow.string()}), lambda i: {"a": i, "b": "s" * i}),
        "null": pyarrow.nulls(ROWS)})


def part(values, indexes):
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(indexes, pyarrow.int8()), pyarrow.array(values))


def save(name, schema, batches, stream=False, **options):
    new = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
    with new(os.path.join(HERE, name), schema, options=pyarrow.ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)


def main():
    data = wide()
    batches = data.to_batches(max_chunksize=4)
    save("wide.arrow", data.schema, batches)
    some = data.select(["text", "i8", "view"])
    save("lz4.arrow", some.schema, some.to_batches(max_chunksize=7), compression="lz4")
    save("zstd.arrows", some.schema, some.to_batches(max_chunksize=7), stream=True, compression="zstd")
    some = data.select(["f64", "text"])
    save("early.arrows", some.schema, some.to_batches(max_chunksize=7), stream=True, use_legacy_format=True,
         metadata_version=pyarrow.ipc.MetadataVersion.V4)
    parts = [part(["a", "b"], [0, 1]), part(["a", "b", "c"], [2, 0]), part(["x", None], [0, None]), part(["x", None, "y"], [1, 2])]
    schema = pyarrow.schema({"d": parts[0].type})
    save("dictionaries.arrows", schema, [pyarrow.record_batch([one], schema=schema) for one in parts], stream=True,
         emit_dictionary_deltas=True)
    save("deltas.arrow", schema, [pyarrow.record_batch([one], schema=schema) for one in parts[:2]], emit_dictionary_deltas=True)
    frame = polars.DataFrame({"n": [1, None, 3], "s": ["short", "a text that is longer than twelve bytes", None],
                              "c": ["x", "y", "x"]}, schema_overrides={"c": polars.Categorical})
    frame.write_ipc(os.path.join(HERE, "polars.arrow"), compression="zstd")


if __name__ == "__main__":
    main()
