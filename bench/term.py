"""Grade a whole term of a large class, and check every sum of points.

The term has three modules, killed graders, a changed late policy, resubmissions, extensions, swapped files and
overrides.

    python bench/term.py [--students 500] [--seed 1] [--isolation auto] [--jobs 2] [--place FOLDER]

A made-up course keeps the run short. Each grading is killed (kill -9) in the middle and started again. Then
``bench/term_sums.py``, which shares no code with the grader, computes every sum again. The exit code is 1 if any sum
differs.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT)]

from grader.course.loading import Course, load_course  # noqa: E402
from tests.made_up import made_up  # noqa: E402

MODULES = ("01_gather", "02_more", "03_last")
EXERCISES = ("x1_gather", "x2_more", "x3_last")
DEADLINES = ("2026-09-01T12:00:00+00:00", "2026-10-01T12:00:00+00:00", "2026-11-01T12:00:00+00:00")
BEFORE = {"percent_per_day": 10, "grace_minutes": 15, "at_most_percent": 50}
AFTER = {"percent_per_day": 20, "grace_minutes": 30, "at_most_percent": 60, "free_days": 2}
GATHER = "import jax\nfrom jax.sharding import PartitionSpec as P\ndef gather(a, *, mesh):\n    {}\n"
LOCAL = "return jax.shard_map({}, mesh=mesh, in_specs=P('x'), out_specs=P(), check_vma=False)(a)"
ALL = "jax.lax.all_gather(a, 'x', axis=0, tiled=True)"
WORKS = {  # name -> the code of a submission, and its points in two checks: "value" and "traffic"
    "right": (GATHER.format(LOCAL.format(f"lambda a: {ALL}")), [1, 1]),
    "twice": (GATHER.format(LOCAL.format(f"lambda a: jax.lax.pmax({ALL}, 'x')")), [1, 0]),
    "zeros": (GATHER.format("return jax.numpy.zeros(a.shape)"), [0, 0]),
    "raises": (GATHER.format("raise ValueError(a)"), [0, 0]),
}
MINUTES = (-3000, -10, 14, 16, 29, 31, 1454, 1456, 3000, 4400, 6000, 9000, 20000)  # after the deadline


class Term:
    """A course, its class and the points of each submission, in one folder."""

    def __init__(self, place: Path, students: int, seed: int) -> None:
        self.place, self.rng = place, random.Random(f"term {seed}")
        self.students = [f"s{number:03}" for number in range(students)]
        self.absent = [f"ghost{number}" for number in range(max(1, students // 50))]
        self.truth: dict[str, Any] = {s: {"points": {}, "times": {}} for s in self.students}
        self.extension = dict.fromkeys([*self.students, *self.absent], "")
        self.overrides: list[dict[str, Any]] = []
        self._make_course()
        self.write(BEFORE)
        course = self.course
        self.answers = [self._answer(course, name) for name in EXERCISES]

    def _make_course(self) -> None:
        made_up(self.place / "course")
        first = self.place / "course" / "solutions" / MODULES[0] / f"{EXERCISES[0]}.py"
        for module, name in zip(MODULES[1:], EXERCISES[1:], strict=True):
            (self.place / "course" / "solutions" / module).mkdir()
            (self.place / "course" / "solutions" / module / f"{name}.py").write_text(first.read_text())

    @property
    def course(self) -> Course:
        return load_course(self.place / "course" / "course.yaml")

    @staticmethod
    def _answer(course: Course, name: str) -> float:
        (question,) = course.exercise(name).questions.values()
        return 1e6 * question.fn(**course.params(question))

    def write(self, late: dict[str, Any]) -> None:
        """Write the course with the late policy ``late``, and the other files of the term.

        The other files are the roster, the record of times, the overrides, and the points and times that the grades must
        show.
        """
        modules = [
            {"id": module, "title": module, "exercises": [name], "weight": weight, "deadline": deadline}
            for module, name, weight, deadline in zip(MODULES, EXERCISES, (1, 2, 1), DEADLINES, strict=True)
        ]
        course = {"name": "term", "seed": "a-secret-seed", "late": late, "modules": modules}
        (self.place / "course" / "course.yaml").write_text(json.dumps(course))
        self._table("roster.csv", ["id", "extension"], self.extension.items())
        (self.place / "class").mkdir(exist_ok=True)
        times = ((s, at, m) for s, one in self.truth.items() for m, at in one["times"].items())
        self._table("class/submitted.csv", ["student", "time", "module"], times)
        (self.place / "out").mkdir(exist_ok=True)
        (self.place / "out" / "overrides.yaml").write_text(json.dumps({"overrides": self.overrides}))
        handed_in = {student: one for student, one in self.truth.items() if one["times"]}
        (self.place / "truth.json").write_text(json.dumps(handed_in))

    def _table(self, name: str, header: list[str], rows: Any) -> None:
        with open(self.place / name, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([header, *rows])

    def hand_in(self, student: str, number: int, to: Path | None = None) -> None:
        """Write a random submission of a module for a student, and record its time and its points."""
        text, points = WORKS[self.rng.choice([*WORKS, "right"])]
        right = self.rng.random() < 0.6
        answer = self.answers[number] * (1 if right else 3)
        at = datetime.fromisoformat(DEADLINES[number]) + timedelta(minutes=self.rng.choice(MINUTES))
        own = self.truth[student]
        own["points"][MODULES[number]] = [*points, int(right)]
        own["times"][MODULES[number]] = at.isoformat()
        to = to or self.place / "class" / student / f"{EXERCISES[number]}.py"
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(f"# take {self.rng.randrange(3)}\n{text}\ngather_time = {answer!r}\n")

    def some(self, share: float) -> list[str]:
        return self.rng.sample(self.students, max(2, round(share * len(self.students))))

    def swap(self) -> None:
        """Let two students upload each other's zip of the last module."""
        one, other = self.students[0], self.students[-1]
        for student, name in ((one, other), (other, one)):
            file = self.place / "class" / student / f"{EXERCISES[2]}.py"
            self.hand_in(student, 2, file)
            with zipfile.ZipFile(file.with_name(f"{name}_{MODULES[2]}.zip"), "w") as archive:
                archive.write(file, file.name)
            file.unlink()

    def override(self) -> None:
        """Give some students points by hand, for a check or an exercise."""
        for student in self.some(0.05):
            check, points = self.rng.choice([(f"{EXERCISES[0]}/value", 0.5), (EXERCISES[0], 2.5)])
            self.overrides.append({"student": student, "check": check, "points": points, "by": "TA", "reason": "asked"})


def done_since(out: Path, began: float) -> int:
    """Return how many reports a running grader has stored in the database or written to files so far."""
    written = sum(path.stat().st_mtime > began for path in (out / "reports").glob("*.json"))
    try:
        with closing(sqlite3.connect(f"file:{out / 'grades.sqlite'}?mode=ro", uri=True)) as file:
            return max(written, file.execute("SELECT count(*) FROM made").fetchone()[0])
    except sqlite3.Error:
        return written


def grade(place: Path, more: list[str], kill_after: int) -> str:
    """Grade the class with two runs: the first is killed when ``kill_after`` reports are done, the second completes.

    Only the first run gets ``--roster``, because the grader keeps a copy of the roster even if the run is killed.
    """
    words = [
        sys.executable,
        "-m",
        "grader",
        "grade",
        str(place / "class"),
        "--out",
        str(place / "out"),
        "--json",
        *more,
    ]
    words += ["--course", str(place / "course" / "course.yaml")]
    env = os.environ | {"PYTHONPATH": str(ROOT), "SHARDLINGS_CACHE": str(place / "cache"), "TMPDIR": str(place / "tmp")}
    (place / "tmp").mkdir(exist_ok=True)
    began, killed = time.time(), "not killed"
    with open(place / "log.txt", "a") as log:
        first = subprocess.Popen(
            [*words, "--roster", str(place / "roster.csv")], cwd=ROOT, env=env, stdout=log, stderr=log
        )
        while first.poll() is None:
            if (reports := done_since(place / "out", began)) >= kill_after:
                first.send_signal(signal.SIGKILL)
                killed = f"killed at {reports} reports"
            time.sleep(0.02)
        done = subprocess.run(words, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=log, text=True)
    if done.returncode:
        sys.exit(f"grade ended with {done.returncode}: see {place / 'log.txt'}")
    (place / "last.json").write_text(done.stdout)
    return f"{killed}, {time.time() - began:.0f} s"


def two_modules(term: Term) -> None:
    """Nearly all students hand in two modules; some have extensions."""
    for student in term.students:
        term.hand_in(student, 0)
        if term.rng.random() < 0.9:
            term.hand_in(student, 1)
    for student in term.some(0.1):
        term.extension[student] = term.rng.choice(["2d", "36h", f"{MODULES[1]}=3d", f"1d; {MODULES[0]}=12h"])


def last_module(term: Term) -> None:
    """Nearly all students hand in the last module, some hand in the first module again, and some get an extension."""
    for student in term.students[1:-1]:
        if term.rng.random() < 0.9:
            term.hand_in(student, 2)
    term.swap()
    for student in term.some(0.1):
        term.hand_in(student, 0)
    for student in term.some(0.05):
        term.extension[student] = "4d"


STAGES = (
    ("two modules", two_modules, BEFORE),
    ("another late policy, overrides", Term.override, AFTER),
    ("the last module, resubmissions, extensions, swapped files", last_module, AFTER),
)


def run(place: Path, students: int, seed: int, more: list[str]) -> int:
    term = Term(place, students, seed)
    for what, change, late in STAGES:
        change(term)
        term.write(late)
        print(f"{what}: {grade(place, more, max(1, students // 8))}", flush=True)
        added = subprocess.run([sys.executable, str(ROOT / "bench" / "term_sums.py"), str(place)], check=False)
        if added.returncode:
            return 1
    summary = json.loads((place / "out" / "summary.json").read_text())
    swapped = [one["student"] for one in summary["attention"] if "check whose submission this is:" in one["reason"]]
    print(f"swapped files are named of {', '.join(swapped)}; temporary folders left: {len(os.listdir(place / 'tmp'))}")
    return int(swapped != [term.students[0], term.students[-1]])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--isolation", default="auto")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--place", type=Path, help="an empty folder that keeps everything")
    args = parser.parse_args()
    more = ["--isolation", args.isolation, "-j", str(args.jobs)]
    if args.place:
        return run(args.place.resolve(), args.students, args.seed, more)
    with tempfile.TemporaryDirectory() as place:
        return run(Path(place), args.students, args.seed, more)


if __name__ == "__main__":
    sys.exit(main())
