#!/usr/bin/env python3
"""Compressed inputs: what is one file, what is refused whole, and the death of the worker that unpacks them."""

import gzip
import os
import shutil
import signal
import subprocess

from cli.sources import ROWS, SMALL, TEXT, Sources
from support.program import TIMEOUT, main, some


class Compressed(Sources):
    def test_joined_members_are_one_file(self):
        middle = len(TEXT) // 3  # also in the middle of a row
        parts = [TEXT[:middle], "", TEXT[middle:]]
        for name, pack in (("p.csv.gz", lambda text: gzip.compress(text.encode())), ("p.csv.zst", self.zstd)):
            self.write(name, b"".join(pack(part) for part in parts))
            for workers in ("1", "2", "5"):
                graph = self.fresh("G-%s-%s" % (name, workers))
                self.done("load", graph, "P=" + name, "--workers", workers, env=SMALL)
                self.check_whole(graph)

    def test_several_compressed_and_plain_files_are_one_commit(self):
        lines = TEXT.splitlines(keepends=True)
        head, rows = lines[0], lines[1:]
        self.write("a.csv", head + "".join(rows[:100]))
        self.write("b.csv.gz", gzip.compress((head + "".join(rows[100:200])).encode()))
        self.write("c.data", self.zstd(head.replace(",", "\t") + "".join(rows[200:]).replace(",", "\t")))
        self.refused(2, "load", "G", "P=c.data")
        os.rename(self.path("c.data"), self.path("c.tsv.zst"))
        self.load("P=a.csv", "P=b.csv.gz", "P=c.tsv.zst", "--workers", "3")
        self.check_whole()
        self.assertEqual(len(self.done("log", "G", "--json").lines), 2)

    def test_the_same_content_is_the_same_request(self):
        self.write("p.csv", TEXT)
        self.write("p.csv.gz", gzip.compress(TEXT.encode()))
        self.write("q.csv.gz", gzip.compress(TEXT.encode() + b"9999,more\n"))
        words = ("--op-id", "11111111-2222-4333-8444-555555555555")
        first = self.load("P=p.csv", *words)
        again = self.load("P=p.csv.gz", *words)
        self.assertEqual(again["commit"]["id"], first["commit"]["id"])
        self.assertIs(again["repeated"], True)
        self.refused(9, "load", "G", "P=q.csv.gz", *words)
        self.check_whole()

    def test_places_are_those_of_the_plain_text(self):
        self.write("bad.csv.gz", gzip.compress((TEXT + "1000,x\nabc,y\n").encode()))
        self.refused_whole("CONSTRAINT_TYPE", 4, "bad.csv.gz", ["bad.csv.gz:%d:" % (ROWS + 3), "abc"], env=SMALL)

    def test_cut_damaged_and_prolonged_files_are_refused_whole(self):
        for name, packed in (("p.csv.gz", gzip.compress(TEXT.encode())), ("p.csv.zst", self.zstd(TEXT))):
            for cut in (0, 9, len(packed) // 2, len(packed) - 1):
                self.write(name, packed[:cut])
                self.refused_whole("INPUT_SYNTAX", 4, name, [name, "cut"])
            for at in (len(packed) // 2, len(packed) - 2):  # the second is in the length (gzip) or the checksum (zstd)
                self.write(name, packed[:at] + bytes([packed[at] ^ 0x55]) + packed[at + 1:])
                self.refused_whole("INPUT_SYNTAX", 4, name, [name, "damaged"])
            self.write(name, packed + b"JUNKJUNKJUNKJUNK")
            self.refused_whole("INPUT_SYNTAX", 4, name, [name, "behind the end"])
            self.write(name, TEXT)
            self.refused_whole("UNSUPPORTED_FORMAT", 7, name, [name])
        self.check_nothing_left()

    def test_a_wrong_checksum_is_damage(self):
        packed = gzip.compress(TEXT.encode())
        self.write("p.csv.gz", packed[:-6] + bytes([packed[-6] ^ 1]) + packed[-5:])
        self.refused_whole("INPUT_SYNTAX", 4, "p.csv.gz", ["p.csv.gz", "data check"])

    def test_a_compressed_file_is_read_again_when_its_worker_dies(self):
        self.need_failpoints()
        self.write("p.csv.gz", gzip.compress(TEXT.encode()))
        for point in ("load.before_spooling", "load.while_spooling", "load.after_spooling"):
            for workers in some(("1", "2"), 1):
                graph = self.fresh("G-%s-%s" % (point, workers))
                self.done("load", graph, "P=p.csv.gz", "--workers", workers, env={"SLUICE_FAILPOINT": point + "=kill", **SMALL})
                self.check_whole(graph)

    def test_a_file_that_changes_while_it_is_unpacked_is_told(self):
        self.need_failpoints()
        packed = gzip.compress(TEXT.encode())
        for change in ("cut", "grown", "replaced"):
            self.write("p.csv.gz", packed)
            process = self.start("load", "G", "P=p.csv.gz", "--json", env={"SLUICE_FAILPOINT": "load.while_spooling=stop"})
            reader = self.stopped_worker(process)
            if change == "cut":
                os.truncate(self.path("p.csv.gz"), len(packed) // 2)
            elif change == "grown":
                self.write("p.csv.gz", packed + packed)
            else:
                self.write("other", packed)
                os.rename(self.path("other"), self.path("p.csv.gz"))
            os.kill(reader, signal.SIGCONT)
            said = self.finish(process)
            self.assertEqual((said.code, said.error["code"]), (4, "INPUT_CHANGED"), said.err)
            self.assertIn("p.csv.gz", said.err)
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 0})
        self.check_nothing_left()

    def test_a_killed_load_leaves_its_copy_to_the_next_writer(self):
        self.need_failpoints()
        self.write("p.csv.gz", gzip.compress(TEXT.encode()))
        said = self.run_program("load", "G", "P=p.csv.gz", env={"SLUICE_FAILPOINT": "load.while_spooling=killpool"})
        self.assertEqual(said.code, -signal.SIGKILL)
        self.assertEqual(len(os.listdir(self.path("G/attempts"))), 1)
        self.load("P=p.csv.gz")
        self.done("gc", "G")
        self.check_whole()

    def test_a_bomb_ends_at_the_end_of_the_disk(self):
        if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("mkfs.ext4") is None:
            self.skipTest("needs root and mkfs.ext4")
        with gzip.open(self.path("bomb.csv.gz"), "wb") as file:
            file.write(b"id,name\n1," + b"x" * (256 << 20))
        self.write("one.csv", "id,name\n1,a\n")
        script = """
            set -e
            truncate -s 96M image; mkfs.ext4 -q -F image; mkdir disk
            mount -o loop image disk 2>/dev/null || exit 77
            chmod 700 disk
            $SLUICE init disk/G --schema schema.json >/dev/null 2>&1
            set +e
            $SLUICE load disk/G P=bomb.csv.gz --workers 2 2>said; echo $?
            $SLUICE load disk/G P=one.csv >/dev/null 2>&1; echo $?
            $SLUICE count disk/G --json 2>/dev/null
            ls disk/G/attempts
            umount disk
        """
        done = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", script], cwd=self.folder, timeout=TIMEOUT,
                              env={**self.environment, "SLUICE": self.program}, stdout=subprocess.PIPE)
        if done.returncode == 77:
            self.skipTest("no loop device")
        lines = done.stdout.decode().split("\n")
        self.assertEqual(lines[:2], ["10", "0"], self.read("said"))
        self.assertIn("bomb.csv.gz: no space left", self.read("said"))
        self.assertIn("(NO_SPACE)", self.read("said"))
        self.assertEqual(lines[2:], ['{"P":1}', ""])


if __name__ == "__main__":
    main()
