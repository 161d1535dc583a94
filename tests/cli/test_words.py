#!/usr/bin/env python3
"""One table of commands gives the help, the manual page and the completions of three shells; a mistyped name is answered with
the one that was meant."""

import os
import re
import shutil
import subprocess

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"Person": {"key": "id", "properties": {"id": "int64", "name": "string"}}},
          "edges": {"KNOWS": {"from": "Person", "to": "Person", "properties": {}, "key": []}}}


class Words(ProgramTest):
    def commands(self):
        return [line.split()[0] for line in self.done("help").out.split("commands:\n")[1].split("\n\n")[0].splitlines()]

    def options(self, command):
        return re.findall(r"^  (?:-\w, )?(--[a-z-]+)", self.done("help", command).out, re.M)

    def complete(self, *words):
        """What bash offers for the last of the words."""
        folder = os.path.dirname(self.program)
        script = ('source <("$0" completion bash); PATH=%s:$PATH; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sluice; '
                  '[ ${#COMPREPLY[@]} -eq 0 ] || printf "%%s\\n" "${COMPREPLY[@]}"' % folder)
        done = subprocess.run(["bash", "-c", script, self.program, "sluice", *words], cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return sorted(done.stdout.splitlines())

    def test_the_manual_page_has_every_command_and_option_and_no_warning(self):
        page = self.done("help", "--man").out
        for command in self.commands():
            self.assertIn('.SS "sluice %s' % command, page)
            for option in self.options(command):
                self.assertIn(option.replace("-", "\\-"), page)
        if not shutil.which("groff"):
            self.skipTest("no groff to check it with")
        done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8"], input=page.encode(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_bash_completes_commands_options_and_their_words(self):
        self.assertEqual(self.complete(""), sorted(self.commands()))
        self.assertEqual(self.complete("sc"), ["scan", "schema"])
        for command in self.commands():
            self.assertEqual(self.complete(command, "G", "--"), sorted(set(self.options(command))), command)
        self.assertEqual(self.complete("load", "G", "--mo"), ["--mode"])
        both = self.complete("load", "G", "--mode", "")
        self.assertIn("upsert", both)
        self.assertEqual(self.complete("load", "G", "--mode", "="), both)
        self.assertEqual(self.complete("load", "G", "--mode", "=", "ups"), ["upsert"])
        self.assertEqual(self.complete("branch", ""), ["create", "delete", "list"])
        self.assertEqual(self.complete("help", "sca"), ["scan"])

    def test_bash_completes_files_types_and_branches_of_the_graph_on_the_line(self):
        self.init(SCHEMA)
        self.write("people.csv", "id,name\n1,Ada\n")
        self.load("Person=people.csv")
        for branch in ("draft", "draft two", "$(touch made)", "`touch made`", "d*"):
            self.done("branch", "create", "G", branch)
        self.assertEqual(self.complete("load", "G", "peo"), ["people.csv"])
        self.assertEqual(self.complete("scan", "G", "P"), ["Person"])
        self.assertEqual(self.complete("count", "G", ""), ["KNOWS", "Person"])
        self.assertEqual(self.complete("scan", "G", "Person", "--branch", "dr"), ["draft", "draft\\ two"])
        self.assertIn("main", self.complete("log", "G", "--branch", "=", ""))
        self.assertEqual(self.complete("log", "absent", "--branch", "zz"), [])
        self.assertFalse(os.path.exists(self.path("made")))

    def test_the_other_shells_accept_what_is_printed(self):
        for shell, flag in (("zsh", "-n"), ("fish", "--no-execute"), ("bash", "-n")):
            script = self.done("completion", shell).out
            for command in self.commands():
                self.assertIn(command, script)
            if not shutil.which(shell):
                continue
            self.write("script", script)
            done = subprocess.run([shell, flag, "script"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  timeout=300)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""), shell)
        self.refused(2, "completion", "tcsh")

    def hint(self, code, *words):
        said = self.refused(code, *words)
        self.assertIn("hint: ", said.err, words)
        return said.err.split("hint: ", 1)[1]

    def test_a_mistyped_name_is_answered_with_the_one_that_was_meant(self):
        self.init(SCHEMA)
        self.write("people.csv", "id,name\n1,Ada\n")
        self.load("Person=people.csv")
        self.done("branch", "create", "G", "draft/summer")
        self.done("checkpoint", "create", "G", "release-one")
        for code, words, meant in (
                (2, ("lod", "G"), "load"), (2, ("help", "lod"), "load"), (2, ("stat", "G"), "status"),
                (2, ("scan", "G", "Person", "--colums=id"), "--columns"), (2, ("scan", "G", "Persn"), '"Person"'),
                (2, ("scan", "G", "Person", "--columns", "id,nmae"), "name"),
                (2, ("scan", "G", "Person", "--where", "nmae = 'x'"), "name"),
                (8, ("count", "G", "--branch", "draft/sumer"), '"draft/summer"'),
                (8, ("load", "G", "Person=people.csv", "--branch", "draft"), '"draft/summer"'),
                (8, ("log", "G", "--branch=darft/summer"), '"draft/summer"'),
                (8, ("branch", "delete", "G", "draft/sumer"), '"draft/summer"'),
                (8, ("branch", "create", "G", "x", "--from", "mian"), '"main"'),
                (8, ("merge", "G", "draft/sumer"), '"draft/summer"'),
                (2, ("count", "G", "--at", "relaese-one"), '"release-one"'),
                (8, ("checkpoint", "delete", "G", "release-on"), '"release-one"')):
            self.assertIn(meant, self.hint(code, *words), words)
        for code, words in ((8, ("count", "G", "--branch", "nothing-like-it")), (8, ("checkpoint", "delete", "G", "nothing")),
                            (2, ("scan", "G", "Person", "--columns", "elephant"))):
            self.assertNotIn("did you mean", self.refused(code, *words).err)
        said = self.refused(8, "count", "G", "--branch", "draft/sumer", "--json")
        self.assertNotIn("summer", said.out)  # the document names nothing of the user's
        self.clean()


if __name__ == "__main__":
    main()
