"""What the machine gives: bandwidth of memory and disk, flushes a second."""

CASES = {"read": "memory", "copy": "memory", "flushes": "flush"}


def run(bench):
    def once(number):
        ran = bench.run(bench.path("bandwidth"), bench.folder, bench.sizes.mebibytes)
        for measure, (unit, value) in ran.measures().items():
            bench.results.add("limits", CASES.get(measure, "disk"), "machine", measure, unit, number, value)
    bench.in_turns("limits", "machine", {"machine": once})
