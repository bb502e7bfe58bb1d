"""Find out whether a change of the code changes a report of the examples or of the hostile corpus (the attacks).

    python bench/same_reports.py grade CHECKOUT OUT     grade examples and corpus with the code of a checkout
    python bench/same_reports.py compare OUT OTHER      print a line for each difference; exit with 1 if there is any

The comparison skips digests that depend on the grader's own code: the report's ``fingerprint``, and the key ``grader``
in each exercise's ``basis``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def grade(checkout: Path, out: Path) -> None:
    env = os.environ | {"PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    # The same path in each run, because the reports are compared and contain paths.
    place = Path(tempfile.gettempdir()) / "same-reports"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(checkout / "tests" / "submissions" / "hostile", place / "hostile")
    for file in (place / "hostile").rglob("*.py"):
        text = file.read_bytes()
        file.write_bytes(text.replace(b"@TARGET@", str(place / "target").encode()).replace(b"@PORT@", b"9"))
    asked = {
        "examples": [checkout / "examples" / "submissions", "--course", checkout / "course.yaml", "-j", "2"],
        "hostile": [
            place / "hostile", checkout / "tests" / "submissions" / "hostile_course" / "honest",
            "--course", checkout / "tests" / "submissions" / "hostile_course", "-j", "6",
        ],
    }  # fmt: skip
    for name, words in asked.items():
        command = [sys.executable, "-m", "grader", "grade", *map(str, words), "--out", str(out / name), "--json"]
        done = subprocess.run(command, cwd=checkout, env=env, capture_output=True, text=True)
        print(f"{name}: exit code {done.returncode}", *done.stderr.splitlines()[-3:], sep="\n  ")
    shutil.rmtree(place)


def differences(out: Path, other: Path) -> Iterator[str]:
    for name in ("examples", "hostile"):
        mine, theirs = ({p.name: _report(p) for p in (o / name / "reports").glob("*.json")} for o in (out, other))
        yield from (f"{name}/{file}: only in one" for file in sorted(mine.keys() ^ theirs.keys()))
        yield from (f"{name}/{file}: {why}" for file in sorted(mine.keys() & theirs.keys())
                    for why in _first_difference(mine[file], theirs[file], ""))  # fmt: skip
        print(f"{name}: {len(mine)} and {len(theirs)} reports")
        if not mine:
            yield f"{name}: no reports"


def _report(path: Path) -> dict[str, Any]:
    report = json.loads(path.read_text(encoding="utf-8"))
    del report["fingerprint"]
    for exercise in report["exercises"]:
        exercise["basis"].pop("grader", None)
    return report


def _first_difference(mine: Any, theirs: Any, where: str) -> list[str]:
    if isinstance(mine, dict) and isinstance(theirs, dict) and mine.keys() == theirs.keys():
        pairs = [(f"{where}.{key}", mine[key], theirs[key]) for key in mine]
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        pairs = [(f"{where}[{i}]", a, b) for i, (a, b) in enumerate(zip(mine, theirs, strict=True))]
    else:
        return [] if json.dumps(mine) == json.dumps(theirs) else [f"{where}: {mine!r:.200} and {theirs!r:.200}"]
    return next((found for place, a, b in pairs if (found := _first_difference(a, b, place))), [])


def main() -> None:
    what, first, second = sys.argv[1], *map(Path, sys.argv[2:])
    if what == "grade":
        grade(first.resolve(), second.resolve())
        return
    found = list(differences(first, second))
    print(*found, f"{len(found)} reports differ", sep="\n")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
