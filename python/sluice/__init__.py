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
import re
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import pyarrow

from .interface import ffi as _ffi

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["Graph", "Snapshot", "Receipt", "MergeReceipt", "Commit", "Branch", "Checkpoint", "Change", "Conflict", "Collected", "Reject",
           "Feed", "Neighbor", "Copied", "Finding", "Salvaged", "SluiceError", "MergeConflict", "GapError", "salvage", "to_parquet", "version"]

_lib = _ffi.dlopen(os.environ.get("SLUICE_LIBRARY", "libsluice.so.0"))

Source = Union[str, "os.PathLike[str]", Any]
_MODES = {"optimistic": _lib.SLUICE_OPTIMISTIC, "single": _lib.SLUICE_SINGLE, "queued": _lib.SLUICE_QUEUED}
_LOADS = {"insert": _lib.SLUICE_LOAD_INSERT, "upsert": _lib.SLUICE_LOAD_UPSERT, "overwrite": _lib.SLUICE_LOAD_OVERWRITE}
_DIRECTIONS = {"out": _lib.SLUICE_OUT, "in": _lib.SLUICE_IN, "both": _lib.SLUICE_BOTH}
_RULES = {"fail": _lib.SLUICE_MERGE_FAIL, "ours": _lib.SLUICE_MERGE_OURS, "theirs": _lib.SLUICE_MERGE_THEIRS}
_OUTCOMES = {_lib.SLUICE_MERGE_UP_TO_DATE: "up-to-date", _lib.SLUICE_MERGE_FAST_FORWARD: "fast-forward",
             _lib.SLUICE_MERGE_MERGED: "merged"}
_CHANGES = {_lib.SLUICE_CHANGE_INSERT: "insert", _lib.SLUICE_CHANGE_UPDATE: "update", _lib.SLUICE_CHANGE_DELETE: "delete",
            _lib.SLUICE_CHANGE_SCHEMA: "schema", _lib.SLUICE_CHANGE_COMMIT: "commit"}
_CURSOR_TEXT, _WAIT_MS, _FEED_BATCH = 68, 500, 1000
_TRUTHS = {_lib.SLUICE_FALSE: False, _lib.SLUICE_TRUE: True, _lib.SLUICE_UNKNOWN: None}


def version() -> str:
    """The version of the library."""
    return _text(_lib.sluice_version()) or ""


_FLAG = re.compile(r"--([a-z]+(?:-[a-z]+)*)(?:[ =]('[^']*'|(?:skip|insert|overwrite|upsert|ours|theirs|csv|jsonl)\b|\d+[KMGT]?\b))?")
_SWITCHES = {"ignore-unknown", "no-header", "allow-data-loss", "create-branch", "force"}


def _argument(flag: "re.Match[str]") -> str:
    name, value = flag.group(1).replace("-", "_"), flag.group(2)
    if flag.group(1) in _SWITCHES:
        return name + "=True"
    return name if value is None else "%s=%s" % (name, value if value.startswith("'") or value.isdigit() else "'%s'" % value)


def _for_python(text: str) -> str:
    """A text of the command line's: its flags as the arguments that they are here; commands stay as they are."""
    return "".join(piece if i % 2 else _FLAG.sub(_argument, piece) for i, piece in enumerate(re.split(r"(`[^`]*`|\bsluice [a-z][^,;]*)", text)))


class SluiceError(Exception):
    """What went wrong: code ("KEY_CONFLICT"), text for people, message without names and values, hint, committed and acknowledged
    (None: not known), operation_id, commit_id, phase, retryable, action, details."""

    def __init__(self, err: Any) -> None:
        self.code: str = _text(_lib.sluice_status_name(err.code)) or ""
        self.text: str = _for_python(_text(err.text) or "")
        self.message: str = _text(err.message) or ""
        self.hint: str = _for_python(_text(err.hint) or "")
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


class MergeConflict(SluiceError):
    """Both branches changed the same: `conflicts` says what; nothing was changed."""

    conflicts: "List[Conflict]" = []


class GapError(SluiceError):
    """What a feed would tell next was collected: begin again with a scan, and a feed from its commit on."""


class Receipt(NamedTuple):
    """What a write did. commit is None when there was nothing to do."""

    commit: Optional[str]
    operation: Optional[str]
    generation: int
    index: int  # type: ignore[assignment]  # not tuple's
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
    index: int  # type: ignore[assignment]  # not tuple's
    time: datetime.datetime
    kind: str
    actor: str
    message: Optional[str]
    inserted: int
    updated: int
    deleted: int


class MergeReceipt(NamedTuple):
    """What a merge did: outcome "merged", "fast-forward" or "up-to-date" (then there is no commit)."""

    outcome: str
    receipt: Receipt
    source_deleted: bool


class Conflict(NamedTuple):
    """What stood in the way of a merge; `ours` and `theirs` are the commits that last wrote it."""

    kind: str
    type: Optional[str]
    key: Any
    property: Optional[str]
    text: Optional[str]
    ours: Optional[str]
    theirs: Optional[str]


class Change(NamedTuple):
    """A change between two states, or (with what comes behind `after`) of a commit of a feed.

    change is "insert", "update" (before and after hold the properties that changed), "delete", and in feeds "schema" and "commit" (behind
    all changes of one). name is what a row is known by: {"key": 7}; of an edge {"from": 7, "to": 8}.
    """

    change: str
    type: Optional[str]
    name: Dict[str, Any]
    before: Optional[Dict[str, Any]]
    after: Optional[Dict[str, Any]]
    commit: Optional[str] = None
    generation: int = 0
    index: int = 0  # type: ignore[assignment]
    time: Optional[datetime.datetime] = None
    operation: Optional[str] = None
    kind: Optional[str] = None
    cursor: Optional[str] = None


class Checkpoint(NamedTuple):
    """A name for a commit, which then stays."""

    name: str
    commit: str
    generation: int
    index: int  # type: ignore[assignment]  # not tuple's
    time: datetime.datetime


class Reject(NamedTuple):
    """A row that a load left out."""

    input: str
    line: int
    code: str
    text: str


class Collected(NamedTuple):
    """What gc removed, or in a dry run would."""

    files: int
    bytes: int
    generations: int


class Copied(NamedTuple):
    """What a backup did: copied files, those that were there, those that went."""

    first: bool
    branches: int
    files: int
    bytes: int
    reused_files: int
    reused_bytes: int
    removed_files: int


class Finding(NamedTuple):
    """What salvage lost, or guessed."""

    lost: bool
    object: str
    what: str


class Salvaged(NamedTuple):
    """What salvage made: rows of the type in the new graph, and what became of the others."""

    rows: int
    whole: bool
    lost_rows: Optional[int]
    rejected: int
    doubled: int
    generation: Optional[int]
    older: bool
    deletions_unknown: bool
    findings: List[Finding]


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
    if status == _lib.SLUICE_OK:
        return
    if status == _lib.SLUICE_NOT_FOUND and '"gap":true' in (_text(err.details) or ""):
        raise GapError(err)
    raise SluiceError(err)


def _parsed(pointer: Any) -> Any:
    text = _text(pointer)
    return None if text is None else json.loads(text)


def _change(change: Any) -> Change:
    name = _parsed(change.name) or {}
    if change.commit[0] == b"\0":
        return Change(_CHANGES[change.kind], _text(change.type), name, _parsed(change.before), _parsed(change.after))
    return Change(_CHANGES[change.kind], _text(change.type), name, _parsed(change.before), _parsed(change.after), _text(change.commit),
                  change.generation, change.index, _time(change.time_us), _text(change.operation) or None, _text(change.commit_kind),
                  _text(change.cursor))


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

    def __call__(self, text: Union[None, str, "os.PathLike[str]"]) -> Any:
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
            schema: Dict[str, Any] = json.loads(bytes(_ffi.buffer(text[0], length[0])))
            return schema
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
            node: Dict[str, Any] = json.loads(bytes(_ffi.buffer(text[0], length[0])))
            return node
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


    def to_polars(self, type: str, **choice: Any) -> "polars.DataFrame":
        """The rows of a type as a polars frame; `choice` as for scan."""
        import polars
        frame = polars.from_arrow(self.scan(type, **choice).read_all())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_pandas(self, type: str, **choice: Any) -> "pandas.DataFrame":
        """The rows of a type as a pandas frame; `choice` as for scan."""
        return self.scan(type, **choice).read_all().to_pandas()

    def diff(self, to: "Snapshot") -> List[Change]:
        """What leads from this state to another of the same graph."""
        err, calls = _ffi.new("sluice_error *"), _Calls()
        found: List[Change] = []

        def add(_context: Any, change: Any) -> bool:
            found.append(_change(change))
            return True

        each = _ffi.callback("sluice_change_fn", calls.guard(add, False))
        calls.finish(_lib.sluice_diff(self._live(), to._live(), each, _ffi.NULL, err), err)
        return found


class Feed:
    """The changes of a branch behind a cursor. A context manager; iterating waits for more (until interrupted), `read` does not.

        for change in graph.changes(since=kept):
            ...                       # deal with it
            kept = change.cursor      # and keep this: any later process goes on from here
    """

    def __init__(self, graph: "Graph", branch: Optional[str], since: Optional[str]) -> None:
        words, err, handle = _Words(), _ffi.new("sluice_error *"), _ffi.new("sluice_feed **")
        _check(_lib.sluice_feed_open(graph._live(), words(branch), words(since), handle, err), err)
        self._handle = _ffi.gc(handle[0], _lib.sluice_feed_close)

    def close(self) -> None:
        """Lets the place go where it stands."""
        if self._handle is not None:
            _ffi.release(self._handle)
        self._handle = None

    def __enter__(self) -> "Feed":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def _live(self) -> Any:
        if self._handle is None:
            raise ValueError("the feed is closed")
        return self._handle

    @property
    def cursor(self) -> str:
        """Behind the last change that was read."""
        text = _ffi.new("char[]", _CURSOR_TEXT)
        _lib.sluice_feed_cursor(self._live(), text)
        return _text(text) or ""

    def read(self, limit: Optional[int] = None) -> List[Change]:
        """What there is by now, at most `limit` changes."""
        err, calls = _ffi.new("sluice_error *"), _Calls()
        found: List[Change] = []

        def add(_context: Any, change: Any) -> bool:
            if limit is not None and len(found) >= limit:
                return False
            found.append(_change(change))
            return True

        each = _ffi.callback("sluice_change_fn", calls.guard(add, False))
        calls.finish(_lib.sluice_feed_read(self._live(), each, _ffi.NULL, err), err)
        return found

    def wait(self, seconds: float) -> bool:
        """Sleeps until something was written since the last read, at most so long; False: the time is over."""
        err, changed = _ffi.new("sluice_error *"), _ffi.new("bool *")
        _check(_lib.sluice_feed_wait(self._live(), int(seconds * 1000), changed, err), err)
        return bool(changed[0])

    def __iter__(self) -> Iterator[Change]:
        while True:
            found = self.read(_FEED_BATCH)
            yield from found
            while not found and not self.wait(_WAIT_MS / 1000):  # in pieces, so that Python sees signals
                pass


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

    def to_polars(self, type: str, *, branch: Optional[str] = None, at: Optional[str] = None, **choice: Any) -> "polars.DataFrame":
        """The rows of a type as a polars frame; `choice` as for scan."""
        with self.snapshot(branch, at) as snapshot:
            return snapshot.to_polars(type, **choice)

    def to_pandas(self, type: str, *, branch: Optional[str] = None, at: Optional[str] = None, **choice: Any) -> "pandas.DataFrame":
        """The rows of a type as a pandas frame; `choice` as for scan."""
        with self.snapshot(branch, at) as snapshot:
            return snapshot.to_pandas(type, **choice)

    def diff(self, a: str, b: str, *, branch: Optional[str] = None) -> List[Change]:
        """What leads from one place of a branch to another: commits, generations, checkpoints, times, "head"."""
        with self.snapshot(branch, a) as older, self.snapshot(branch, b) as newer:
            return older.diff(newer)

    def changes(self, since: Optional[str] = None, *, branch: Optional[str] = None) -> Feed:
        """The changes of a branch behind a cursor, commit or other place (default: all of them)."""
        return Feed(self, branch, since)

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

    def merge(self, source: str, *, into: Optional[str] = None, on_conflict: str = "fail", delete_source: bool = False,
              message: Optional[str] = None, operation: Optional[str] = None, if_head: Optional[str] = None) -> MergeReceipt:
        """Merges a branch into another (default: main), as one commit. MergeConflict: nothing was changed."""
        words, calls, err = _Words(), _Calls(), _ffi.new("sluice_error *")
        options = _options(words, calls, into, message, None, operation, if_head, False, None)
        receipt, conflicts = _ffi.new("sluice_merge_receipt *"), []

        def add(_context: Any, found: Any) -> bool:
            conflicts.append(Conflict(_text(found.kind) or "", _text(found.type), _parsed(found.key), _text(found.property),
                                      _text(found.text), _text(found.ours) or None, _text(found.theirs) or None))
            return True

        each = _ffi.callback("sluice_conflict_fn", calls.guard(add, False))
        status = _lib.sluice_merge(self._live(), words(source), _choice(_RULES, on_conflict), delete_source, options, each, _ffi.NULL,
                                   receipt, err)
        if status == _lib.SLUICE_MERGE_CONFLICT and calls.error is None:
            raised = MergeConflict(err)
            raised.conflicts = conflicts
            raise raised
        calls.finish(status, err)
        return MergeReceipt(_OUTCOMES[receipt.outcome], _receipt(receipt.receipt), bool(receipt.source_deleted))

    # ---- checkpoints, schema, history ----

    def checkpoints(self) -> List[Checkpoint]:
        """All checkpoints."""
        err, calls = _ffi.new("sluice_error *"), _Calls()
        found: List[Checkpoint] = []

        def add(_context: Any, one: Any) -> bool:
            found.append(Checkpoint(_text(one.name) or "", _text(one.commit) or "", one.generation, one.index, _time(one.time_us)))
            return True

        each = _ffi.callback("sluice_checkpoint_fn", calls.guard(add, False))
        calls.finish(_lib.sluice_checkpoints(self._live(), each, _ffi.NULL, err), err)
        return found

    def create_checkpoint(self, name: str, *, branch: Optional[str] = None, at: Optional[str] = None) -> None:
        """Names the head of a branch, or a place on it."""
        words, err = _Words(), _ffi.new("sluice_error *")
        _check(_lib.sluice_checkpoint_create(self._live(), words(name), words(branch), words(at), err), err)

    def delete_checkpoint(self, name: str) -> None:
        """Takes the name away."""
        words, err = _Words(), _ffi.new("sluice_error *")
        _check(_lib.sluice_checkpoint_delete(self._live(), words(name), err), err)

    def apply_schema(self, schema: Union[str, Mapping[str, Any]], *, allow_data_loss: bool = False, branch: Optional[str] = None,
                     message: Optional[str] = None, operation: Optional[str] = None, if_head: Optional[str] = None) -> Receipt:
        """Changes the schema of a branch, as one commit."""
        words, calls, err, receipt = _Words(), _Calls(), _ffi.new("sluice_error *"), _ffi.new("sluice_receipt *")
        text = schema.encode("utf-8") if isinstance(schema, str) else _dump(schema)
        options = _options(words, calls, branch, message, None, operation, if_head, False, None)
        _check(_lib.sluice_schema_apply(self._live(), text, len(text), allow_data_loss, options, receipt, err), err)
        return _receipt(receipt)

    def revert(self, to: str, *, branch: Optional[str] = None, message: Optional[str] = None, operation: Optional[str] = None,
               if_head: Optional[str] = None) -> Receipt:
        """Publishes the state of an older place as a new commit."""
        words, calls, err, receipt = _Words(), _Calls(), _ffi.new("sluice_error *"), _ffi.new("sluice_receipt *")
        options = _options(words, calls, branch, message, None, operation, if_head, False, None)
        _check(_lib.sluice_revert(self._live(), words(to), options, receipt, err), err)
        return _receipt(receipt)

    def gc(self, *, keep: int = 0, keep_seconds: int = 0, dry_run: bool = False) -> Collected:
        """Removes what nobody needs any more; with limits also history beyond them."""
        err, result = _ffi.new("sluice_error *"), _ffi.new("sluice_gc_result *")
        options = _ffi.new("sluice_gc_options *", {"keep": keep, "keep_seconds": keep_seconds, "dry_run": dry_run})
        _check(_lib.sluice_gc(self._live(), options, result, err), err)
        return Collected(result.files, result.bytes, result.generations)

    def backup(self, destination: Union[str, "os.PathLike[str]"], *, progress: Optional[Callable[[Copied], Any]] = None) -> Copied:
        """Copies the graph, while it is in use, to a folder that is a graph then; again: only what is new."""
        words, calls, err, result = _Words(), _Calls(), _ffi.new("sluice_error *"), _ffi.new("sluice_backup_result *")

        def tell(_context: Any, so_far: Any) -> bool:
            if progress is not None:
                progress(_copied(so_far))
            return True

        each = _ffi.callback("sluice_backup_fn", calls.guard(tell, False))
        calls.finish(_lib.sluice_backup(self._live(), words(destination), each, _ffi.NULL, result, err), err)
        return _copied(result)

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
             progress: Optional[Callable[[int, int], Any]] = None, on_error: str = "fail", max_errors: Optional[int] = None,
             rejects: Optional[List[Reject]] = None, create_branch: bool = False, start: Optional[str] = None,
             ignore_unknown: bool = False) -> Receipt:
        """Loads rows as one commit: for each type a file (also Parquet), or anything with an Arrow stream (pyarrow, polars, pandas,
        DuckDB). Several inputs of one type are given as pairs. `progress` gets rows and bytes. on_error="skip" leaves bad rows out, at most
        `max_errors`, and appends them to `rejects`. create_branch makes `branch` with this load, beginning at `start`."""
        pairs = list(data.items()) if isinstance(data, Mapping) else list(data)
        if on_error not in ("fail", "skip") or max_errors is not None and max_errors < 1:
            raise ValueError("on_error is fail or skip, max_errors at least 1")
        words, calls, err = _Words(), _Calls(), _ffi.new("sluice_error *")
        options = _options(words, calls, branch, message, actor, operation, if_head, dry_run, progress)
        inputs, receipt = _ffi.new("sluice_input[]", len(pairs) or 1), _ffi.new("sluice_receipt *")
        how = _ffi.new("sluice_load_options *", {
            "mode": _choice(_LOADS, mode), "skip_bad_rows": on_error == "skip", "max_errors": max_errors or 0,
            "create_branch": create_branch, "from": words(start), "ignore_unknown": ignore_unknown})
        if rejects is not None:
            def reject(_context: Any, name: Any, line: int, code: Any, text: Any) -> None:
                rejects.append(Reject(_text(name) or "", line, _text(code) or "", _text(text) or ""))
            how.reject = words.keep(_ffi.callback("void(void *, char *, uint64_t, char *, char *)", calls.guard(reject, None)))
        graph = self._live()
        for i, (type_name, source) in enumerate(pairs):
            inputs[i].type = words(type_name)
            if isinstance(source, (str, os.PathLike)) and not os.fspath(source).endswith(".parquet"):
                inputs[i].path = words(source)
                continue
            stream = words.keep(_ffi.new("struct ArrowArrayStream *"))
            _reader_of(source)._export_to_c(int(_ffi.cast("uintptr_t", stream)))
            inputs[i].stream = stream
        calls.finish(_lib.sluice_load_with(graph, inputs, len(pairs), how, options, receipt, err), err)
        return _receipt(receipt)


def salvage(path: Union[str, "os.PathLike[str]"], type: str, into: Union[str, "os.PathLike[str]"], *,
            branch: Optional[str] = None) -> Salvaged:
    """Makes a new graph at `into` with the rows of a type of the damaged graph at `path` that can be read."""
    words, calls, err, result = _Words(), _Calls(), _ffi.new("sluice_error *"), _ffi.new("sluice_salvage_result *")
    findings: List[Finding] = []

    def add(_context: Any, lost: bool, name: Any, what: Any) -> bool:
        findings.append(Finding(bool(lost), _text(name) or "", _text(what) or ""))
        return True

    each = _ffi.callback("sluice_finding_fn", calls.guard(add, False))
    calls.finish(_lib.sluice_salvage(words(path), words(branch), words(type), words(into), each, _ffi.NULL, result, err), err)
    return Salvaged(result.rows, bool(result.whole), None if result.from_files else result.lost_rows, result.rejected, result.doubled,
                    result.generation or None, bool(result.older), bool(result.deletions_unknown), findings)


def to_parquet(reader: pyarrow.RecordBatchReader, path: Union[str, "os.PathLike[str]"], **options: Any) -> int:
    """Writes a scan as a Parquet file, batch by batch; options are pyarrow.parquet.ParquetWriter's. The number of rows."""
    import pyarrow.parquet
    rows = 0
    with pyarrow.parquet.ParquetWriter(path, reader.schema, **options) as writer:
        for batch in reader:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _parquet(path: str) -> pyarrow.RecordBatchReader:
    import pyarrow.parquet
    file = pyarrow.parquet.ParquetFile(path)
    return pyarrow.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())


def _reader_of(source: Any) -> pyarrow.RecordBatchReader:
    if isinstance(source, (str, os.PathLike)):
        return _parquet(os.fspath(source))
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


def _copied(result: Any) -> Copied:
    return Copied(bool(result.first), result.branches, result.files, result.bytes, result.reused_files, result.reused_bytes,
                  result.removed_files)


def _receipt(receipt: Any) -> Receipt:
    return Receipt(_text(receipt.commit) or None, _text(receipt.operation) or None, receipt.generation, receipt.index,
                   _time(receipt.time_us), receipt.inserted, receipt.updated, receipt.deleted, receipt.skipped,
                   bool(receipt.repeated), bool(receipt.acknowledged), receipt.restarts)
