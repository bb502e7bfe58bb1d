"""``make bench``: run every measurement. Write JSON, a table of all figures, and ``docs/performance.md``.

    python bench/performance.py [--rounds 3] [--only PART ...] [--students 200] [--load 30 200 1000] [--json FILE]

Each measurement is a script in this folder that describes what it compares. The scripts run one after another,
``--rounds`` times, so that other load on the machine affects all of them. A table shows the number of rounds, and the
median, the smallest and the largest value of the rounds. ``bench/performance.md`` has all figures. The page in
``docs/`` has the figures that users ask about.

``--only`` measures only the given parts again, and keeps the other parts of the JSON file. ``--rounds 0`` measures
nothing and writes the tables from the file, with the file's ``notes`` above them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT)]

from grader.common.files import write_atomic  # noqa: E402

PAGE = ROOT / "docs" / "performance.md"
EVERY = ROOT / "bench" / "performance.md"
Row = tuple[str, str, str, list[float]]  # a measurement: name, what the number covers, unit, one value for each round
Parts = dict[str, list[Any]]  # the JSON of each round, by part

ASKED = {  # docs/performance.md: for each question, the beginnings of the first two columns of the row that answers it
    "`check` of one exercise": ("check: CPU time", ""),
    "`watch`: from a save to the result": ("watch: CPU time", ""),
    "`grade`, a class of 30": ("CPU time of the first grading", "class of 30,"),
    "`grade`, a class of 200": ("CPU time of the first grading", "class of 200,"),
    "`grade`, a class of 1,000": ("CPU time of the first grading", "class of 1,000,"),
    "CPU time of the first `grade` / CPU time of a regrade after a changed tolerance": (
        "speed-up of a regrade after a changed tolerance of one check, by CPU time",
        "class of 200,",
    ),
    "time of nbgrader's own `nbgrader autograde` / time of `shardlings nbgrader grade`": (
        "shardlings grade -j 2: speed-up over stock",
        "",
    ),
    "time of `otter run` / time of `shardlings nbgrader grade`": ("shardlings grade -j 2: speed-up over otter", ""),
    "largest memory of the command's own process": ("largest memory of the parent process", "class of 200,"),
    "CPU time that the sandbox adds": ("CPU time that the sandbox adds, sandlock", "20 submissions"),
}


def measured(script: str, *words: str) -> Any:
    """Return the JSON that a script writes. Raises SystemExit if the script fails."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "found.json")
        command = [sys.executable, str(ROOT / "bench" / script), *words, "--json", str(file)]
        done = subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False)
        if done.returncode:
            sys.exit(f"{script} ended with {done.returncode}")
        return json.loads(file.read_text())


def commands(students: int, load: list[int], otter: int) -> dict[str, list[str]]:
    """Return the script of each part, with its arguments for one round."""
    return {
        "start": ["start.py", "--rounds", "1"],
        "isolation": ["isolation.py", "--rounds", "1"],
        "load": ["load.py", "--students", *map(str, load), "--without"],
        "limit": ["limit.py", "--rounds", "1"],
        "course": ["course.py", "--rounds", "1"],
        "nbgrader": ["nbgrader.py", "--students", str(students)],
        "otter": ["otter.py", "--students", str(otter)],
    }


def rows(parts: Parts) -> Iterator[Row]:
    """Yield the lines of all parts that were measured."""
    of = {
        "start": of_a_start,
        "isolation": of_isolation,
        "load": of_classes,
        "limit": of_the_limit,
        "course": of_the_course,
        "nbgrader": of_nbgrader,
    }
    for part, lines in of.items():
        if parts.get(part):
            yield from lines(parts[part])
    if parts.get("otter"):
        yield from of_otter(parts["otter"], parts.get("nbgrader", []))


def asked(every: list[Row]) -> Iterator[Row]:
    """Yield the measured figures that users ask about."""
    for question, (figure, on) in ASKED.items():
        found = [row for row in every if row[0].startswith(figure) and row[1].startswith(on)]
        if found:
            yield question, *found[0][1:]


def of_a_start(rounds: list[dict[str, list[list[float]]]]) -> Iterator[Row]:
    """Yield each command's time and CPU time, and its time in multiples of the work by hand or of ``import jax``."""
    one = [{name: times[0] for name, times in found.items()} for found in rounds]
    for name in one[0]:
        yield name, "whole command", "s", [of[name][0] for of in one]
        if one[0][name][1]:
            yield f"{name}: CPU time", "with its child processes", "s of CPU", [of[name][1] for of in one]
        base = "by hand" if name.startswith("check") and "help" not in name else "import jax"
        if name != base:
            yield (
                f"{name}: time in multiples of {base}",
                "whole command",
                "x",
                [of[name][0] / of[base][0] for of in one],
            )


def of_isolation(rounds: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield the percentage of CPU time that each sandbox tier adds to a whole batch, and to the start of a batch."""
    first = rounds[0]
    for tier, parts in first["tiers"].items():
        for part in parts if tier != "none" else ():
            what = (
                f"{first['students']} submissions and the start of the command"
                if part == "batch"
                else "only the start of the command"
            )
            more = [(one["tiers"][tier][part][0][1] / one["tiers"]["none"][part][0][1] - 1) * 100 for one in rounds]
            yield f"CPU time that the sandbox adds, {tier}", what, "% of CPU", more


def of_classes(rounds: list[list[dict[str, Any]]]) -> Iterator[Row]:
    """Yield the cost of each class, then the cost of one more submission and of the command's start.

    The costs of a submission and of the command's start are computed from two classes of different size.
    """
    kinds: dict[tuple[float, int], list[dict[str, Any]]] = {}
    for one in itertools.chain(*rounds):
        kinds.setdefault((one["duplicates"], one["students"]), []).append(one)
    classes = [kinds[kind] for kind in sorted(kinds)]
    for of in classes:
        yield from _of_a_class(of)
    for fewer, more in itertools.pairwise(classes):
        if fewer[0]["duplicates"] != more[0]["duplicates"]:
            continue
        what = f"from {fewer[0]['students']:,} to {more[0]['students']:,} submissions"
        for clock, unit in (("seconds", "s"), ("cpu", "s of CPU")):
            slopes = [
                (n[clock]["first"] - m[clock]["first"]) / (n["students"] - m["students"])
                for m, n in zip(fewer, more, strict=False)
            ]
            starts = [m[clock]["first"] - m["students"] * slope for m, slope in zip(fewer, slopes, strict=False)]
            yield "time of one more submission", what, unit, slopes
            # Only the first class began with an empty cache, so only its times show how long the command takes to start.
            if fewer is classes[0]:
                yield "time of the start: the smaller class's time without its submissions", what, unit, starts
        grown = [n["parent_mib"]["first"] / m["parent_mib"]["first"] for m, n in zip(fewer, more, strict=False)]
        yield "memory of the parent process, in multiples of the smaller class's", what, "x", grown


def _of_a_class(of: list[dict[str, Any]]) -> Iterator[Row]:
    students = of[0]["students"]
    what = f"class of {students:,}, {of[0]['duplicates']:.0%} copies of other submissions"
    yield "time of the first grading", what, "s a submission", [one["seconds"]["first"] / students for one in of]
    yield "CPU time of the first grading", what, "s of CPU a submission", [one["cpu"]["first"] / students for one in of]
    for run, said in (("another tolerance", "a changed tolerance of one check"), ("unchanged", "no change")):
        if run in of[0]["seconds"]:
            for clock, end in (("seconds", ""), ("cpu", ", by CPU time")):
                ratios = [one[clock]["first"] / one[clock][run] for one in of]
                yield f"speed-up of a regrade after {said}{end}", what, "x", ratios
    yield "largest memory of the parent process", what, "MiB", [max(one["parent_mib"].values()) for one in of]
    yield "size of the cache", what, "MiB", [one["store_mib"] for one in of]
    yield "size of the class page", what, "MiB", [one["class_page_mib"] for one in of]


def of_the_limit(limits: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield the cost of grading by hand (the lower bound), then the milliseconds of each kind of work by hand.

    At the end, yield the cost of ``grade`` in multiples of the lower bound.
    """
    what = f"{limits[0]['students']} students, {limits[0]['distinct']} distinct sources"
    yield "lower bound: each step once, by hand", what, "s of CPU", [one["limit"][0] for one in limits]
    for part, (_, times) in limits[0]["parts"].items():
        each = [one["parts"][part][0] / one["parts"][part][1] * 1e3 for one in limits]
        yield f"part of the lower bound: {part} (done {times} times)", what, "ms each", each
    steady = [one["second_half"][0][1] / one["second_half"][0][0] for one in limits]
    yield "cost of the second half of a class, in multiples of the lower bound", what, "x", steady
    yield (
        "cost of grade minus the cost of an unchanged run, in multiples of the lower bound",
        what,
        "x",
        [o["grade"][0] / o["limit"][0] for o in limits],
    )


def of_the_course(rounds: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield the cost of a perfect submission by role of process, its cost by hand, then the time of ``verify``."""
    what = f"{rounds[0]['exercises']} exercises"
    yield "a perfect submission, with an empty cache and new workers", what, "s", [one["cold"][0] for one in rounds]
    for hosts in rounds[0]["warm"]:
        of = [found for one in rounds for found in one["warm"][hosts]]
        yield f"a perfect submission, warm workers, {hosts} at a time", what, "s", [found["seconds"] for found in of]
        for role in ("parent", "trace", "run"):
            yield (
                f"a perfect submission, warm workers, {hosts} at a time: {role} process",
                what,
                "s of CPU",
                [found[role] for found in of],
            )
    hands = [found for one in rounds for found in one["by hand"]]
    yield (
        "a perfect submission, each step called by a script: all steps",
        what,
        "s of CPU",
        [sum(found.values()) for found in hands],
    )
    for part in hands[0]:
        yield (
            f"a perfect submission, each step called by a script: {part}",
            what,
            "s of CPU",
            [found[part] for found in hands],
        )
    if all("verify" in one for one in rounds):
        yield "verify --no-store -j 2: time", what, "s", [one["verify"][0] for one in rounds]
        yield "verify --no-store -j 2: CPU time", what, "s of CPU", [one["verify"][1] for one in rounds]


def of_nbgrader(rounds: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield the time of stock nbgrader for a submission, and the speed-up of our grader over stock nbgrader."""
    books = [one["seconds"] for one in rounds]
    what = f"class of {rounds[0]['students']}"
    stock, *ours = books[0]
    yield stock, f"class of {rounds[0]['stock_students']}", "s a submission", [b[stock] for b in books]
    for path in ours:
        yield f"{path}: speed-up over {stock}", what, "x", [b[stock] / b[path] for b in books]


def of_otter(otters: list[dict[str, Any]], books: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield otter-grader's time for a submission and, if our grader was measured, the speed-up of our grader."""
    means = [statistics.mean(one["seconds"]) for one in otters]
    what = f"{len(otters[0]['seconds'])} notebooks"
    yield f"otter run, otter-grader {otters[0]['version']}", what, "s a submission", means
    for path in list(books[0]["seconds"])[1:] if books else []:
        ratios = [mean / book["seconds"][path] for mean, book in zip(means, books, strict=False)]
        yield f"{path}: speed-up over otter run", f"class of {books[0]['students']}", "x", ratios


def table(of: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a table with the median of the rounds, then the smallest and the largest value."""
    yield "| figure | measured on | rounds | median | smallest to largest | unit |"
    yield "|---|---|---|---|---|---|"
    for what, on, unit, values in of:
        rounded = [round(value, 6) for value in values]  # a difference that cancels can leave 1e-13
        middle, least, most = statistics.median(rounded), min(rounded), max(rounded)
        spread = f"{least:,.3g} to {most:,.3g}" if len(values) > 1 else ""
        yield f"| {what} | {on} | {len(values)} | {middle:,.3g} | {spread} | {unit} |"


def page(found: dict[str, Any], lines: list[Row]) -> str:
    """Return the page of ``docs/``."""
    return "\n".join(
        [
            "# Performance",
            "",
            "`make bench` (`bench/performance.py`) writes this page, and a table of all figures, `bench/performance.md`. The",
            "docstring of each script in `bench/` describes what the script compares.",
            "",
            f"- Measured on {found['machine']}.",
            "- CPU seconds are the sum over all processes. Other load changes CPU seconds much less than wall time.",
            "- Rows with the unit x give the ratio of the two times that the first column names.",
            "- The graded module is `03_matmuls`. Measurements of a class start with an empty cache.",
            *(f"- {note}" for note in found.get("notes", [])),
            "",
            "[Where the time goes](where-time-goes.md) explains the figures that we would like to improve.",
            "",
            *table(asked(lines)),
            "",
        ]
    )


def every_figure(found: dict[str, Any], lines: list[Row]) -> str:
    """Return ``bench/performance.md``."""
    return "\n".join(
        [
            "# All figures",
            "",
            "`make bench` writes this table. `docs/performance.md` has the figures that users ask about, and explains the units.",
            "",
            f"- Measured on {found['machine']}.",
            *(f"- {note}" for note in found.get("notes", [])),
            "- Do not compare classes that have different percentages of copied submissions.",
            "- *By hand* means one process without isolation that does only the work itself, such as one sharded matmul for `check`.",
            "- The *lower bound* of a class is its cost by hand: each different source, program and result is handled once.",
            "- *Check, confined* is `check` in a sandbox. All other rows of `check` and `watch` use no sandbox.",
            "- *Stock nbgrader autograde* is nbgrader's own command with hidden tests, without shardlings.",
            "- *Nbgrader autograde, ours* is `nbgrader autograde` with the tests replaced by shardlings. *Shardlings grade -j 2* is `shardlings nbgrader grade -j 2`.",
            "- *Again, nothing changed* is a second run of `shardlings nbgrader grade -j 2`, without new submissions.",
            "",
            *table(lines),
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--only", nargs="+", metavar="PART", help="start, isolation, load, limit, course, nbgrader, otter"
    )
    parser.add_argument("--students", type=int, default=200, help="in the class for nbgrader")
    parser.add_argument("--load", type=int, nargs="+", default=[30, 200, 1000])
    parser.add_argument("--otter", type=int, default=10, help="notebooks for otter-grader, which is slow")
    parser.add_argument("--json", type=Path, default=EVERY.with_suffix(".json"))
    args = parser.parse_args()
    machine = (
        f"{os.cpu_count()} shared cores, {platform.system()}, Python {platform.python_version()}, JAX {version('jax')}"
    )
    found: dict[str, Any] = {"machine": machine, "parts": {}}
    if args.json.is_file() and (args.only or not args.rounds):
        found |= json.loads(args.json.read_text())
    scripts = commands(args.students, args.load, args.otter)
    if unknown := [part for part in args.only or () if part not in scripts]:
        sys.exit(f"performance: no part {', '.join(unknown)}; there are {', '.join(scripts)}")
    chosen = {part: scripts[part] for part in args.only or scripts}
    if args.rounds:
        found["parts"] |= {part: [] for part in chosen}
    for _ in range(args.rounds):
        for part, words in chosen.items():
            found["parts"][part].append(measured(*words))
            write_atomic(args.json, json.dumps(found, indent=2) + "\n")
    lines = list(rows(found["parts"]))
    write_atomic(PAGE, text := page(found, lines))
    write_atomic(EVERY, every_figure(found, lines))
    print(text)


if __name__ == "__main__":
    main()
