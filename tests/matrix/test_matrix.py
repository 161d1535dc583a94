#!/usr/bin/env python3
"""The recovery matrix: writer × window × what happens × who comes after it (tests/matrix/cells.py says what must hold).

Windows are generated: every failpoint that the program lists and a traced run of the writer passes. A sample of the cells, the
same each time (SLUICE_SEED takes another); all of them with SLUICE_LONG=1; SLUICE_MATRIX=REGEX runs those whose names match.
"""

import os
import random
import re
import shutil

from matrix.cells import RECOVERERS, Cells
from matrix.writers import WRITERS
from support.program import main

# The ledger: failpoints that neither a writer of the table nor init passes, and why. Checked both ways.
DARK = {"gc.after_lineage": "a segment goes only behind many commits: tests/cli/test_gc.py strikes here",
        "gc.after_segment": "likewise"}


class Matrix(Cells):
    rivals_in_between = 0

    def cells_of(self, writer):
        """All cells of a writer: (point, passage, action, recoverer)."""
        for point, count in sorted(self.template(writer)[2].items()):
            for passage in sorted({1, max(1, count // 2)}):
                yield point, passage, "error", "writer"
                yield point, passage, "stop", "writer"
                if writer.pool:
                    yield point, passage, "kill", "writer"
                for recoverer in RECOVERERS:
                    yield point, passage, "killpool" if writer.pool else "kill", recoverer

    def sample(self, seed):
        """Every writer and every kind of cell in turn, windows by the dice."""
        dice = random.Random(seed)
        kinds = [("error", "writer"), ("stop", "writer"), ("kill", None)] + [("killpool", r) for r in RECOVERERS]
        first = dice.randrange(len(WRITERS))
        for i in range(10 if self.sanitizers else len(WRITERS)):
            writer = WRITERS[(first + i) % len(WRITERS)]
            action, recoverer = kinds[(i + first) % len(kinds)]
            cells = list(self.cells_of(writer))
            fitting = [c for c in cells if c[2] == action and c[3] == (recoverer or c[3])]
            yield writer, dice.choice(fitting or [c for c in cells if c[2] == "kill" and c[3] == (recoverer or c[3])])

    def chosen(self):
        pattern = os.environ.get("SLUICE_MATRIX")
        if not pattern and not os.environ.get("SLUICE_LONG"):
            seed = int(os.environ.get("SLUICE_SEED", 20787))
            print("SLUICE_SEED=%d" % seed, flush=True)
            return list(self.sample(seed))
        cells = [(writer, cell) for writer in WRITERS for cell in self.cells_of(writer)]
        return [(writer, cell) for writer, cell in cells if not pattern or re.search(pattern, self.name(writer, cell))]

    def name(self, writer, cell):
        return "%s/%s@%d/%s/%s" % (writer.name, *cell)

    def test_every_cell_leaves_the_old_state_or_the_new(self):
        cells = self.chosen()
        for writer, cell in cells:
            with self.subTest(cell=self.name(writer, cell)):
                self.run_cell(writer, *cell)
        print("%d cells, %d with a write in between" % (len(cells), self.rivals_in_between), flush=True)
        if len(self.made) == len(WRITERS):
            self.check_ledger()

    def check_ledger(self):
        """What no writer passes is listed with its reason, and the reason holds: it stays dark."""
        passed = set(self.windows_of_init())
        for writer in WRITERS:
            passed |= set(self.template(writer)[2])
        dark = set(self.done("version", "--failpoints").out.split()) - passed
        self.assertEqual(dark, set(DARK))

    # ---- init has no old state ----

    def init_words(self):
        shutil.rmtree(self.path("run"), ignore_errors=True)
        os.mkdir(self.path("run"))  # nothing is known of the filesystem yet
        shutil.rmtree(self.path("N"), ignore_errors=True)
        self.write("trace", "")
        return ["init", "N", "--schema", "schema.json", "--json"], {"XDG_RUNTIME_DIR": self.path("run"), "SLUICE_FAILPOINT_TRACE": "trace"}

    def windows_of_init(self):
        words, env = self.init_words()
        self.done(*words, env=env)
        windows = {}
        for line in self.read("trace").splitlines():
            name, count = line.split()
            windows[name] = max(int(count), windows.get(name, 0))
        return windows

    def test_a_graph_is_made_or_not_wherever_its_making_ends(self):
        """No graph, one that the next init finishes, or the empty graph (L-037, L-038)."""
        windows = self.windows_of_init()
        cells = [(point, passage, action) for point, count in sorted(windows.items())
                 for passage in sorted({1, max(1, count // 2), count}) for action in ("error", "kill")]
        if not os.environ.get("SLUICE_LONG"):
            seed = int(os.environ.get("SLUICE_SEED", 20787))
            cells = random.Random(seed).sample(cells, 4 if self.sanitizers else 12)
            cells.append(("volume.open", windows["volume.open"], "error"))  # it stands by then, and cannot be looked at
        for point, passage, action in cells:
            with self.subTest(point=point, passage=passage, action=action):
                words, env = self.init_words()
                result = self.run_program(*words, env={**env, "SLUICE_FAILPOINT": "%s=%s@%d" % (point, action, passage)})
                self.assertIn("%s %d %s" % (point, passage, action), self.read("trace").splitlines())
                again = self.run_program(*words)
                self.assertIn(again.code, (0, 8), again.out + again.err)
                if result.code > 0:
                    self.assertEqual(again.code, 8 if result.error["committed"] else 0, result.out + again.out)
                if result.code == 0:
                    self.assertEqual(again.code, 8)
                self.assertEqual(self.done("count", "N", "--json").document, {"P": 0, "K": 0})
                self.load("P=base.csv", "K=base-k.csv", graph="N")
                self.clean("N")
        print("%d cells of init" % len(cells), flush=True)


if __name__ == "__main__":
    main()
