"""The canary: submissions are graded only if the course's own solutions get full marks."""

from __future__ import annotations

import contextlib
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from grader.batch import canary
from grader.batch.canary import CanaryFailed
from grader.batch.folder import Folder, grade_batch
from grader.batch.grade import Grader
from grader.batch.replies import Replies, Reply
from grader.batch.workers import Workers
from grader.common.observation import Fault
from grader.course.finding import find_course
from grader.course.loading import Course, load_course
from tests.batch.test_grade import NAME, RIGHT, submitted
from tests.commands import one_line, shardlings
from tests.made_up import made_up
from tests.test_unlucky import no_bar

ROOT = Path(__file__).resolve().parents[2]
WRONG_REFERENCE = ("expect_collectives(seen, all_gather", "expect_collectives(seen, reduce_scatter")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return made_up(tmp_path_factory.mktemp("course"))


@pytest.fixture(scope="module")
def grader(workers: Workers, course: Course) -> Grader:
    return Grader(course, "none", here=workers)


def with_workers_of(grader: Grader, course: Course) -> Grader:
    """Return a grader of the course with the workers of another grader, because workers do not depend on a course."""
    return Grader(course, "none", here=cast(Any, grader.worker_sets[0]))


@pytest.fixture
def broken(grader: Grader, tmp_path: Path) -> Grader:
    """Return a grader of a course with a reference that fails its own check."""
    return with_workers_of(grader, made_up(tmp_path / "broken", *WRONG_REFERENCE))


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "shardlings" / "canary.json"


@pytest.fixture
def graded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which every graded student is added."""
    students: list[str] = []
    grade = Grader.grade

    def counted(self: Grader, submission: Any, names: list[str], **kw: Any) -> Any:
        students.append(submission.student)
        return grade(self, submission, names, **kw)

    monkeypatch.setattr(Grader, "grade", counted)
    return students


# -- full marks --------------------------------------------------------------------------------


def test_the_canary_runs_once_for_an_unchanged_course(grader: Grader, graded: list[str], memory: Path) -> None:
    canary.prove(grader, [NAME])
    assert graded == ["canary"] and memory.is_file()
    canary.prove(grader, [NAME])
    canary.prove(with_workers_of(grader, load_course(grader.course.root / "course.yaml")), [NAME])
    assert graded == ["canary"]


CHANGES: dict[str, Callable[[pytest.MonkeyPatch, Grader], object]] = {
    "versions": lambda patch, grader: patch.setattr("grader.batch.grade.versions", lambda: {"jax": "0.13"}),
    "our own code": lambda patch, grader: patch.setattr(canary, "own_digest", lambda: "other"),
    "the tier": lambda patch, grader: patch.setattr(grader, "tier", "bwrap"),
    "the host": lambda patch, grader: patch.setattr(platform, "uname", lambda: ("Linux", "other")),
    "Python": lambda patch, grader: patch.setattr(platform, "python_version", lambda: "3.14.0"),
    "the environment": lambda patch, grader: patch.setattr(sys, "prefix", "/other/venv"),
    "the course": lambda patch, grader: patch.setattr(grader.course.exercise(NAME), "source", "other"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_the_canary_key_changes_with_the_environment_and_the_course(
    grader: Grader, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    before = canary.key_of(grader, NAME)
    assert canary.key_of(grader, NAME) == before
    CHANGES[what](monkeypatch, grader)
    assert canary.key_of(grader, NAME) != before


DAMAGED = {
    "empty": b"",
    "not UTF-8": b"\xff\xfe",
    "half": b'{"proved": ["a"], "dig',
    "a list": b"[]",
    "no digest": b'{"proved": []}',
    "not as written": json.dumps({"proved": ["a"], "digest": canary.digest_of(["b"])}).encode(),
    "not a list": json.dumps({"proved": 3, "digest": canary.digest_of(3)}).encode(),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_the_canary_runs_again_after_its_cache_is_damaged(
    grader: Grader, graded: list[str], memory: Path, what: str
) -> None:
    memory.parent.mkdir(parents=True)
    memory.write_bytes(DAMAGED[what])
    canary.prove(grader, [NAME])
    canary.prove(grader, [NAME])
    assert graded == ["canary"]


def test_an_edited_canary_cache_does_not_count_as_proof(grader: Grader, graded: list[str], memory: Path) -> None:
    canary.prove(grader, [NAME])
    data = json.loads(memory.read_text())
    memory.write_text(json.dumps(data | {"proved": [*data["proved"], "more"]}))
    canary.prove(grader, [NAME])
    assert graded == ["canary"] * 2


def test_the_canary_runs_every_time_where_no_cache_can_be_written(
    grader: Grader, graded: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file where a folder would be")
    for _ in range(2):
        canary.prove(grader, [NAME])
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    canary.prove(grader, [NAME])
    assert graded == ["canary"] * 3


def homeless() -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_the_canary_cache_keeps_only_the_latest_entries(memory: Path) -> None:
    canary.remember([str(n) for n in range(canary.MOST_REMEMBERED + 5)])
    assert canary.remembered() == [str(n) for n in range(5, canary.MOST_REMEMBERED + 5)]
    assert [p.name for p in memory.parent.iterdir()] == ["canary.json"]


def test_one_of_each_kind_covers_every_kind_of_task_and_answer() -> None:
    course = find_course(ROOT)
    chosen = [course.exercise(name) for name in canary.one_of_each_kind(course)]
    assert {t.kind for e in chosen for t in e.tasks.values()} == {"array", "body", "function"}
    asked = {type(q.answer).__name__ for name in course.module_of for q in course.exercise(name).questions.values()}
    assert asked == {type(q.answer).__name__ for e in chosen for q in e.questions.values()}
    assert len(chosen) <= 3 + len(asked)


# -- a canary that fails -----------------------------------------------------------------------


def test_a_reference_without_full_marks_stops_the_batch_with_one_line(broken: Grader) -> None:
    with pytest.raises(CanaryFailed) as failed:
        canary.prove(broken, [NAME])
    message = str(failed.value)
    assert message.startswith(
        "the test with the course's solutions failed: the solution of x1_gather gets 2 of 3 points on this machine (traffic: "
    )
    assert f"this environment (Python {platform.python_version()}, jax " in message and "isolation none" in message
    assert message.endswith(" cannot be trusted to grade; run shardlings doctor, then shardlings verify x1_gather")
    assert "\n" not in message


def test_a_failed_canary_is_not_cached(broken: Grader, graded: list[str], memory: Path) -> None:
    for _ in range(2):
        with pytest.raises(CanaryFailed):
            canary.prove(broken, [NAME])
    assert graded == ["canary"] * 2 and not memory.exists()


def test_a_canary_that_the_grader_cannot_read_stops_the_batch(grader: Grader, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example, the grader could not read the replica groups of JAX 0.12."""

    def unreadable(self: Workers, source: Any, asks: list[Any], *_: Any) -> Replies:
        return Replies((Reply(Fault("broken", "replica groups cannot be read")),) * len(asks))

    monkeypatch.setattr(Workers, "replies", unreadable)
    with pytest.raises(
        CanaryFailed, match=r"gets \d of 3 points on this machine \(value: .*replica groups cannot be read"
    ):
        canary.prove(grader, [NAME])


def test_an_exception_in_the_grader_fails_the_canary(grader: Grader, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Workers, *_: Any) -> Replies:
        raise KeyError("sdy.mesh")

    monkeypatch.setattr(Workers, "replies", fails)
    with pytest.raises(CanaryFailed, match=r"x1_gather cannot be graded on this machine \(KeyError: 'sdy.mesh'\)"):
        canary.prove(grader, [NAME])


# -- the canary before a class is graded -------------------------------------------------------


def batch(grader: Grader, out: Path) -> list[str]:
    """Grade a class of one student, and return the students that have a report."""
    with Folder(out) as folder:
        graded, _ = grade_batch(grader, folder, {"ada": submitted(RIGHT)}, [NAME], no_bar)
    return sorted(graded)


def test_a_batch_runs_the_canary_first_and_only_once(grader: Grader, graded: list[str], tmp_path: Path) -> None:
    assert batch(grader, tmp_path / "one") == ["ada"] and graded == ["canary", "ada"]
    assert batch(grader, tmp_path / "two") == ["ada"] and graded == ["canary", "ada", "ada"]


def test_a_batch_of_kept_reports_runs_no_canary(
    grader: Grader, graded: list[str], memory: Path, tmp_path: Path
) -> None:
    batch(grader, tmp_path / "out")
    memory.unlink()
    graded.clear()
    assert batch(grader, tmp_path / "out") == ["ada"] and graded == []


def test_no_student_is_graded_after_a_failed_canary(broken: Grader, graded: list[str], tmp_path: Path) -> None:
    with pytest.raises(CanaryFailed):
        batch(broken, tmp_path / "out")
    assert graded == ["canary"] and not list((tmp_path / "out" / "reports").iterdir())


def test_grade_reports_a_failed_canary_in_one_line(tmp_path: Path) -> None:
    made_up(tmp_path / "course", *WRONG_REFERENCE)
    work = tmp_path / "class" / "ada"
    work.mkdir(parents=True)
    (work / f"{NAME}.py").write_text(RIGHT)
    words = ["grade", str(work.parent), "--out", str(tmp_path / "out"), "--only", "01_gather", "--isolation", "none"]
    line = one_line(shardlings(*words, cwd=tmp_path / "course"))
    assert line.startswith(
        "shardlings: the test with the course's solutions failed: the solution of x1_gather gets 2 of 3 points on this machine"
    )
    assert not (tmp_path / "out" / "grades.csv").exists()


def settings_of(grader: Grader, root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the settings of the nbgrader plugin with this grader."""
    autograder = pytest.importorskip("grader.integrations.nbgrader.autograder")
    monkeypatch.setattr(autograder, "Grader", lambda *_, **__: grader)
    settings = autograder.Shardlings(root=str(root))
    settings.loaded, settings.tier = grader.course, grader.tier
    return settings


def test_a_failed_canary_stops_every_way_to_grade_from_nbgrader(
    broken: Grader, graded: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(broken, tmp_path, monkeypatch)
    works = [SimpleNamespace(student=s, fingerprint=s, names=[NAME]) for s in ("ada", "bo")]
    for ask in (lambda: settings.report(works[0]), lambda: settings.ahead(works), lambda: settings.batch(works, None)):
        with pytest.raises(CanaryFailed):
            ask()
    assert set(graded) == {"canary"}


def test_nbgrader_runs_the_canary_once_even_without_a_cache(
    grader: Grader, graded: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file where a folder would be")
    settings = settings_of(grader, tmp_path, monkeypatch)
    for student in ("ada", "bo"):
        repaired = SimpleNamespace(submission=submitted(RIGHT, student))
        settings.report(SimpleNamespace(student=student, fingerprint=student, names=[NAME], repaired=repaired))
    assert graded == ["canary", "ada", "bo"]


@pytest.mark.slow
def test_nbgrader_autograde_ends_at_once_after_a_failed_canary(broken: Grader, monkeypatch: pytest.MonkeyPatch) -> None:
    """After any other exception, nbgrader fails one student, prints a traceback and goes on to the next student."""
    plugin = pytest.importorskip("grader.integrations.nbgrader.plugin")
    from traitlets.config import Configurable

    def look_ahead(*_: object) -> None:
        canary.prove(broken, [NAME])

    session = SimpleNamespace(read=lambda *_: (SimpleNamespace(assignment="", notebook=""), []), stamp=lambda *_: "",
                           look_ahead=look_ahead)  # fmt: skip
    monkeypatch.setattr(plugin.Session, "of", lambda _: session)
    monkeypatch.setattr(plugin, "Gradebook", contextlib.nullcontext)
    where = {"student": "ada", "assignment": "", "notebook": "", "db_url": "sqlite://"}
    with pytest.raises(
        SystemExit, match=r"^shardlings: the test with the course's solutions failed: the solution of x1_gather"
    ):
        plugin.Grade(parent=Configurable(parent=Configurable())).preprocess(None, {"nbgrader": where})
