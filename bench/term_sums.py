"""Add up every sum of a class again, from plain JSON and CSV, without the grader's code.

    python bench/term_sums.py PLACE

``bench/term.py`` writes the folder PLACE. Its ``truth.json`` has the points of each student's files, and when they were
submitted. The script prints one line for each difference, then the number of sums compared. It exits with 1 if any sum
differs.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

CHECKS = ("value", "traffic", "gather_time")


class Sums:
    """Compares sums, counts the comparisons, and collects the differences."""

    def __init__(self) -> None:
        self.compared, self.differ = 0, list[str]()

    def equal(self, what: str, found: Any, wanted: float) -> None:
        self.compared += 1
        tolerance = 5.1e-5 if isinstance(found, str) else 1e-6  # CSV cells have four decimals
        if found == "" or not abs(float(found) - wanted) < tolerance:
            self.differ.append(f"{what}: {found}, not {wanted}")


def table(path: Path) -> dict[str, dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return {row.get("student") or row["id"]: row for row in csv.DictReader(file)}


def hours_of(cell: str, module: str) -> float:
    """Return the hours of a module's extension, from a cell such as ``01_gather=2d; 36h``.

    An extension for the module replaces the extension for all modules.
    """
    found: dict[str, float] = {}
    for part in filter(None, (one.strip() for one in cell.split(";"))):
        name, _, span = part.rpartition("=")
        found[name] = float(span[:-1]) * (24 if span.endswith("d") else 1)
    return found.get(module, found.get("", 0.0))


def penalties(course: dict, earned: dict[str, float], times: dict[str, str], cell: str) -> dict[str, float]:
    """Return the late penalty of each module, in points.

    Free days are used in the order of the deadlines, but only to save points.
    """
    late, found = course["late"], {}
    free = late.get("free_days", 0)
    for module in sorted((m for m in course["modules"] if m["id"] in times), key=lambda m: m["deadline"]):
        over = datetime.fromisoformat(times[module["id"]]) - datetime.fromisoformat(module["deadline"])
        minutes = over.total_seconds() / 60 - 60 * hours_of(cell, module["id"]) - late["grace_minutes"]
        days = max(0, math.ceil(minutes / 1440))
        percent = [min(late["at_most_percent"], late["percent_per_day"] * (days - n)) for n in range(days + 1)]
        best = min(percent[: min(days, free) + 1])
        spent = percent.index(best)
        free -= spent
        found[module["id"]] = round(earned[module["id"]] * best / 100, 6)
    return found


def worth(exercise: str, weight: float, points: list[float], overrides: list[dict]) -> dict[str, float]:
    """Return each check's points. An override of the check replaces the points that the submission earns.

    The key "" has the points of the whole exercise.
    """
    found = {check: weight * one for check, one in zip(CHECKS, points, strict=True)}
    by_hand = {one["check"]: one["points"] for one in overrides}
    found |= {check: by_hand[f"{exercise}/{check}"] for check in CHECKS if f"{exercise}/{check}" in by_hand}
    return found | {"": by_hand.get(exercise, sum(found.values()))}


def compare_student(sums: Sums, place: Path, student: str, truth: dict, course: dict, line: dict, cell: str) -> float:
    """Compare all sums of one student, in the report and in grades.csv. Return the total."""
    report = json.loads((place / "out" / "reports" / f"{student}.json").read_text())
    given = json.loads((place / "out" / "overrides.yaml").read_text())["overrides"]
    own, earned = [one for one in given if one["student"] == student], {}
    for module in course["modules"]:
        (name,) = module["exercises"]
        wanted = worth(name, module["weight"], truth["points"].get(module["id"], [0, 0, 0]), own)
        (exercise,) = [e for e in report["exercises"] if e["exercise"] == name]
        for result in exercise["results"]:
            sums.equal(f"{student} {name}/{result['name']}", result["earned"], wanted[result["name"]])
        sums.equal(f"{student} {name}", exercise["earned"], wanted[""])
        sums.equal(f"{student} {name} in grades.csv", line[name], wanted[""])
        earned[module["id"]] = wanted[""]
    off = penalties(course, earned, truth["times"], cell)
    for one in report["hand_ins"]:
        sums.equal(f"{student} penalty of {one['module']}", one["penalty"], off.pop(one["module"]))
    if off:
        sums.differ.append(f"{student}: no time of {', '.join(off)}")
    penalty = sum(one["penalty"] for one in report["hand_ins"])
    total = round(sum(earned.values()) - penalty, 6)
    most = sum(3 * module["weight"] for module in course["modules"])
    for where, one in (("report", report), ("grades.csv", line)):
        sums.equal(f"{student} earned in {where}", one["earned"], total)
        sums.equal(f"{student} points in {where}", one["points"], most)
        sums.equal(f"{student} pending in {where}", one["pending"], 0)
    return total


def main(place: Path) -> int:
    sums, totals = Sums(), dict[str, float]()
    course, truth = (json.loads((place / name).read_text()) for name in ("course/course.yaml", "truth.json"))
    grades, roster = table(place / "out" / "grades.csv"), table(place / "roster.csv")
    if grades.keys() != roster.keys():
        sums.differ.append(f"other students in grades.csv: {sorted(grades.keys() ^ roster.keys())}")
    for student in roster.keys() & grades.keys():
        if student in truth:
            cell = roster[student]["extension"]
            totals[student] = compare_student(sums, place, student, truth[student], course, grades[student], cell)
        else:
            sums.equal(f"{student}, who handed in nothing", grades[student]["earned"], 0)
    last: dict[str, float] = {}
    if (changes := place / "out" / "changes.csv").is_file():
        with open(changes, encoding="utf-8", newline="") as file:
            for row in (row for row in csv.DictReader(file) if row["what"] == "score"):
                sums.equal(
                    f"{row['student']} before a change", row["before"], last.get(row["student"], float(row["before"]))
                )
                last[row["student"]] = float(row["after"])
    for student, after in last.items():
        sums.equal(f"{student} after the last change", str(after), totals[student])
    print(*sums.differ[:20], sep="\n", end="\n" if sums.differ else "")
    mean = sum(totals.values()) / len(totals)
    print(f"{sums.compared} sums of {len(totals)} students compared, {len(sums.differ)} differ; mean {mean:.4f}")
    return 1 if sums.differ else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
