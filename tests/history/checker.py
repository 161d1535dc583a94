"""Is an observed history one that the store may have? Looks at what actors saw and were told, in two ways that know nothing of each other:

  replay       the branch's log says which operation is the how-manieth; replaying what the actors meant by each gives every state that
               there ever was. Whatever was seen at a place must be exactly that state: nothing lost, doubled, resurrected, half there.
  dependency   registers hold lists, and each write appends words of its own, so the order of versions can be read off what was seen,
               without the log. From it come the edges ww, wr and rw between transactions; cycles among them are the anomalies of
               Adya's thesis, found as Elle finds them.

A history is a list of dicts, one a transaction:

  id       its name; the words that it appends are ID.0, ID.1, ...
  op       its operation id, None for one that only reads
  begin    when it was begun (its first read), `sent` when its write was given away, `end` when its outcome was known: nanoseconds of
           one monotonic clock
  outcome  ok: told that it is committed; fail: told that it is not; unknown: it, or who asked for it, was killed
  place    (generation, index) of an ok write
  at       the place at which it read
  reads    {register: [word, ...]} that it saw there
  appends  {register: words}, how many words it appends to each
  inserts  [(item, register), ...]: an item and an edge from a register to it; deletes [item, ...] removes items with their edges
  items    {item: tag} and edges [(register, item), ...]: all that it saw, for one that looked at everything; else None
  guarded  what it read is asserted in its write (a transaction that writes nothing needs no guard)
"""

FORBIDDEN = ("G0", "G1a", "G1b", "G1c", "G-single", "G-nonadjacent", "G2-asserted", "lost", "doubled", "resurrected", "phantom",
             "torn", "out-of-order", "stale", "dangling", "incompatible", "uncommitted")


class Finding:
    def __init__(self, kind, text):
        self.kind, self.text = kind, text

    def __repr__(self):
        return "%s: %s" % (self.kind, self.text)


def transaction(name, **fields):
    """One with nothing in it but `fields`."""
    made = {"id": name, "op": None, "begin": 0, "sent": None, "end": None, "outcome": "ok", "place": None, "at": None, "reads": {},
            "appends": {}, "inserts": [], "deletes": [], "items": None, "edges": None, "guarded": False}
    made.update(fields)
    if made["sent"] is None:
        made["sent"] = made["begin"]
    return made


def words_of(one, register):
    return ["%s.%d" % (one["id"], i) for i in range(one["appends"].get(register, 0))]


def writes(one):
    return bool(one["appends"] or one["inserts"] or one["deletes"])


# ---- replay ----

class State:
    def __init__(self, registers):
        self.registers = {register: [] for register in registers}
        self.items, self.edges = {}, set()

    def apply(self, one):
        """Problems of applying it here: what it relies on is not so."""
        problems = []
        for register in one["appends"]:
            self.registers[register] = self.registers[register] + words_of(one, register)
        for item, register in one["inserts"]:
            if item in self.items:
                problems.append("item %s is inserted though it is there" % item)
            self.items[item] = one["id"]
            self.edges.add((register, item))
        for item in one["deletes"]:
            if self.items.pop(item, None) is None:
                problems.append("item %s is deleted though it is not there" % item)
            self.edges = {edge for edge in self.edges if edge[1] != item}
        return problems


def compare(one, state, gone):
    """What a transaction saw against the state at its place; `gone` are items deleted before it."""
    for register, seen in one["reads"].items():
        want = state.registers[register]
        if seen == want:
            continue
        kind = "torn"
        if len(set(seen)) != len(seen):
            kind = "doubled"
        elif seen == want[:len(seen)]:
            kind = "lost"
        elif want == seen[:len(want)]:
            kind = "uncommitted"
        yield Finding(kind, "%s at %s saw register %s as %s, and it is %s" % (one["id"], one["at"], register, seen, want))
    if one["items"] is None:
        return
    ends = {item for _, item in one["edges"]}
    if len(one["edges"]) != len(set(one["edges"])):
        yield Finding("doubled", "%s saw an edge twice" % one["id"])
    for item in sorted(ends - set(one["items"])):
        yield Finding("dangling", "%s saw an edge to item %s and not the item" % (one["id"], item))
    for item, tag in sorted(one["items"].items()):
        if item not in state.items:
            kind = "resurrected" if item in gone else "uncommitted"
            yield Finding(kind, "%s at %s saw item %s of %s" % (one["id"], one["at"], item, tag))
        elif state.items[item] != tag:
            yield Finding("torn", "%s saw item %s of %s, and it is of %s" % (one["id"], item, tag, state.items[item]))
    for item in sorted(set(state.items) - set(one["items"])):
        yield Finding("lost", "%s at %s missed item %s of %s" % (one["id"], one["at"], item, state.items[item]))
    if set(one["edges"]) != state.edges:
        yield Finding("torn", "%s at %s saw other edges than there are: %s" %
                      (one["id"], one["at"], sorted(set(one["edges"]) ^ state.edges)[:5]))


def place_writes(history, log):
    """([(place, transaction)] in the order of the log, findings). `log`: [(generation, index, operation)], of all commits."""
    findings, placed, seen = [], [], set()
    by_operation = {one["op"]: one for one in history if one["op"] is not None}
    for generation, index, operation in sorted(log, key=lambda entry: entry[:2]):
        place, one = (generation, index), by_operation.get(operation)
        if operation is None:
            continue
        if operation in seen:
            findings.append(Finding("doubled", "operation %s is committed twice, again at %s" % (operation, place)))
            continue
        seen.add(operation)
        if one is None:
            findings.append(Finding("phantom", "%s holds operation %s, which nobody asked for" % (place, operation)))
            continue
        placed.append((place, one))
        if one["outcome"] == "fail":
            findings.append(Finding("uncommitted", "%s was refused and stands at %s" % (one["id"], place)))
        elif one["outcome"] == "ok" and one["place"] != place:
            findings.append(Finding("out-of-order", "%s was told %s and stands at %s" % (one["id"], one["place"], place)))
    for one in history:
        if one["op"] is not None and one["outcome"] == "ok" and one["op"] not in seen:
            findings.append(Finding("lost", "%s was acknowledged, and the log has not got it" % one["id"]))
    return placed, findings


def real_time(history, placed):
    """Who was told before another one asked stands before it, and is seen by it; and what one reader saw, later ones see."""
    earliest = None  # told, of those behind
    for _, one in reversed(placed):
        if earliest is not None and earliest["end"] < one["sent"]:
            yield Finding("out-of-order", "%s was told before %s was asked for, and stands behind it" % (earliest["id"], one["id"]))
        if one["outcome"] == "ok" and (earliest is None or one["end"] < earliest["end"]):
            earliest = one
    known = [(one["end"], place, one["id"]) for place, one in placed if one["outcome"] == "ok"]
    for one in history:
        if one["at"] is not None and (writes(one) or one["end"] is not None):
            known.append((one["sent"] if writes(one) else one["end"], one["at"], one["id"]))
    known.sort()
    newest, next_known = None, 0
    for one in sorted((one for one in history if one["at"] is not None), key=lambda one: one["begin"]):
        while next_known < len(known) and known[next_known][0] < one["begin"]:
            if newest is None or known[next_known][1] > newest[1]:
                newest = known[next_known]
            next_known += 1
        if newest is not None and one["at"] < newest[1]:
            yield Finding("stale", "%s began after %s knew of %s, and read at %s" % (one["id"], newest[2], newest[1], one["at"]))


def replay(history, log, registers):
    """All findings of the replay."""
    placed, findings = place_writes(history, log)
    findings += real_time(history, placed)
    state, gone, at = State(registers), set(), 0
    for one in sorted((one for one in history if one["at"] is not None), key=lambda one: one["at"]):
        while at < len(placed) and placed[at][0] <= one["at"]:
            findings += [Finding("torn", "at %s: %s" % (placed[at][0], problem)) for problem in state.apply(placed[at][1])]
            gone |= set(placed[at][1]["deletes"])
            at += 1
        findings += compare(one, state, gone)
    return findings


# ---- dependencies ----

def components(graph):
    """The strongly connected components of {node: [node, ...]} with a cycle in them, without recursion."""
    index, low, on_stack, stack, found = {}, {}, set(), [], []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    stack.append(successor)
                    on_stack.add(successor)
                    work.append((successor, iter(graph.get(successor, ()))))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == node:
                            break
                    if len(component) > 1 or node in graph.get(node, ()):
                        found.append(sorted(component))
    return found


def reaches(graph, start, goal):
    seen, frontier = {start}, [start]
    while frontier:
        node = frontier.pop()
        if node == goal:
            return True
        for successor in graph.get(node, ()):
            if successor not in seen:
                seen.add(successor)
                frontier.append(successor)
    return False


class Dependencies:
    def __init__(self, history):
        self.findings = []
        self.by_name = {one["id"]: one for one in history}
        self.edges = {"ww": {}, "wr": {}, "rw": {}}
        self.reads = [(one, register, seen) for one in history for register, seen in one["reads"].items()]
        self.orders()
        for one, register, seen in self.reads:
            self.connect(one, register, seen)
        for words in self.versions.values():
            writers = [self.writer(word) for word in words]
            for earlier, later in zip(writers, writers[1:]):
                self.add("ww", earlier, later)

    @staticmethod
    def writer(word):
        return word.rpartition(".")[0]

    def add(self, kind, earlier, later):
        if earlier != later:
            self.edges[kind].setdefault(earlier, set()).add(later)

    def orders(self):
        """The order of versions of each register: the longest list seen; all others begin it."""
        self.versions = {}
        for one, register, seen in self.reads:
            if len(set(seen)) != len(seen):
                self.findings.append(Finding("doubled", "%s saw %s in register %s" % (one["id"], seen, register)))
            if len(seen) > len(self.versions.get(register, ())):
                self.versions[register] = seen
        for one, register, seen in self.reads:
            longest = self.versions.get(register, [])
            if seen != longest[:len(seen)]:
                self.findings.append(Finding("incompatible", "register %s was seen as %s and as %s" % (register, seen, longest)))

    def connect(self, one, register, seen):
        for word in seen:
            writer = self.by_name.get(self.writer(word))
            if writer is None:
                self.findings.append(Finding("phantom", "%s saw %s, which nobody wrote" % (one["id"], word)))
            elif writer["outcome"] == "fail":
                self.findings.append(Finding("G1a", "%s saw %s of a refused write" % (one["id"], word)))
        if seen:
            last = self.by_name.get(self.writer(seen[-1]))
            if last is not None and seen[-1] != words_of(last, register)[-1]:
                self.findings.append(Finding("G1b", "%s saw %s, which its own writer went on from" % (one["id"], seen[-1])))
            self.add("wr", self.writer(seen[-1]), one["id"])
        longest = self.versions.get(register, [])
        if len(seen) < len(longest) and seen == longest[:len(seen)]:
            self.add("rw", one["id"], self.writer(longest[len(seen)]))

    def graph(self, *kinds):
        merged = {name: set() for name in self.by_name}
        for kind in kinds:
            for earlier, later in self.edges[kind].items():
                merged.setdefault(earlier, set()).update(later)
        return merged

    def only_committed(self):
        """A refused reader had no effect and is nobody's cause: its reads were looked at, its edges count for nothing."""
        for edges in self.edges.values():
            for name in list(edges):
                if name in self.by_name and self.by_name[name]["outcome"] != "ok" and not self.was_seen(name):
                    del edges[name]
                else:
                    edges[name] = {other for other in edges[name]
                                   if other not in self.by_name or self.by_name[other]["outcome"] == "ok" or self.was_seen(other)}

    def was_seen(self, name):
        return name in self.seen

    def cycles(self):
        self.seen = {self.writer(word) for words in self.versions.values() for word in words}
        self.only_committed()
        depends, everything = self.graph("ww", "wr"), self.graph("ww", "wr", "rw")
        for component in components(self.graph("ww")):
            self.findings.append(Finding("G0", "writes went round: %s" % component))
        circular = components(depends)
        for component in circular:
            self.findings.append(Finding("G1c", "information flowed in a circle: %s" % component))
        if circular:
            return False
        knots = [set(component) for component in components(everything)]
        if not knots:
            return False
        self.single_and_nonadjacent(depends, knots)
        asserted = self.graph("ww", "wr")
        for earlier, later in self.edges["rw"].items():
            if self.by_name[earlier]["guarded"] or not writes(self.by_name[earlier]):
                asserted[earlier] |= later
        for component in components(asserted):
            self.findings.append(Finding("G2-asserted", "a cycle over reads that were asserted: %s" % component))
        return True

    def single_and_nonadjacent(self, depends, knots):
        """Snapshot isolation has two anti-dependencies in a row in every cycle (Fekete et al.): none with one, none with them apart."""
        steps, found = {name: set(later) for name, later in depends.items()}, False
        for earlier, later in self.edges["rw"].items():
            for middle in later:
                if any(earlier in knot and middle in knot for knot in knots) and reaches(depends, middle, earlier):
                    self.findings.append(Finding("G-single", "%s did not see %s, and depends on it" % (earlier, middle)))
                    found = True
                steps[earlier] |= depends.get(middle, set())
        if not found:
            for component in components(steps):
                self.findings.append(Finding("G-nonadjacent", "anti-dependencies apart from each other in a cycle: %s" % component))


def check(history, log, registers):
    """(findings that nobody may have, whether write skew was seen)."""
    dependencies = Dependencies(history)
    skew = dependencies.cycles()
    return replay(history, log, registers) + dependencies.findings, skew
