#!/usr/bin/env python3
"""Are the tests worth something? Each defect that is planted in the code (platform/sabotage.h) is seen by the test that is named for it
here, in a program that differs from the ordinary one by that defect alone; without a defect the same tests pass. A defect that nobody
sees fails the build, and so does one that stands in the code and not here."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest


SOURCE, BUILD = os.environ["SLUICE_SOURCE_DIR"], os.environ["SLUICE_BUILD_DIR"]
PROGRAMS = os.path.join(BUILD, "tests", "sabotage")
ARMED = ("die_at_every_call", "an_armed_write_leaves_old_or_new")
VISIBLE = ("die_at_every_call", "a_write_with_a_visible_effect_leaves_old_or_new")
DEFECTS = {
    # a sync that is missing
    "record_not_synced": ("die_at_every_call", "an_authority_first_write_leaves_old_or_new"),
    "intent_not_synced": VISIBLE,
    "plan_not_synced": ("trust", "a_write_whose_plan_is_in_a_file_leaves_old_or_new"),
    "fragment_not_synced": ARMED,
    "opening_not_synced": ("log_crash", "a_segment_switch_is_prior_or_new_at_every_crash"),
    "current_not_synced": ("log_suspect", "a_failed_switch_is_not_committed_and_heals"),
    # the sync of a folder
    "fragment_name_not_synced": ("load_crash", "a_load_that_dies_at_any_call_is_old_or_new"),
    "segment_name_not_synced": ("log_crash", "a_segment_switch_is_prior_or_new_at_every_crash"),
    "document_name_not_synced": ("branch_control", "creating_a_branch_leaves_it_whole_or_not_at_all"),
    # what another process left is believed before it is durable
    "end_believed": ("log_crash", "an_unsynced_end_is_written_again_before_anything_is_built_on_it"),
    "ref_believed": ("trust", "a_branch_that_a_dead_one_made_is_durable_before_a_write_to_it_is_answered"),
    "retirements_believed": ("trust", "an_intent_that_was_retired_before_its_branch_went_stays_retired"),
    "undone_effects_believed": ("recover", "a_confirmed_intent_that_was_being_undone_is_discarded"),
    # two steps the wrong way round
    "mark_before_flush": ("die_at_every_call", "an_authority_first_write_leaves_old_or_new"),
    "retired_before_publish": VISIBLE,
    "retired_before_audit": ("trust", "what_recovery_did_is_in_the_audit_before_its_intent_goes"),
    # something torn is taken for whole
    "torn_frame_accepted": ("intent", "a_torn_frame_leaves_the_older_one_in_force"),
    "torn_record_accepted": ("log_torn", "every_subset_of_a_small_records_sectors_is_prior_or_new"),
    # a look that is not taken
    "absent_key_not_in_read_set": ("write", "a_key_that_somebody_else_inserted_meanwhile_is_a_key_conflict"),
    "verdict_not_renewed": ("interrupt_at_every_call", "of_two_writers_of_one_key_one_wins"),
    "incarnation_not_compared": ("write", "a_branch_made_again_meanwhile_takes_no_write"),
    "receipts_not_looked_up": ("write", "an_exact_retry_returns_the_first_receipt_and_changes_nothing"),
    "operation_not_compared": ("interrupt_at_every_call", "two_of_one_operation_are_one_commit"),
    "delta_not_compared": ("trust", "an_intent_with_another_content_than_its_commit_is_corruption"),
    "recovery_judges_nothing": ("recover", "a_winner_on_the_same_key_discards_mine"),
    "effects_not_undone": VISIBLE,
    "objects_not_looked_at": ("recover", "a_staged_object_that_is_gone_discards_it"),
    # somebody who lives, or who does not hold it any more
    "fence_not_checked": ("log_suspect", "a_fenced_owner_appends_nothing"),
    "term_not_checked": ("retention", "one_whose_claim_was_taken_over_does_nothing_more"),
    "living_owner_taken_for_dead": ("recover", "a_live_owners_intent_is_never_touched"),
    "attempts_judged_without_lock": ("interrupt_at_every_call", "collection_takes_no_attempt_that_is_being_made"),
    "living_attempt_collected": ("interrupt_at_every_call", "collection_takes_nothing_from_a_living_writer"),
    "pins_not_looked_at": ("trust", "a_pinned_state_is_whole_however_little_a_collection_keeps"),
    "pins_looked_at_once": ("trust", "one_who_pins_while_it_is_collected_has_it_whole_or_not_at_all"),
    "lineage_not_kept": ("retention", "commits_of_segments_that_are_gone_stay_known"),
}

# The simulator sees each of them within so many of its seeds, without being told where to look: (within, one that does).
# What is outside of what it simulates is said here, and seen by the test above.
SIMULATED = {
    "record_not_synced": (500, 1), "intent_not_synced": (500, 1), "plan_not_synced": (500, 19), "fragment_not_synced": (500, 1),
    "opening_not_synced": (1000, 91), "current_not_synced": (1000, 88), "fragment_name_not_synced": (500, 37),
    "segment_name_not_synced": (500, 1), "document_name_not_synced": (500, 1), "end_believed": (500, 37),
    "ref_believed": (500, 40), "retirements_believed": (500, 43), "undone_effects_believed": (2000, 373),
    "mark_before_flush": (500, 37), "retired_before_publish": (500, 1), "retired_before_audit": (1000, 79),
    "torn_frame_accepted": (500, 46), "torn_record_accepted": (1000, 147), "absent_key_not_in_read_set": (500, 25),
    "verdict_not_renewed": (500, 25), "incarnation_not_compared": (1000, 64), "receipts_not_looked_up": (1000, 60),
    "operation_not_compared": (1000, 100), "recovery_judges_nothing": (1000, 67), "effects_not_undone": (500, 28),
    "objects_not_looked_at": (1000, 70), "fence_not_checked": (1000, 115), "living_owner_taken_for_dead": (500, 21),
    "living_attempt_collected": (500, 36), "pins_not_looked_at": (1000, 82), "pins_looked_at_once": (1000, 85),
    "lineage_not_kept": (1000, 162),
}
OUTSIDE = {
    "delta_not_compared": "only a forged intent has another content than its commit",
    "term_not_checked": "a claim is taken over from a living owner only when its lock falls, which the kernel does not do",
    "attempts_judged_without_lock": "two calls of one process have to meet two of another: once in some thousands of histories",
}
SMALL = ("verdict_not_renewed", "ref_believed", "effects_not_undone")  # and the minimiser makes small what these spoil


def program_of(test):
    return os.path.join(PROGRAMS, "sabotage_test_" + test)


def run(test, name, defect="", **more):
    """(did it pass, what it said). One that fails is not waited for any longer."""
    environment = {**os.environ, "SLUICE_SABOTAGE": defect, "SLUICE_TEST": name, **more}
    said = b""
    with tempfile.TemporaryDirectory() as traces, \
         subprocess.Popen([program_of(test)], cwd=traces, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as process:
        for line in process.stdout:
            said += line
            if line.startswith(b"[  FAILED  ]"):
                os.killpg(process.pid, signal.SIGKILL)
                break
    if process.returncode == 0 and b"[       OK ]" not in said:
        return None, said
    return process.returncode == 0, said


def simulate(defect, first, histories):
    """Did they all keep their promises?"""
    passed, said = run("sim", "every_history_keeps_its_promises", defect, SLUICE_SIM_FIRST=str(first),
                       SLUICE_SIM_HISTORIES=str(histories), SLUICE_SIM_PLAIN="1")
    return False if passed is False and re.search(rb"seed +\d+", said) else passed


class Defects(unittest.TestCase):
    def test_every_defect_is_seen(self):
        for defect, (test, name) in DEFECTS.items():
            with self.subTest(defect=defect):
                passed, said = run(test, name, defect)
                self.assertIsNotNone(passed, "no such test: %s %s" % (test, name))
                self.assertFalse(passed, "nobody saw it: %s" % said[-2000:].decode("utf-8", "replace"))

    def test_the_simulator_sees_defects_within_its_seeds(self):
        self.assertEqual(set(SIMULATED) | set(OUTSIDE), set(DEFECTS))
        for defect, (seeds, hint) in SIMULATED.items():
            with self.subTest(defect=defect):
                self.assertLessEqual(hint, seeds)
                if simulate(defect, hint, 1) is False:  # a change of the code may have moved it to another seed
                    continue
                self.assertIs(simulate(defect, 1, seeds), False, "not within %d seeds" % seeds)

    def test_what_a_defect_spoils_is_made_small(self):
        for defect in SMALL:
            with self.subTest(defect=defect):
                passed, said = run("sim", "what_a_planted_defect_spoils_is_made_small", defect, SLUICE_SIM_FIRST=str(SIMULATED[defect][1]))
                self.assertTrue(passed, said[-2000:].decode("utf-8", "replace"))

    def test_without_a_defect_the_same_tests_pass(self):
        """Each second of them: all pass in the ordinary program, which differs by nothing that acts."""
        controls = sorted(set(DEFECTS.values()))
        for test, name in controls if os.environ.get("SLUICE_LONG") else controls[::2]:
            with self.subTest(test=test, name=name):
                passed, said = run(test, name)
                self.assertTrue(passed, said[-2000:].decode("utf-8", "replace"))

    def test_every_defect_in_the_code_is_listed(self):
        planted = set()
        for folder in ("platform", "locks", "shm", "store", "adapters", "worker", "coord", "lib", "cli"):
            for path, _, names in os.walk(os.path.join(SOURCE, folder)):
                for name in names:
                    if name.endswith(".c"):
                        with open(os.path.join(path, name), encoding="utf-8") as file:
                            planted |= set(re.findall(r"PF_SABOTAGE\((\w+)\)", file.read()))
        self.assertEqual(planted, set(DEFECTS))


if __name__ == "__main__":
    if not os.path.isdir(PROGRAMS) or not os.path.exists(program_of("write")):
        print("skipped: this build has no programs with defects in them")
        sys.exit(77)
    unittest.main(verbosity=2)
