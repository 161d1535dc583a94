"""The writers of the recovery matrix, and what each does to a graph: the reference model.

A state is what a reader can say: for each branch its people {id: name}, its edges {(from, to)} and the names of the properties, and the
names of all checkpoints. `does` changes a copy of such a state as the command must.
"""

import copy

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string?", "note": "string?"}, "unique": [["name"]]}},
          "edges": {"K": {"from": "P", "to": "P", "properties": {}, "key": []}}}
WIDER = copy.deepcopy(SCHEMA)
WIDER["nodes"]["P"]["properties"]["age"] = {"type": "int32", "default": 7}

# Small pieces and little memory, so that a small load has many tasks, spills, and reads its bytes chunk by chunk.
MANY = {"SLUICE_TEST_CHUNK": "1000", "SLUICE_TEST_RANGE": "20", "SLUICE_SPLIT": "200", "SLUICE_TEST_SPILL": "5"}

BASE = {"main": {"P": {i: "n%d" % i for i in range(1, 7)}, "K": {(1, 2), (2, 3), (4, 5)}, "properties": ("id", "name", "note")}}
NEWCOMERS = {i: "new %d" % i for i in range(100, 140)}
NEW_EDGES = {(i, i + 1) for i in range(100, 139)}
CHANGED = {1: "other", 50: "fifty"}

MANY_MORE = {i: "more %d" % i for i in range(2000, 2700)}

FILES = {
    "new.csv": "id,name\n" + "".join("%d,%s\n" % item for item in NEWCOMERS.items()),
    "edges.csv": "from,to\n" + "".join("%d,%d\n" % edge for edge in sorted(NEW_EDGES)),
    "bad.csv": "id,name\n" + "".join("%d,%s\n" % item for item in NEWCOMERS.items()) + "nobody,x\n",
    "up.csv": "id,name\n" + "".join("%d,%s\n" % item for item in CHANGED.items()),
    "upk.csv": "from,to\n1,2\n50,1\n",
    "over.csv": "id,name\n" + "".join("%d,over %d\n" % (i, i) for i in (1, 2, 3, 4, 5, 77)),
    "m.jsonl": '{"op":"insert","node":"P","set":{"id":20,"name":"twenty"}}\n{"op":"insert","edge":"K","from":20,"to":1}\n'
               '{"op":"update","node":"P","key":2,"set":{"name":"two"}}\n{"op":"delete","node":"P","key":4,"detach":true}\n',
    "many.jsonl": "".join('{"op":"insert","node":"P","set":{"id":%d,"name":"%s"}}\n' % item for item in MANY_MORE.items()),
    "big.jsonl": '{"op":"insert","node":"P","set":{"id":21,"name":"big","note":"%s"}}\n' % ("y" * 24000),
}


class Writer:
    """A command, what must be done before it, and what it does."""

    def __init__(self, name, words, does, *, prepare=(), env=None, operation=True, pool=False, branches=("main",), settles=None,
                 commits=True, layout=None, dead=None, full=False, halfway=None):
        self.name, self.words, self.does, self.prepare = name, words, does, prepare
        self.env = env or {}
        self.operation = operation  # takes --op-id
        self.pool = pool            # work is done by workers under a supervisor
        self.branches = branches    # whose contents are looked at
        self.settles = settles      # "new": whatever happens, in the end it is done
        self.commits = commits      # by a commit on `branches`' first
        self.layout = layout        # a type whose fragments, or indexed fragments, it changes
        self.dead = dead            # a command of the preparation that is killed, and where
        self.full = full            # the active segment has no room for it
        self.halfway = halfway      # what stands when its commit does and what follows the commit does not

    def after(self, state):
        state = copy.deepcopy(state)
        self.does(state)
        return state


def insert(state):
    state["branches"]["main"]["P"].update(NEWCOMERS)
    state["branches"]["main"]["K"] |= NEW_EDGES


def upsert(state):
    state["branches"]["main"]["P"].update(CHANGED)
    state["branches"]["main"]["K"] |= {(1, 2), (50, 1)}


def overwrite(state):
    state["branches"]["main"]["P"] = {i: "over %d" % i for i in (1, 2, 3, 4, 5, 77)}


def on_a_new_branch(state):
    state["branches"]["made"] = copy.deepcopy(state["branches"]["main"])
    state["branches"]["made"]["P"].update(NEWCOMERS)
    state["branches"]["made"]["K"] |= NEW_EDGES


def change(state):
    people, edges = state["branches"]["main"]["P"], state["branches"]["main"]["K"]
    people.pop(4, None)
    people.update({20: "twenty", 2: "two"})
    state["branches"]["main"]["K"] = {edge for edge in edges if 4 not in edge} | {(20, 1)}


def insert_many(state):
    state["branches"]["main"]["P"].update(MANY_MORE)


def insert_big(state):
    state["branches"]["main"]["P"][21] = "big"


def merge(state):
    state["branches"]["main"]["P"].update({30: "thirty", 3: "three"})


def merge_and_delete(state):
    merge(state)
    state["branches"].pop("b")


def widen(state):
    state["branches"]["main"]["properties"] = ("id", "name", "note", "age")


def revert(state):
    state["branches"]["main"] = copy.deepcopy(BASE["main"])


def make_branch(state):
    state["branches"]["made"] = copy.deepcopy(state["branches"]["main"])


def delete_branch(state):
    state["branches"].pop("b", None)


def make_checkpoint(state):
    state["checkpoints"].add("made")


def delete_checkpoint(state):
    state["checkpoints"].discard("early")


def nothing(state):
    pass


LOAD = ("load", "G", "P=new.csv", "K=edges.csv", "--workers", "2")
BRANCH = (("branch", "create", "G", "b"), ("mutate", "G", "b.jsonl", "--branch", "b"))
FILES["b.jsonl"] = ('{"op":"insert","node":"P","set":{"id":30,"name":"thirty"}}\n{"op":"update","node":"P","key":3,"set":{"name":"three"}}\n')
MAIN_MOVES = (("mutate", "G", "main.jsonl"),)
FILES["main.jsonl"] = '{"op":"insert","node":"P","set":{"id":40,"name":"forty"}}\n'
FRAGMENTS = (("load", "G", "P=one.csv", "K=one-k.csv"), ("load", "G", "P=two.csv"))
FILES.update({"one.csv": "id,name\n61,a\n62,b\n", "one-k.csv": "from,to\n61,62\n", "two.csv": "id,name\n63,c\n"})

WRITERS = [
    Writer("load", LOAD, insert, pool=True, env=MANY),
    Writer("load-skip", ("load", "G", "P=bad.csv.gz", "K=edges.csv", "--workers", "2", "--on-error", "skip", "--rejects", "r.jsonl"),
           insert, pool=True, env=MANY),
    Writer("upsert", ("load", "G", "P=up.csv", "K=upk.csv", "--mode", "upsert", "--workers", "2"), upsert, pool=True, env=MANY),
    Writer("overwrite", ("load", "G", "P=over.csv", "--mode", "overwrite", "--workers", "2"), overwrite, pool=True, env=MANY,
           prepare=(("mutate", "G", "six.jsonl"),)),
    Writer("load-branch", (*LOAD, "--create-branch", "--branch", "made"), on_a_new_branch, pool=True, branches=("made", "main")),
    Writer("mutate", ("mutate", "G", "m.jsonl"), change),
    Writer("mutate-staged", ("mutate", "G", "m.jsonl"), change, env={"SLUICE_NO_ATTACH": "1"}),
    Writer("mutate-large", ("mutate", "G", "many.jsonl"), insert_many, env={"SLUICE_NO_ATTACH": "1"}),  # its plan in a side file
    Writer("mutate-segment", ("mutate", "G", "big.jsonl"), insert_big, full=True),
    Writer("fast-forward", ("merge", "G", "b"), merge, prepare=BRANCH, branches=("main", "b")),
    Writer("three-way", ("merge", "G", "b"), merge, prepare=BRANCH + MAIN_MOVES, branches=("main", "b")),
    Writer("merge-delete", ("merge", "G", "b", "--delete-source"), merge_and_delete, prepare=BRANCH + MAIN_MOVES,
           branches=("main", "b"), halfway=merge),
    Writer("schema", ("schema", "apply", "G", "wider.json"), widen),
    Writer("optimize", ("optimize", "G", "--workers", "2"), nothing, pool=True, prepare=FRAGMENTS, layout="fragments"),
    Writer("index", ("index", "G", "--workers", "2"), nothing, pool=True, prepare=FRAGMENTS, layout="indexed"),
    Writer("revert", ("revert", "G", "--to", "early"), revert, prepare=(("mutate", "G", "m.jsonl"),)),
    Writer("branch-create", ("branch", "create", "G", "made"), make_branch, branches=("made", "main"), commits=False),
    Writer("branch-delete", ("branch", "delete", "G", "b"), delete_branch, prepare=BRANCH, branches=("b", "main"), commits=False),
    Writer("checkpoint-create", ("checkpoint", "create", "G", "made"), make_checkpoint, commits=False),
    Writer("checkpoint-delete", ("checkpoint", "delete", "G", "early"), delete_checkpoint, commits=False),
    Writer("gc", ("gc", "G"), nothing, operation=False, commits=False,
           prepare=(*BRANCH, ("branch", "delete", "G", "b")), dead=(LOAD, "load.after_edits")),
    Writer("gc-history", ("gc", "G", "--keep", "1"), nothing, operation=False, commits=False, prepare=FRAGMENTS + MAIN_MOVES),
    Writer("recover", ("recover", "G"), insert, operation=False, settles="new", commits=False, dead=(LOAD, "arm.after")),
    Writer("recover-branch", ("recover", "G"), on_a_new_branch, operation=False, settles="new", commits=False,
           branches=("made", "main"), dead=((*LOAD, "--create-branch", "--branch", "made"), "new_branch.before_ref")),
]
FILES["six.jsonl"] = '{"op":"delete","node":"P","key":6}\n'
