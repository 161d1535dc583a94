"""Sluice, a crash-safe property-graph store, from Python: its C library, with rows as Arrow.

    import sluice

    with sluice.Graph.create("social", schema) as graph:
        graph.load({"Person": "people.csv", "KNOWS": table_of_edges})
        graph.mutate([{"op": "upsert", "node": "Person", "key": 7, "set": {"name": "Ada"}}])
        frame = polars.from_arrow(graph.scan("Person", where="age >= 18"))

Rows come out as a pyarrow.RecordBatchReader that points into the mapped files. Errors are exceptions of type SluiceError. A graph, with
its snapshots and readers, is used by one thread at a time, and only in the process that opened it.
"""

from __future__ import annotations

import base64
import datetime
import json
import os
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import cffi
import pyarrow

__all__ = ["Graph", "Snapshot", "Receipt", "Commit", "Branch", "Neighbor", "SluiceError", "version"]

_ffi = cffi.FFI()
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "interface.cdef"), encoding="utf-8") as _file:
    _ffi.cdef(_file.read())
_lib = _ffi.dlopen(os.environ.get("SLUICE_LIBRARY", "libsluice.so.0"))

Source = Union[str, "os.PathLike[str]", Any]
_MODES = {"optimistic": _lib.SLUICE_OPTIMISTIC, "single": _lib.SLUICE_SINGLE, "queued": _lib.SLUICE_QUEUED}
_LOADS = {"insert": _lib.SLUICE_LOAD_INSERT, "upsert": _lib.SLUICE_LOAD_UPSERT, "overwrite": _lib.SLUICE_LOAD_OVERWRITE}
_DIRECTIONS = {"out": _lib.SLUICE_OUT, "in": _lib.SLUICE_IN, "both": _lib.SLUICE_BOTH}
_TRUTHS = {_lib.SLUICE_FALSE: False, _lib.SLUICE_TRUE: True, _lib.SLUICE_UNKNOWN: None}


def version() -> str:
    """The version of the library."""
    return _text(_lib.sluice_version()) or ""


class SluiceError(Exception):
    """What went wrong: code ("KEY_CONFLICT"), text for people, message without names and values, hint, committed and acknowledged
    (None: not known), operation_id, commit_id, phase, retryable, action, details."""

    def __init__(self, err: Any) -> None:
        self.code: str = _text(_lib.sluice_status_name(err.code)) or ""
        self.text: str = _text(err.text) or ""
        self.message: str = _text(err.message) or ""
        self.hint: str = _text(err.hint) or ""
        self.committed: Optional[bool] = _TRUTHS[err.committed]
        self.acknowledged: Optional[bool] = _TRUTHS[err.acknowledged]
        self.operation_id: Optional[str] = _text(err.operation_id) or None
        self.commit_id: Optional[str] = _text(err.commit_id) or None
        self.phase: str = _text(_lib.sluice_phase_name(err.phase)) or ""
        self.retryable: bool = bool(_lib.sluice_status_retryable(err.code))
        self.action: str = _text(_lib.sluice_action_name(_lib.sluice_status_action(err.code))) or ""
        details = _text(err.details)
        self.details: Dict[str, Any] = json.loads(details) if details else {}
        super().__init__("%s (%s)%s" % (self.text, self.code, "; " + self.hint if self.hint else ""))


class Receipt(NamedTuple):
    """What a write did. commit is None when there was nothing to do."""

    commit: Optional[str]
    operation: Optional[str]
    generation: int
    index: int
    time: datetime.datetime
    inserted: int
    updated: int
    deleted: int
    skipped: int
    repeated: bool
    acknowledged: bool
    restarts: int


class Commit(NamedTuple):
    """A commit of a branch's history."""

    commit: str
    parents: Tuple[str, ...]
    operation: Optional[str]
    generation: int
    index: int
    time: datetime.datetime
    kind: str
    actor: str
    message: Optional[str]
    inserted: int
    updated: int
    deleted: int


class Branch(NamedTuple):
    """A branch; name None, or head None: its records cannot be read."""

    name: Optional[str]
    head: Optional[str]
    generation: int
    time: Optional[datetime.datetime]


class Neighbor(NamedTuple):
    """A node that was reached, and over how many edges."""

    type: str
    key: Any
    depth: int


def _text(pointer: Any) -> Optional[str]:
    return None if pointer == _ffi.NULL else _ffi.string(pointer).decode("utf-8", "replace")


def _time(microseconds: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(microseconds=microseconds)


def _check(status: int, err: Any) -> None:
    if status != _lib.SLUICE_OK:
        raise SluiceError(err)


def _choice(choices: Mapping[str, int], word: str) -> int:
    if word not in choices:
        raise ValueError("%r is none of %s" % (word, ", ".join(choices)))
    return choices[word]


def _as_json(value: Any) -> Any:
    """What JSON has no form for, as its text."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    raise TypeError("a value of type %s has no place in a graph" % type(value).__name__)


def _dump(value: Any) -> bytes:
    return json.dumps(value, default=_as_json, ensure_ascii=False, allow_nan=False).encode("utf-8")


class _Words:
    """Keeps what C strings point to for as long as a call needs them."""

    def __init__(self) -> None:
        self.kept: List[Any] = []

    def __call__(self, text: Optional[str]) -> Any:
        if text is None:
            return _ffi.NULL
        data = os.fsencode(text) if isinstance(text, os.PathLike) else text.encode("utf-8")
        if b"\0" in data:
            raise ValueError("a text for the library holds U+0000")
        self.kept.append(_ffi.new("char[]", data))
        return self.kept[-1]

    def keep(self, thing: Any) -> Any:
        self.kept.append(thing)
        return thing


class _Calls:
    """Runs a function of Python from C; what it raises ends the walk and is raised again behind it."""

    def __init__(self) -> None:
        self.error: Optional[BaseException] = None

    def guard(self, function: Callable[..., Any], otherwise: Any) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            if self.error is None:
                try:
                    return function(*arguments)
                except BaseException as error:  # pylint: disable=broad-except
                    self.error = error
            return otherwise
        return run

    def finish(self, status: int, err: Any) -> None:
        if self.error is not None:
            raise self.error
        _check(status, err)


class Snapshot:
    """One state of one branch, pinned until it is closed. A context manager."""

    def __init__(self, graph: "Graph", branch: Optional[str], at: Optional[str]) -> None:
        words, err, handle = _Words(), _ffi.new("sluice_error *"), _ffi.new("sluice_snapshot **")
        _check(_lib.sluice_snapshot_open(graph._live(), words(branch), words(at), handle, err), err)
        self._handle = _ffi.gc(handle[0], _lib.sluice_snapshot_close)
        place = _ffi.new("sluice_place *")
        _lib.sluice_snapshot_place(self._handle, place)
        self.commit: str = _text(place.commit) or ""
        self.generation: int = place.generation
        self.index: int = place.index
        self.time: datetime.datetime = _time(place.time_us)

    def close(self) -> None:
        """Lets the state go; readers that came from it go on."""
        if self._handle is not None:
            _ffi.release(self._handle)
        self._handle = None

    def __enter__(self) -> "Snapshot":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def _live(self) -> Any:
        if self._handle is None:
            raise ValueError("the snapshot is closed")
        return self._handle

    def schema(self) -> Dict[str, Any]:
        """The schema, as in a schema file."""
        err, text, length = _ffi.new("sluice_error *"), _ffi.new("char **"), _ffi.new("size_t *")
        _check(_lib.sluice_snapshot_schema(self._live(), text, length, err), err)
        try:
            return json.loads(bytes(_ffi.buffer(text[0], length[0])))
        finally:
            _lib.sluice_free(text[0])

    def count(self, type: str) -> int:
        """The number of rows of a type."""
        words, err, rows = _Words(), _ffi.new("sluice_error *"), _ffi.new("uint64_t *")
        _check(_lib.sluice_count(self._live(), words(type), rows, err), err)
        return int(rows[0])

    def get(self, type: str, key: Any) -> Optional[Dict[str, Any]]:
        """A node by its key (a list of values where the key has several members); None when it is not there."""
        words, err, text, length = _Words(), _ffi.new("sluice_error *"), _ffi.new("char **"), _ffi.new("size_t *")
        _check(_lib.sluice_get(self._live(), words(type), words(_dump(key).decode("utf-8")), text, length, err), err)
        if text[0] == _ffi.NULL:
            return None
        try:
            return json.loads(bytes(_ffi.buffer(text[0], length[0])))
        finally:
            _lib.sluice_free(text[0])

    def neighbors(self, type: str, key: Any, *, edge: Optional[str] = None, direction: str = "out",
                  depth: int = 1) -> List[Neighbor]:
        """The nodes that are reached from one over edges, breadth first."""
        words, err, calls = _Words(), _ffi.new("sluice_error *"), _Calls()
        reached: List[Neighbor] = []
        options = _ffi.new("sluice_neighbor_options *", {"edge": words(edge), "depth": depth,
                                                         "direction": _choice(_DIRECTIONS, direction)})

        def add(_context: Any, name: Any, found: Any, distance: int) -> bool:
            reached.append(Neighbor(_text(name) or "", json.loads(_text(found) or "null"), distance))
            return True

        each = _ffi.callback("sluice_neighbor_fn", calls.guard(add, False))
        calls.finish(_lib.sluice_neighbors(self._live(), words(type), words(_dump(key).decode("utf-8")), options, each,
                                           _ffi.NULL, err), err)
        return reached

    def scan(self, type: str, *, columns: Optional[Sequence[str]] = None, where: Optional[str] = None,
             limit: Optional[int] = None) -> pyarrow.RecordBatchReader:
        """The rows of a type. `where` is comparisons joined by and: "age >= 18 and name != 'Ada'"."""
        words, err, stream = _Words(), _ffi.new("sluice_error *"), _ffi.new("struct ArrowArrayStream *")
        options = _ffi.new("sluice_scan_options *", {"where": words(where), "limit": limit or 0})
        if columns is not None:
            options.columns = words.keep(_ffi.new("char *[]", [words(name) for name in columns] or [_ffi.NULL]))
            options.column_count = len(columns)
        _check(_lib.sluice_scan(self._live(), words(type), options, stream, err), err)
        if limit == 0:
            reader = pyarrow.RecordBatchReader._import_from_c(int(_ffi.cast("uintptr_t", stream)))
            return pyarrow.RecordBatchReader.from_batches(reader.schema, [])
        return pyarrow.RecordBatchReader._import_from_c(int(_ffi.cast("uintptr_t", stream)))


class Graph:
    """A graph. Made by create or open; a context manager."""

    def __init__(self, handle: Any, path: str) -> None:
        self._handle = _ffi.gc(handle, _lib.sluice_close)
        self.path = path

    @classmethod
    def create(cls, path: Union[str, "os.PathLike[str]"], schema: Union[str, Mapping[str, Any]], *,
               mode: str = "optimistic") -> "Graph":
        """Makes a graph in the new folder `path` and opens it for writing."""
        words, err, handle = _Words(), _ffi.new("sluice_error *"), _ffi.new("sluice_graph **")
        text = schema.encode("utf-8") if isinstance(schema, str) else _dump(schema)
        _check(_lib.sluice_create(words(path), text, len(text), _choice(_MODES, mode), handle, err), err)
        return cls(handle[0], os.fspath(path))

    @classmethod
    def open(cls, path: Union[str, "os.PathLike[str]"], *, write: bool = True) -> "Graph":
        """Opens a graph; write=False changes nothing on disk."""
        words, err, handle = _Words(), _ffi.new("sluice_error *"), _ffi.new("sluice_graph **")
        _check(_lib.sluice_open(words(path), _lib.SLUICE_WRITE if write else _lib.SLUICE_READ, handle, err), err)
        return cls(handle[0], os.fspath(path))

    def close(self) -> None:
        """Closes it; snapshots and readers that came from it go on."""
        if self._handle is not None:
            _ffi.release(self._handle)
        self._handle = None

    def __enter__(self) -> "Graph":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def _live(self) -> Any:
        if self._handle is None:
            raise ValueError("the graph is closed")
        return self._handle

    @property
    def id(self) -> str:
        """The graph's id."""
        text = _ffi.new("char[]", _lib.SLUICE_ID_TEXT if hasattr(_lib, "SLUICE_ID_TEXT") else 37)
        _lib.sluice_graph_id(self._live(), text)
        return _text(text) or ""

    # ---- reading ----

    def snapshot(self, branch: Optional[str] = None, at: Optional[str] = None) -> Snapshot:
        """Pins the head of a branch (default: main), or a commit, generation, checkpoint or time on it."""
        return Snapshot(self, branch, at)

    def count(self, type: str, *, branch: Optional[str] = None, at: Optional[str] = None) -> int:
        """The number of rows of a type."""
        with self.snapshot(branch, at) as snapshot:
            return snapshot.count(type)

    def get(self, type: str, key: Any, *, branch: Optional[str] = None, at: Optional[str] = None) -> Optional[Dict[str, Any]]:
        """A node by its key; None when it is not there."""
        with self.snapshot(branch, at) as snapshot:
            return snapshot.get(type, key)

    def neighbors(self, type: str, key: Any, *, edge: Optional[str] = None, direction: str = "out", depth: int = 1,
                  branch: Optional[str] = None, at: Optional[str] = None) -> List[Neighbor]:
        """The nodes that are reached from one over edges."""
        with self.snapshot(branch, at) as snapshot:
            return snapshot.neighbors(type, key, edge=edge, direction=direction, depth=depth)

    def scan(self, type: str, *, columns: Optional[Sequence[str]] = None, where: Optional[str] = None,
             limit: Optional[int] = None, branch: Optional[str] = None, at: Optional[str] = None) -> pyarrow.RecordBatchReader:
        """The rows of a type, not copied; the reader keeps their state pinned until it is done with."""
        with self.snapshot(branch, at) as snapshot:
            return snapshot.scan(type, columns=columns, where=where, limit=limit)

    def log(self, branch: Optional[str] = None, *, limit: Optional[int] = None) -> List[Commit]:
        """The commits of a branch, newest first."""
        words, err, calls = _Words(), _ffi.new("sluice_error *"), _Calls()
        commits: List[Commit] = []

        def add(_context: Any, info: Any) -> bool:
            if limit is not None and len(commits) >= limit:
                return False
            commits.append(Commit(_text(info.commit) or "", tuple(t for t in map(_text, info.parents) if t),
                                  _text(info.operation) or None, info.generation, info.index, _time(info.time_us),
                                  _text(info.kind) or "", _text(info.actor) or "", _text(info.message), info.inserted,
                                  info.updated, info.deleted))
            return True

        each = _ffi.callback("sluice_log_fn", calls.guard(add, False))
        calls.finish(_lib.sluice_log(self._live(), words(branch), each, _ffi.NULL, err), err)
        return commits

    # ---- branches ----

    def branches(self) -> List[Branch]:
        """All branches."""
        err, calls = _ffi.new("sluice_error *"), _Calls()
        found: List[Branch] = []

        def add(_context: Any, branch: Any) -> bool:
            damaged = bool(branch.damaged)
            found.append(Branch(_text(branch.name), None if damaged else _text(branch.head), branch.generation,
                                None if damaged else _time(branch.time_us)))
            return True

        each = _ffi.callback("sluice_branch_fn", calls.guard(add, False))
        calls.finish(_lib.sluice_branches(self._live(), each, _ffi.NULL, err), err)
        return found

    def create_branch(self, name: str, start: Optional[str] = None) -> None:
        """Makes a branch that begins at a branch, commit or checkpoint (default: main)."""
        words, err = _Words(), _ffi.new("sluice_error *")
        _check(_lib.sluice_branch_create(self._live(), words(name), words(start), err), err)

    def delete_branch(self, name: str) -> None:
        """Deletes a branch."""
        words, err = _Words(), _ffi.new("sluice_error *")
        _check(_lib.sluice_branch_delete(self._live(), words(name), err), err)

    # ---- writing ----

    def mutate(self, changes: Union[str, bytes, Iterable[Mapping[str, Any]]], *, branch: Optional[str] = None,
               message: Optional[str] = None, actor: Optional[str] = None, operation: Optional[str] = None,
               if_head: Optional[str] = None, dry_run: bool = False) -> Receipt:
        """Commits changes as one: dicts, or JSON Lines, as `sluice mutate` takes them."""
        if isinstance(changes, str):
            text = changes.encode("utf-8")
        elif isinstance(changes, bytes):
            text = changes
        else:
            text = b"".join(_dump(change) + b"\n" for change in changes)
        err, batch, receipt = _ffi.new("sluice_error *"), _ffi.new("sluice_batch **"), _ffi.new("sluice_receipt *")
        words, calls = _Words(), _Calls()
        options = _options(words, calls, branch, message, actor, operation, if_head, dry_run, None)
        _check(_lib.sluice_batch_new(batch, err), err)
        held = _ffi.gc(batch[0], _lib.sluice_batch_free)
        try:
            _check(_lib.sluice_batch_json(held, text, len(text), err), err)
            calls.finish(_lib.sluice_commit(self._live(), held, options, receipt, err), err)
        finally:
            _ffi.release(held)
        return _receipt(receipt)

    def load(self, data: Union[Mapping[str, Source], Iterable[Tuple[str, Source]]], *, mode: str = "insert",
             branch: Optional[str] = None, message: Optional[str] = None, actor: Optional[str] = None,
             operation: Optional[str] = None, if_head: Optional[str] = None, dry_run: bool = False,
             progress: Optional[Callable[[int, int], Any]] = None) -> Receipt:
        """Loads rows as one commit: for each type a file, or anything with an Arrow stream (pyarrow, polars, pandas, DuckDB). Several
        inputs of one type are given as pairs. `progress` gets rows and bytes."""
        pairs = list(data.items()) if isinstance(data, Mapping) else list(data)
        words, calls, err = _Words(), _Calls(), _ffi.new("sluice_error *")
        options = _options(words, calls, branch, message, actor, operation, if_head, dry_run, progress)
        inputs, receipt = _ffi.new("sluice_input[]", len(pairs) or 1), _ffi.new("sluice_receipt *")
        graph, load_mode = self._live(), _choice(_LOADS, mode)
        for i, (type_name, source) in enumerate(pairs):
            inputs[i].type = words(type_name)
            if isinstance(source, (str, os.PathLike)):
                inputs[i].path = words(source)
                continue
            stream = words.keep(_ffi.new("struct ArrowArrayStream *"))
            _reader_of(source)._export_to_c(int(_ffi.cast("uintptr_t", stream)))
            inputs[i].stream = stream
        calls.finish(_lib.sluice_load(graph, inputs, len(pairs), load_mode, options, receipt, err), err)
        return _receipt(receipt)


def _reader_of(source: Any) -> pyarrow.RecordBatchReader:
    if isinstance(source, pyarrow.RecordBatchReader):
        return source
    if isinstance(source, pyarrow.RecordBatch):
        return pyarrow.RecordBatchReader.from_batches(source.schema, [source])
    if isinstance(source, pyarrow.Table):
        return source.to_reader()
    if hasattr(source, "__arrow_c_stream__"):
        return pyarrow.RecordBatchReader.from_stream(source)
    if hasattr(source, "fetch_record_batch"):  # a result of DuckDB
        return source.fetch_record_batch()
    if type(source).__module__.split(".")[0] == "pandas":
        return pyarrow.Table.from_pandas(source, preserve_index=False).to_reader()
    raise TypeError("rows come from a file or an Arrow stream, not from %s" % type(source).__name__)


def _options(words: _Words, calls: _Calls, branch: Optional[str], message: Optional[str], actor: Optional[str],
             operation: Optional[str], if_head: Optional[str], dry_run: bool,
             progress: Optional[Callable[[int, int], Any]]) -> Any:
    options = words.keep(_ffi.new("sluice_write_options *", {
        "branch": words(branch), "message": words(message), "actor": words(actor or "python"),
        "operation": words(operation), "if_head": words(if_head), "dry_run": dry_run}))
    if progress is not None:
        tell = calls.guard(lambda _context, rows, count: progress(rows, count), None)
        options.progress = words.keep(_ffi.callback("void(void *, uint64_t, uint64_t)", tell))
        options.cancelled = words.keep(_ffi.callback("bool(void *)", lambda _context: calls.error is not None))
    return options


def _receipt(receipt: Any) -> Receipt:
    return Receipt(_text(receipt.commit) or None, _text(receipt.operation) or None, receipt.generation, receipt.index,
                   _time(receipt.time_us), receipt.inserted, receipt.updated, receipt.deleted, receipt.skipped,
                   bool(receipt.repeated), bool(receipt.acknowledged), receipt.restarts)
