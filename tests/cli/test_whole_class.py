"""One run of ``grade`` over a class: rows, names, cases that need review, and warnings about changed rules."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from grader.batch.changes import COURSE as COURSE_CHANGED
from tests.batch.test_grade import RIGHT
from tests.commands import shardlings
from tests.made_up import COURSE, made_up

ZOE, ZOES_PAGE = "Zoë Müller-Łukasz", "Zo~c3~ab M~c3~bcller-~c5~81ukasz.html"
CLASS = ("s1", "s2", "s3", "s4", "s5", ZOE)
GRADE = ("grade", "class", "class/late", "--out", "out", "--isolation", "none", "-j", "2")


@pytest.fixture
def school(tmp_path: Path) -> Path:
    """Return a folder with a course of two modules and a class. Only student s1 submitted the second module."""
    made_up(tmp_path)
    (tmp_path / "solutions" / "02_more").mkdir()
    shutil.copy(tmp_path / "solutions/01_gather/x1_gather.py", tmp_path / "solutions/02_more/x2_more.py")
    (tmp_path / "course.yaml").write_text(COURSE + "  - {id: 02_more, title: More, exercises: [x2_more]}\n")
    for student in (*CLASS, "twice", "late/twice"):
        (tmp_path / "class" / student).mkdir(parents=True)
        (tmp_path / "class" / student / "x1_gather.py").write_text(RIGHT)
    (tmp_path / "class" / "s1" / "x2_more.py").write_text(RIGHT)
    (tmp_path / "class" / "s2" / "x1_gather.py").rename(tmp_path / "class" / "s2" / "x1.py")
    (tmp_path / "class" / "s3" / "mine.py").write_text(RIGHT)
    return tmp_path


def grades(school: Path) -> dict[str, dict[str, str]]:
    with open(school / "out" / "grades.csv", encoding="utf-8", newline="") as file:
        return {line["student"]: line for line in csv.DictReader(file)}


def summary(school: Path) -> dict[str, Any]:
    return json.loads((school / "out" / "summary.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_one_run_drops_no_student_and_lists_only_cases_for_a_person(school: Path) -> None:
    """Every report has the exercises of both modules, also for students without the second module."""
    done = shardlings(*GRADE, cwd=school, COLUMNS="400")
    assert done.returncode == 3, done.stderr
    rows = grades(school)
    assert {*rows} == {*CLASS, "late", "twice"}
    assert rows["twice"]["remarks"] == "not graded: see Needs review" and rows["twice"]["pending"] == "6"
    assert rows[ZOE]["earned"] == rows["s4"]["earned"] != "0"
    for page in (ZOES_PAGE, f"students/{ZOES_PAGE}"):
        assert ZOE in (school / "out" / page).read_text(encoding="utf-8")
    found = {one["student"]: one["reason"] for one in summary(school)["attention"]}
    line = f"6 of 7 students have not handed in 02_more: {ZOE}, late, s2, s3, s4 and 1 more"
    assert {*found} == {"twice", "late", "s3", ""} and found[""] == line, found
    assert found["late"] == "check whose submission this is: twice names twice"
    assert found["s3"].startswith("nothing was handed in for x2_more; these files are not named after an exercise")
    for text in (done.stdout, (school / "out" / "index.html").read_text(encoding="utf-8")):
        assert text.count("have not handed in 02_more") == 1 and line in text


@pytest.mark.slow
def test_names_and_large_changes_head_the_output_of_a_regrade(school: Path) -> None:
    people = "".join(f'{student},"Name of {student}",B\n' for student in (*CLASS, "twice"))
    (school / "roster.csv").write_text(f"id,name,section\n{people}", encoding="utf-8")
    first = shardlings(*GRADE, "--roster", "roster.csv", cwd=school, COLUMNS="400")
    assert summary(school)["warnings"] == []
    assert (
        "twice (Name of twice, section B)" in first.stdout and f"{ZOE} (Name of {ZOE}, section B), late" in first.stdout
    )
    course = (school / "course.yaml").read_text()
    (school / "course.yaml").write_text(course.replace("    title: Gather\n", "    title: Gather\n    weight: 2\n"))
    quiet = shardlings(*GRADE, "--dry-run", "--quiet", cwd=school, COLUMNS="400")
    assert "warning: Since the last run, causes other than new submissions" in quiet.stderr
    for dry in (["--dry-run"], []):
        done = shardlings(*GRADE, *dry, cwd=school, COLUMNS="400")
        warning, changes = done.stdout.splitlines()[:2]
        assert warning.startswith("Since the last run, causes other than new submissions change the points of 7 of 7")
        assert warning.endswith(f"Causes: {COURSE_CHANGED} (7 students).")
        assert done.stdout.count(warning) == 1
        assert changes.startswith("changes on file: 7 students' scores")
        assert f"  {ZOE} (Name of {ZOE}, section B): 2 -> 4 of 9 (+2)\n" in done.stdout
    page = (school / "out" / "index.html").read_text(encoding="utf-8")
    assert summary(school)["warnings"] == [warning] and warning in page.split("<main")[0]
