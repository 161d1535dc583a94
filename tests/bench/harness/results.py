"""What was measured: raw rows, their medians, and the files that they are kept in."""

import csv
import json
import os
import statistics

FIELDS = ("part", "case", "subject", "measure", "unit", "run", "value")


class Results:
    """Each row is one number of one run. A key (part, case, subject, measure) has as many rows as there were runs."""

    def __init__(self):
        self.rows, self.units, self.left_out, self.failures, self.durations = [], {}, {}, [], {}

    def add(self, part, case, subject, measure, unit, run, value):
        self.rows.append(dict(zip(FIELDS, (part, case, subject, measure, unit, run, value))))
        self.units[(part, case, subject, measure)] = unit

    def add_run(self, part, case, subject, run, ran):
        """The numbers of a measured program, and those that it printed."""
        for measure, unit, value in (("wall", "s", ran.wall), ("cpu", "s", ran.cpu), ("anonymous memory", "MiB", ran.anonymous / 2**20)):
            self.add(part, case, subject, measure, unit, run, value)
        self.add_printed(part, case, subject, run, ran)

    def add_printed(self, part, case, subject, run, ran):
        for measure, (unit, value) in ran.measures().items():
            self.add(part, case, subject, measure, unit, run, value)

    def values(self, part, case, subject, measure):
        return [row["value"] for row in self.rows
                if (row["part"], row["case"], row["subject"], row["measure"]) == (part, case, subject, measure)]

    def median(self, key):
        values = self.values(*key)
        return statistics.median(values) if values else None

    def keys(self):
        found = {}
        for row in self.rows:
            found.setdefault((row["part"], row["case"], row["subject"], row["measure"]), None)
        return list(found)

    def leave_out(self, subject, reason):
        self.left_out[subject] = reason

    def fail(self, part, case, subject, reason):
        """A peer that fails is named with what it said, and the others go on."""
        self.failures.append({"part": part, "case": case, "subject": subject, "reason": reason})

    def without(self, parts):
        """The others' results. Who is left out is found anew."""
        kept = Results()
        kept.failures = [failure for failure in self.failures if failure["part"] not in parts]
        kept.durations = {part: took for part, took in self.durations.items() if part not in parts}
        for row in self.rows:
            if row["part"] not in parts:
                kept.add(*(row[field] for field in FIELDS))
        return kept

    def write(self, folder, about):
        with open(os.path.join(folder, "rows.csv"), "w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(self.rows)
        with open(os.path.join(folder, "rows.json"), "w") as file:
            json.dump({"about": about, "left out": self.left_out, "failures": self.failures, "seconds of each part": self.durations,
                       "rows": self.rows}, file, indent=1)
            file.write("\n")


def read(path):
    """The results that a run has written."""
    with open(path) as file:
        said = json.load(file)
    results = Results()
    results.left_out, results.failures, results.durations = said["left out"], said["failures"], said["seconds of each part"]
    for row in said["rows"]:
        results.add(*(row[field] for field in FIELDS))
    return results, said["about"]
