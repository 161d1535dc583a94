#!/usr/bin/env python3
"""Inputs that are not what they were, or cannot be read: told, and nothing is committed. Limits of the process: told clearly."""

import os
import resource

from support.program import ProgramTest, main

SCHEMA = {"nodes": {"P": {"key": "id", "properties": {"id": "int64", "name": "string"}}}}
ROWS = 2000
TEXT = "id,name\n" + "".join("%d,name %d\n" % (i, i) for i in range(ROWS))


class Inputs(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        self.write("p.csv", TEXT)

    def check_old(self):
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 0})
        self.assertEqual(os.listdir(self.path("G/attempts")), [])
        self.clean()

    def refused_limit(self, code, limits, *words):
        """A load under limits of the system."""
        def set_limits():
            for what, value in limits:
                resource.setrlimit(what, (value, value))
        said = self.refused(10, "load", "G", *words, "--workers", "2", "--json", preexec_fn=set_limits)
        self.assertEqual(said.error["code"], code, said.err)
        self.assertIs(said.error["committed"], False)
        return said


class Changing(Inputs):
    def while_stopped(self, point, change):
        """Stops a load where its input was read once, changes the input, lets it go on."""
        process = self.start("load", "G", "P=p.csv", "--workers", "1", "--json", env={"SLUICE_FAILPOINT": point + "=stop"})
        stopped = self.stopped_worker(process)
        change(self.path("p.csv"))
        os.kill(stopped, 18)
        return self.finish(process)

    def test_every_change_is_told(self):
        if not self.done("version", "--json").document["build"]["failpoints"]:
            self.skipTest("a build without failpoints")

        def truncate(path):
            os.truncate(path, len(TEXT) // 2)

        def empty(path):
            os.truncate(path, 0)

        def grow(path):
            with open(path, "a") as file:
                file.write("999999,more\n")

        def replace(path):
            with open(path + ".new", "w") as file:
                file.write(TEXT.replace("name 7\n", "name 8\n"))
            os.rename(path + ".new", path)

        def vanish(path):
            os.remove(path)

        def rewrite_unseen(path):
            """Other bytes, as many, and the time of modification set back."""
            before = os.stat(path)
            with open(path, "r+") as file:
                file.write(TEXT.replace("name 7\n", "name 8\n"))
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

        for point in ("load.after_boundaries", "load.before_fragment"):
            for change in (truncate, empty, grow, replace, vanish, rewrite_unseen):
                with self.subTest(point=point, change=change.__name__):
                    self.write("p.csv", TEXT)
                    said = self.while_stopped(point, change)
                    self.assertEqual(said.code, 4, said.err)
                    self.assertEqual(said.error["code"], "INPUT_CHANGED")
                    self.assertIs(said.error["committed"], False)
                    self.check_old()
        self.write("p.csv", TEXT)
        self.load("P=p.csv")


class Unreadable(Inputs):
    def test_a_stream_that_breaks(self):
        """A terminal whose other side is gone gives an error, not an end."""
        for written in (b"", b"id,name\n1,a\n"):
            master, slave = os.openpty()
            os.write(slave, written)
            os.close(slave)
            said = self.run_program("load", "G", "P=-", "--json", stdin=master)
            os.close(master)
            self.assertEqual(said.code, 1, said.err)
            self.assertEqual(said.error["code"], "IO")
            self.assertIn("standard input", said.err)
            self.check_old()

    def test_a_file_that_cannot_be_read(self):
        path = "/sys/class/net/lo/speed"  # a regular file; reading it is an error
        try:
            with open(path) as file:
                file.read()
            self.skipTest("this machine lets %s be read" % path)
        except FileNotFoundError:
            self.skipTest("this machine has no %s" % path)
        except OSError:
            pass
        for workers in ("1", "3"):
            said = self.refused(1, "load", "G", "P=" + path, "--format", "csv", "--workers", workers, "--json")
            self.assertEqual(said.error["code"], "IO")
            self.assertIn(path, said.err)
            self.check_old()

    def test_a_named_pipe_whose_writer_gives_up_at_once(self):
        os.mkfifo(self.path("pipe"))
        process = self.start("load", "G", "P=pipe", "--format", "csv", "--json")
        os.close(os.open(self.path("pipe"), os.O_WRONLY))
        said = self.finish(process)
        self.assertEqual(said.code, 4, said.err)
        self.assertIn("empty", said.err)
        self.check_old()


class Limits(Inputs):
    def test_the_size_of_a_file(self):
        self.refused_limit("RESOURCE_LIMIT", [(resource.RLIMIT_FSIZE, 20000)], "P=p.csv")
        self.check_old()

    def test_the_number_of_open_files(self):
        outcomes = set()
        for most in (4, 6, 8, 10, 12, 14, 17, 64):
            def set_limit(most=most):
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
            said = self.run_program("load", "G", "P=p.csv", "--workers", "2", "--json", preexec_fn=set_limit)
            outcomes.add(said.code)
            if said.code == 0:
                break
            self.assertEqual(said.code, 10, "%d: %s" % (most, said.err))
            self.assertEqual(said.error["code"], "RESOURCE_LIMIT", said.err)
            self.assertEqual(self.done("count", "G", "--json").document, {"P": 0})
        self.assertEqual(outcomes, {0, 10})
        self.clean()

    def test_memory_that_the_caller_limits(self):
        if self.done("version", "--json").document["build"]["sanitizers"]:
            self.skipTest("the sanitizers need more than any limit")
        outcomes = set()
        for mebibytes in (10, 11, 12, 16, 200):
            def set_limit(size=mebibytes << 20):
                resource.setrlimit(resource.RLIMIT_DATA, (size, size))
            said = self.run_program("load", "G", "P=p.csv", "--workers", "2", "--dry-run", "--json", preexec_fn=set_limit)
            outcomes.add(said.code)
            if said.code:
                self.assertEqual(said.code, 10, "%d MiB: %s" % (mebibytes, said.err))
                self.assertEqual(self.done("count", "G", "--json").document, {"P": 0})
        self.assertIn(0, outcomes)
        self.clean()


if __name__ == "__main__":
    main()
