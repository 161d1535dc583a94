#!/usr/bin/env python3
"""What README and docs/ show is what happens.

Every ```console block is a transcript: the blocks of one document run in order, in one shell, in a folder that holds copies of examples/
and scripts/. A command is a line that begins with "$ "; lines of a here-document, of a quoted word and after a "\\" belong to it, and what follows is
what it prints. A command whose output is not shown may print anything; it fails only if an error is shown ("sluice: "). Where what is
shown cannot be the same twice it is matched by its form: ids, digests, times, durations, sizes; "..." is any text, on a line of its own
any lines (`test_transcripts.py --write DOCUMENT` puts what is printed in its place). ```python blocks run in the same folder, ```sh blocks in a test that is named behind them. Other commands of sluice, in the text and in blocks, are held against `sluice help`.
"""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD, PROGRAM = os.environ["SLUICE_SOURCE_DIR"], os.environ["SLUICE_BUILD_DIR"], os.environ["SLUICE"]
DOCUMENTS = sorted(os.path.relpath(path, SOURCE) for path in
                   [os.path.join(SOURCE, "README.md"), *glob.glob(os.path.join(SOURCE, "docs/**/*.md"), recursive=True)])
TIMEOUT = 300
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
HEREDOC = re.compile(r"<<-?\s*'?(\w+)'?")
JOURNAL = re.compile(r"sluice: the filesystem \(\w+\) has no journal")  # said on some machines
FORMS = (  # what differs from run to run
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    (r"\b[0-9a-f]{32,64}\b", r"[0-9a-f]{32,64}"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?", r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?"),
    (r"\b\d+(?:\.\d+)? (?:bytes|[KMG]iB)", r"\d+(?:\.\d+)? (?:bytes|[KMG]iB)"),
    (r"\b\d+\.\d+ s\b", r"\d+\.\d+ s"),
    (r'"(seconds|time)": ?[^,}]+', r'"\1": ?[^,}]+'),
    (r"\.\.\.", r".*"),
)


def pattern(line):
    """A regular expression for a line of output."""
    spans = []
    for form, general in FORMS:
        for match in re.finditer(form, line):
            if not any(match.start() < end and start < match.end() for start, end, _ in spans):
                spans.append((match.start(), match.end(), match.expand(general) if "\\1" in general else general))
    text, at = "", 0
    for start, end, general in sorted(spans):
        text += re.escape(line[at:start]) + general
        at = end
    return text + re.escape(line[at:])


def matches(shown, printed):
    """Whether these lines, with lines "..." for any number of lines, are what was printed."""
    text = "".join("(?:.*\n)*" if line == "..." else pattern(line.rstrip()) + " *\n" for line in shown)
    return re.fullmatch(text, "".join(line + "\n" for line in printed)) is not None


def commands_of(block):
    """(command, lines that it shows) of a transcript."""
    found, lines, at = [], block.splitlines(), 0
    while at < len(lines):
        assert lines[at].startswith("$ "), "a transcript begins with a command: " + lines[at]
        command, end = [lines[at][2:]], HEREDOC.search(lines[at])
        at += 1
        while command[-1].endswith("\\") or (end and command[-1] != end.group(1)) or (not end and "\n".join(command).count("'") % 2):
            command.append(lines[at])
            at += 1
        shown = []
        while at < len(lines) and not lines[at].startswith("$ "):
            shown.append(lines[at])
            at += 1
        found.append(("\n".join(command), shown))
    return found


def environment_of(folder):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    venv = os.path.join(SOURCE, "build/venv/bin")
    return {**kept, "PATH": ":".join([os.path.dirname(PROGRAM), venv, kept["PATH"]]), "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "TZ": "UTC",
            "COLUMNS": "140", "SLUICE_WORKERS": "2", "SLUICE_LIBRARY": os.path.join(BUILD, "libsluice.so"), "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.path.join(SOURCE, "python"), "HOME": folder, "TMPDIR": folder}


def blocks_of(document):
    with open(os.path.join(SOURCE, document), encoding="utf-8") as file:
        text = file.read()
    return [(text.count("\n", 0, match.start()) + 1, match.group(1), match.group(2)) for match in BLOCK.finditer(text)], BLOCK.sub("", text)


def script_of(document):
    """One bash script of all transcripts and Python blocks; (line, command, shown) of its steps."""
    steps, script = [], ""
    for line, kind, block in blocks_of(document)[0]:
        if kind == "console":
            steps += [(line, command, shown) for command, shown in commands_of(block)]
        elif kind == "python":
            steps.append((line, "python3 - <<'END_OF_PYTHON'\n%s\nEND_OF_PYTHON" % block.rstrip(), []))
    for _, command, _ in steps:
        script += "%s\nprintf '\\n\\001%%d\\n' $?\n" % command
    return steps, script


def run(document):
    """Yields (line, command, lines that it shows, what it printed, its status) of each step."""
    steps, script = script_of(document)
    if not steps:
        return
    with tempfile.TemporaryDirectory(prefix="sluice-docs-", dir=os.environ.get("SLUICE_TEST_DIR") or BUILD) as folder:
        for name in ("examples", "scripts"):
            shutil.copytree(os.path.join(SOURCE, name), os.path.join(folder, name))
        shell = subprocess.Popen(["bash", "-c", script], cwd=folder, env=environment_of(folder), stdin=subprocess.DEVNULL, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            printed, _ = shell.communicate(timeout=TIMEOUT)
        finally:
            try:
                os.killpg(shell.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    answers = re.split(r"\n?\n\001(\d+)\n", printed)
    assert len(answers) // 2 == len(steps), "the shell did not come to its end:\n" + printed[-4000:]
    for (line, command, shown), output, status in zip(steps, answers[0::2], answers[1::2]):
        while shown and not shown[-1].strip():
            shown.pop()
        told = [text for text in output.rstrip("\n").split("\n") if not JOURNAL.match(text)]
        yield line, command, shown, "\n".join(told), status


def write_anew(document):
    """Puts what is printed now in the place of what is shown and is another."""
    path = os.path.join(SOURCE, document)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for _, command, shown, output, _ in run(document):
        if shown and not matches(shown, output.splitlines()):
            old, new = ("$ %s\n%s\n" % (command, lines) for lines in ("\n".join(shown), output))
            assert old in text, old
            text = text.replace(old, new, 1)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Transcripts(unittest.TestCase):
    maxDiff = None

    def run_document(self, document):
        for line, command, shown, output, status in run(document):
            told = "%s, the block at line %d\n$ %s\n(status %s)\n%s" % (document, line, command, status, output)
            fails = any(text.startswith("sluice: ") for text in shown)
            self.assertEqual(status != "0", fails, told)
            if shown:
                self.assertTrue(matches(shown, output.splitlines()), "%s\nbut the document shows\n%s" % (told, "\n".join(shown)))

    def test_every_form_is_told_from_another_text(self):
        self.assertTrue(matches(["a 0.21 s, 1.1 MiB", "...", "end"], ["a 3.40 s, 12 bytes", "x", "y", "end"]))
        self.assertTrue(matches(["commit 0193b1c2-7d1e-7a52-8f0e-3f6f6a0c9a11, generation 2"], ["commit 0293b1c2-7d1e-7a52-8f0e-3f6f6a0c9a12, generation 2"]))
        for shown, printed in ((["a"], ["b"]), (["generation 2"], ["generation 3"]), (["a", "b"], ["a"]), (["a"], ["a", "b"]), (["10 rows"], ["11 rows"])):
            self.assertFalse(matches(shown, printed))
        self.assertEqual(commands_of("$ a <<END\nx\nEND\nout\n$ b \\\n  c\n"), [("a <<END\nx\nEND", ["out"]), ("b \\\n  c", [])])

    def behind(self, document, block):
        with open(os.path.join(SOURCE, document), encoding="utf-8") as file:
            return file.read().partition(block)[2][:400]

    def test_no_command_stands_in_a_block_that_does_not_run(self):
        for document in DOCUMENTS:
            for line, kind, block in blocks_of(document)[0]:
                if kind == "sh":  # run by a test of its own, which the text names
                    self.assertRegex(self.behind(document, block), r"tests/\w+/test_\w+\.py", "%s:%d" % (document, line))
                elif kind != "console":
                    self.assertNotRegex(block, r"(?m)^(\$|sluice) ", "%s:%d: a command in a block that is not ```console" % (document, line))

    def test_commands_in_the_text_are_commands_with_options_that_there_are(self):
        names = set(re.findall(r"(?m)^  ([a-z]+)\b", subprocess.run([PROGRAM, "help"], check=True, capture_output=True, text=True).stdout))
        self.assertIn("load", names)
        helps, checked = {}, 0
        for document in DOCUMENTS:
            for quoted in re.findall(r"`sluice ([^`\n]+)`", blocks_of(document)[1]):
                words = quoted.split()
                if words[0].startswith("-") or words[0] in ("CMD", "COMMAND"):
                    continue
                self.assertIn(words[0], names, "%s: sluice %s" % (document, quoted))
                if words[0] not in helps:
                    helps[words[0]] = subprocess.run([PROGRAM, "help", words[0]], check=True, capture_output=True, text=True).stdout
                for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", quoted):
                    self.assertRegex(helps[words[0]], re.escape(flag) + r"(?![\w-])", "%s: sluice %s" % (document, quoted))
                checked += 1
        self.assertGreater(checked, 20)

    def test_scripts_and_files_that_are_named_are_there(self):
        for document in DOCUMENTS:
            with open(os.path.join(SOURCE, document), encoding="utf-8") as file:
                text = file.read()
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
                self.assertTrue(os.path.exists(os.path.join(SOURCE, os.path.dirname(document), target)), "%s: %s" % (document, target))
            for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text):
                whole = os.path.join(SOURCE, os.path.dirname(document), target) if target else os.path.join(SOURCE, document)
                with open(whole, encoding="utf-8") as file:
                    heads = re.findall(r"^#+ (.*)$", file.read(), re.M)
                self.assertIn(anchor, [re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads], document)
            for name in re.findall(r"`((?:scripts|examples|tests|packaging)/[\w./-]+)", text):
                name = name.rstrip(".")
                found = glob.glob(os.path.join(SOURCE, name) + "*")
                self.assertTrue(found, "%s: %s" % (document, name))


def transcript(document):
    return lambda self: self.run_document(document)


for _document in DOCUMENTS:
    setattr(Transcripts, "test_" + re.sub(r"\W", "_", os.path.splitext(_document)[0].lower()), transcript(_document))

if __name__ == "__main__":
    if "asan" in BUILD:
        print("skipped: the commands themselves are tested under the sanitizers elsewhere")
        sys.exit(77)
    if sys.argv[1:2] == ["--write"]:
        for name in sys.argv[2:]:
            write_anew(name)
    else:
        unittest.main()
