#!/usr/bin/env python3
"""What the contract promises to everybody who uses the program: no way around the check of the filesystem, no journal that an answer
depends on, nothing of the user's in what is kept or shown for others."""

import json
import os
import re
import shutil
import uuid

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string?"}, "unique": [["name"]]}},
          "edges": {"E": {"from": "P", "to": "P", "properties": {}, "key": []}}}
SOURCE = os.environ["SLUICE_SOURCE_DIR"]
FOLDERS = ("platform", "locks", "shm", "store", "adapters", "worker", "coord", "lib", "cli")


def source_files():
    for folder in FOLDERS:
        for root, _, files in os.walk(os.path.join(SOURCE, folder)):
            for name in files:
                if name.endswith((".c", ".h")):
                    with open(os.path.join(root, name), encoding="utf-8") as file:
                        yield os.path.relpath(os.path.join(root, name), SOURCE), file.read()


class Promises(ProgramTest):
    def answers(self, graph):
        """Everything that is said about what was committed."""
        return [self.done("log", graph, "--json").out, self.done("count", graph, "--json").out, self.done("schema", "show", graph).out,
                self.done("show", graph, "head", "--json").out, self.done("branch", "list", graph, "--json").out,
                sorted(self.done("scan", graph, "P", "--json").out.splitlines()), sorted(self.done("scan", graph, "E", "--json").out.splitlines())]

    def test_without_journals_and_caches_every_answer_is_the_same(self):
        self.init(SCHEMA)
        operations = [str(uuid.uuid4()) for _ in range(2)]
        self.write("p.csv", "id,name\n" + "".join("%d,n%d\n" % (i, i) for i in range(50)))
        self.write("e.csv", "from,to\n" + "".join("%d,%d\n" % (i, i + 1) for i in range(49)))
        self.write("m.jsonl", '{"op": "update", "node": "P", "key": 7, "set": {"name": "seven"}}\n')
        requests = [("load", "G", "P=p.csv", "E=e.csv", "--op-id", operations[0], "--json"),
                    ("mutate", "G", "m.jsonl", "--op-id", operations[1], "--json")]
        first = [self.done(*words).document["commit"] for words in requests]
        self.done("branch", "create", "G", "side")
        self.write("late.csv", "id,name\n900,late\n")
        killed = self.run_program("load", "G", "P=late.csv", env={"SLUICE_FAILPOINT": "arm.after=killpool"})
        self.assertNotEqual(killed.code, 0)
        self.done("recover", "G")
        before = self.answers("G")
        for folder in ("audit", "cache", "attempts", "trash"):
            path = self.path("G/" + folder)
            if os.path.isdir(path):
                for name in os.listdir(path):
                    full = os.path.join(path, name)
                    shutil.rmtree(full) if os.path.isdir(full) else os.remove(full)
        with open(self.path("G/intents"), "r+b") as file:
            file.write(bytes(os.path.getsize(file.name)))
        self.assertEqual(self.answers("G"), before)
        again = [self.done(*words).document["commit"] for words in requests]
        self.assertEqual([commit["id"] for commit in again], [commit["id"] for commit in first])
        self.assertEqual(self.answers("G"), before)
        self.clean()

    def test_there_is_no_way_around_the_check_of_the_filesystem(self):
        asked = set()
        for path, text in source_files():
            names = set(re.findall(r'getenv\("(\w+)"\)', text))
            if "preflight" in path:
                self.assertFalse(names, path)
            asked |= names
        self.assertIn("SLUICE_FAILPOINT", asked)
        options = re.findall(r"--[a-z][a-z-]+", "".join(self.done("help", *word).out for word in ((), ("init",), ("load",), ("mutate",), ("serve",))))
        for word in ("force", "unsafe", "best-effort", "no-sync", "nosync", "skip-check", "ignore-filesystem", "no-preflight"):
            self.assertNotIn("--" + word, options)
        if os.statvfs("/dev/shm").f_blocks == 0:
            self.skipTest("no filesystem in memory here")
        place = "/dev/shm/sluice-%s" % uuid.uuid4()
        self.write("s.json", SCHEMA)
        everything = {name: "1" for name in asked if name not in ("SLUICE_FAILPOINT", "SLUICE_FAILPOINT_TRACE", "SLUICE_SOCKET")}
        said = self.refused(7, "init", place, "--schema", "s.json", "--json", env=everything)
        self.assertEqual(said.error["code"], "UNSUPPORTED_FILESYSTEM")
        self.assertFalse(os.path.exists(place))

    def test_what_is_kept_and_shown_for_others_names_nothing_of_the_user(self):
        canaries = {"folder": "Kanarienordner", "type": "Geheimtyp", "property": "Geheimfeld", "value": "Geheimwert4711", "key": "8150815",
                    "branch": "Geheimzweig", "message": "Geheimsatz", "variable": "Geheimschluessel", "file": "geheimdatei"}
        os.mkdir(self.path(canaries["folder"]))
        graph = canaries["folder"] + "/G"
        kind, field = canaries["type"], canaries["property"]
        self.write("s.json", {"nodes": {kind: {"key": "id", "properties": {"id": "int64", field: "string", "n": "int32?"}, "unique": [[field]]}}})
        secret = {"SLUICE_TOKEN": canaries["variable"], "AWS_SECRET_ACCESS_KEY": canaries["variable"]}
        self.done("init", graph, "--schema", "s.json", env=secret)
        row = '{"op": "insert", "node": "%s", "set": {"id": %%s, "%s": "%%s"}}\n' % (kind, field)
        self.write(canaries["file"] + ".jsonl", row % (canaries["key"], canaries["value"]))
        self.write(canaries["file"] + ".csv", "id,%s,n\n%s,%s,x\n" % (field, canaries["key"], canaries["value"]))
        self.write("good.csv", "id,%s,n\n1,%s-1,1\n" % (field, canaries["value"]))
        self.write("void.jsonl", '{"op": "delete", "node": "%s", "key": 99%s}\n' % (kind, canaries["key"]))
        self.done("mutate", graph, canaries["file"] + ".jsonl", env=secret)
        self.done("branch", "create", graph, canaries["branch"], env=secret)
        shown = []
        for code, words in ((4, ("mutate", graph, canaries["file"] + ".jsonl")), (4, ("load", graph, "%s=%s.csv" % (kind, canaries["file"]))),
                            (8, ("scan", graph, kind, "--branch", canaries["branch"] + "x")), (2, ("scan", graph, kind + "x")),
                            (2, ("load", graph, "%s=%s-missing.csv" % (kind, canaries["file"]))), (4, ("mutate", graph, "void.jsonl")),
                            (8, ("count", canaries["folder"] + "/none")), (8, ("branch", "create", graph, canaries["branch"]))):
            said = self.run_program(*words, "--json", env=secret)
            self.assertNotEqual(said.code, 0, words)
            shown.append(json.dumps(json.loads(said.out.splitlines()[-1])["error"]))
        # what a recovery leaves for operators
        killed = self.run_program("load", graph, "%s=good.csv" % kind, env={**secret, "SLUICE_FAILPOINT": "arm.after=killpool"})
        self.assertNotEqual(killed.code, 0)
        shown.append(self.done("recover", graph, "--json", env=secret).out)
        audit = self.path(graph + "/audit")
        for name in os.listdir(audit):
            with open(os.path.join(audit, name), encoding="utf-8") as file:
                shown += [name, file.read()]
        self.assertGreater(len(shown), 10)
        host = os.uname().nodename
        words = list(canaries.values()) + [self.folder] + ([host] if len(host) > 5 else [])  # a short one is in many words
        for text in shown:
            for word in words:
                self.assertNotIn(word.lower(), text.lower())
            self.assertNotRegex(text, r'"pid"')

    def test_nothing_asks_for_host_or_user_names_or_passes_the_environment_on(self):
        for path, text in source_files():
            code = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
            found = re.findall(r"\b(gethostname|uname|getlogin|getpwuid|gethostbyname|environ)\b\s*[\(;,\)]", code)
            self.assertFalse(found, path)

    def test_a_checkpoint_is_one_record_of_control_and_moves_no_head(self):
        self.init(SCHEMA)
        self.write("p.csv", "id,name\n1,a\n")
        self.load("P=p.csv")
        before = (self.done("log", "G", "--json").out, self.done("status", "G", "--json").document["branches"])
        logs = {name: self.contents("G/branches/1/log/" + name) for name in os.listdir(self.path("G/branches/1/log"))}
        self.done("checkpoint", "create", "G", "here")
        self.done("checkpoint", "delete", "G", "here")
        self.assertEqual((self.done("log", "G", "--json").out, self.done("status", "G", "--json").document["branches"]), before)
        self.assertEqual({name: self.contents("G/branches/1/log/" + name) for name in os.listdir(self.path("G/branches/1/log"))}, logs)

    def contents(self, path):
        with open(self.path(path), "rb") as file:
            return file.read()


if __name__ == "__main__":
    main()
