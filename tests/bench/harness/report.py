"""The tables: what must be seen, with ratios; and everything, by part and case."""

import statistics


def number(value):
    return "%.0f" % value if abs(value) >= 1000 else "%.3g" % value


def bars_table(results, bars):
    lines = ["| work | beside | bar | seen | |", "|---|---|---|---|---|"]
    for bar in bars:
        value = bar.value(results)
        seen = "not measured" if value is None else number(value) + bar.unit + (" ×" if bar.below else "")
        verdict = "" if value is None else "met" if bar.met(value) else "**missed**"
        lines.append("| %s | %s | %s | %s | %s |" % (bar.work, bar.against, bar.bound(), seen, verdict))
    return lines


def case_table(results, part, case):
    """Subjects down, measures across; what cannot be compared across subjects (answers) is left to the raw rows."""
    keys = [key for key in results.keys() if key[:2] == (part, case) and not key[3].startswith(("answer of", "sum of"))]
    subjects, measures = list(dict.fromkeys(key[2] for key in keys)), list(dict.fromkeys(key[3] for key in keys))
    units = {key[3]: results.units[key] for key in keys}
    heads = ["%s %s" % (measure, units[measure]) for measure in measures]
    lines = ["| %s | %s | runs |" % (case, " | ".join(heads)), "|---|" + "---|" * len(measures) + "---|"]
    for subject in subjects:
        cells, runs = [], 0
        for measure in measures:
            values = results.values(part, case, subject, measure)
            runs = max(runs, len(values))
            spread = " (%s..%s)" % (number(min(values)), number(max(values))) if len(values) > 1 else ""
            cells.append(number(statistics.median(values)) + spread if values else "")
        lines.append("| %s | %s | %d |" % (subject, " | ".join(cells), runs))
    return lines


BEGIN, END = "<!-- written by scripts/bench --into -->", "<!-- end of what scripts/bench has written -->"


def put_into(path, text):
    """The tables between the two marks of a document, in place of those that were there; headings one level down."""
    with open(path, encoding="utf-8") as file:
        before, mark, rest = file.read().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise ValueError("%s lacks the marks %s and %s" % (path, BEGIN, END))
    body = "\n".join("#" + line if line.startswith("#") else line for line in text.strip().splitlines()[1:])
    with open(path, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "\n" + body.strip() + "\n" + END + after)


def whole(results, bars, about):
    lines = ["# Benchmark", "", "; ".join("%s: %s" % pair for pair in about.items()), "",
             "Medians of the runs, with the least and the most; each run in a process of its own, subjects in turn.", ""]
    if results.left_out:
        lines += ["Left out: " + "; ".join("%s (%s)" % pair for pair in results.left_out.items()) + ".", ""]
    for failure in results.failures:
        lines.append("Failed: %(subject)s in %(part)s, %(case)s: %(reason)s" % failure)
    lines += ["", "## What must be seen", ""] + bars_table(results, bars)
    for part in dict.fromkeys(key[0] for key in results.keys()):
        lines += ["", "## %s%s" % (part, " (%.0f s)" % results.durations[part] if part in results.durations else "")]
        for case in dict.fromkeys(key[1] for key in results.keys() if key[0] == part):
            lines += [""] + case_table(results, part, case)
    return "\n".join(lines) + "\n"
