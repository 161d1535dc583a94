#!/usr/bin/env python3
"""What the sources of the write protocol must look like (OW-001, OW-011, OW-075): who publishes, who retires, who writes."""

import os
import re
import unittest

ROOT = os.environ.get("SLUICE_SOURCE_DIR") or os.getcwd()
MODULES = ("adapters", "cli", "coord", "store", "worker")


def callers(function):
    """The files that call a function (not those that only declare or define it)."""
    found = set()
    call = re.compile(r"(?<![\w.>])%s\s*\(" % re.escape(function))
    for module in MODULES:
        for folder, _, names in os.walk(os.path.join(ROOT, module)):
            for name in names:
                if not name.endswith(".c"):
                    continue
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
                for match in call.finditer(text):
                    *lines, before = text[:match.start()].rsplit("\n", 2)
                    if "PF_SABOTAGE(" not in lines[-1] and not re.match(r"(static )?(sluice_status|void) ?$", before):
                        found.add(os.path.relpath(path, ROOT))
    return found


class Source(unittest.TestCase):
    def test_one_function_publishes_and_two_call_it(self):
        self.assertEqual(callers("st_log_append"), {"coord/append.c", "store/graph/control.c", "store/graph/init.c"})
        self.assertEqual(callers("st_generation_build"), {"coord/append.c"})
        self.assertEqual(callers("co_append_deltas"), {"coord/publish.c", "coord/publish_new.c", "coord/resolve.c"})

    def test_only_finalize_and_recovery_retire_an_intent(self):
        self.assertEqual(callers("co_slot_retire"), {"coord/finalize.c", "coord/quarantine.c", "coord/resolve.c"})

    def test_each_job_writes_through_the_one_machine(self):
        jobs = {"load_job", "maintain_job", "merge", "mutate", "revert", "schema_change"}
        self.assertEqual(callers("co_write_run"), {"coord/%s.c" % job for job in jobs})

    def test_every_adapter_has_its_truth_table_and_its_line_in_the_registry(self):
        with open(os.path.join(ROOT, "adapters/registry.c"), encoding="utf-8") as file:
            registered = set(re.findall(r"&ad_(\w+)", file.read()))
        kinds = set()
        for name in sorted(os.listdir(os.path.join(ROOT, "adapters"))):
            if not name.endswith(".c"):
                continue
            with open(os.path.join(ROOT, "adapters", name), encoding="utf-8") as file:
                text = file.read()
            for kind in re.findall(r"const ad_adapter ad_(\w+) = \{", text):
                kinds.add(kind)
                head = text.split("*/")[0]
                for row in ("none", "armed", "confirmed", "branch incarnation gone"):
                    self.assertIn(row, head, "%s: no row %s" % (name, row))
        self.assertEqual(kinds, registered)


if __name__ == "__main__":
    unittest.main(verbosity=2)
