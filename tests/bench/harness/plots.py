"""Plots as SVG, when matplotlib is there: one for each case and measure that several subjects have, and one of all bars."""

import os
import re

SHOWN = ("wall", "cpu", "disk", "anonymous memory", "commits", "p99", "scan", "point", "1-hop", "2-hop", "optimize", "bandwidth",
         "commit at the end", "write", "read")
OURS, OTHERS = "#1b6ca8", "#b8c4ce"


def write(results, bars, folder):
    """Returns the files' names; none when there is no matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("svg")
    import matplotlib.pyplot as plot
    os.makedirs(folder, exist_ok=True)
    names = [_bars(plot, results, bars, folder)]
    for part, case, measure in dict.fromkeys((key[0], key[1], key[3]) for key in results.keys()):
        subjects = [key for key in results.keys() if (key[0], key[1], key[3]) == (part, case, measure)]
        if measure in SHOWN and len(subjects) > 1:
            names.append(_case(plot, results, part, case, measure, subjects, folder))
    return names


def _save(plot, figure, folder, name):
    name = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".svg"
    figure.savefig(os.path.join(folder, name), bbox_inches="tight", metadata={"Date": None})
    plot.close(figure)
    return name


def _case(plot, results, part, case, measure, keys, folder):
    keys = sorted(keys, key=results.median)
    figure, axes = plot.subplots(figsize=(7, 0.6 + 0.35 * len(keys)))
    colours = [OURS if key[2].startswith("sluice") else OTHERS for key in keys]
    drawn = axes.barh([key[2] for key in keys], [results.median(key) for key in keys], color=colours)
    axes.bar_label(drawn, fmt="%.3g", padding=3)
    axes.set_xlabel("%s, %s" % (measure, results.units[keys[0]]))
    axes.set_title("%s: %s" % (part, case))
    axes.spines[["top", "right"]].set_visible(False)
    return _save(plot, figure, folder, "%s %s %s" % (part, case, measure))


def _bars(plot, results, bars, folder):
    """How far each bar is met: the ratio to its limit, so that all that is right of the line is met."""
    seen = [(bar, bar.value(results)) for bar in bars]
    seen = [(bar, value) for bar, value in seen if value]
    figure, axes = plot.subplots(figsize=(8, 0.8 + 0.3 * len(seen)))
    reach = [value / bar.limit if bar.least else bar.limit / value for bar, value in seen]
    labels = ["%s / %s" % (bar.work, bar.against) if bar.against else bar.work for bar, _ in seen]
    axes.barh(range(len(seen)), reach, color=[OURS if bar.met(value) else "#c0392b" for bar, value in seen])
    axes.set_yticks(range(len(seen)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("of the bar (right of the line: met)")
    return _save(plot, figure, folder, "bars")
