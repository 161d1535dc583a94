#!/usr/bin/env python3
"""Long commands say how far they are on a terminal, in one line that is written over; as events with --json; and nowhere else."""

import json
import os
import pty
import re
import subprocess

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "text": "string?"}}}, "edges": {}}


class Progress(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        for name in range(4):
            self.write("p%d.csv" % name, "id,text\n" + "".join("%d,%s\n" % (i * 4 + name, "x" * 40) for i in range(20000)))
            self.load("P=p%d.csv" % name)

    def on_terminal(self, *words):
        """Standard output and what a terminal behind standard error shows. Progress is shown from the first moment on."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([self.program, *words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs,
                                   env={**os.environ, "SLUICE_PROGRESS_MS": "0", "TERM": "xterm"})
        os.close(theirs)
        shown = b""
        while True:
            try:
                read = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not read:
                break
            shown += read
        out = process.stdout.read().decode()
        process.stdout.close()
        os.close(ours)
        self.assertEqual(process.wait(), 0, out + shown.decode())
        return out, shown.decode()

    def test_a_line_with_rate_and_time_left_is_written_over(self):
        self.done("optimize", "G")
        for words, unit in ((("export", "G", "out"), "rows"), (("backup", "G", "copy"), "files"), (("verify", "G"), "objects"),
                            (("gc", "G", "--keep", "1"), "files")):
            out, shown = self.on_terminal(*words)
            self.assertTrue(out, words)
            lines = shown.split("\r\x1b[K")
            self.assertEqual(lines[0], "", words)
            self.assertEqual(lines[-1], "", words)  # what it wrote is gone when it ends
            self.assertTrue(any(unit in line and "/s" in line for line in lines), (words, lines[-4:]))
            if unit != "files" or words[0] == "backup":  # what gc will find is not known before
                self.assertTrue(any(re.search(r"^\d+ of \d+ %s, .*/s, \d+ s left$" % unit, line) for line in lines), (words, lines[-4:]))

    def test_away_from_a_terminal_nothing_is_said_but_events_with_json(self):
        env = {"SLUICE_PROGRESS_MS": "0"}
        for words in (("export", "G", "out"), ("backup", "G", "copy"), ("verify", "G")):
            self.assertEqual(self.done(*words, env=env).err, "")
        for words, unit in ((("export", "G", "out2"), "rows"), (("backup", "G", "copy2"), "files"), (("verify", "G"), "objects")):
            said = self.done(*words, "--json", env=env)
            events = [json.loads(line) for line in said.err.splitlines()]
            self.assertTrue(events, words)
            self.assertEqual({event["unit"] for event in events}, {unit})
            done = [event["done"] for event in events]
            self.assertEqual(done, sorted(done))
            self.assertLessEqual(done[-1], events[-1]["total"])


if __name__ == "__main__":
    main()
