#!/usr/bin/env python3
"""The converter of package lists: versions, alternatives, virtual names, and what exists nowhere."""

import csv
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ.get("SLUICE_SOURCE_DIR", os.getcwd())

LIST = """\
Package: app
Version: 1.0-1
Architecture: amd64
Depends: lib (>= 2) | lib-old, mailer, gone, lib (<< 3)
Installed-Size: 12
Description: an application, "quoted"
 and more

Package: app
Version: 1.0~rc1-9
Architecture: amd64
Depends: nothing

Package: lib
Version: 2.1
Architecture: all
Provides: lib-old (= 1.9), mailer
Breaks: app (<< 0.5)

Package: post
Version: 1:0.1
Architecture: amd64
Provides: mailer, lib
"""


class DebianGraph(unittest.TestCase):
    def convert(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x_Packages")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            done = subprocess.run([sys.executable, os.path.join(SOURCE, "scripts/debian-graph"), folder, path], timeout=300,
                                  stdout=subprocess.PIPE, check=True, text=True)
            tables = {}
            for name in os.listdir(folder):
                if name.endswith(".csv"):
                    with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
                        tables[name[:-4]] = list(csv.reader(file))[1:]
            return done.stdout, tables

    def test_the_highest_version_wins_and_unknown_names_are_counted(self):
        said, tables = self.convert(LIST)
        self.assertEqual([row[:2] for row in tables["Package"]], [["app", "1.0-1"], ["lib", "2.1"], ["post", "1:0.1"]])
        self.assertEqual(tables["Package"][0][-1], 'an application, "quoted"')
        self.assertEqual(tables["Virtual"], [["lib-old", "1"], ["mailer", "2"]])
        self.assertIn("5 nodes (3 packages, 2 virtual)", said)
        self.assertIn("left out: 1 relations to 1 names", said)

    def test_every_alternative_is_an_edge_with_its_place(self):
        _, tables = self.convert(LIST)
        self.assertEqual(tables["DEPENDS"], [["app", "lib", "depends", "0", "0", ">=", "2"], ["app", "lib", "depends", "3", "0", "<<", "3"]])
        self.assertEqual(tables["DEPENDS_VIRTUAL"], [["app", "lib-old", "depends", "0", "1", "", ""],
                                                     ["app", "mailer", "depends", "1", "0", "", ""]])
        self.assertEqual(tables["CONFLICTS"], [["lib", "app", "breaks", "0", "0", "<<", "0.5"]])
        self.assertEqual(tables["PROVIDES"], [["post", "lib", "provides", "1", "0", "", ""]])
        self.assertEqual(len(tables["PROVIDES_VIRTUAL"]), 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
