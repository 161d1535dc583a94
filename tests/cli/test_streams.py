#!/usr/bin/env python3
"""Standard input and pipes: slow writers, late ones, those that die; and the death of the worker that reads them."""

import gzip
import os
import shlex
import shutil
import subprocess
import time

from cli.sources import ROWS, SMALL, TEXT, Sources
from support.program import TIMEOUT, main


class Streams(Sources):
    def feed(self, pieces, *words, pause=0.02, env=None):
        """Runs a load whose standard input comes in pieces."""
        process = self.start("load", "G", *words, "--json", stdin=subprocess.PIPE, env={**SMALL, **(env or {})})
        try:
            for piece in pieces:
                process.stdin.write(piece.encode())
                process.stdin.flush()
                time.sleep(pause)
        except BrokenPipeError:
            pass  # the load has ended before its input: the caller sees how
        try:
            process.stdin.close()
        except BrokenPipeError:
            pass
        process.stdin = None
        return self.finish(process)

    def test_standard_input_from_a_slow_writer(self):
        pieces = [TEXT[at:at + 700] for at in range(0, len(TEXT), 700)]
        for path, workers in (("-", "4"), ("/dev/stdin", "2"), ("-", "1")):
            self.assertEqual(self.feed(pieces, "P=" + path, "--workers", workers).code, 0)
            self.check_whole()
            shutil.rmtree(self.path("G"))
            self.fresh("G")

    def test_a_file_or_nothing_as_standard_input(self):
        self.write("p.csv", TEXT)
        with open(self.path("p.csv"), "rb") as file:
            self.done("load", "G", "P=-", stdin=file)
        self.check_whole()
        said = self.refused(4, "load", "G", "P=-", "--json")
        self.assertEqual(said.error["code"], "INPUT_SYNTAX")
        self.assertIn("empty", said.err)

    def test_compressed_standard_input_and_other_formats(self):
        self.write("p.csv.gz", gzip.compress(TEXT.encode()))
        with open(self.path("p.csv.gz"), "rb") as file:
            self.done("load", "G", "P=-", "--format", "csv.gz", stdin=file)
        self.check_whole()
        self.fresh("T")
        self.write("p.tsv", TEXT.replace(",", "\t"))
        with open(self.path("p.tsv"), "rb") as file:
            self.done("load", "T", "P=-", "--format", "tsv", stdin=file)
        self.check_whole("T")

    def test_places_in_standard_input(self):
        said = self.feed([TEXT, "abc,y\n"], "P=-", "--workers", "3")
        self.assertEqual(said.code, 4)
        self.assertIn("-:%d:" % (ROWS + 2), said.err)
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 0})

    def test_a_stream_is_one_input_only(self):
        self.refused(2, "load", "G", "P=-", "P=-")
        self.refused(2, "load", "G", "P=-", "P=/dev/stdin")
        os.mkfifo(self.path("pipe"))
        os.symlink("pipe", self.path("other"))
        self.refused(2, "load", "G", "P=pipe", "P=other", "--format", "csv")

    def test_a_named_pipe_and_its_late_writer(self):
        os.mkfifo(self.path("pipe"))
        for workers in ("1", "3"):
            process = self.start("load", "G", "P=pipe", "--workers", workers, env=SMALL)
            time.sleep(0.2)  # the load is there before its writer
            with open(self.path("pipe"), "w") as pipe:
                pipe.write(TEXT[:1000])
                pipe.flush()
                time.sleep(0.05)
                pipe.write(TEXT[1000:])
            self.assertEqual(self.finish(process).code, 0)
            self.check_whole()
            shutil.rmtree(self.path("G"))
            self.fresh("G")

    def test_a_writer_that_dies_is_the_end_of_its_input(self):
        os.mkfifo(self.path("pipe"))
        writer = subprocess.Popen(["sh", "-c", "exec >%s; printf 'id,name\\n1,a\\n2,b\\n'; kill -9 $$"
                                   % shlex.quote(self.path("pipe"))])
        self.done("load", "G", "P=pipe")
        writer.wait(TIMEOUT)
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 2})

    def test_an_interrupt_ends_the_wait_for_a_writer(self):
        os.mkfifo(self.path("pipe"))
        for words in (("P=pipe",), ("P=-",)):
            for workers in ("1", "3"):
                process = self.start("load", "G", *words, "--workers", workers, stdin=subprocess.PIPE)
                self.interrupt(process)
                try:
                    process.wait(TIMEOUT)
                finally:
                    process.stdin.close()
                    process.stdin = None
                self.assertEqual(self.finish(process).code, 130)
        self.check_nothing_left()

    def test_a_stream_whose_worker_dies_fails_the_load(self):
        self.need_failpoints()
        for point, workers in (("load.while_spooling", "1"), ("load.while_spooling", "3")):
            said = self.feed([TEXT[:900], TEXT[900:1800], TEXT[1800:]], "P=-", "--workers", workers,
                             env={"SLUICE_FAILPOINT": point + "=kill"})
            self.assertEqual(said.code, 1, said.err)
            self.assertIs(said.error["committed"], False)
            self.assertIn("standard input", said.err)
            self.assertEqual(self.done("count", "G", "--json").document, {"P": 0})
            self.check_nothing_left()
        # before the first byte, and behind the last, nothing is lost
        for point in ("load.before_spooling", "load.after_spooling"):
            self.assertEqual(self.feed([TEXT], "P=-", "--workers", "3", env={"SLUICE_FAILPOINT": point + "=kill"}).code, 0)
            self.check_whole()
            shutil.rmtree(self.path("G"))
            self.fresh("G")


if __name__ == "__main__":
    main()
