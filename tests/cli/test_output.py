#!/usr/bin/env python3
"""Standard output that is closed, full or broken is an error, never silence; and what stands, stands."""

import json
import os
import subprocess
import uuid

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"Person": {"key": "id", "properties": {"id": "int64", "name": "string"}}}, "edges": {}}


class Output(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        self.write("people.csv", "id,name\n" + "".join("%d,name %d\n" % (i, i) for i in range(20000)))

    def test_a_full_device(self):
        self.load("Person=people.csv")
        with open("/dev/full", "wb") as full:
            for words in (("version",), ("help",), ("scan", "G", "Person"), ("count", "G"), ("log", "G"), ("verify", "G")):
                result = self.run_program(*words, stdout=full)
                self.assertIn(result.code, (1, 10), words)
                self.assertIn("standard output", result.err)

    def test_a_closed_output_is_an_error_and_no_file_gets_its_number(self):
        self.load("Person=people.csv")
        before = self.content()
        self.write("more.csv", "id,name\n100001,Eve\n")
        result = subprocess.run(["bash", "-c", '"$0" load G Person=more.csv --json >&-', self.program], cwd=self.folder,
                                env=self.environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(b"committed: yes", result.stderr)
        self.assertEqual(len(self.content()["Person"]), len(before["Person"]) + 1)
        result = subprocess.run(["bash", "-c", '"$0" count G >&- 2>&- <&-', self.program], cwd=self.folder,
                                env=self.environment, timeout=300)
        self.assertEqual(result.returncode, 1)
        self.clean()

    def test_a_broken_pipe(self):
        self.load("Person=people.csv")
        process = self.start("scan", "G", "Person", "--json")
        process.stdout.read(10)
        process.stdout.close()
        error = process.stderr.read().decode()
        process.stderr.close()
        self.assertEqual(process.wait(60), 1)
        self.assertIn("standard output", error)

    def test_a_load_whose_result_cannot_be_printed_says_that_it_stands(self):
        with open("/dev/full", "wb") as full:
            result = self.run_program("load", "G", "Person=people.csv", "--json", stdout=full)
        self.assertIn(result.code, (1, 10))
        self.assertIn("committed: yes", result.err)
        self.assertEqual(self.done("count", "G", "Person").out, "20000\n")

    def test_whatever_changes_names_says_that_it_stands_when_its_result_cannot_be_printed(self):
        self.load("Person=people.csv")
        self.write("new.json", json.dumps(SCHEMA | {"nodes": SCHEMA["nodes"] | {"Place": {"properties": {"name": "string"}}}}))
        self.write("one.jsonl", '{"op":"insert","node":"Person","set":{"id":700000,"name":"Zoe"}}\n')
        self.write("two.jsonl", '{"op":"insert","node":"Person","set":{"id":700001,"name":"Kim"}}\n')
        for words in (("branch", "create", "G", "side"), ("checkpoint", "create", "G", "mark"), ("mutate", "G", "one.jsonl"),
                      ("mutate", "G", "two.jsonl", "--branch", "side"), ("merge", "G", "side"), ("optimize", "G"),
                      ("checkpoint", "delete", "G", "mark"), ("branch", "delete", "G", "side"),
                      ("schema", "apply", "G", "new.json"), ("revert", "G", "--to", "1")):
            operation = str(uuid.uuid4())
            with open("/dev/full", "wb") as full:
                said = self.run_program(*words, "--op-id", operation, stdout=full)
            self.assertIn(said.code, (1, 10), (words, said.err))
            self.assertIn("operation %s: committed: yes" % operation, said.err, words)
            self.assertTrue(self.done(*words, "--op-id", operation, "--json").document["repeated"], words)
        self.assertEqual(self.done("count", "G", "Person").out, "0\n")

    def test_help_and_version_are_results(self):
        for words in (("help",), ("--help",), ("-h",), ("help", "load"), ("load", "--help"), ("load", "G", "-h")):
            said = self.done(*words)
            self.assertIn("usage: sluice", said.out)
            self.assertEqual(said.err, "")
        self.assertIn("--on-error fail", self.done("help", "load").out)
        version = self.done("version", "--json").document
        self.assertEqual(set(version), {"version", "format", "compiler", "build"})
        self.assertEqual(version["format"], "sluice-graph/1")
        self.assertIn(version["version"], self.done("--version").out)
        if version["build"]["failpoints"]:
            self.assertIn("volume.sync", self.done("version", "--failpoints").out.split())

    def test_every_command_has_a_help(self):
        listed = [line.split()[0] for line in self.done("help").out.split("commands:\n")[1].split("\n\n")[0].splitlines()]
        self.assertIn("load", listed)
        for command in listed:
            self.assertIn("usage: sluice %s" % command, self.done("help", command).out)

    def test_progress_is_told_as_events_on_standard_error(self):
        said = self.done("load", "G", "Person=people.csv", "--json", env={"SLUICE_SPLIT": "4096"})
        for line in said.err.splitlines():
            self.assertIn('"event":"progress"', line)
        self.assertTrue(os.path.isdir(self.path("G")))


if __name__ == "__main__":
    main()
