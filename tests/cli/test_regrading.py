"""The grading of a term: lateness, extensions, points by hand, changes by a regrade, an appeal's page."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from grader.batch.folder import Folder
from grader.cli.regrading import Rosters, StaffNotes, keep_roster, kept_roster, make_in_class, spelling_on_file
from grader.common.result import ExerciseReport, Report
from grader.course.finding import find_course
from grader.intake.submission import ReviewCase
from grader.integrations.roster import Roster
from grader.reports.summary import Counts
from grader.reports.tables import ASIDE, NOT_GRADED, NOTHING, write_grades_csv
from grader.reports.whole_class import WholeClass
from tests.commands import GOOD, ROOT, one_line, shardlings
from tests.reports.example_reports import exercise, make_report, result

EXERCISE = "c1_no_communication"
GRADE = ("grade", "class", "--out", "out", "--isolation", "none")
LATE = "    deadline: 2026-11-01T12:00:00+00:00\nlate: {percent_per_day: 10, grace_minutes: 15}\n"


@pytest.fixture
def term(small: Path) -> Path:
    """Return a course with a late policy, a class of three, and its roster."""
    (small / "course.yaml").write_text((small / "course.yaml").read_text() + LATE)
    for student in ("ada", "bob", "eve"):
        (small / "class" / student).mkdir(parents=True)
        shutil.copy(ROOT / GOOD, small / "class" / student)
    (small / "class" / "submitted.csv").write_text(
        "student,time\nada,2026-11-01T12:10Z\nbob,2026-11-02T14:00Z\neve,2026-11-02T14:00Z\n"
    )
    (small / "roster.csv").write_text("id,name,email,section,extension\nAda,A,,,\nbob,B,,,\neve,E,,,2d\nzoe,Z,,,\n")
    return small


def grades(term: Path) -> dict[str, dict[str, str]]:
    with open(term / "out" / "grades.csv", encoding="utf-8", newline="") as file:
        return {line["student"]: line for line in csv.DictReader(file)}


def test_grades_csv_lists_missing_and_ungraded_submissions(tmp_path: Path) -> None:
    """A submission that was set aside has a remark in ``grades.csv``, with and without a roster and a report."""
    (tmp_path / "roster.csv").write_text("id,name\nada,A\nbob,B\ncy,C\nzoe,Z\n")
    roster = Roster(tmp_path / "roster.csv")
    known = Rosters(roster, roster).remarks(["Ada", "cy"], {"bob": "bob is there twice", "cy": "", "readme.py": ""})
    assert known == {"zoe": NOTHING, "bob": NOT_GRADED, "readme.py": NOT_GRADED, "cy": ASIDE}
    assert Rosters(None, None).remarks(["ada"], ["ada", "bob"]) == {"bob": NOT_GRADED, "ada": ASIDE}
    reports = [make_report(exercise([result()]), student=name) for name in ("Ada", "cy")]
    write_grades_csv(WholeClass(reports), reports, tmp_path / "grades.csv", known)
    with open(tmp_path / "grades.csv", encoding="utf-8", newline="") as file:
        rows = {row["student"]: row["remarks"] for row in csv.DictReader(file)}
    assert rows == {"Ada": "", **known}


@pytest.mark.slow
def test_a_terms_commands_apply_lateness_overrides_regrades_and_appeals(term: Path) -> None:
    done = shardlings(*GRADE, "--roster", "roster.csv", cwd=term)
    assert done.returncode == 0, done.stderr
    assert "these students on the roster have no submission (0 points in grades.csv): zoe" in done.stderr
    first = grades(term)
    full, of = float(first["Ada"]["earned"]), first["Ada"]["points"]
    assert [float(first[who]["earned"]) for who in ("Ada", "bob", "eve", "zoe")] == [
        full,
        round(0.8 * full, 6),
        full,
        0,
    ]
    assert f"handed in 26 h late: 2 x 10 % of {full:g}" in first["bob"]["remarks"]
    assert first["zoe"]["remarks"] == "nothing handed in" and first["zoe"]["points"] == first["bob"]["points"]
    assert "handed in 26 h late" in (term / "out" / "students" / "bob.html").read_text()

    (term / "out" / "overrides.yaml").write_text(
        f"overrides:\n  - {{student: bob, check: {EXERCISE}, points: 1, by: Tom, reason: oral exam}}\n"
    )
    dry = shardlings(*GRADE, "--dry-run", cwd=term)  # the first run's roster still applies, so eve keeps her extension
    assert dry.returncode == 0 and grades(term) == first
    said = f"bob (B): {0.8 * full:g} -> 0.8 of {of} ({round(0.8 - 0.8 * full, 6):g})"
    assert "changes on file: 1 student's score would fall\n" in dry.stdout and said in dry.stdout
    done = shardlings(*GRADE, cwd=term)
    assert done.stdout.index(said) < done.stdout.index("the new reports now replace the earlier ones")
    assert grades(term)["bob"]["earned"] == "0.8" and "set by hand by Tom: oral exam" in grades(term)["bob"]["remarks"]
    assert (term / "out" / "changes.html").is_file()
    shutil.copy(term / "out" / "reports" / "eve.json", term / "out" / "reports" / "eve-old.json")
    (term / "out" / "roster.csv").unlink()
    (term / "out" / "reports" / "eve.json").unlink()
    again = shardlings(*GRADE, cwd=term)
    assert "what changes" not in again.stdout, "the roster is known without its file"
    assert (term / "out" / "roster.csv").read_bytes() == (term / "roster.csv").read_bytes()
    assert (term / "out" / "reports" / "eve.json").is_file()
    assert "so the grader ignores them: eve-old.json; grade these students again, or move the files" in again.stderr
    (term / "out" / "reports" / "eve-old.json").unlink()

    assert shardlings("drop", "out", "bob", cwd=term).stdout.startswith("took bob out of out; the next run writes")
    assert not (term / "out" / "reports" / "bob.json").exists() and not (term / "out" / "bob.html").exists()

    page = shardlings("appeal", "Ada", "local_value", *GRADE[1:], "--html", "appeal.html", cwd=term)
    assert page.returncode == 0, page.stderr
    assert "For staff only" in (term / "appeal.html").read_text() and "shows hidden data" in page.stderr


def test_impossible_options_and_wrong_files_give_one_line_errors(term: Path) -> None:
    exclude = "shardlings: --quiet and --verbose exclude each other; pass one"
    assert one_line(shardlings(*GRADE, "--quiet", "--verbose", cwd=term)) == exclude
    nowhere = shardlings("appeal", "ada", "local_value", *GRADE[1:], "--html", "no/x.html", cwd=term)
    assert "there is no folder no for x.html; make the folder first" in one_line(nowhere)
    (term / "out").mkdir()
    (term / "out" / "overrides.yaml").write_text("overrides:\n  - {student: bob}\n")
    assert "overrides.yaml:2: overrides.0.check: Field required" in shardlings(*GRADE, cwd=term).stderr
    (term / "course.yaml").write_text((term / "course.yaml").read_text().replace("percent_per_day", "percent_a_day"))
    assert "late.percent_a_day: no such field; did you mean 'percent_per_day'?" in one_line(
        shardlings(*GRADE, cwd=term)
    )


def test_a_roster_edited_in_the_folder_replaces_the_stored_one(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("id,extension\nada,1d\n")
    out = tmp_path / "out"
    with Folder(out) as folder:
        keep_roster(folder, Roster(tmp_path / "mine.csv"))
    (out / "roster.csv").write_text("id,extension\nada,2d\n")
    edited = kept_roster(out)
    assert edited is not None and edited.extensions([])("ada")["*"].days == 2
    with Folder(out) as folder:
        keep_roster(folder, edited)
    (out / "roster.csv").unlink()
    kept = kept_roster(out)
    assert kept is not None and kept.extensions([])("ada")["*"].days == 2
    with Folder(out, dry=True) as folder:
        keep_roster(folder, Roster(tmp_path / "mine.csv"))
    assert not (out / "roster.csv").exists()


def test_a_name_in_another_case_is_the_same_student_from_the_first_run_on(tmp_path: Path) -> None:
    assert spelling_on_file(tmp_path, str, ["ada"])("Ada") == "ada"
    assert spelling_on_file(tmp_path, str, ["Zo\u00eb"])("zoe\u0308") == "Zo\u00eb"
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "ADA.json").touch()
    assert spelling_on_file(tmp_path, str)("Ada") == "ADA"
    assert spelling_on_file(tmp_path, str)("a\u034fda") == "ADA", "the names look alike"
    assert spelling_on_file(tmp_path, str, ["wei\u00df"])("weiss") == "weiss", "these are two students"
    for name in ("ann lee", "ann  lee"):
        (tmp_path / "reports" / f"{name}.json").touch()
    assert [spelling_on_file(tmp_path, str)(name) for name in ("ann lee", "ann  lee")] == ["ann lee", "ann  lee"]


def test_a_student_who_was_set_aside_keeps_one_name(tmp_path: Path) -> None:
    """Earlier, one student had two lines: bob, with a submission that was set aside, and Bob, with a later submission."""
    (tmp_path / "roster.csv").write_text("id,email\neve,eve@uni.edu\n")
    with Folder(tmp_path / "out") as folder:
        folder.database.set_cases(
            [
                *(
                    ReviewCase(name, "set aside", (Path(f"{name}.zip"),))
                    for name in ("bob", "Fay", "fay", "dan ", "an n")
                ),
                ReviewCase("Cy", "a document", (Path("cy.pdf"),), graded=True),
            ]
        )
    assert [spelling_on_file(tmp_path / "out", str)(name) for name in ("Bob", "cy", "fay", "Fay")] == [
        "bob",
        "cy",
        "fay",
        "Fay",
    ]
    names = [spelling_on_file(tmp_path / "out", str)(name) for name in ("dan", "an\nn", "An n")]
    assert names == ["dan", "an\nn", "an n"], "a folder that was renamed as the case said, and one that was not"
    in_class = make_in_class(tmp_path / "out", Roster(tmp_path / "roster.csv"))
    assert [in_class(name) for name in ("bob", "eve", "dan")] == [True, True, False]


def test_a_student_with_reports_under_two_names_needs_review(tmp_path: Path) -> None:
    """The reports ada and ada@uni.edu belong to one student: a run without a roster uses the folder's name."""
    (tmp_path / "roster.csv").write_text("id,name,email\nada,Ada Lee,ada@uni.edu\nbob,Bob Ray,bob@uni.edu\n")
    roster = Roster(tmp_path / "roster.csv")
    notes = StaffNotes(find_course(ROOT), Rosters(roster, roster))
    for student in ("ada", "ada@uni.edu", "bob@uni.edu"):
        notes.add(make_report(exercise([result("v", points=2)]), student=student))
    again = "grade all folders of this student again with the roster"
    mend = f"{again}, then remove this report: shardlings drop OUT ada@uni.edu"
    assert [*notes.attention([])] == [("ada@uni.edu", f"is the same student as ada on the roster; {mend}")]


def test_a_left_out_bonus_needs_no_review(tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text("id\nada\nbob\n")
    roster = Roster(tmp_path / "roster.csv")
    plain = exercise([result("v", points=2)])
    more = exercise([result("w", points=3)], exercise="d1_more", module="04_more")
    bonus = exercise([result("x", points=4)], exercise="d2_bonus", module="04_more", extension=True)
    ada, bob = make_report(plain, student="ada"), make_report(plain, bonus, student="bob")

    def told_of(*reports: Report) -> list[tuple[str, str]]:
        notes = StaffNotes(find_course(ROOT), Rosters(roster, roster))
        for report in reports:
            notes.add(report)
        return [*notes.attention([])]

    assert told_of(ada, bob) == []
    left = exercise([result("w", "failed", points=3)], exercise="d1_more", module="04_more", handed_in=False)
    unused = exercise(
        [result("x", "failed", points=4)], exercise="d2_bonus", module="04_more", extension=True, handed_in=False
    )
    one = make_report(plain, left, unused, student="ada")
    assert told_of(one, make_report(plain, more, bonus, student="bob")) == [
        ("", "1 of 2 students has not handed in 04_more: ada")
    ]


@pytest.mark.parametrize("lists", [True, False], ids=["roster", "no roster"])
def test_students_without_a_module_are_one_line(lists: bool, tmp_path: Path) -> None:
    """A report has all exercises of the modules that its run grades. Reports of earlier runs may lack the second module."""
    (tmp_path / "roster.csv").write_text("id,name\ns0,Ada\ns1,Ann Lee\n")
    roster = Roster(tmp_path / "roster.csv") if lists else None
    plain = exercise([result("v", points=2)])
    more = exercise([result("w", points=3)], exercise="d1_more", module="04_more")
    left = exercise([result("w", "failed", points=3)], exercise="d1_more", module="04_more", handed_in=False)

    def lines(*exercises: list[ExerciseReport]) -> list[str]:
        notes, counts = StaffNotes(find_course(ROOT), Rosters(roster, None)), Counts()
        for i, of in enumerate(exercises):
            report = make_report(*of, student=f"s{i}", notes=["c3 (1).py is graded as c3.py"] if i % 2 else [])
            notes.add(report)
            counts.add(report)
        told = [(student, reason) for student, reason in notes.attention([]) if "roster" not in reason]
        attention = counts.summary(also=told).attention
        assert {(one.student, one.kind) for one in attention} == {("", "class")}
        return [one.reason for one in attention]

    first = "s1 (Ann Lee)" if lists else "s1"
    line = f"7 of 8 students have not handed in 04_more: {first}, s2, s3, s4, s5 and 2 more"
    assert lines([plain, more], *[[plain, left]] * 7) == [line]
    assert lines([more], *[[left]] * 7) == [line]
    worth = "does not include the module's 3 points"
    assert lines([plain, more], *[[plain]] * 7) == [f"{line}; the maximum score {worth}"]
    assert lines([plain, more], [plain], *[[plain, left]] * 6) == [f"{line}; the maximum score of {first} {worth}"]
