#!/usr/bin/env python3
"""One table of commands gives the help, the manual page and the completions of three shells; a mistyped name is answered with
the one that was meant."""

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import time

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

    def social(self):
        self.init(SCHEMA)
        self.write("people.csv", "id,name\n1,Ada\n")
        self.load("Person=people.csv")
        for branch in ("draft", "draft two", "$(touch made)"):
            self.done("branch", "create", "G", branch)

    def test_names_in_a_graph_are_told_to_shells_one_a_line(self):
        self.social()
        self.assertEqual(self.done("completion", "types", "G").out, "Person\nKNOWS\n")
        self.assertEqual(sorted(self.done("completion", "branches", "G").out.splitlines()), ["$(touch made)", "draft", "draft two", "main"])
        self.assertEqual(self.done("completion", "columns", "G", "Person").out, "id\nname\n_row_id\n")
        self.assertEqual(self.done("completion", "columns", "G", "KNOWS").out, "from\nto\n_row_id\n")
        self.refused(2, "completion", "columns", "G", "Persn")
        self.refused(2, "completion", "columns", "G")

    def test_bash_completes_columns_of_the_type_on_the_line(self):
        self.social()
        self.assertEqual(self.complete("scan", "G", "Person", "--columns", "na"), ["name"])
        self.assertEqual(self.complete("scan", "G", "Person", "--columns", "name,i"), ["name,id"])
        self.assertEqual(self.complete("merge", "G", "dra"), ["draft", "draft\\ two"])
        self.assertEqual(self.complete("merge", "G", "draft", "--into", "ma"), ["main"])

    CASES = (("sluice optim", "optimize"), ("sluice load G --mode ups", "upsert"), ("sluice scan G Per", "Person"), ("sluice count G KN", "KNOWS"),
             ("sluice log G --branch ma", "main"), ("sluice merge G draft --into ma", "main"), ("sluice merge G ma", "main"),
             ("sluice scan G Person --columns na", "name"), ("sluice scan G Person --columns id,na", "id,name"),
             ("sluice branch dele", "delete"), ("sluice load G --on-err", "--on-error"))

    def test_fish_completes_types_branches_and_columns(self):
        if not shutil.which("fish"):
            self.skipTest("no fish")
        self.social()
        self.write("sluice.fish", self.done("completion", "fish").out)
        for line, meant in self.CASES:
            done = subprocess.run(["fish", "--no-config", "-c", "source sluice.fish; complete -C %s" % shlex.quote(line)], cwd=self.folder,
                                  env=self.shell(), stdin=subprocess.DEVNULL, capture_output=True, timeout=300, text=True)
            self.assertEqual(done.stderr, "", line)
            self.assertIn(meant, [told.split("\t")[0] for told in done.stdout.splitlines()], (line, done.stdout))
        self.assertFalse(os.path.exists(self.path("made")))

    def shell(self):
        return {**self.environment, "PATH": os.path.dirname(self.program) + ":" + os.environ["PATH"], "HOME": self.folder, "TERM": "xterm"}

    def test_zsh_completes_types_branches_and_columns(self):
        if not shutil.which("zsh"):
            self.skipTest("no zsh")
        self.social()
        self.write("_sluice", self.done("completion", "zsh").out)
        self.write("rc", "fpath=($PWD $fpath); autoload -U compinit; compinit -u -D\nPS1='> '\nsetopt no_beep\n"
                   "said() { print -r -- $BUFFER >>said; BUFFER=; }; zle -N said; bindkey '^X' said; bindkey '^I' expand-or-complete\n: >ready\n")
        ours, theirs = pty.openpty()
        process = subprocess.Popen(["zsh", "-f", "-i"], cwd=self.folder, env=self.shell(), stdin=theirs, stdout=theirs, stderr=theirs,
                                   start_new_session=True)
        os.close(theirs)
        shown = b""
        try:
            os.write(ours, b"source ./rc\r")
            for number, (line, meant) in enumerate(self.CASES):
                os.write(ours, line.encode() + b"\t\x18")
                deadline = time.monotonic() + 120
                while not os.path.exists(self.path("said")) or len(self.read("said").splitlines()) <= number:
                    self.assertLess(time.monotonic(), deadline, (line, shown[-2000:]))
                    if select.select([ours], [], [], 0.05)[0]:
                        shown += os.read(ours, 65536)
                self.assertIn(meant, self.read("said").splitlines()[number].replace("\\", "").replace("=", "").split(" "), (line, shown[-500:]))
        finally:
            process.kill()
            process.wait()
            os.close(ours)
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
