"""A worker's functions, called as Dask calls them: take a course, run the canary, grade, and keep nothing."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.batch.grade import Grader
from grader.common.result import Report
from grader.course.loading import Course
from grader.course.reference import reference_source
from grader.intake.submission import Chunk, Source, Submission
from grader.wings.cluster import there
from grader.wings.cluster.parcel import About, Answer, Kit, NotUnderstood, packed, unpacked
from tests.made_up import in_two_files, made_up

NAMES = ["x1_gather"]


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(there, "_proved", set())
    yield
    assert there._benches == {}  # each test closes its courses


def prepared(course: Course, folder: Path) -> Answer:
    kit = Kit.of(course, NAMES, "none", remember=True)
    return Answer.unpacked(there.prepare("k", kit.packed(), str(folder), 1))


def test_a_course_is_taken_graded_with_and_forgotten(tmp_path: Path) -> None:
    course = in_two_files(tmp_path / "course")
    text = reference_source(course.exercise(NAMES[0]), {}) + "\ngather_time = 3\nodd = '\\ud800'\n"
    work = Submission("ada", {NAMES[0]: Source("x1_gather.py", (Chunk("x1_gather.py", text),))}, (), "d")
    (tmp_path / "w").mkdir()
    assert prepared(course, tmp_path / "w") == Answer()
    answer = Answer.unpacked(there.grade("k", packed(work)))
    with Grader(course, "none") as grader:
        assert answer == Answer(report=grader.grade(work, NAMES).dumps())
    assert Report.loads(answer.report).earned == 2
    there.leave("k")
    assert list((tmp_path / "w").iterdir()) == []
    assert Answer.unpacked(there.grade("k", packed(work))).absent


def test_nothing_is_graded_if_the_courses_solution_fails(tmp_path: Path) -> None:
    course = made_up(tmp_path / "course", "expect_close(seen.out, seen.a)", "expect_close(seen.out, seen.a + 1)")
    (tmp_path / "w").mkdir()
    answer = prepared(course, tmp_path / "w")
    assert answer.problem.startswith("the test with the course's solutions failed: the solution of x1_gather gets ")
    assert list((tmp_path / "w").iterdir()) == []


def test_a_worker_runs_the_canary_again_only_for_a_changed_course(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(there.canary, "examine", lambda grader, names: ran.append(names) or "")
    course = made_up(tmp_path / "course")
    for _ in range(2):
        assert prepared(course, tmp_path) == Answer()
        there.leave("k")
    changed = made_up(tmp_path / "course", "a nudge", "another nudge")
    assert prepared(changed, tmp_path) == Answer()
    there.leave("k")
    assert ran == [NAMES, NAMES]


def test_unused_courses_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(there.canary, "examine", lambda grader, names: "")
    monkeypatch.setattr(there, "LEASE", 0.0)
    threads = set(threading.enumerate())
    assert prepared(made_up(tmp_path / "course"), tmp_path) == Answer()
    for watch in set(threading.enumerate()) - threads:
        watch.join(60)
    assert list(tmp_path.iterdir()) == [tmp_path / "course"]


def test_a_worker_reports_its_versions_and_sandboxes() -> None:
    about = About.unpacked(there.about())
    assert {"Python", "jax", "jaxlib", "numpy", "pint", "shardlings", "its code"} <= about.versions.keys()
    assert set(about.problems) == {"sandlock", "bwrap", "none"}


def test_a_kit_holds_the_modules_asked_for_and_nothing_else(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    (tmp_path / "solutions" / "02_other").mkdir()
    (tmp_path / "solutions" / "02_other" / "secret.py").write_text("")
    (tmp_path / "solutions" / "01_gather" / "__pycache__").mkdir()
    (tmp_path / "solutions" / "01_gather" / "__pycache__" / "x.pyc").write_text("")
    kit = Kit.of(course, NAMES, "none", remember=True)
    assert list(kit.files) == ["solutions/01_gather/x1_gather.py"]
    assert Kit.unpacked(kit.packed()) == kit
    assert kit.laid_out(tmp_path / "again").digest(NAMES) == course.digest(NAMES)


def test_a_submission_arrives_as_it_was_sent() -> None:
    book = Source("a.ipynb", (Chunk("cell 1", "x = '\ud800é'"), Chunk("cell 2", "")), (("e", "cell 1"),))
    work = Submission("ada", {"e": book, "f": book, "g": Source("g.py", ())}, ("a note",), "d")
    again = unpacked(packed(work))
    assert again == work and again.sources["e"] is again.sources["f"]


@pytest.mark.parametrize(
    "data", [b"", b"x", None, {"report": ""}, zlib.compress(b"{}x"), zlib.compress(json.dumps({"more": 1}).encode())]
)
def test_malformed_answers_are_refused(data: object) -> None:
    with pytest.raises(NotUnderstood):
        Answer.unpacked(data)


def test_files_outside_of_the_course_are_not_written(tmp_path: Path) -> None:
    kit = Kit.of(made_up(tmp_path / "course"), NAMES, "none", remember=True)
    with pytest.raises(NotUnderstood):
        kit.model_copy(update={"files": {"../x": b""}}).laid_out(tmp_path / "place")
    assert not (tmp_path / "x").exists()
