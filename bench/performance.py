"""``make bench``: run every measurement. Write one table, JSON, and ``docs/performance.md``.

    python bench/performance.py [--rounds 3] [--students 200] [--load 100 300 1000] [--from FILE] [--json FILE]

Each measurement is a script in this folder that describes what it compares. The scripts run one after another,
``--rounds`` times, so that other load on the machine affects all of them. The table shows medians, with the least and
the most. ``--from`` measures nothing: it writes the page from the file of an earlier run, with the file's ``notes``
above the table.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT)]

from grader.common.files import write_atomic  # noqa: E402

PAGE = ROOT / "docs" / "performance.md"
Row = tuple[str, str, str, list[float]]  # name, what it measures, unit, one value for each round


def measured(script: str, *words: str) -> Any:
    """Return the JSON that a script writes. End this command if the script fails."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "found.json")
        command = [sys.executable, str(ROOT / "bench" / script), *words, "--json", str(file)]
        done = subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False)
        if done.returncode:
            sys.exit(f"{script} ended with {done.returncode}")
        return json.loads(file.read_text())


def measure(students: int, load: list[int], otter: int) -> dict[str, Any]:
    """Run one round of all measurements."""
    return {
        "start": measured("start.py", "--rounds", "1"),
        "isolation": measured("isolation.py", "--rounds", "1"),
        "load": measured("load.py", "--students", *map(str, load), "--without"),
        "limit": measured("limit.py", "--rounds", "1"),
        "course": measured("course.py", "--rounds", "1"),
        "nbgrader": measured("nbgrader.py", "--students", str(students)),
        "otter": measured("otter.py", "--students", str(otter)),
    }


def rows(rounds: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield the table's lines, from rounds of the same measurements."""
    parts = rounds[0]
    if "start" in parts:
        yield from of_a_start([one["start"] for one in rounds])
    if "isolation" in parts:
        yield from of_isolation([one["isolation"] for one in rounds])
    if "load" in parts:
        yield from of_classes([one["load"] for one in rounds])
    if "limit" in parts:
        yield from of_the_limit([one["limit"] for one in rounds])
    if "course" in parts:
        yield from of_the_course([one["course"] for one in rounds])
    if "nbgrader" in parts:
        yield from of_nbgrader([one["nbgrader"] for one in rounds])
    if "otter" in parts:
        yield from of_otter(rounds)


def of_a_start(rounds: list[dict[str, list[list[float]]]]) -> Iterator[Row]:
    """Yield each command's time from its start, against the same work by hand."""
    one = [{name: times[0] for name, times in found.items()} for found in rounds]
    for name in one[0]:
        yield name, "whole command", "s", [of[name][0] for of in one]
        if one[0][name][1]:
            yield f"{name}: CPU time", "with its child processes", "s", [of[name][1] for of in one]
        base = "by hand" if name.startswith("check") and "help" not in name else "import jax"
        if name != base:
            yield (
                f"{name}: time in multiples of {base}",
                "whole command",
                "x",
                [of[name][0] / of[base][0] for of in one],
            )


def of_isolation(rounds: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield the CPU seconds that each tier adds to a batch, and to a start alone."""
    first = rounds[0]
    for tier, parts in first["tiers"].items():
        for part in parts if tier != "none" else ():
            what = f"{first['students']} submissions and start" if part == "batch" else "start only"
            more = [(one["tiers"][tier][part][0][1] / one["tiers"]["none"][part][0][1] - 1) * 100 for one in rounds]
            yield f"CPU time that the sandbox adds, {tier}", what, "% of CPU", more


def of_classes(rounds: list[list[dict[str, Any]]]) -> Iterator[Row]:
    """Yield the cost of each class, of one more submission between two classes, and of the start."""
    classes = [list(of) for of in zip(*rounds, strict=True)]
    for of in classes:
        yield from _of_a_class(of)
    for fewer, more in pairwise(classes):
        what = f"from {fewer[0]['students']:,} to {more[0]['students']:,} submissions"
        for clock, unit in (("seconds", "s"), ("cpu", "s of CPU")):
            slopes = [
                (n[clock]["first"] - m[clock]["first"]) / (n["students"] - m["students"])
                for m, n in zip(fewer, more, strict=True)
            ]
            starts = [m[clock]["first"] - m["students"] * slope for m, slope in zip(fewer, slopes, strict=True)]
            yield "time of one more submission", what, unit, slopes
            if fewer is classes[0]:  # only the first class starts with an empty cache, so only it measures the start
                yield "time of the start: the rest of the smaller class's time", what, unit, starts
        grown = [n["parent_mib"]["first"] / m["parent_mib"]["first"] for m, n in zip(fewer, more, strict=True)]
        yield "memory of the parent, in multiples of the smaller class", what, "x", grown


def _of_a_class(of: list[dict[str, Any]]) -> Iterator[Row]:
    students = of[0]["students"]
    what = f"class of {students:,}, {of[0]['duplicates']:.0%} handed in twice"
    yield "time of the first grading", what, "s a submission", [one["seconds"]["first"] / students for one in of]
    yield "CPU time of the first grading", what, "s a submission", [one["cpu"]["first"] / students for one in of]
    for run, said in (("another tolerance", "a changed tolerance of one check"), ("unchanged", "no change")):
        if run in of[0]["seconds"]:
            for clock, end in (("seconds", ""), ("cpu", ", by CPU time")):
                ratios = [one[clock]["first"] / one[clock][run] for one in of]
                yield f"speed-up of a regrade after {said}{end}", what, "x", ratios
    yield "largest memory of the parent", what, "MiB", [max(one["parent_mib"].values()) for one in of]
    yield "size of the cache", what, "MiB", [one["store_mib"] for one in of]
    yield "size of the class page", what, "MiB", [one["class_page_mib"] for one in of]


def of_the_limit(limits: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield the milliseconds of each part of the limit, and the distance of the command from it."""
    what = f"{limits[0]['students']} students, {limits[0]['distinct']} distinct sources"
    yield "lower bound: each step once, by hand", what, "s of CPU", [one["limit"][0] for one in limits]
    for part, (_, times) in limits[0]["parts"].items():
        each = [one["parts"][part][0] / one["parts"][part][1] * 1e3 for one in limits]
        yield f"part of the lower bound: {part} (done {times} times)", what, "ms each", each
    steady = [one["second_half"][0][1] / one["second_half"][0][0] for one in limits]
    yield "second half of a class, in multiples of the lower bound", what, "x", steady
    yield (
        "grade minus an unchanged run, in multiples of the lower bound",
        what,
        "x",
        [o["grade"][0] / o["limit"][0] for o in limits],
    )


def of_the_course(rounds: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield the CPU seconds of a perfect submission by role and by hand, then the time of ``verify``."""
    what = f"{rounds[0]['exercises']} exercises"
    yield "a perfect submission, with an empty cache and new workers", what, "s", [one["cold"][0] for one in rounds]
    for hosts in rounds[0]["warm"]:
        of = [found for one in rounds for found in one["warm"][hosts]]
        yield f"a perfect submission, warm workers, {hosts} at a time", what, "s", [found["seconds"] for found in of]
        for role in ("parent", "trace", "run"):
            yield (
                f"a perfect submission, warm workers, {hosts} at a time: part {role}",
                what,
                "s of CPU",
                [found[role] for found in of],
            )
    hands = [found for one in rounds for found in one["by hand"]]
    yield "a perfect submission by hand: all parts", what, "s of CPU", [sum(found.values()) for found in hands]
    for part in hands[0]:
        yield f"a perfect submission by hand: part {part}", what, "s of CPU", [found[part] for found in hands]
    if all("verify" in one for one in rounds):
        yield "verify --no-store -j 2: time", what, "s", [one["verify"][0] for one in rounds]
        yield "verify --no-store -j 2: CPU time", what, "s of CPU", [one["verify"][1] for one in rounds]


def of_nbgrader(rounds: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield ours against stock nbgrader, from the start of each command."""
    books = [one["seconds"] for one in rounds]
    what = f"class of {rounds[0]['students']}"
    stock, *ours = books[0]
    yield stock, f"class of {rounds[0]['stock_students']}", "s a submission", [b[stock] for b in books]
    for path in ours:
        yield f"{path}: speed-up over {stock}", what, "x", [b[stock] / b[path] for b in books]


def of_otter(rounds: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield otter-grader's times and, if ours were measured, ours against them."""
    otters = [statistics.mean(one["otter"]["seconds"]) for one in rounds]
    first = rounds[0]["otter"]
    yield f"otter run, otter-grader {first['version']}", f"{len(first['seconds'])} notebooks", "s a submission", otters
    if "nbgrader" in rounds[0]:
        books = [one["nbgrader"]["seconds"] for one in rounds]
        for path in list(books[0])[1:]:
            ratios = [otter / b[path] for otter, b in zip(otters, books, strict=True)]
            yield f"{path}: speed-up over otter run", f"class of {rounds[0]['nbgrader']['students']}", "x", ratios


def page(found: dict[str, Any]) -> str:
    """Return the page. Numbers are medians, then the least and the most of the rounds."""
    lines = [
        "# Performance",
        "",
        f"`bench/performance.py` (`make bench`) writes this page. Number of rounds: {len(found['rounds'])}. The docstring of each script in `bench/` describes",
        "what it compares.",
        "",
        f"- Measured on {found['machine']}.",
        "- Each ratio (unit x) compares two measurements of one round.",
        "- CPU seconds are the sum over all processes. On a machine with other load, CPU seconds are more reliable than wall time.",
        "- The graded module is `03_matmuls`. The grader grades two submissions at a time.",
        "- Measurements of a class start with an empty cache. Do not compare classes that have different shares of submissions handed in twice.",
        "- A speed-up is how many times as fast a run is. A regrade is compared with the first grading of its class.",
        "- *By hand* means one process without isolation that does only the work itself, such as one sharded matmul for `check`.",
        "",
        "[Where the time goes](where-time-goes.md) explains the figures that are further from their lower bound than we would like.",
        "",
        *(line for note in found.get("notes", []) for line in (note, "")),
        "| figure | measured on | median of the rounds | smallest to largest | unit |",
        "|---|---|---|---|---|",
    ]
    for what, of, unit, values in rows(found["rounds"]):
        middle, least, most = statistics.median(values), min(values), max(values)
        lines.append(f"| {what} | {of} | {middle:,.3g} | {least:,.3g} to {most:,.3g} | {unit} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--students", type=int, default=200, help="in the class for nbgrader")
    parser.add_argument("--load", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--otter", type=int, default=10, help="notebooks for otter-grader, which is slow")
    parser.add_argument("--from", dest="source", type=Path)
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "bench.json")
    args = parser.parse_args()
    if args.source:
        found = json.loads(args.source.read_text())
    else:
        machine = f"{os.cpu_count()} shared cores, {platform.system()}, Python {platform.python_version()}, JAX {version('jax')}"
        found = {
            "machine": machine,
            "rounds": [measure(args.students, args.load, args.otter) for _ in range(args.rounds)],
        }
        args.json.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(args.json, json.dumps(found, indent=2) + "\n")
    text = page(found)
    write_atomic(PAGE, text)
    print(text)


if __name__ == "__main__":
    main()
