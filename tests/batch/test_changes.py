"""Find and explain the changes of a regrade, and keep them in the history."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.batch.changes import (
    COURSE,
    FILE,
    MISSING,
    Change,
    ChangedRules,
    RecordedChange,
    changes_of,
    history_csv,
    read_history,
    with_new_work,
)
from grader.batch.database import FILE as DATABASE
from grader.batch.folder import Folder
from grader.batch.late import Handed
from grader.batch.overrides import Adjustments, Override, with_sums
from grader.cli.regrading import sums_text
from grader.common.result import ByHand, ExerciseReport, HandIn, Report
from grader.course.config import Config, CourseError
from grader.reports.moved import Effect
from grader.reports.summary import summarise
from tests.batch.test_folder import counted
from tests.reports.example_reports import EVIL, a_class, evil_report, exercise, make_report, mixed, result

BASIS = {"submission": "s", "course": "c", "grader": "g", "versions": "jax 1", "isolation": "none"}
LATE = Config.model_validate(
    {
        "name": "c",
        "late": {"percent_per_day": 10},
        "modules": [{"id": "03_matmuls", "title": "M", "deadline": "2026-11-01T00:00:00+00:00"}],
    }
)


def one(*results, basis: dict[str, str] | None = None, **changes) -> Report:
    return make_report(exercise(list(results), basis=BASIS if basis is None else basis), **changes)


def lines(old: Report, new: Report) -> list[str]:
    return [change.line for change in changes_of(old, new)]


PASSED, FAILED = result("value", points=2), result("value", "failed", points=2)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"submission": "t"}, "the submission changed"),
        ({"course": "d"}, "the course changed (exercise, checks or course.yaml)"),
        ({"grader": "h"}, "the grader changed"),
        ({"isolation": "bwrap"}, "the isolation changed"),
        ({"backend": "gpu: 1 x Example 9000"}, "the devices changed"),
        ({"versions": "jax 2"}, "versions changed (jax 1 -> jax 2)"),
        (
            {"submission": "t", "course": "d"},
            "the submission changed, the course changed (exercise, checks or course.yaml)",
        ),
        ({}, "no known cause: submission, course and versions are unchanged; review the check with shardlings appeal"),
    ],
)
def test_a_changed_score_names_the_check_and_the_cause(changed: dict[str, str], why: str) -> None:
    assert lines(one(PASSED), one(FAILED, basis=BASIS | changed)) == [
        f"alice: c3_contracting/value 2 -> 0 of 2: passed -> failed; {why}",
        f"alice: score 2 -> 0 of 2: passed -> failed; {why}",
    ]


def test_a_change_from_a_report_without_a_basis_has_no_known_cause() -> None:
    (first, _) = lines(one(PASSED, basis={}), one(FAILED))
    assert first.endswith(
        "passed -> failed; no known cause: the report on file does not record the course and versions that graded it"
    )


def test_a_change_from_or_to_broken_is_attributed_to_the_grader() -> None:
    (first, _) = lines(one(result("value", "broken", points=2)), one(PASSED))
    assert (
        first
        == "alice: c3_contracting/value 0 -> 2 of 2: broken -> passed; the grader itself failed in the earlier run"
    )


def test_new_and_removed_checks_and_exercises_are_reported() -> None:
    other = result("layout")
    assert lines(one(PASSED, other), one(PASSED))[0].startswith("alice: c3_contracting/layout 1 -> 0 of 0: removed; ")
    assert lines(one(PASSED), one(PASSED, other))[0].startswith("alice: c3_contracting/layout 0 -> 1 of 1: new; ")
    gone = make_report(exercise([PASSED], exercise="c1"), exercise([other], exercise="c2"))
    told = lines(gone, make_report(exercise([PASSED], exercise="c1")))
    assert told[0] == "alice: c2 1 -> 0 of 0: the course no longer has this exercise"
    assert told[1].startswith("alice: score 3 -> 2 of 2: ")


def test_a_first_grading_is_no_change() -> None:
    old = make_report(exercise([PASSED], exercise="c1"))
    new = make_report(exercise([PASSED], exercise="c1"), exercise([PASSED], exercise="e1", module="05_rings"))
    assert lines(old, new) == []


def test_an_exercise_that_becomes_a_bonus_is_reported() -> None:
    """The points are equal, but the percentage differs."""
    plain, bonus = (make_report(exercise([PASSED], extension=e), points=0.0 if e else 2.0) for e in (False, True))
    assert lines(plain, bonus)[0] == "alice: c3_contracting 2 -> 2 of 2: an exercise is now a bonus"
    assert lines(bonus, plain)[0] == "alice: c3_contracting 2 -> 2 of 2: an exercise is no longer a bonus"
    assert lines(plain, bonus)[1:] == [
        "alice: bonus 0 -> 2 of 2: an exercise is now a bonus",
        "alice: score 2 -> 0 of 0: an exercise is now a bonus",
    ]


def test_a_change_reports_score_and_bonus_as_grades_csv_does() -> None:
    """The score is 4 of 4 with a bonus of 2, not 6 of 6."""
    plain, extra = exercise([result("v", points=4)], exercise="c1"), result("w", points=2)
    old = make_report(plain, exercise([extra], exercise="c5", extension=True), points=4.0)
    lost = exercise([result("w", "failed", points=2)], exercise="c5", extension=True, basis={"course": "d"})
    new = make_report(plain, lost, points=4.0)
    *_, bonus, score = changes_of(old, new)
    assert (bonus.what, bonus.before, bonus.after, bonus.of) == ("bonus", 2, 0, 2)
    assert (score.what, score.before, score.after, score.of) == ("score", 4, 4, 4)
    assert sums_text([bonus, score]) == "4 -> 4 of 4 (0); bonus 2 -> 0 of 2 (-2)"


def test_changes_of_points_by_hand_and_penalties_give_their_reasons() -> None:
    hand = Override(student="alice", check="c3_contracting/value", points=1, by="Bob", reason="oral exam")
    by_hand = Adjustments(overrides=[hand]).settle(one(FAILED), None)
    text = "set by hand by Bob: oral exam; the grader gave 0"
    assert lines(one(FAILED), by_hand)[0] == f"alice: c3_contracting/value 0 -> 1 of 2: {text}"
    more = Adjustments(overrides=[hand.model_copy(update={"points": 2})]).settle(one(FAILED), None)
    assert lines(by_hand, more)[0] == f"alice: c3_contracting/value 1 -> 2 of 2: {text}"
    assert (
        lines(by_hand, one(FAILED))[0]
        == "alice: c3_contracting/value 1 -> 0 of 2: no longer set by hand by Bob: oral exam"
    )
    late = Adjustments(
        LATE, times={"alice": {"03_matmuls": Handed(datetime(2026, 11, 2, tzinfo=UTC), "submitted.csv")}}
    )
    words = "handed in 24 h late: 1 x 10 % of 2 = 0.2 points off (time from submitted.csv)"
    assert lines(one(PASSED), late.settle(one(PASSED), None)) == [
        f"alice: late 03_matmuls 0 -> -0.2 of 0: no penalty -> {words}",
        f"alice: score 2 -> 1.8 of 2: no penalty -> {words}",
    ]


STATUS = st.sampled_from(["passed", "failed", "blocked", "broken"])
# Points with two decimals, so that rounding to millionths does not change them.
POINTS = st.integers(0, 1000).map(lambda hundredths: hundredths / 100)
RESULTS = st.lists(st.tuples(STATUS, POINTS), min_size=1, max_size=4)
TIMES = st.datetimes(datetime(2026, 10, 1), datetime(2027, 1, 1), timezones=st.just(UTC))


def drawn(student: str, checks: list[tuple[str, float]]) -> Report:
    return one(*(result(f"check{i}", status, points=p) for i, (status, p) in enumerate(checks)), student=student)


@given(RESULTS, RESULTS)
def test_every_change_of_a_score_is_reported_and_its_parts_add_up(before, after) -> None:
    old, new = drawn("ada", before), drawn("ada", after)
    found = changes_of(old, new)
    if not found:
        assert (old.earned, old.points) == (new.earned, new.points)
        return
    *parts, total = found
    assert (total.before, total.after) == (pytest.approx(old.earned, abs=1e-6), pytest.approx(new.earned, abs=1e-6))
    assert sum(part.by for part in parts) == pytest.approx(total.by, abs=1e-5)


@given(RESULTS, st.none() | TIMES, st.none() | st.floats(0, 10))
@settings(max_examples=40)
def test_a_regrade_without_changes_writes_the_same_bytes(checks, time, points) -> None:
    times = {"ada": {"03_matmuls": Handed(time, "the file's date")}} if time else {}
    hand = [] if points is None else [
        Override(student="ada", check="c3_contracting/check0", points=points, by="B", reason="r")
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        out, first, found = Path(name), {}, {}
        for _ in range(2):
            with Folder(out, adjust=Adjustments(LATE, hand, times=times)) as folder:
                counted(folder, drawn("ada", checks))
                assert folder.changes == []
            found = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
            first = first or found
        assert found.keys() == first.keys()
        assert {p: d for p, d in found.items() if p.name != DATABASE} == {
            p: d for p, d in first.items() if p.name != DATABASE
        }
        later = {"ada": {"03_matmuls": Handed(time + timedelta(days=30), "the file's date")}} if time else {}
        with Folder(
            out, adjust=Adjustments(LATE, hand, times=later)
        ) as folder:  # the submissions were copied and have new dates
            folder.settle()
            assert folder.changes == []


def test_without_policy_and_overrides_the_report_is_the_graders(tmp_path: Path) -> None:
    for plain in (*a_class(), mixed()):
        with Folder(tmp_path / "out", adjust=Adjustments(LATE.model_copy(update={"late": None}))) as folder:
            counted(folder, plain)
            stored = folder.database.stored(plain.student)
            assert stored and stored.counts == plain
            assert (tmp_path / "out" / "reports" / f"{plain.student}.json").read_text() == plain.dumps()


# -- the history -------------------------------------------------------------------------------

CHANGES = [Change("=ada", "c3/value", 2, 0, 2, f"-why {EVIL}"), Change("=ada", "score", 2, 0, 2, "why")]


def test_a_history_is_read_back_unchanged_and_has_no_formula_cells(tmp_path: Path) -> None:
    text = "".join(history_csv(RecordedChange(1, "2026", change) for change in CHANGES))
    (tmp_path / FILE).write_text(text)
    assert not [
        cell for line in csv.reader(io.StringIO(text)) for cell in line if cell[:1] in "=+-@" and cell[1:2].isalpha()
    ]
    assert "".join(history_csv(read_history(tmp_path))) == text


def test_a_history_of_an_older_version_is_continued(tmp_path: Path) -> None:
    """The next regrade has the number after the last one in ``changes.csv``. The earlier lines stay unchanged."""
    before = "".join(history_csv(RecordedChange(1, "2026", change) for change in CHANGES))
    (tmp_path / "reports").mkdir()
    (tmp_path / FILE).write_text(before)
    (tmp_path / "reports" / "alice.json").write_text(one(PASSED).dumps())
    with Folder(tmp_path, when="2027") as folder:
        counted(folder, one(FAILED, basis=BASIS | {"submission": "t"}))
        assert folder.taken.reports == 1 and folder.taken.changes == 2
    after = (tmp_path / FILE).read_text()
    assert after.startswith(before)
    assert [line.split(",")[:3] for line in after.removeprefix(before).splitlines()] == [["2", "2027", "alice"]] * 2


@pytest.mark.parametrize(
    "text", ["", "a,b\n", "regrade,when,student,what,before,after,of,why\nx,,a,b,1,2,3,w\n", "\xff"]
)
def test_a_damaged_history_stops_the_regrade(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text, encoding="latin-1")
    with (
        pytest.raises(
            CourseError, match=r"changes\.csv, the history of changes, was edited; restore it or move it away"
        ),
        Folder(tmp_path),
    ):
        pass


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CourseError, match=r"/file is a file, not a folder of reports$"):
        read_history(tmp_path / "file")


def test_an_unreadable_history_stops_the_regrade(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(CourseError, match=r"changes\.csv, the history of changes, cannot be read: Is a directory$"):
        read_history(tmp_path)


def test_a_dry_run_does_not_create_the_folder(tmp_path: Path) -> None:
    with Folder(tmp_path / "out", dry=True) as folder:
        folder.keep(mixed())
        folder.settle()
        assert [r.student for r in folder.database.reports()] == ["alice"]
        folder.finish(summarise([]))
        assert list(folder.database.reports()) == [], "a copy is rolled back"
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_cannot_be_read_is_listed_as_unread(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder:
        (tmp_path / "reports" / "alice.json").write_text('{"schema_version": 99}')
        folder.keep(mixed())
        folder.settle()
        assert folder.unread == ["alice"]


def test_hostile_text_does_no_harm_on_the_page_of_changes(tmp_path: Path) -> None:
    evil = evil_report().model_copy(update={"student": "eve"})
    with Folder(tmp_path, when="2026-11-22") as folder:
        counted(folder, evil)
    with Folder(tmp_path, when="2026-11-22") as folder:
        counted(folder, evil.model_copy(update={"exercises": []}))
    page = (tmp_path / "changes.html").read_text()
    assert "<script>" not in page and "eve" in page and "For staff only" in page


SAME = {"submission": "s", "files": "f", "course": "c"}


def report(earned: float, basis: dict[str, str] = SAME, status: str = "passed", **changes) -> Report:
    """Return a report with two exercises of 5 points each. The second one has full points."""
    graded = exercise([result("value", status, points=5, earned=earned)], points=5, earned=earned, basis=basis)
    other = exercise([result("v", points=5, earned=5)], points=5, earned=5, exercise="c9", basis=SAME)
    return make_report(graded, other, **changes)


def warnings(pairs: Sequence[tuple[Report | None, Report]]) -> list[str]:
    rules = ChangedRules()
    for old, new in pairs:
        rules.add(old, new)
    return rules.warnings()


def of_ten(number: int, old: Report | None, new: Report) -> list[str]:
    """Return the warnings for a class of ten students. ``number`` students change from ``old`` to ``new``."""
    return warnings([*[(old, new)] * number, *[(report(5), report(5))] * (10 - number)])


def test_a_changed_course_that_moves_many_scores_gives_a_warning() -> None:
    new = report(4, SAME | {"course": "d"})
    assert of_ten(1, report(5), new) == []
    assert of_ten(2, report(5), new) == [
        "Since the last run, causes other than new submissions change the points of 2 of 10 students: the class mean "
        f"is 98%, and 100% without this change. Causes: {COURSE} (2 students)."
    ]


def test_a_change_that_moves_the_mean_far_gives_a_warning() -> None:
    def half(earned: float, grader: str) -> Report:
        return make_report(*report(earned, SAME | {"grader": grader}).exercises[:1])

    others = [(report(5), report(5))] * 9
    assert warnings([(report(5), report(0, SAME | {"grader": "h"})), *others]) == [], "five percentage points"
    (line,) = warnings([(half(5, "g"), half(0, "h")), *others])
    assert "1 of 10 students: the class mean is 90%, and 100% without" in line and "the grader changed" in line


def test_a_student_who_no_longer_counts_as_handed_in_is_a_named_cause() -> None:
    def nothing(grader: str, *, handed_in: bool) -> Report:
        (one, _) = report(0, SAME | {"grader": grader}).exercises
        return make_report(one.model_copy(update={"handed_in": handed_in}))

    (line,) = warnings([(nothing("g", handed_in=True), nothing("h", handed_in=False)), *[(report(5), report(5))] * 3])
    assert "Causes: the grader changed (1 student)." in line


def test_new_submissions_and_first_reports_give_no_warning() -> None:
    assert of_ten(10, report(5), report(0, SAME | {"submission": "t", "course": "d"})) == []
    assert of_ten(10, None, report(0)) == []
    first = make_report(*report(5).exercises[:1])
    assert of_ten(10, first, report(5)) == []


def test_files_that_are_missing_from_the_folders_give_a_warning() -> None:
    """Earlier, a run on the folders of week 2 removed the points of week 1 without a warning."""
    penalty = HandIn(module="03_matmuls", submitted="2026-01-01", source="submitted.csv", penalty=1)
    new, late = report(0, SAME | {"submission": "", "files": ""}), with_sums(report(5, hand_ins=[penalty]))
    assert of_ten(1, report(5), new) == []
    (line,) = of_ten(3, report(5), new)
    assert "of 3 of 10 students: the class mean is 85%, and 100%" in line and f"Causes: {MISSING} (3 students)." in line
    assert "is 85%, and 97% without" in of_ten(3, late, new)[0], "the penalty does not end"


@pytest.mark.parametrize("status", ["broken", "waiting"])
def test_pending_points_give_no_warning_when_they_come(status: str) -> None:
    """Points that become pending, and points by hand that are removed, still give a warning."""
    by_hand = ByHand(by="Bob", reason="read", graded=0, was=0)
    waits = report(0, status=status)
    assert of_ten(10, waits, report(5)) == []
    assert "is 50%, and 100% without this change" in of_ten(10, report(5), waits)[0]
    read = exercise([result("value", status, points=5, earned=3, by_hand=by_hand)], points=5, earned=3, basis=SAME)
    assert of_ten(10, waits, make_report(read, report(5).exercises[1])) == []
    assert of_ten(10, make_report(read, report(5).exercises[1]), waits) != []
    whole = waits.exercises[0].model_copy(update={"earned": 3, "by_hand": by_hand})
    assert of_ten(10, waits, make_report(whole, report(5).exercises[1])) == []


def test_points_set_by_hand_give_a_warning_when_they_come_and_when_they_go() -> None:
    by_hand = ByHand(by="Bob", reason="a gift", graded=0, was=0)
    plain, gift = (
        make_report(exercise([result("v", "failed", points=5)], points=5, earned=earned, basis=SAME, by_hand=of))
        for earned, of in ((0, None), (5, by_hand))
    )
    for old, new in ((plain, gift), (gift, plain)):
        assert "Causes: points were set by hand (2 students)." in of_ten(2, old, new)[0]


def test_a_changed_late_policy_gives_a_warning_but_a_late_submission_none() -> None:
    def late(penalty: float, files: str = "f") -> Report:
        one = HandIn(module="03_matmuls", submitted="2026-01-01", source="submitted.csv", penalty=penalty)
        return with_sums(report(5, SAME | {"files": files}, hand_ins=[one]))

    assert "Causes: late penalties changed (3 students)." in of_ten(3, late(2), late(0))[0]
    assert "is 98.5%, and 100% without this change" in of_ten(3, report(5), late(0.5))[0]
    assert of_ten(10, report(5), late(5, "g")) == []


def test_removed_exercises_and_changed_weights_give_a_warning() -> None:
    short = make_report(*report(5).exercises[:1])
    assert f"Causes: {COURSE} (2 students)." in of_ten(2, report(5), short)[0]
    (line,) = of_ten(2, report(5), twice(report(5)))
    assert "the mean score is 11 of 11 points, and 10 of 10 points without this change" in line


def test_a_warning_names_a_mean_that_changes() -> None:
    """The mean score is 100% with and without the change, so the warning names the mean bonus."""

    def bonus(points: float) -> Report:
        more = exercise([result("w", points=9, earned=points)], exercise="z9", extension=True, basis=SAME)
        return with_sums(report(5).model_copy(update={"exercises": [*report(5).exercises, more]}))

    (line,) = of_ten(2, bonus(9), bonus(4))
    assert "of 10 students: the mean bonus is 0.8 points, and 1.8 points without this change. Causes" in line
    effect = Effect(students=3, changed=3)
    assert effect.warnings("Rules", "Why.") == ["Rules change the points of 3 of 3 students. Why."]


def twice(graded: Report) -> Report:
    """Return the report with twice the points for the first exercise."""
    first: ExerciseReport = graded.exercises[0].model_copy(update={"points": 10, "earned": 10})
    return graded.model_copy(update={"exercises": [first, graded.exercises[1]], "points": 15, "earned": 15})


def test_only_new_submissions_are_taken_from_the_new_report() -> None:
    old, new = report(5), report(0, SAME | {"submission": "t"})
    assert [e.earned for e in with_new_work(old, new).exercises] == [0, 5]
    assert with_new_work(old, report(0)).earned == 10
