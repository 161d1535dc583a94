"""Reading metrics the way the format is written down, and no laxer: text format 0.0.4, with the conventions for names."""

import math
import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|Inf)\Z|NaN\Z")
UNITS = ("seconds", "bytes", "total", "info", "commits", "ratio")
ESCAPES = {"\\": "\\", "n": "\n", '"': '"'}


class Fault(Exception):
    pass


def must(truth, line):
    if not truth:
        raise Fault(line)


def labels_of(text, line):
    """What stands between the braces, as a sorted tuple of pairs."""
    found, at = {}, 0
    while at < len(text):
        equals = text.index("=", at)
        name = text[at:equals]
        must(LABEL.match(name) and not name.startswith("__") and name not in found, line)
        must(text[equals + 1] == '"', line)
        value, at = "", equals + 2
        while text[at] != '"':
            if text[at] == "\\":
                must(text[at + 1] in ESCAPES, line)
                value += ESCAPES[text[at + 1]]
                at += 2
            else:
                value += text[at]
                at += 1
        found[name] = value
        at += 1
        if at < len(text):
            must(text[at] == "," and at + 1 < len(text), line)
            at += 1
    return tuple(sorted(found.items()))


def family_of(name, types):
    for suffix in ("_bucket", "_sum", "_count"):
        base = name[:-len(suffix)] if name.endswith(suffix) else None
        if base and types.get(base) == "histogram":
            return base
    return name


def parse(text):
    """({name: (type, help)}, {(name, labels): value}); Fault names the line that is wrong."""
    must(text.endswith("\n"), "the last line has an end")
    helps, types, values, closed, current = {}, {}, {}, set(), None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name, _, said = line[7:].partition(" ")
            must(NAME.match(name) and name not in helps and said and said[0].isupper() and said.endswith("."), line)
            helps[name] = said
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            must(name in helps and name not in types and kind in ("counter", "gauge", "histogram"), line)
            types[name] = kind
        else:
            must(line and not line.startswith("#"), line)
            match = re.match(r"([^{ ]+)(?:\{(.*)\})? ([^ ]+)\Z", line)
            must(match and NAME.match(match[1]) and NUMBER.match(match[3]), line)
            family = family_of(match[1], types)
            must(family in types, line)
            must(types[family] == "histogram" or family == match[1], line)
            if family != current:
                must(family not in closed, line)  # a family is one block
                closed.add(current)
                current = family
            key = (match[1], labels_of(match[2] or "", line))
            must(key not in values, line)
            values[key] = float(match[3])
    must(set(helps) == set(types), "HELP and TYPE come in pairs")
    check_names(types)
    check_histograms(types, values)
    for (name, labels), value in values.items():
        must(types[family_of(name, types)] != "counter" or (value >= 0 and value == math.floor(value)), name)
    return {name: (types[name], helps[name]) for name in types}, values


def check_names(types):
    for name, kind in types.items():
        must(name.startswith("sluice_") and name == name.lower(), name)
        must((kind == "counter") == name.endswith("_total"), name)
        must(kind != "histogram" or name.rsplit("_", 1)[1] in UNITS, name)
        must(not any(unit in name for unit in ("_ms", "milli", "micro", "_kb", "_mb")), name)
        for other in types:  # OpenMetrics: a counter's family is its name without _total
            must(other == name or other + "_total" != name, name)


def check_histograms(types, values):
    for name in (n for n, kind in types.items() if kind == "histogram"):
        series = {}
        for (line, labels), value in values.items():
            if line == name + "_bucket":
                rest = tuple(pair for pair in labels if pair[0] != "le")
                series.setdefault(rest, []).append((float(dict(labels)["le"].replace("+Inf", "inf")), value))
        counts = {labels: value for (line, labels), value in values.items() if line == name + "_count"}
        sums = {labels: value for (line, labels), value in values.items() if line == name + "_sum"}
        must(set(series) == set(counts) == set(sums), name)
        for rest, cells in series.items():
            must(cells == sorted(cells) and len({bound for bound, _ in cells}) == len(cells), name)
            must([value for _, value in cells] == sorted(value for _, value in cells), name)
            must(cells[-1][0] == math.inf and cells[-1][1] == counts[rest], name)
            must(sums[rest] >= 0 and (counts[rest] > 0 or sums[rest] == 0), name)
