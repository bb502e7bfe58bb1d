"""A worker's functions, called as Dask calls them: take a course, run the canary, grade, and keep nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.batch.grade import Grader
from grader.common.result import Report
from grader.course.loading import Course
from grader.course.reference import reference_source
from grader.intake.submission import Chunk, Source, Submission
from grader.wings.cluster import there
from grader.wings.cluster.parcel import Answer, Kit, packed, unpacked
from tests.made_up import in_two_files, made_up

NAMES = ["x1_gather"]


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(there, "_proved", set())
    monkeypatch.setattr(there, "_left", set())
    yield
    assert there._benches == {}  # each test closes its courses


def prepared(course: Course, folder: Path) -> str:
    kit = packed(Kit.of(course, NAMES, "none", remember=True))
    return there.prepare("k", there.deciding(), "none", kit, str(folder), 1)


def test_a_course_is_taken_graded_with_and_forgotten(tmp_path: Path) -> None:
    course = in_two_files(tmp_path / "course")
    text = reference_source(course.exercise(NAMES[0]), {}) + "\ngather_time = 3\nodd = '\\ud800'\n"
    work = Submission("ada", {NAMES[0]: Source("x1_gather.py", (Chunk("x1_gather.py", text),))}, (), "d")
    (tmp_path / "w").mkdir()
    assert prepared(course, tmp_path / "w") == ""
    answer = Answer.model_validate_json(there.grade("k", packed(work)))
    with Grader(course, "none") as grader:
        assert answer == Answer(report=grader.grade(work, NAMES).dumps())
    assert Report.loads(answer.report).earned == 2
    there.leave("k")
    assert list((tmp_path / "w").iterdir()) == []
    with pytest.raises(there.Absent):
        there.grade("k", packed(work))


def test_a_course_is_deleted_although_a_reference_to_it_is_left(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    assert prepared(made_up(tmp_path / "course"), tmp_path / "w") == ""
    kept = there._benches["k"]  # for example, in a traceback's frame
    there.leave("k")
    assert list((tmp_path / "w").iterdir()) == [] and kept.users == 0


def test_an_idle_course_is_deleted_after_the_lease_and_a_used_course_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "w").mkdir()
    assert prepared(made_up(tmp_path / "course"), tmp_path / "w") == ""
    bench = there._benches["k"]
    bench.users += 1
    there._lapse("k", bench)
    assert there._benches == {"k": bench} and list((tmp_path / "w").iterdir())
    monkeypatch.setattr(there, "LEASE", 0.01)
    there._release("k", bench)
    assert bench.lease
    bench.lease.join()
    assert list((tmp_path / "w").iterdir()) == []


def test_a_course_that_is_prepared_again_replaces_the_first_copy(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    course = made_up(tmp_path / "course")
    assert prepared(course, tmp_path / "w") == "" == prepared(course, tmp_path / "w")
    assert len(list((tmp_path / "w").iterdir())) == 1
    there.leave("k")
    assert list((tmp_path / "w").iterdir()) == []


def test_a_worker_that_is_prepared_after_the_batch_keeps_no_course(tmp_path: Path) -> None:
    """The batch may end while a late worker still loads the grader."""
    (tmp_path / "w").mkdir()
    there.leave("k")
    assert prepared(made_up(tmp_path / "course"), tmp_path / "w") == "cannot grade: the batch has ended"
    assert list((tmp_path / "w").iterdir()) == []


def test_nothing_is_graded_if_the_courses_solution_fails(tmp_path: Path) -> None:
    course = made_up(tmp_path / "course", "expect_close(seen.out, seen.a)", "expect_close(seen.out, seen.a + 1)")
    (tmp_path / "w").mkdir()
    assert prepared(course, tmp_path / "w").startswith(
        "cannot grade: the test with the course's solutions failed: the solution of x1_gather gets "
    )
    assert list((tmp_path / "w").iterdir()) == []


def test_a_worker_runs_the_canary_again_only_for_a_changed_course(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(there.canary, "examine", lambda grader, names: ran.append(names) or "")
    course = made_up(tmp_path / "course")
    for _ in range(2):
        assert prepared(course, tmp_path) == ""
        there._end("k")
    changed = made_up(tmp_path / "course", "a nudge", "another nudge")
    assert prepared(changed, tmp_path) == ""
    there.leave("k")
    assert ran == [NAMES, NAMES]


def test_unused_courses_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(there.canary, "examine", lambda grader, names: "")
    monkeypatch.setattr(there, "LEASE", 0.0)
    threads = set(threading.enumerate())
    assert prepared(made_up(tmp_path / "course"), tmp_path) == ""
    for watch in set(threading.enumerate()) - threads:
        watch.join(60)
    assert list(tmp_path.iterdir()) == [tmp_path / "course"]


HERE = there.deciding()


@pytest.mark.parametrize("name", ["Python", "jax", "jaxlib", "numpy", "pint", "shardlings", "its code"])
def test_a_worker_with_another_version_may_not_grade(name: str) -> None:
    assert there.unlike(HERE, "none") == ""
    problem = there.unlike(HERE | {name: "0.9"}, "none")
    assert problem == f"has {name} {HERE[name]}, this machine has 0.9: install this machine's version on the worker"


def test_a_worker_with_other_packages_may_not_grade(monkeypatch: pytest.MonkeyPatch) -> None:
    assert there.unlike(HERE | {"einops": "9"}, "none").startswith("has einops ")
    monkeypatch.setattr(there, "deciding", lambda: HERE | {"more": "1"})
    assert there.unlike(HERE, "none").startswith("has more 1, this machine has none: ")


def test_a_worker_without_a_sandbox_may_not_grade(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(there, "available", lambda tier: f"{tier} is not installed")
    assert there.unlike(HERE, "bwrap") == "cannot confine learner code: isolation bwrap: bwrap is not installed"


def test_a_kit_holds_the_modules_asked_for_and_nothing_else(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    (tmp_path / "solutions" / "02_other").mkdir()
    (tmp_path / "solutions" / "02_other" / "secret.py").write_text("")
    (tmp_path / "solutions" / "01_gather" / "__pycache__").mkdir()
    (tmp_path / "solutions" / "01_gather" / "__pycache__" / "x.pyc").write_text("")
    kit = Kit.of(course, NAMES, "none", remember=True)
    assert list(kit.files) == ["solutions/01_gather/x1_gather.py"]
    assert unpacked(packed(kit)) == kit
    assert kit.laid_out(tmp_path / "again").digest(NAMES) == course.digest(NAMES)


def test_a_submission_arrives_as_it_was_sent() -> None:
    book = Source("a.ipynb", (Chunk("cell 1", "x = '\ud800é'"), Chunk("cell 2", "")), (("e", "cell 1"),))
    work = Submission("ada", {"e": book, "f": book, "g": Source("g.py", ())}, ("a note",), "d")
    again = unpacked(packed(work))
    assert again == work and again.sources["e"] is again.sources["f"]


@pytest.mark.parametrize("data", ["", "x", None, {"report": ""}, "{}x", '{"more": 1}', '{"report": 1}', "[]", "\ud800"])
def test_malformed_answers_are_refused(data: Any) -> None:
    with pytest.raises(ValueError):
        Answer.model_validate_json(data)
