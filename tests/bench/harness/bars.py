"""What must be seen: each bar is a ratio of two medians of one run, or a number against a bound."""


class Bar:
    """`above` and `below`: keys of medians (part, case, subject, measure); `below` None: the number by itself. `limit` is at
    most, or with `least` at least, what above / below may be."""

    def __init__(self, work, against, above, below, limit, least=False, unit=""):
        self.work, self.against, self.above, self.below = work, against, above, below
        self.limit, self.least, self.unit = limit, least, unit

    def value(self, results):
        above = results.median(self.above)
        below = 1.0 if self.below is None else results.median(self.below)
        return None if above is None or not below else above / below

    def met(self, value):
        return value >= self.limit if self.least else value <= self.limit

    def bound(self):
        return "%s %g%s" % ("≥" if self.least else "≤", self.limit, self.unit)


def of_load(case, beside_kuzu, beside_bare):
    def load(subject, measure="wall"):
        return ("load", case, subject, measure)
    work = "load of %s, 2 workers" % case
    yield Bar(work, "kuzu", load("sluice"), load("kuzu"), beside_kuzu)
    yield Bar(work, "bare loader, 2 processes", load("sluice"), load("bare loader"), beside_bare)
    yield Bar(work + ", --memory 256M", "without it", load("sluice --memory 256M"), load("sluice"), 2)
    yield Bar("peak memory of the load of %s, --memory 256M" % case, "", load("sluice --memory 256M", "anonymous memory"), None, 256, unit=" MiB")
    yield Bar("bytes on disk after %s" % case, "kuzu", load("sluice", "disk"), load("kuzu", "disk"), 1)
    yield Bar("bytes on disk after %s, --compress" % case, "duckdb, primary key", load("sluice --compress", "disk"), load("duckdb", "disk"), 1)


def of_pool(writers):
    case = "%d writers" % writers
    def pool(subject, measure="commits"):
        return ("commits", case, subject, measure)
    work = "%d writer processes of one pool" % writers
    yield Bar(work, "bare group loop", pool("sluice pool"), pool("bare group loop"), 0.6, least=True)
    yield Bar(work, "rocksdb", pool("sluice pool"), pool("rocksdb"), 1, least=True)
    yield Bar(work, "postgresql", pool("sluice pool"), pool("postgresql"), 1, least=True)
    yield Bar(work + ": the busiest", "the least busy", pool("sluice pool", "most of one writer"), pool("sluice pool", "least of one writer"), 2)
    yield Bar(work + ": p99", "the median", pool("sluice pool", "p99"), pool("sluice pool", "p50"), 10)


def all_bars(sizes, depth, commits, fragments):
    """`sizes`: names of the graphs that are loaded, the first of 5M edges in a whole run."""
    small = sizes[0]
    bars = list(of_load(small, 0.30, 1.5))
    bars.insert(1, Bar("load of %s, 2 workers" % small, "duckdb, primary key, ends unchecked", ("load", small, "sluice", "wall"),
                       ("load", small, "duckdb", "wall"), 1))
    for large in sizes[1:]:
        bars += of_load(large, 0.30, 1.4)
        bars.append(Bar("peak memory of the load of %s" % large, "", ("load", large, "sluice", "anonymous memory"), None, 1228.8, unit=" MiB"))
    one = ("commits", "1 writer", "sluice", "commits")
    bars += [Bar("one writer, small synced commits, library", "bare flush loop", ("commits", "1 writer", "sluice", "commits beside flushes"),
                 ("commits", "1 writer", "sluice", "bare flushes"), 0.85, least=True),
             Bar("one writer, small synced commits, library", "sqlite", one, ("commits", "1 writer", "sqlite", "commits"), 1, least=True)]
    for writers in (4, 16):
        bars += of_pool(writers)
    history = ("history", "%d commits" % depth, "sluice")
    bars.append(Bar("commit at depth %d" % depth, "depth 100", history + ("commit at the end",), history + ("commit at depth 100",), 1.1))

    def read(subject, measure):
        return ("reads", small, subject, measure)
    bars += [Bar("scan and sum of a float column", "duckdb, 1 thread", read("sluice", "scan"), read("duckdb", "scan, 1 thread"), 0.8),
             Bar("scan: bandwidth", "memory", read("sluice", "scan bandwidth"), ("limits", "memory", "machine", "read"), 0.5, least=True),
             Bar("point get by key, library", "lmdb", read("sluice", "point"), read("lmdb", "point"), 2),
             Bar("1-hop of 10,000 nodes, library", "kuzu, one query", read("sluice", "1-hop"), read("kuzu", "1-hop"), 0.2),
             Bar("2-hop of 1,000 nodes, library", "kuzu, one query", read("sluice", "2-hop"), read("kuzu", "2-hop"), 0.2),
             Bar("2-hop of 1,000 nodes, library", "lmdb", read("sluice", "2-hop"), read("lmdb", "2-hop"), 0.5),
             Bar("open at depth %d" % depth, "depth 100", history + ("open",), ("history", "100 commits", "sluice", "open"), 1.1),
             Bar("optimize of %d one-row commits" % commits, "lancedb", ("optimize", "%d commits" % commits, "sluice", "optimize"),
                 ("optimize", "%d commits" % commits, "lancedb", "optimize"), 0.2),
             Bar("optimize of %d fragments of edges: bandwidth" % fragments, "a copy of the same files",
                 ("optimize", "%d fragments" % fragments, "sluice", "bandwidth"), ("optimize", "%d fragments" % fragments, "bare copy", "bandwidth"),
                 0.5, least=True),
             Bar("gate enter + leave, uncontended", "", ("gates", "1 process", "sluice", "enter + leave"), None, 100, unit=" ns"),
             Bar("kill -9 of a gate's holder to the next commit", "", ("gates", "2 processes", "sluice", "death to next commit"), None, 10, unit=" ms")]
    largest = sizes[-1]
    bars.append(Bar("sluice get as a process, %s" % largest, "", ("command", largest, "sluice get", "wall"), None, 20, unit=" ms"))
    return bars
