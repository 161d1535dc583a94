#!/usr/bin/env python3
"""The checker of histories: each kind of bad history, made by hand, is found as what it is; good ones pass. A checker that sees nothing
proves nothing."""

import random
import unittest

from history.checker import FORBIDDEN, check, transaction


def write(name, number, at, reads=None, appends=None, **more):
    """An acknowledged write: asked for at 100 times its place, told 50 later."""
    fields = {"op": "op-" + name, "begin": 100 * number - 10, "sent": 100 * number, "end": 100 * number + 50, "place": (number, 0),
              "at": (at, 0), "reads": reads or {}, "appends": appends or {}}
    fields.update(more)
    return transaction(name, **fields)


def view(name, place, begin, reads=None, items=None, edges=None, **more):
    return transaction(name, **{"at": (place, 0), "begin": begin, "end": begin + 10, "reads": reads or {}, "items": items,
                                "edges": edges if edges is not None else ([] if items is not None else None), **more})


def log_of(history):
    return [(1, 0, None)] + [one["place"] + (one["op"],) for one in history if one["op"] and one["place"]]


class Good(unittest.TestCase):
    def expect(self, history, log=None, skew=False):
        self.assertEqual(check(history, log_of(history) if log is None else log, "xy"), ([], skew))

    def test_an_empty_history(self):
        self.expect([])

    def test_one_after_the_other(self):
        self.expect([write("a", 2, 1, {"x": []}, {"x": 2}), write("b", 3, 2, {"x": ["a.0", "a.1"]}, {"x": 1, "y": 1}),
                     view("r", 3, 360, {"x": ["a.0", "a.1", "b.0"], "y": ["b.0"]})])

    def test_items_with_their_edges_come_and_go(self):
        self.expect([write("a", 2, 1, inserts=[(7, "x"), (8, "y")]), view("r", 2, 260, items={7: "a", 8: "a"}, edges=[("x", 7), ("y", 8)]),
                     write("b", 3, 2, deletes=[7]), view("s", 3, 360, items={8: "a"}, edges=[("y", 8)])])

    def test_of_unknown_ones_some_are_there_and_some_are_not(self):
        killed = write("a", 2, 1, {"x": []}, {"x": 1}, outcome="unknown", end=None)
        other = write("b", 3, 1, {"y": []}, {"y": 1}, outcome="unknown", end=None, begin=190)
        self.expect([killed, other, view("r", 2, 260, {"x": ["a.0"], "y": []})], [(1, 0, None), (2, 0, "op-a")])

    def test_an_older_snapshot_read_by_somebody_who_began_earlier(self):
        self.expect([view("r", 1, 90, {"x": []}, end=1000), write("a", 2, 1, {"x": []}, {"x": 1})])

    def test_members_of_one_generation(self):
        self.expect([write("a", 2, 1, {"x": []}, {"x": 1}), write("b", 2, 1, {"y": []}, {"y": 1}, place=(2, 1)),
                     view("r", 2, 260, {"x": ["a.0"], "y": ["b.0"]}, at=(2, 1)), view("s", 2, 190, {"y": []}, at=(2, 0))])

    def test_write_skew_is_permitted_and_told(self):
        self.expect([write("a", 2, 1, {"x": [], "y": []}, {"x": 1}), write("b", 3, 1, {"x": [], "y": []}, {"y": 1}, begin=190),
                     view("r", 3, 400, {"x": ["a.0"], "y": ["b.0"]})], skew=True)

    def test_a_serial_history_of_many(self):
        chance, history, lists, items, edges = random.Random(1), [], {"x": [], "y": []}, {}, set()
        for number in range(2, 300):
            name, register = "t%d" % number, chance.choice("xy")
            appends, deletes = {register: chance.randrange(1, 3)}, [item for item in items if chance.random() < 0.3]
            history.append(write(name, number, number - 1, dict(lists), appends, inserts=[(number, register)], deletes=deletes,
                                 items=dict(items), edges=sorted(edges), guarded=number % 2))
            lists[register] = lists[register] + ["%s.%d" % (name, i) for i in range(appends[register])]
            edges = {edge for edge in edges if edge[1] not in deletes} | {(register, number)}
            items = {item: tag for item, tag in items.items() if item not in deletes}
            items[number] = name
        self.expect(history)


class Bad(unittest.TestCase):
    """Each of these has at least the findings that are named, and no kind that `may` does not name, too."""

    found = set()

    def expect(self, kinds, history, log=None, may=()):
        findings = check(history, log_of(history) if log is None else log, "xy")[0]
        got = {finding.kind for finding in findings}
        self.assertLessEqual(set(kinds), got, findings)
        self.assertLessEqual(got, set(kinds) | set(may), findings)
        self.assertLessEqual(got, set(FORBIDDEN))
        Bad.found |= set(kinds)

    def test_an_acknowledged_write_that_the_log_has_not_got(self):
        self.expect(["lost"], [write("a", 2, 1, {"x": []}, {"x": 1}), view("r", 1, 260, {"x": []})], [(1, 0, None)])

    def test_an_acknowledged_write_that_is_not_seen(self):
        self.expect(["lost"], [write("a", 2, 1, {"x": []}, {"x": 1}), view("r", 2, 260, {"x": []})])

    def test_a_lost_update(self):
        self.expect(["torn", "incompatible"],
                    [write("a", 2, 1, {"x": []}, {"x": 1}), view("s", 2, 260, {"x": ["a.0"]}), write("b", 3, 1, {"x": []}, {"x": 1}, begin=140),
                     view("r", 3, 400, {"x": ["b.0"]})])

    def test_an_item_that_is_missing(self):
        self.expect(["lost"], [write("a", 2, 1, inserts=[(7, "x")]), view("r", 2, 260, items={}, edges=[("x", 7)])], may=["dangling"])

    def test_an_operation_that_is_committed_twice(self):
        history = [write("a", 2, 1, {"x": []}, {"x": 1})]
        self.expect(["doubled"], history, log_of(history) + [(3, 0, "op-a")])

    def test_words_that_are_there_twice(self):
        self.expect(["doubled"], [write("a", 2, 1, {"x": []}, {"x": 1}), view("r", 2, 260, {"x": ["a.0", "a.0"]})])

    def test_an_edge_that_is_there_twice(self):
        self.expect(["doubled"], [write("a", 2, 1, inserts=[(7, "x")]), view("r", 2, 260, items={7: "a"}, edges=[("x", 7), ("x", 7)])])

    def test_an_item_that_comes_back(self):
        history = [write("a", 2, 1, inserts=[(7, "x")]), write("b", 3, 2, deletes=[7]), view("r", 3, 400, items={7: "a"}, edges=[])]
        self.expect(["resurrected"], history)

    def test_an_item_before_it_is_committed(self):
        self.expect(["uncommitted"], [write("a", 2, 1, inserts=[(7, "x")]), view("r", 1, 90, items={7: "a"}, edges=[])])

    def test_an_edge_without_its_end(self):
        self.expect(["dangling"], [write("a", 2, 1, inserts=[(7, "x")]), write("b", 3, 2, deletes=[7]),
                                   view("r", 3, 400, items={}, edges=[("x", 7)])], may=["torn"])

    def test_half_of_a_commit(self):
        self.expect(["lost"], [write("a", 2, 1, {"x": [], "y": []}, {"x": 1, "y": 1}), view("r", 2, 260, {"x": ["a.0"], "y": []})])
        self.expect(["torn"], [write("a", 2, 1, inserts=[(7, "x")]), view("r", 2, 260, items={7: "a"}, edges=[])])

    def test_a_refused_write_that_stands(self):
        history = [write("a", 2, 1, {"x": []}, {"x": 1}, outcome="fail")]
        self.expect(["uncommitted"], history)

    def test_a_refused_write_that_is_seen(self):
        self.expect(["G1a"], [write("a", 2, 1, {"x": []}, {"x": 1}, outcome="fail", place=None), view("r", 1, 260, {"x": ["a.0"]})],
                    may=["uncommitted"])

    def test_a_version_that_its_own_writer_went_on_from(self):
        self.expect(["G1b"], [write("a", 2, 1, {"x": []}, {"x": 2}), view("r", 2, 260, {"x": ["a.0"]}),
                              view("s", 2, 280, {"x": ["a.0", "a.1"]})], may=["lost", "G-single", "G2-asserted"])

    def test_a_word_that_nobody_wrote(self):
        self.expect(["phantom"], [view("r", 1, 90, {"x": ["z.0"]})], may=["uncommitted"])

    def test_an_operation_that_nobody_asked_for(self):
        self.expect(["phantom"], [], [(1, 0, None), (2, 0, "op-z")])

    def test_a_place_other_than_was_told(self):
        history = [write("a", 2, 1, {"x": []}, {"x": 1})]
        self.expect(["out-of-order"], history, [(1, 0, None), (3, 0, "op-a")])

    def test_a_write_behind_one_that_was_asked_for_after_it_was_told(self):
        self.expect(["out-of-order"], [write("a", 3, 1, {"x": []}, {"x": 1}, sent=100, end=150, begin=90),
                                       write("b", 2, 1, {"y": []}, {"y": 1}, begin=90)])

    def test_a_reader_that_goes_back(self):
        self.expect(["stale"], [write("a", 2, 1, {"x": []}, {"x": 1}), view("r", 1, 260, {"x": []})])
        self.expect(["stale"], [write("a", 2, 1, {"x": []}, {"x": 1}, outcome="unknown", end=None), view("r", 2, 210, {"x": ["a.0"]}),
                                view("s", 1, 230, {"x": []})])

    def test_two_orders_of_one_register(self):
        self.expect(["incompatible"], [write("a", 2, 1, {"x": []}, {"x": 1}), write("b", 3, 2, {"x": ["a.0"]}, {"x": 1}),
                                       view("r", 3, 400, {"x": ["a.0", "b.0"]}), view("s", 3, 420, {"x": ["b.0", "a.0"]})], may=["torn"])

    def test_writes_that_go_round(self):
        self.expect(["G0"], [write("a", 2, 1, {}, {"x": 1, "y": 1}), write("b", 3, 2, {}, {"x": 1, "y": 1}),
                             view("r", 3, 400, {"x": ["a.0", "b.0"], "y": ["b.0", "a.0"]})], may=["torn", "G1c"])

    def test_information_in_a_circle(self):
        self.expect(["G1c"], [write("a", 2, 1, {"y": ["b.0"]}, {"x": 1}), write("b", 3, 1, {"x": ["a.0"]}, {"y": 1}, begin=190),
                              view("r", 3, 400, {"x": ["a.0"], "y": ["b.0"]})], may=["uncommitted"])

    def test_a_read_that_is_skewed(self):
        self.expect(["G-single"], [write("a", 2, 1, {"x": [], "y": []}, {"x": 1, "y": 1}), view("r", 2, 260, {"x": ["a.0"], "y": []}),
                                   view("s", 2, 280, {"x": ["a.0"], "y": ["a.0"]})], may=["lost", "G2-asserted"])

    def test_a_long_fork(self):
        history = [write("a", 2, 1, {"x": []}, {"x": 1}), write("b", 3, 1, {"y": []}, {"y": 1}, begin=190, sent=195, end=400),
                   view("r", 2, 210, {"x": ["a.0"], "y": []}, end=390), view("s", 3, 215, {"x": [], "y": ["b.0"]}, end=390),
                   view("t", 3, 500, {"x": ["a.0"], "y": ["b.0"]})]
        self.expect(["G-nonadjacent"], history, may=["lost", "G2-asserted"])

    def test_write_skew_over_what_was_asserted(self):
        self.expect(["G2-asserted"], [write("a", 2, 1, {"x": [], "y": []}, {"x": 1}, guarded=True),
                                      write("b", 3, 1, {"x": [], "y": []}, {"y": 1}, begin=190, guarded=True),
                                      view("r", 3, 400, {"x": ["a.0"], "y": ["b.0"]})])

    def test_zz_every_kind_of_finding_was_met(self):
        self.assertEqual(Bad.found, set(FORBIDDEN))


if __name__ == "__main__":
    unittest.main(verbosity=2)
