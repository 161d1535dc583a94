#!/usr/bin/env python3
"""A plan that does not fit its intent's slot lies in a side file of the attempt (OW-036): from there alone a fresh process finishes the
write; a side file that is damaged or gone makes the intent unreadable, which blocks what it overlaps and nothing else (L-036). That its
writer may die anywhere else: the writer mutate-large of test_matrix."""

import glob
import os
import shutil
import signal

from matrix.cells import Cells
from matrix.writers import MANY_MORE, WRITERS
from support.program import main


class SideFile(Cells):
    def leave(self):
        """A dead writer with a confirmed intent; the path of its plan."""
        writer = next(writer for writer in WRITERS if writer.name == "mutate-large")
        self.copy("base")
        self.done("branch", "create", "G", "other")
        died = self.run_program(*writer.words, env={"SLUICE_FAILPOINT": "arm.after=kill", **writer.env})
        self.assertEqual(died.code, -signal.SIGKILL)
        self.assertEqual([line["stage"] for line in self.probe()], ["confirmed"])
        plans = glob.glob(self.path("G/attempts/*/plan-*"))
        self.assertEqual(len(plans), 1)
        self.assertGreater(os.path.getsize(plans[0]), 12288)
        return plans[0]

    def people(self, *words):
        return int(self.done("count", "G", "P", *words).out)

    def test_a_fresh_process_finishes_the_write_from_the_file(self):
        self.leave()
        before = self.people()
        self.assertEqual([line["classification"] for line in self.done("recover", "G", "--json").lines], ["roll-forward"])
        self.assertEqual(self.people(), before + len(MANY_MORE))
        self.done("gc", "G")
        self.assertEqual(os.listdir(self.path("G/attempts")), [])
        self.clean()

    def test_a_file_that_is_damaged_or_gone_blocks_only_what_it_overlaps(self):
        plan = self.leave()
        shutil.copytree(self.path("G"), self.path("D"))
        for damage in ("flipped", "short", "gone"):
            self.copy("D")
            before = self.people()
            with open(plan, "rb") as file:
                content = bytearray(file.read())
            content[len(content) // 2] ^= 1
            os.remove(plan)
            if damage != "gone":
                with open(plan, "wb") as file:
                    file.write(content if damage == "flipped" else content[:1000])
            self.assertEqual(self.refused(5, "mutate", "G", "next.jsonl", "--json").error["code"], "RECOVERY_REQUIRED", damage)
            self.assertEqual(self.people(), before)
            self.done("mutate", "G", "next.jsonl", "--branch", "other")
            self.assertEqual(self.people("--branch", "other"), before + 1)
            self.run_program("recover", "G")
            self.assertEqual(self.people(), before)
            self.assertEqual(len(os.listdir(self.path("G/quarantine"))), 1, damage)


if __name__ == "__main__":
    main()
