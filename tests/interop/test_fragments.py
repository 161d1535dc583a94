#!/usr/bin/env python3
"""Fragments open unchanged in pyarrow and polars, and every value is what was written.

The rows are those of tests/fragment/sample.c, computed here a second time from their numbers.
"""
import datetime
import os
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import polars
    import pyarrow
    import pyarrow.ipc
except ImportError as missing:
    if os.environ.get("CI"):
        raise
    print(f"skipped: {missing.name} is not installed (scripts/setup installs it)")
    sys.exit(77)

UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = ["flag", "i32", "i64", "u64", "f32", "f64", "text", "blob", "day", "moment", "from", "_row_id", "_commit"]


def text(i):
    return "" if i % 11 == 0 else f"row-{i}" + "\u00e9" * (i % 3)


def row(i):
    values = [
        i % 3 == 0,
        i * 7 - 1000,
        i * 1234567890123 - 5,
        2**64 - 1 - i,
        i / 4,
        i / 8 - 100,
        text(i),
        bytes([i & 255]) * (i % 5),
        datetime.date(1970, 1, 1) + datetime.timedelta(days=i % 40000 - 3000),
        EPOCH + datetime.timedelta(microseconds=i * 1000003 - 1000000000),
        {"A": i, "B": text(i)},
        2**40 + i,
        bytes([i & 255]) * 16,
    ]
    return {name: None if c < 10 and i % 7 == c % 7 else value for c, (name, value) in enumerate(zip(COLUMNS, values))}


SCHEMA = pyarrow.schema(
    [
        ("flag", pyarrow.bool_()),
        ("i32", pyarrow.int32()),
        ("i64", pyarrow.int64()),
        ("u64", pyarrow.uint64()),
        ("f32", pyarrow.float32()),
        ("f64", pyarrow.float64()),
        ("text", pyarrow.string()),
        ("blob", pyarrow.binary()),
        ("day", pyarrow.date32()),
        ("moment", pyarrow.timestamp("us", tz="UTC")),
        pyarrow.field(
            "from",
            pyarrow.struct(
                [
                    pyarrow.field("A", pyarrow.int64(), nullable=False),
                    pyarrow.field("B", pyarrow.string(), nullable=False),
                ]
            ),
            nullable=False,
        ),
        pyarrow.field("_row_id", pyarrow.uint64(), nullable=False),
        pyarrow.field("_commit", pyarrow.binary(16), nullable=False),
    ]
)


def check_schema(schema):
    assert schema.equals(SCHEMA), schema
    assert schema.metadata == {b"sluice.format": b"fragment/1", b"sluice.table": b"70"}, schema.metadata
    for i, field in enumerate(schema):
        expected = {9: b"18446744073709551615", 10: None, 11: None, 12: None}.get(i, str(i + 1).encode())
        assert (field.metadata or {}).get(b"sluice.property") == expected, field
    assert schema.field("_row_id").metadata == {b"sluice.type": b"row_id"}


def sampled(count):
    """All rows of a small fragment; some of a large one, the ends of its batches among them."""
    return list(range(count)) if count <= 1000 else [*range(0, count, 41), *range(65530, 65540), count - 1]


def check_rows(got, count, what):
    for i, values in zip(sampled(count), got, strict=True):
        expected = row(i)
        assert values == expected, f"{what}: row {i}: {values} instead of {expected}"


def check_pyarrow(path, count):
    with pyarrow.memory_map(path) as source:
        reader = pyarrow.ipc.open_file(source)
        check_schema(reader.schema)
        assert reader.num_record_batches == -(-count // (65536 if count > 1000 else 300))
        table = reader.read_all()
        table.validate(full=True)
        assert table.num_rows == count
        check_rows(table.take(sampled(count)).to_pylist() if count else [], count, path)
        for batch in (reader.get_batch(b) for b in range(reader.num_record_batches)):
            for column in batch.columns:  # no validity buffer where there is nothing to say
                assert column.null_count or column.buffers()[0] is None
    with open(path, "rb") as whole:  # what is behind the magic is a stream as well
        stream = pyarrow.ipc.open_stream(whole.read()[8:])
        assert stream.read_all().equals(table)


def check_polars(path, count):
    frame = polars.read_ipc(path)
    assert frame.columns == COLUMNS
    assert frame.schema["moment"] == polars.Datetime("us", "UTC")
    assert frame.height == count
    check_rows(frame[sampled(count)].to_dicts() if count else [], count, path)
    assert polars.scan_ipc(path).select(polars.len()).collect().item() == count


def main():
    program = os.path.join(os.environ["SLUICE_BUILD_DIR"], "tests", "test_fragment")
    base = os.path.realpath(os.environ.get("SLUICE_TEST_DIR") or os.environ["SLUICE_BUILD_DIR"])
    root = tempfile.mkdtemp(prefix="sluice-interop-", dir=base)
    try:
        subprocess.run([program, "--write-sample", root], check=True, timeout=300)
        folder = os.path.join(root, "tables", "70", "fragments")
        names = sorted(os.listdir(folder))
        assert len(names) == 14, names
        for name in names:
            path = os.path.join(folder, name)
            count = int(re.fullmatch(r"(?:plain|zstd)-(\d+)\.arrow", name).group(1))
            check_pyarrow(path, count)
            check_polars(path, count)
    finally:
        shutil.rmtree(root)
    print(f"{len(names)} fragments read by pyarrow {pyarrow.__version__} and polars {polars.__version__}")


if __name__ == "__main__":
    main()
