#!/usr/bin/env python3
"""scripts/contract-gate itself: it lets this checkout pass, and sees each damage of the matrix, the documents, the tests and their
results."""

import copy
import importlib.machinery
import importlib.util
import json
import os
import sys
import tempfile
import unittest

ROOT = os.environ.get("SLUICE_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("contract_gate", os.path.join(ROOT, "scripts", "contract-gate"))
gate = importlib.util.module_from_spec(importlib.util.spec_from_loader("contract_gate", LOADER))
LOADER.exec_module(gate)

SOURCE = gate.Tree(ROOT)
TESTS = gate.Tests(SOURCE)
MATRIX = json.loads(SOURCE.text(gate.MATRIX))


class OfTheTree(unittest.TestCase):
    def problems(self, changed=None, parts=("matrix", "claims", "documents")):
        return gate.Gate(gate.Tree(ROOT, changed), None, TESTS).check(parts)

    def rejected(self, changed, *words, parts=("matrix", "claims", "documents")):
        problems = self.problems(changed, parts)
        self.assertTrue(any(all(word in problem for word in words) for problem in problems), "%s is not told: %s" % (words, problems))

    def damaged(self, damage, *words):
        matrix = copy.deepcopy(MATRIX)
        damage(matrix)
        self.assertNotEqual(matrix, MATRIX)
        self.rejected({gate.MATRIX: json.dumps(matrix)}, *words, parts=("matrix",))

    def edited(self, path, old, new, *words):
        text = SOURCE.text(path)
        self.assertIn(old, text)
        self.rejected({path: text.replace(old, new)}, *words)

    def row(self, matrix, section, name):
        return next(row for row in matrix[section] if name in row.values())

    def test_this_checkout_passes(self):
        self.assertEqual(self.problems(), [])

    def test_nothing_can_be_dropped_from_the_matrix(self):
        for section in ("crash_cells", "anomalies", "conflicts", "lifecycle", "filesystem_cells", "vocabulary"):
            with self.subTest(section=section):
                name = list(MATRIX[section][0].values())[0]
                self.damaged(lambda m: m[section].pop(0), section, name, "is missing")
                self.damaged(lambda m: m[section].append(m[section][0]), section, name, "twice")
                self.damaged(lambda m: m.pop(section), section)
        self.damaged(lambda m: m["acknowledgement"].pop(), "acknowledgement")
        self.damaged(lambda m: m["acknowledgement"].reverse(), "acknowledgement")
        self.damaged(lambda m: m["not_authority"].pop(), "not_authority", "acknowledged_mark")
        self.damaged(lambda m: m["amendments"].pop(), "amendments", "is missing")
        self.damaged(lambda m: m.update(contract="sluice-durability-isolation/2"), "another version")
        self.damaged(lambda m: m["documents"].append("docs/none.md"), "docs/none.md")
        self.rejected({gate.MATRIX: "{"}, gate.MATRIX)

    def test_verdicts_are_those_of_snapshot_isolation(self):
        def says(name, mode, verdict):
            return lambda m: self.row(m, "anomalies", name)["verdicts"].update({mode: verdict})
        self.damaged(says("write_skew_item", "optimistic", "prevented(luck)"), "write_skew_item", "possible")
        self.damaged(says("write_skew_asserted", "optimistic", "possible"), "write_skew_asserted")
        self.damaged(says("dirty_write", "single", "unlikely"), "dirty_write", "no verdict")
        self.damaged(says("duplicate_key", "optimistic", "detected(NO_SUCH_CODE)"), "NO_SUCH_CODE", "no error code")
        self.damaged(lambda m: self.row(m, "anomalies", "long_fork")["verdicts"].pop("queued"), "long_fork", "queued")
        self.damaged(lambda m: m["conflicts"][1].update(outcome="NO_SUCH_CODE"), "NO_SUCH_CODE")
        self.damaged(lambda m: m["crash_cells"][0].update(expect="something"), "expects something")
        self.damaged(lambda m: m["crash_cells"][0].update(surely=True), "unknown member")

    def test_filesystems_are_those_of_the_source(self):
        self.damaged(lambda m: m["filesystems"].update(best_effort=True), "best effort")
        self.damaged(lambda m: m["filesystems"]["admitted"].append("zfs"), "zfs")
        self.damaged(lambda m: m["filesystems"]["refused"].remove("tmpfs"), "tmpfs")
        self.edited("platform/preflight.c", '{0x2fc12fc1, false, "zfs"', '{0x2fc12fc1, true, "zfs"', "platform/preflight.c", "zfs")
        self.edited(gate.CONTRACT, "| admitted | ext4,", "| admitted | zfs, ext4,", gate.CONTRACT, "zfs")

    def test_a_failpoint_needs_a_cell(self):
        self.edited("platform/failpoint.h", '    X(ARM_AFTER, "arm.after")', '    X(ARM_LATER, "arm.later")', "arm.later", "is missing")
        self.edited("platform/failpoint.h", '    X(ARM_AFTER, "arm.after")', '    X(ARM_LATER, "arm.later")', "arm.after", "does not belong")

    def test_a_row_names_tests_or_a_reason(self):
        def first(member, value):
            return lambda m: m["anomalies"][0].update({member: value})
        self.damaged(first("tests", []), "dirty_write", "one of the two")
        self.damaged(first("missing", "and a reason"), "dirty_write", "one of the two")
        self.damaged(first("tests", ["tests/coord/test_write.c:nobody_wrote_this"]), "no such test")
        self.damaged(first("tests", ["tests/coord/test_none.c:a_test"]), "no such file")
        self.damaged(first("tests", ["tests/coord/test_write.c"]), "name them")

    def test_a_test_that_asserts_nothing_shows_nothing(self):
        body = {"c": "static void it_is_so(void **state)\n{\n    (void)state;\n%s}\n\nTEST(it_is_so)\n",
                "py": "class A:\n    def test_it_is_so(self):\n        self.x = 1\n%s\n"}
        for language, called in (("c", "    ASSERT_OK(f());\n"), ("py", "        self.assertTrue(1)\n")):
            for assertion, wrong in (("", "asserts nothing"), (called, None)):
                with tempfile.TemporaryDirectory() as root:
                    path = "tests/x/test_x." + language
                    os.makedirs(os.path.join(root, "tests/x"))
                    with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                        file.write(body[language] % assertion)
                    said = gate.Tests(gate.Tree(root)).wrong(path + (":it_is_so" if language == "c" else ":test_it_is_so"))
                    self.assertEqual(wrong, said and said.split(":")[0])

    def test_documents_claim_nothing_that_is_not_so(self):
        for claim in ("Sluice is AC" + "ID.", "It is not slow. Writes are serial" + "izable.", "Each write happens exactly\nonce.",
                      "Your data is guaran" + "teed to be there.", "It never lo" + "ses anything.", "A node has SS" + "I."):
            for path in ("README.md", gate.CONTRACT, "docs/operations.md"):
                self.rejected({path: SOURCE.text(path) + "\n\n" + claim + "\n"}, path, "claims", parts=("claims",))
        for denial in ("Sluice is not AC" + "ID.", "Nothing here is serial" + "izable, and never was.", "It does without SS" + "I."):
            self.assertEqual(self.problems({"README.md": SOURCE.text("README.md") + "\n\n" + denial + "\n"}), [])
        self.rejected({"include/sluice/error.h": SOURCE.text("include/sluice/error.h") + "/* Delivered exactly\n * once. */\n"}, "include/", "claims")
        program = SOURCE.glob("cli/*.c")[0]
        self.rejected({program: SOURCE.text(program) + 'static const char x[] = "An AC' + 'ID store.";\n'}, program, "claims")

    def test_the_contract_says_what_it_must(self):
        for sentence in gate.REQUIRED:
            with self.subTest(sentence=sentence):
                told = sentence.split()[0]
                text = SOURCE.text(gate.CONTRACT)
                loose = gate.re.compile(r"[ \n]+".join(map(gate.re.escape, sentence.split(" "))))
                self.assertRegex(text, loose)
                self.rejected({gate.CONTRACT: loose.sub("", text)}, gate.CONTRACT, "says no more", told, parts=("claims",))
        self.edited("README.md", "docs/contract.md", "docs/contracts.md", "README.md", gate.CONTRACT)

    def test_documents_name_tests_and_files_that_exist(self):
        self.edited(gate.CONTRACT, "`write_skew_is_possible_and_shown`", "`write_skew_was_once_seen`", gate.CONTRACT, "write_skew_was_once_seen")
        self.edited(gate.CONTRACT, "tests/mutate/test_conflicts.c", "tests/mutate/test_gone.c", gate.CONTRACT, "tests/mutate/test_gone.c")
        self.edited("README.md", "](docs/errors.md)", "](docs/mistakes.md)", "README.md", "docs/mistakes.md")
        self.edited(gate.PROTOCOL, "](contract.md)", "](contracts.md)", gate.PROTOCOL, "contracts.md")
        self.edited(gate.PROTOCOL, "W = `tests/coord/test_write.c`", "W = `tests/coord/test_wrote.c`", gate.PROTOCOL, "test_wrote.c")
        self.edited(gate.PROTOCOL, "W `a_receipt_names_its_own_commit`", "W `a_receipt_names_another_commit`", "OW-085", "a_receipt_names_another_commit")
        self.edited(gate.PROTOCOL, "W `a_receipt_names_its_own_commit`", "it is so", "OW-085", "names no test")
        self.edited(gate.PROTOCOL, "W `a_receipt_names_its_own_commit`", "W, all of it", "OW-085", "names no test")
        self.edited(gate.PROTOCOL, "W `a_receipt_names_its_own_commit`", "later", "OW-085", "names no test")
        self.edited(gate.PROTOCOL, "W `a_receipt_names_its_own_commit`", "does not apply", "OW-085", "does not say why")
        self.edited(gate.PROTOCOL, "| OW-085 |", "| OW-084 |", "OW-085", "is missing")
        self.edited(gate.PROTOCOL, "| OD-063 to 065 |", "| OD-063, 065 |", "OD-064", "is missing")
        self.edited(gate.PROTOCOL, "| OD-071 |", "| OD-076 |", "OD-076", "does not belong")


class OfResults(unittest.TestCase):
    """Results as ctest writes them, and what may be wrong with them."""

    C, PY, SH = "tests/coord/test_a.c:one_is_one", "tests/cli/test_b.py:test_two_are_two", "tests/load/test_c.sh"

    def log(self):
        return ("Start testing\n----\n1/3 Testing: coord.test_a\n1/3 Test: coord.test_a\nCommand: \"%s/build/tests/test_a\"\nOutput:\n"
                "[ RUN      ] one_is_one\nwords[       OK ] one_is_one\n[ RUN      ] another\n[       OK ] another\nTest Passed.\n----\n\n"
                "2/3 Testing: cli.test_b\n2/3 Test: cli.test_b\nCommand: \"python\" \"%s/tests/cli/test_b.py\"\nOutput:\n"
                "test_one (__main__.B.test_one) ... skipped 'no'\ntest_two_are_two (__main__.B.test_two_are_two)\nSays what. ... seed\nok\n\n"
                "-----\nRan 2 tests\n\nOK\nTest Passed.\n----\n\n"
                "3/3 Testing: load.test_c\n3/3 Test: load.test_c\nCommand: \"bash\" \"%s/tests/load/test_c.sh\"\nTest Passed.\n----\n"
                % ((os.path.realpath(self.root),) * 3))

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for path in ("build/tests/test_a", "tests/cli/test_b.py", "tests/load/test_c.sh", "build/Testing/Temporary/LastTest.log"):
            os.makedirs(os.path.dirname(os.path.join(self.root, path)), exist_ok=True)
            with open(os.path.join(self.root, path), "w", encoding="utf-8") as file:
                file.write("")
            os.utime(os.path.join(self.root, path), (1000, 1000))

    def wrong(self, reference, old="", new=""):
        log = self.log()
        self.assertIn(old, log)
        path = os.path.join(self.root, "build/Testing/Temporary/LastTest.log")
        with open(path, "w", encoding="utf-8") as file:
            file.write(log.replace(old, new) if old else log)
        os.utime(path, (2000, 2000))
        return gate.Results(os.path.join(self.root, "build")).wrong(self.root, reference)

    def test_what_ran_and_passed_is_evidence(self):
        for reference in (self.C, self.PY, self.SH):
            self.assertIsNone(self.wrong(reference))

    def test_what_did_not_run_was_skipped_or_failed_is_none(self):
        for reference, old, new, word in (
                (self.C, "Testing: coord.test_a", "Testing: coord.test_z", "has not run"),
                (self.C, "[       OK ] one_is_one", "", "has not run"),
                (self.C, "[       OK ] one_is_one", "[  SKIPPED ] one_is_one", "was skipped"),
                (self.C, "Test Passed.", "Test Failed.", "did not pass"),
                (self.C, "/build/tests/test_a", "/other/tests/test_a", "another build"),
                (self.PY, "... seed\nok\n", "... skipped 'no root'\n", "was skipped"),
                (self.PY, "... seed\nok\n", "... seed\nFAIL\n", "failed"),
                (self.PY, "test_two_are_two (", "test_three (", "has not run"),
                (self.PY, "/tests/cli/", "/elsewhere/tests/cli/", "another build"),
                (self.SH, "test_c.sh\"\nTest Passed.", "test_c.sh\"\nTest Skipped.", "did not pass")):
            with self.subTest(reference=reference, new=new):
                self.assertIn(word, self.wrong(reference, old, new) or "")

    def test_results_older_than_the_program_are_none(self):
        for path, reference in (("build/tests/test_a", self.C), ("tests/cli/test_b.py", self.PY)):
            os.utime(os.path.join(self.root, path), (3000, 3000))
            self.assertIn("newer", self.wrong(reference) or "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
