#!/usr/bin/env python3
"""What a hint says works when it is pasted: commands in `...` run, flags that it names make the command work, for errors of every kind
from every command. (What hints say about the content of files is tried in test_messages.py.)"""

import glob
import json
import os
import re
import shlex
import signal
import subprocess

from support.program import ProgramTest, main

SOURCE = os.environ["SLUICE_SOURCE_DIR"]
SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "n": "int64?"}}},
          "edges": {"E": {"from": "P", "to": "P", "properties": {}, "key": []}}}
OPERATION = "00000000-0000-4000-8000-000000000001"
GRAPH = "my graph's"  # a shell has to be told where it ends


class Hints(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA, GRAPH)
        self.write("p.csv", "id,n\n" + "".join("%d,%d\n" % (i, i) for i in range(50)))
        self.write("e.csv", "from,to\n1,2\n")
        self.done("load", GRAPH, "P=p.csv", "E=e.csv")

    def mutate(self, text, *words):
        self.write("m.jsonl", text)
        return self.done("mutate", GRAPH, "m.jsonl", *words)

    def hint_of(self, code, *words, env=None):
        said = self.run_program(*words, env=env)
        self.assertRegex(said.err, r"\(%s\)" % code, "%s: %s%s" % (words, said.out, said.err))
        hints = re.findall(r"^hint: (.*)$", said.err, re.M)
        self.assertEqual(len(hints), 1, "%s: %s" % (words, said.err))
        self.assertNotIn("GRAPH`", hints[0])
        return hints[0]

    def paste(self, command):
        """In a shell, as it stands."""
        environment = {**self.environment, "PATH": os.path.dirname(self.program) + ":" + os.environ["PATH"]}
        return subprocess.run(["sh", "-c", command], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=300)

    def paste_all(self, hint, status=0):
        commands = re.findall(r"`(sluice [^`]*)`", hint)
        self.assertTrue(commands, hint)
        for command in commands:
            said = self.paste(command)
            self.assertEqual(said.returncode, status, "%s: %s%s" % (command, said.stdout, said.stderr))
        return commands

    def test_commands_of_hints_run(self):
        self.done("branch", "create", GRAPH, "draft")
        for code, words in (
                ("USAGE", ("lod", GRAPH)), ("USAGE", ("scan", GRAPH, "Persons")), ("USAGE", ("load", GRAPH, "Persons=p.csv")), ("USAGE", ("describe", GRAPH, "Persons")),
                ("USAGE", ("index", GRAPH, "Persons")), ("USAGE", ("revert", GRAPH)), ("NOT_FOUND", ("count", GRAPH, "--branch", "nothing")),
                ("NOT_FOUND", ("load", GRAPH, "P=p.csv", "--branch", "nothing")), ("NOT_FOUND", ("merge", GRAPH, "nothing")),
                ("NOT_FOUND", ("checkpoint", "delete", GRAPH, "nothing")), ("NOT_FOUND", ("branch", "delete", GRAPH, "nothing")),
                ("NOT_FOUND", ("show", GRAPH, "77")), ("NOT_FOUND", ("scan", GRAPH, "P", "--at", "77")), ("NOT_FOUND", ("revert", GRAPH, "--to", "77")),
                ("NOT_FOUND", ("diff", GRAPH, "77", "head")), ("USAGE", ("count", GRAPH, "--at", "last week")), ("USAGE", ("get", GRAPH, "E", "1")),
                ("ALREADY_EXISTS", ("branch", "create", GRAPH, "draft")), ("ALREADY_EXISTS", ("load", GRAPH, "P=p.csv", "--branch", "draft", "--create-branch"))):
            for command in self.paste_all(self.hint_of(code, *words)):
                if not command.startswith("sluice help"):
                    self.assertIn(GRAPH, shlex.split(command))

    def test_flags_and_values_of_hints_make_it_work(self):
        self.done("branch", "create", GRAPH, "b")
        self.mutate('{"op": "update", "node": "P", "key": 1, "set": {"n": 100}}\n', "--branch", "b")
        self.mutate('{"op": "update", "node": "P", "key": 1, "set": {"n": 200}}\n')
        self.assertIn("--on-conflict ours", self.hint_of("MERGE_CONFLICT", "merge", GRAPH, "b"))
        self.done("merge", GRAPH, "b", "--on-conflict", "ours")
        self.done("export", GRAPH, "out")
        self.assertIn("--force", self.hint_of("ALREADY_EXISTS", "export", GRAPH, "out"))
        self.done("export", GRAPH, "out", "--force")
        self.write("q.csv", "id,n\n900,1\n")
        self.done("load", GRAPH, "P=q.csv", "--op-id", OPERATION)
        self.write("q.csv", "id,n\n901,1\n")
        self.assertIn("another id, or none", self.hint_of("IDEMPOTENCY_CONFLICT", "load", GRAPH, "P=q.csv", "--op-id", OPERATION))
        self.done("load", GRAPH, "P=q.csv")
        self.write("q.csv", "id,n\n902,1\n")
        least = re.search(r"--memory (\S+)", self.hint_of("RESOURCE_LIMIT", "load", GRAPH, "P=q.csv", "--memory", "1M", "--workers", "2")).group(1)
        self.done("load", GRAPH, "P=q.csv", "--memory", least, "--workers", "2")
        self.assertIn("--on-error skip", self.hint_of("USAGE", "load", GRAPH, "P=q.csv", "--max-errors", "3"))
        self.write("m.jsonl", '{"op": "delete", "node": "P", "key": 2}\n')
        self.assertIn('"detach": true', self.hint_of("CONSTRAINT_ENDPOINT", "mutate", GRAPH, "m.jsonl"))
        self.mutate('{"op": "delete", "node": "P", "key": 2, "detach": true}\n')
        self.write("s.json", '{"nodes": {"P": {"key": "id", "properties": {"id": "int64"}}}, "edges": {}}')
        self.assertIn("--allow-data-loss", self.hint_of("USAGE", "schema", "apply", GRAPH, "s.json"))
        self.done("schema", "apply", GRAPH, "s.json", "--allow-data-loss")

    def test_a_word_that_an_option_does_not_take_is_answered_with_those_that_it_takes(self):
        self.assertIn("--order-by key: sort by key", self.hint_of("USAGE", "scan", GRAPH, "P", "--order-by", "Name"))
        self.assertIn("--mode insert|", self.hint_of("USAGE", "load", GRAPH, "P=p.csv", "--mode", "Insert"))

    def test_who_meets_another_write_is_told_to_look_again(self):
        self.write("m.jsonl", '{"op": "assert", "node": "P", "key": 1, "equals": {"n": 999}}\n')
        self.hint_of("WRITE_CONFLICT", "mutate", GRAPH, "m.jsonl")
        hint = self.hint_of("READ_SET_CHANGED", "load", GRAPH, "P=p.csv", "--mode", "upsert", "--if-head", OPERATION)
        self.assertRegex(hint, "again")

    def damage(self, pattern):
        """Of the largest such file one bit; returns its path in the graph."""
        root = self.path(GRAPH)
        largest = max(glob.glob(os.path.join(glob.escape(root), pattern)), key=os.path.getsize)
        with open(largest, "r+b") as file:
            file.seek(600 if largest.endswith(".arrow") else os.path.getsize(largest) // 3)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
        return os.path.relpath(largest, root)

    def verify(self):
        said = self.run_program("verify", GRAPH, "--json")
        self.assertEqual(said.code, 6)
        return [(problem["object"], problem["type"]) for problem in json.loads(said.out.splitlines()[0])["problems"]]

    def test_verify_names_each_damaged_file_once_with_its_type_and_what_repairs_it(self):
        path = self.damage("tables/*/fragments/*.arrow")
        self.assertEqual(self.verify(), [(path, "P")])  # edges need its keys, too
        hint = self.hint_of("CORRUPT", "verify", GRAPH)
        commands = self.paste_all(hint, status=6)
        self.assertEqual([shlex.split(command) for command in commands], [["sluice", "salvage", GRAPH, "P", "--into", "salvaged"]])
        self.done("verify", "salvaged")

    def test_damaged_keys_are_made_anew_by_the_command_of_the_hint(self):
        path = self.damage("tables/*/keys/*.run")
        self.assertEqual([name for name, _ in self.verify()], [path])
        hint = self.hint_of("CORRUPT", "verify", GRAPH)
        self.assertIn("remove the damaged file", hint)
        os.remove(os.path.join(self.path(GRAPH), path))
        self.paste_all(hint)
        self.assertTrue(glob.glob(os.path.join(glob.escape(self.path(GRAPH)), os.path.dirname(path), "*.run")))
        self.write("q.csv", "id,n\n900,1\n")
        self.done("load", GRAPH, "P=q.csv")

    def test_damage_is_named_by_the_command_of_the_hint(self):
        self.damage("tables/*/fragments/*.arrow")
        for words in (("scan", GRAPH, "P"), ("export", GRAPH, "out"), ("backup", GRAPH, "copy"), ("optimize", GRAPH)):
            said = self.run_program(*words)
            if "(CORRUPT)" in said.err:
                self.paste_all(self.hint_of("CORRUPT", *words), status=6)

    def test_a_suspect_branch_is_healed_by_the_command_of_the_hint(self):
        if not self.has_failpoints():
            self.skipTest("a build without failpoints")
        self.write("m.jsonl", '{"op": "update", "node": "P", "key": 1, "set": {"n": 7}}\n')
        failed = self.run_program("mutate", GRAPH, "m.jsonl", env={"SLUICE_FAILPOINT": "publish.after_log_record_write=error"})
        self.assertNotEqual(failed.code, 0)
        said = self.run_program("mutate", GRAPH, "m.jsonl")
        if said.code == 5:
            self.paste_all(self.hint_of("SUSPECT", "mutate", GRAPH, "m.jsonl"))
            self.done("mutate", GRAPH, "m.jsonl")

    def test_a_failed_call_and_a_fault_of_the_program_lead_on_to_verify(self):
        if not self.has_failpoints():
            self.skipTest("a build without failpoints")
        self.write("m.jsonl", '{"op": "update", "node": "P", "key": 1, "set": {"n": 7}}\n')
        for code, point in (("IO", "volume.lock=error"), ("INTERNAL", "worker.after_take=kill@*")):
            words = ("mutate", GRAPH, "m.jsonl") if code == "IO" else ("load", GRAPH, "P=p.csv", "--mode", "upsert", "--workers", "2")
            self.paste_all(self.hint_of(code, *words, env={"SLUICE_FAILPOINT": point}))
            self.done(*words)  # and again, as it says

    def test_one_writer_at_a_time_and_a_graph_that_is_moved_away(self):
        if not self.has_failpoints():
            self.skipTest("a build without failpoints")
        self.write("s.json", SCHEMA)
        self.done("init", "single", "--schema", "s.json", "--mode", "single")
        self.write("m.jsonl", '{"op": "insert", "node": "P", "set": {"id": 1}}\n')
        first = self.start("mutate", "single", "m.jsonl", env={"SLUICE_FAILPOINT": "gates.after=stop"})
        writer = self.stopped_process(first)
        self.write("n.jsonl", '{"op": "insert", "node": "P", "set": {"id": 2}}\n')
        busy = self.finish(self.start("mutate", "single", "n.jsonl"))
        self.assertRegex(busy.err, r'(?s)\(WRITER_BUSY\).*hint: try again')
        os.rename(self.path("single"), self.path("elsewhere"))
        os.kill(writer, signal.SIGCONT)
        said = self.finish(first)
        self.assertIn("(FENCED)", said.err)
        self.assertIn("`sluice recover single`", said.err)
        os.rename(self.path("elsewhere"), self.path("single"))
        self.paste_all(re.search("^hint: (.*)$", said.err, re.M).group(1))
        self.done("mutate", "single", "n.jsonl")

    def test_what_is_no_graph_no_place_or_no_such_file_says_what_is_one(self):
        self.write("bad.arrow", "this is text\n")
        self.write("p.csv.zst", "id\n1\n")
        self.write("s.json", SCHEMA)
        os.mkdir(self.path("empty"))
        for code, said, words in (
                ("UNSUPPORTED_FORMAT", "`init`", ("status", "empty")), ("UNSUPPORTED_FORMAT", "pyarrow.feather", ("load", GRAPH, "P=bad.arrow")),
                ("UNSUPPORTED_FORMAT", "must not be called", ("load", GRAPH, "P=p.csv.zst")),
                ("UNSUPPORTED_FILESYSTEM", "findmnt -T DIR", ("init", "/proc/sluice", "--schema", "s.json"))):
            self.assertIn(said, self.hint_of(code, *words))
        self.assertEqual(self.paste("findmnt -T .").returncode, 0)

    def test_what_this_user_may_not_read_says_who_may(self):
        """As another user: root may do everything."""
        if os.geteuid() == 0 and not (self.reaches(self.folder) and self.reaches(self.program)):
            self.skipTest("other users do not come here")
        os.chmod(self.folder, 0o755)
        os.chmod(self.path("p.csv"), 0)
        other = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        said = self.finish(self.start("load", GRAPH, "P=p.csv", **other))
        self.assertIn("(PERMISSION)", said.err)
        self.assertIn("hint: run it as the owner of the graph and the files", said.err)
        os.chmod(self.path("p.csv"), 0o600)
        self.done("load", GRAPH, "P=p.csv", "--mode", "upsert")

    def reaches(self, path):
        """Can any user come to it?"""
        while path != "/":
            path = os.path.dirname(path)
            if not os.stat(path).st_mode & 1:
                return False
        return True

    def test_each_code_is_forced_somewhere(self):
        """By name in this file, or where its own tests say what its hint is."""
        elsewhere = {"QUEUE_FULL": "serve/test_hosted.py", "TIMEOUT": "serve/test_hosted.py", "QUOTA": "serve/test_limits.py", "NO_SPACE": "load/test_full_disk.py",
                     "KEY_CONFLICT": "cli/test_messages.py", "CONSTRAINT_TYPE": "cli/test_messages.py", "INPUT_SYNTAX": "cli/test_messages.py"}
        # no hint of their own: the message has the value and the rule; or another process has to stand still for a bound that no test waits for
        excused = {"OK", "CONSTRAINT_NULL", "CONSTRAINT_UNIQUE", "CONSTRAINT_CARDINALITY", "CONSTRAINT_CHECK", "INPUT_CHANGED", "INVALID_NAME", "CANCELLED",
                   "REBASE_EXHAUSTED", "LIVE_WRITER_CONTENTION", "RECOVERY_REQUIRED"}
        with open(os.path.join(SOURCE, "docs/errors.md"), encoding="utf-8") as file:
            codes = re.findall(r"^\| `([A-Z_]+)` \|", file.read(), re.M)
        self.assertGreater(len(codes), 30)
        for code in codes:
            with open(os.path.join(SOURCE, "tests", elsewhere.get(code, "cli/test_hints.py")), encoding="utf-8") as file:
                forced = re.search(r"\b%s\b" % code, file.read().split("def test_each_code")[0])
            self.assertTrue(forced or code in excused, code)

    def has_failpoints(self):
        return self.done("version", "--json").document["build"]["failpoints"]

    def test_a_gap_in_a_feed_is_told_with_what_to_begin_from(self):
        cursor = self.done("changes", GRAPH).lines[-1]["cursor"]
        for i in range(3):
            self.mutate('{"op": "update", "node": "P", "key": 1, "set": {"n": %d}}\n' % (1000 + i))
        self.done("gc", GRAPH, "--keep", "1")
        hint = self.hint_of("NOT_FOUND", "changes", GRAPH, "--since", cursor)
        for command in self.paste_all(hint):
            self.assertIn("log", command)
        commit = self.done("log", GRAPH, "-n", "1", "--json").document["commit"]
        for command in re.findall(r"sluice (?:export|changes) [^,;`]*?COMMIT", hint):
            said = self.paste(command.replace("COMMIT", commit).replace("DIR", "whole"))
            self.assertEqual(said.returncode, 0, said.stderr)

    def test_commands_of_all_hints_in_the_source_are_commands(self):
        """On a graph that is whole they end with 0."""
        checked = set()
        for path in sorted(glob.glob(os.path.join(SOURCE, "**/*.c"), recursive=True)):
            if os.path.relpath(path, SOURCE).startswith(("tests", "build")):
                continue
            with open(path, encoding="utf-8") as file:
                text = re.sub(r'"\s*\n\s*"', "", file.read())
            for command in re.findall(r"`(sluice [a-z][^`\\]*)`", " ".join(re.findall(r'"(?:[^"\\]|\\.)*"', text))):
                command = command.replace("GRAPH", shlex.quote(GRAPH)).replace("%s", "load" if "help" in command else "E" if "from,to" in command else "P")
                if command in checked or command == "sluice jobs":  # of a supervisor
                    continue
                checked.add(command)
                said = self.paste(command)
                self.assertEqual(said.returncode, 0, "%s: %s: %s" % (os.path.relpath(path, SOURCE), command, said.stderr))
        self.assertGreater(len(checked), 8)


if __name__ == "__main__":
    main()
