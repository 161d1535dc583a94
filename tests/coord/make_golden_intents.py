#!/usr/bin/env python3
"""Makes tests/golden/intent-*.slot: the slot of one killed write of each kind, without what follows its first frame. Run it, with SLUICE
naming a build with failpoints, only when the format changes, and keep the old files beside the new ones.

    SLUICE=build/dev/sluice PYTHONPATH=tests python3 tests/coord/make_golden_intents.py FOLDER
"""

import os
import struct
import subprocess
import sys
import tempfile

from matrix.writers import FILES, SCHEMA, WIDER, WRITERS

KINDS = {"load": "load", "load-branch": "load-branch", "mutate": "mutate-staged", "merge": "merge-delete", "schema": "schema",
         "optimize": "optimize", "index": "index", "revert": "revert"}


def main():
    program, target = os.path.realpath(os.environ["SLUICE"]), os.path.realpath(sys.argv[1])
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        def run(*words, env=None):
            subprocess.run([program, *words], cwd=folder, check=not env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           env={**os.environ, **(env or {})})

        for name, text in {**FILES, "schema.json": __import__("json").dumps(SCHEMA), "wider.json": __import__("json").dumps(WIDER),
                           "base.csv": "id,name\n1,n1\n2,n2\n3,n3\n4,n4\n", "base-k.csv": "from,to\n1,2\n"}.items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        for kind, writer_name in KINDS.items():
            writer = next(w for w in WRITERS if w.name == writer_name)
            run("init", "G", "--schema", "schema.json")
            run("load", "G", "P=base.csv", "K=base-k.csv")
            run("checkpoint", "create", "G", "early")
            for words in writer.prepare:
                run(*words)
            run(*writer.words, env={"SLUICE_FAILPOINT": "arm.after=killpool,arm.after=kill", **writer.env})
            with open(os.path.join(folder, "G/intents"), "rb") as file:
                slots = file.read()
            slot = next(slots[at:at + 32768] for at in range(0, len(slots), 32768) if newest(slots[at:at + 32768]))
            with open(os.path.join(target, "intent-1-%s.slot" % kind), "wb") as file:
                file.write(slot[:16384].rstrip(b"\0"))
            subprocess.run(["rm", "-r", os.path.join(folder, "G")], check=True)


def newest(slot):
    """Is this slot armed or confirmed, by its first frame?"""
    frames = [struct.unpack_from("<8sIIQ", slot, at) for at in (4096, 16384)]
    best = max(frames, key=lambda frame: frame[3] if frame[0] == b"SLUICFRM" else 0)
    return best is frames[0] and best[2] in (1, 2)


if __name__ == "__main__":
    main()
