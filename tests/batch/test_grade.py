"""From submissions to reports: points, fingerprints, batches, hidden inputs, evidence and time limits."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from grader.batch import grade, reporting
from grader.batch.grade import Grader
from grader.batch.workers import AHEAD, Workers
from grader.common.result import Report, Result
from grader.course.build import build
from grader.course.loading import Course, load_course
from grader.course.reference import answers
from grader.intake.submission import Chunk, Source, Submission
from grader.judging.judge import WRONG_ON_HIDDEN
from grader.reports.wording import checked_text, first_failure, is_begun
from grader.sandbox.tiers import available
from tests.made_up import COURSE, made_up

NAME = "x1_gather"
TIER = next(t for t in ("sandlock", "bwrap", "none") if not available(t))
RIGHT = """\
import jax
from jax.sharding import PartitionSpec as P
def gather(a, *, mesh):
    local = lambda a: jax.lax.all_gather(a, "x", axis=0, tiled=True)
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)
"""
ONES = "import jax\ndef gather(a, *, mesh):\n    return jax.numpy.ones(a.shape)\n"
ZEROS = "import jax\ndef gather(a, *, mesh):\n    return jax.numpy.zeros(a.shape)\n"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return made_up(tmp_path_factory.mktemp("course"))


@pytest.fixture(scope="module")
def grader(course: Course) -> Iterator[Grader]:
    with Grader(course, TIER) as made:
        yield made


def with_workers_of(grader: Grader, course: Course) -> Grader:
    """Return a grader of the course with the workers of another grader, because workers do not depend on a course."""
    return Grader(course, TIER, here=cast(Any, grader.worker_sets[0]))


def submitted(text: str | None, student: str = "ada", **more: str) -> Submission:
    texts = ({} if text is None else {NAME: text}) | more
    sources = {name: Source(f"{name}.py", (Chunk(f"{name}.py", t),)) for name, t in texts.items()}
    return Submission(student, sources, (), f"digest of {texts}")


def results(report: Report) -> dict[str, Result]:
    return {r.name: r for r in report.exercises[0].results}


def right_answer(grader: Grader, student: str = "ada") -> str:
    exercise = grader.course.exercise(NAME)
    return "\n".join(f"{n} = {v!r}" for n, v in answers(grader.course, exercise, student).items())


# -- points ------------------------------------------------------------------------------------


def test_a_right_submission_earns_all_points(grader: Grader) -> None:
    report = grader.grade(submitted(f"{RIGHT}\n{right_answer(grader)}\n"), [NAME])
    assert {n: r.status for n, r in results(report).items()} == dict.fromkeys(
        ["value", "traffic", "gather_time"], "passed"
    )
    assert (report.points, report.earned, report.pending, report.notes) == (3, 3, 0, [])
    assert (report.student, report.course, report.isolation) == ("ada", "small", TIER)


def test_a_known_misconception_gets_its_hint_and_blocks_later_checks(grader: Grader) -> None:
    found = results(grader.grade(submitted(ZEROS), [NAME]))
    assert (found["value"].status, found["value"].misconception, found["value"].hint) == (
        "failed", "zeroed", "You returned zeros.",
    )  # fmt: skip
    assert (found["traffic"].status, found["traffic"].hint) == ("blocked", "")


def test_an_unknown_misconception_gets_no_hint(grader: Grader) -> None:
    found = results(grader.grade(submitted(ZEROS.replace("zeros", "ones")), [NAME]))
    assert (found["value"].status, found["value"].hint) == ("failed", "")


def test_a_missing_submission_earns_zero_with_a_reason(grader: Grader) -> None:
    report = grader.grade(submitted(None), [NAME])
    assert (report.earned, report.exercises[0].handed_in) == (0, False)
    assert results(report)["value"].reason == "gather: nothing was handed in for this exercise"
    assert all(r.status in ("failed", "blocked") for r in results(report).values())


def test_the_error_that_stops_a_file_is_noted(grader: Grader) -> None:
    report = grader.grade(submitted(f"{RIGHT}\n1 / 0\n"), [NAME])
    assert report.exercises[0].notes == [f"{NAME}.py stopped at line 7: ZeroDivisionError: division by zero"]
    assert results(report)["value"].status == "passed"


def test_an_answer_in_a_file_that_ends_the_process_gets_this_reason(grader: Grader) -> None:
    report = grader.grade(submitted(f"{RIGHT}\n{right_answer(grader)}\nimport os\nos._exit(5)\n"), [NAME])
    reason = "the loading of your file ended the process: exited with 5"
    assert results(report)["gather_time"].reason == reason
    assert results(report)["value"].reason.endswith(reason)


def test_a_learners_release_fails_an_answer_that_it_cannot_get(grader: Grader, tmp_path: Path) -> None:
    """A learner's release judges no answers. It still says which answers cannot be read, and that the work is begun."""
    build(made_up(tmp_path))
    own = with_workers_of(grader, load_course(tmp_path / "exercises" / "course.yaml"))
    ends = own.grade(submitted(f"{RIGHT}\ngather_time = 3\nimport os\nos._exit(5)\n"), [NAME], public=True)
    stops = own.grade(submitted(f"{RIGHT}\n1 / 0\ngather_time = 3\n"), [NAME], public=True)
    untouched = own.grade(submitted(None), [NAME], public=True)
    for report, reason in (
        (ends, "the loading of your file ended the process: exited with 5"),
        (stops, f"gather_time is not defined: {NAME}.py stopped at line 7: ZeroDivisionError: division by zero"),
    ):
        answer = results(report)["gather_time"]
        assert (answer.status, answer.reason) == ("failed", reason)
        assert is_begun(report.exercises[0]) and first_failure(report.exercises[0]) is not None
        assert checked_text(report.exercises[0].results).endswith("1 answer cannot be right")
    assert results(untouched)["gather_time"].reason == "not answered yet"


def test_a_public_report_leaves_out_hidden_checks(grader: Grader) -> None:
    report = grader.grade(submitted(RIGHT), [NAME], public=True)
    assert list(results(report)) == ["value", "gather_time"]


def test_a_failure_of_the_grader_leaves_points_pending(grader: Grader, monkeypatch: pytest.MonkeyPatch) -> None:
    from grader.sandbox.worker import WorkerDied

    def dies(*args: object, **more: object) -> object:
        raise WorkerDied("died", "Check failed: x")

    workers = grader.worker_sets[0]
    assert isinstance(workers, Workers)
    monkeypatch.setattr(workers.runners[0].worker, "run_program", dies)
    monkeypatch.setattr(workers.runners[0].worker, "runs_own_test", lambda: False)
    report = grader.grade(submitted(RIGHT), [NAME])
    assert [results(report)[n].status for n in ("value", "traffic")] == ["broken", "broken"]
    assert results(report)["value"].reason.endswith(
        ": Check failed: x; a test program of the grader fails too, so the fault is the grader's"
    )
    assert report.pending == 2 and results(report)["value"].misconception == ""


def test_weights_multiply_points_and_extensions_only_add(grader: Grader, tmp_path: Path) -> None:
    place = tmp_path / "solutions" / "01_gather"
    made_up(tmp_path)
    text = (place / f"{NAME}.py").read_text()
    (place / "x2_more.py").write_text(text.replace("exercise = Exercise(", "exercise = Exercise(extension=True, "))
    (tmp_path / "course.yaml").write_text(COURSE.replace("[x1_gather]", "[x1_gather, x2_more]\n    weight: 2.5"))
    course = load_course(tmp_path / "course.yaml")
    own = with_workers_of(grader, course)
    report = own.grade(submitted(RIGHT, x2_more=RIGHT), [NAME, "x2_more"])
    assert [e.points for e in report.exercises] == [7.5, 7.5] and [e.earned for e in report.exercises] == [5, 5]
    assert (report.points, report.earned) == (7.5, 10)


def test_a_learners_release_reads_answers_back_but_judges_none(grader: Grader, tmp_path: Path) -> None:
    """A learner's release has no solutions. The grader shows how it reads an answer, and gives no points."""
    build(made_up(tmp_path))
    released = load_course(tmp_path / "exercises" / "course.yaml")
    own = with_workers_of(grader, released)
    found = results(own.grade(submitted(f"{RIGHT}\ngather_time = '3 us'\n"), [NAME], public=True))
    unread = results(own.grade(submitted(f"{RIGHT}\ngather_time = '3 apples'\n"), [NAME], public=True))
    misconception = results(own.grade(submitted(ZEROS), [NAME], public=True))
    assert found["value"].status == "passed"
    assert (found["gather_time"].status, found["gather_time"].earned) == ("blocked", 0)
    assert found["gather_time"].reason.startswith("read as ")
    assert "apples" in unread["gather_time"].reason
    assert misconception["gather_time"].reason == "not answered yet"
    assert (misconception["value"].status, misconception["value"].hint) == ("failed", "")


def test_exercises_of_one_notebook_share_its_namespace_and_its_notes(grader: Grader, tmp_path: Path) -> None:
    place = tmp_path / "solutions" / "01_gather"
    made_up(tmp_path)
    text = (
        (place / f"{NAME}.py").read_text().replace("def gather(", "def second(").replace("call(gather,", "call(second,")
    )
    (place / "x2_more.py").write_text(
        text.replace("gather_time(I):", "second_time(I):")
        .replace("of=gather_time", "of=second_time")
        .replace("scenario(gather_time", "scenario(second_time")
    )
    (tmp_path / "course.yaml").write_text(COURSE.replace("[x1_gather]", "[x1_gather, x2_more]"))
    course = load_course(tmp_path / "course.yaml")
    cells = [RIGHT, "1 / 0", "def second(a, *, mesh):\n    return gather(a, mesh=mesh)\n"]
    book = Source("work.ipynb", tuple(Chunk(f"cell {i}", t) for i, t in enumerate(cells, 1)))
    own = with_workers_of(grader, course)
    report = own.grade(Submission("ada", {NAME: book, "x2_more": book}, ("read as it was",), ""), [NAME, "x2_more"])
    assert [[r.status for r in e.results][:2] for e in report.exercises] == [["passed"] * 2] * 2
    assert report.notes == [
        "read as it was", "work.ipynb: cell 2 stopped at line 1: ZeroDivisionError: division by zero",
    ]  # fmt: skip
    assert [e.notes for e in report.exercises] == [[], []]


# -- the fingerprint ---------------------------------------------------------------------------


def test_the_fingerprint_is_the_same_every_time(grader: Grader) -> None:
    assert grader.fingerprint(submitted(RIGHT), [NAME]) == grader.fingerprint(submitted(RIGHT), [NAME])


def test_the_fingerprint_changes_with_each_thing_a_report_depends_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(was: str = "", becomes: str = "", config: str = COURSE, tier: str = "none") -> Grader:
        course = made_up(tmp_path, was, becomes)
        (tmp_path / "course.yaml").write_text(config)
        return Grader(load_course(course.root / "course.yaml"), tier)

    def of(grader: Grader, text: str = RIGHT, student: str = "ada", public: bool = False) -> str:
        return grader.fingerprint(submitted(text, student), [NAME], public=public)

    prints = {
        "as it is": of(made()),
        "the work": of(made(), ZEROS),
        "the student": of(made(), student="bob"),
        "public": of(made(), public=True),
        "isolation": of(made(tier="sandlock")),
        "a check": of(made("expect_close(seen.out, seen.a)", "expect_close(seen.out, seen.a * 1)")),
        "a comment": of(made('"""You returned zeros."""', '"""You gave zeros."""')),
        "the seed": of(made(config=COURSE.replace("a-secret-seed", "another"))),
        "the tolerance": of(made(config=f"{COURSE}tolerances: {{numbers: 0.03}}\n")),
        "the limits": of(made(config=f"{COURSE}limits: {{run_seconds: 61}}\n")),
    }
    # A deadline changes points, but not the verdicts.
    assert of(made(config=f"{COURSE}    deadline: 2030-01-01\n")) == prints["as it is"]
    monkeypatch.setattr(grade, "versions", lambda: {"jax": "0"})
    prints["a version"] = of(made())
    monkeypatch.setattr(reporting, "own_digest", lambda: "other code")
    prints["our code"] = of(made())
    assert len(set(prints.values())) == len(prints), prints


def test_the_fingerprint_does_not_depend_on_the_courses_path(tmp_path: Path) -> None:
    prints = {Grader(made_up(tmp_path / p), "none").fingerprint(submitted(RIGHT), [NAME]) for p in ("a", "b/c")}
    assert len(prints) == 1


# -- a batch -----------------------------------------------------------------------------------

CLASS: Mapping[str, str | None] = {
    "right": RIGHT,
    "zeros": ZEROS,
    "again": RIGHT.replace("local", "per_device"),
    "crashes": "import os\ndef gather(a, *, mesh):\n    os._exit(3)\n",
    "syntax": "def gather(a, *, mesh)\n",
    "none": None,
    "auto": "def gather(a, *, mesh):\n    return a\n",
}


def graded(course: Course, jobs: int, order: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}

    def done(student: str, report: Report | Exception) -> None:
        assert isinstance(report, Report), report
        found[student] = report.dumps()

    with Grader(course, TIER, jobs) as grader:
        grader.batch(order, lambda s: submitted(CLASS[s], s), [NAME], done)
    return found


@pytest.mark.slow
def test_reports_are_the_same_bytes_at_any_parallelism_and_in_any_order(course: Course) -> None:
    order = list(CLASS)
    alone, together = graded(course, 1, order), graded(course, 2, order[::-1])
    assert alone == together and set(alone) == set(CLASS)


def test_reports_do_not_depend_on_the_submissions_graded_before(grader: Grader) -> None:
    """A report contains nothing from submissions that were graded before."""
    order = ["zeros", "crashes", "right"]
    first, then = (
        {s: grader.grade(submitted(CLASS[s], s), [NAME]).dumps() for s in one} for one in (order, order[::-1])
    )
    assert first == then


def test_an_exception_for_one_student_stops_no_other(course: Course) -> None:
    def read(student: str) -> Submission:
        if student == "bad":
            raise OSError("the disk is gone")
        return submitted(None, student)

    found: dict[str, object] = {}
    with Grader(course, TIER) as grader:
        grader.batch(["bad", "good"], read, [NAME], found.__setitem__)
    assert isinstance(found["bad"], OSError) and isinstance(found["good"], Report)


def test_a_batch_of_one_job_reports_students_in_order(course: Course) -> None:
    """Several submissions are graded while one report is written."""
    students = [f"s{n}" for n in range(12)]
    came: list[str] = []
    with Grader(course, "none") as grader:
        all_graded = threading.Semaphore(0)

        def read(student: str) -> Submission:
            all_graded.release()
            raise OSError("the disk is gone")

        def done(student: str, result: Report | Exception) -> None:
            if not came:
                for _ in range(AHEAD - 1):
                    assert all_graded.acquire(timeout=60)
            came.append(student)

        grader.batch(students, read, [NAME], done)
    assert came == students


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_while_a_submission_sleeps_others_are_graded_beside_it(tmp_path: Path) -> None:
    """Otherwise each such submission occupies a job for its whole time limit, and a few of them delay the class by minutes."""
    made_up(tmp_path)
    (tmp_path / "course.yaml").write_text(COURSE + "limits: {trace_seconds: 5}\n")
    course = load_course(tmp_path / "course.yaml")
    texts = {"sleeper": "import time\ndef gather(a, *, mesh):\n    time.sleep(999)\n", "zeros": ZEROS, "ones": ONES}
    came, earned = list[str](), dict[str, float]()

    def read(student: str) -> Submission:
        came.append(f"{student} began")
        return submitted(texts[student], student)

    def done(student: str, report: Report | Exception) -> None:
        came.append(f"{student} done")
        assert isinstance(report, Report)
        earned[student] = report.earned

    with Grader(course, TIER) as grader:
        grader.batch(texts, read, [NAME], done)
        assert earned == {s: grader.grade(submitted(text, s), [NAME]).earned for s, text in texts.items()}
    assert came.index("zeros began") < came.index("sleeper done")
    assert came.index("zeros began") < came.index("ones began")


def test_a_report_is_read_back_as_it_was_written(grader: Grader) -> None:
    report = grader.grade(submitted(ZEROS), [NAME])
    assert Report.loads(report.dumps()) == report
    assert report.dumps().endswith("}\n")


def test_reports_for_learners_lack_what_hidden_checks_expect(grader: Grader) -> None:
    twice = RIGHT.replace("return jax", "a = jax.lax.with_sharding_constraint(a, P())\n    return jax", 1)
    report = grader.grade(submitted(twice.replace("P())", "jax.sharding.NamedSharding(mesh, P()))")), [NAME])
    staff, student = results(report), results(report.for_student())
    assert staff["gather_time"].expected is not None
    assert student["gather_time"].expected is None
    assert [r.reason for r in student.values()] == [r.reason for r in staff.values()]


@pytest.mark.parametrize(("jobs", "sets"), [(1, 7), (2, 14), (4, 16)])
def test_the_number_of_submissions_that_sleep_is_limited(course: Course, jobs: int, sets: int) -> None:
    """Each submission that is being graded has a set of workers, also while it sleeps. No process starts here."""
    assert len(Grader(course, "none", jobs).pool.sets) == sets


# -- hidden inputs -----------------------------------------------------------------------------

# Submissions that put information about their inputs into places that a report could show.
TELLERS = {
    "values": RIGHT.replace("return jax", "a = a.at[0, 0].add(a.sum())\n    return jax"),
    "scaled by a value": RIGHT.replace("return jax", "a = a * a[0, 0]\n    return jax"),
    "a place": RIGHT.replace("return jax", "a = a.at[jax.numpy.argmax(a[:, 0]), 0].set(0)\n    return jax"),
    "only when": RIGHT.replace("return jax", "a = jax.numpy.where(a[3, 1] > 0, a, 2 * a)\n    return jax"),
    "nan when": RIGHT.replace("return jax", "a = a / (a[3, 1] > 0)\n    return jax"),
    "zero when": RIGHT.replace("return jax", "a = a * (a[3, 1] > 0)\n    return jax"),
    "layout": RIGHT.replace("P()", "P('x')").replace("return jax", "a = a * a[0, 0]\n    return jax"),
}


def of_seed(report: Report) -> str:
    """Return a report as text without the digests that depend on the seed or on hidden inputs."""
    parts = []
    for e in report.exercises:
        evidence = [v.model_copy(update={"inputs": "" if v.secret else v.inputs}) for v in e.evidence]
        parts.append(e.model_copy(update={"evidence": evidence, "basis": {}}))
    return report.model_copy(update={"fingerprint": "", "exercises": parts}).dumps()


def statuses(report: Report) -> list[str]:
    return [r.status for r in report.exercises[0].results]


@pytest.mark.parametrize("teller", TELLERS)
def test_reports_of_two_seeds_are_equal_unless_a_verdict_differs(grader: Grader, tmp_path: Path, teller: str) -> None:
    reports = []
    for seed in ("one-seed", "another-seed", "a-third"):
        made_up(tmp_path)
        (tmp_path / "course.yaml").write_text(COURSE.replace("a-secret-seed", seed))
        own = with_workers_of(grader, load_course(tmp_path / "course.yaml"))
        reports.append(own.grade(submitted(TELLERS[teller]), [NAME]))
    texts_of: dict[str, set[str]] = {}
    for report in reports:
        texts_of.setdefault(str(statuses(report)), set()).add(of_seed(report))
    assert all(len(texts) == 1 for texts in texts_of.values())
    assert all(status != "passed" for report in reports for status in statuses(report)[:1])


FUNCTION = '''"""# X1 Count

Say what to do.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function
def gather(n):
    """n + 1."""
    return n + 1


cases = exercise.cases(gather, public=[{"n": 1}], hidden=lambda rng: [{"n": int(rng.integers(1 << 40))} for _ in range(3)])


@exercise.check(cases, points=1, public=True)
def value(seen):
    """one more"""
    expect_outcomes(seen)
'''
SPIES = {
    "in an error": "def gather(n):\n    raise ValueError(f'it was {n}')\n",
    "in the next error": "seen = []\ndef gather(n):\n    seen.append(n)\n    raise ValueError(f'they were {seen}')\n",
    "in a value": "def gather(n):\n    return n + 2\n",
    "by crashing": "import os\ndef gather(n):\n    if n % 2: os._exit(n % 200)\n    return n + 1\n",
    "by sleeping": "import time\ndef gather(n):\n    if n > 1 << 39: time.sleep(n % 3)\n    return 1 / 0\n",
    "while loading": "import sys\nraise ValueError([f.f_locals for f in [sys._getframe(i) for i in range(5)]])\n",
}  # fmt: skip


@pytest.mark.parametrize("spy", SPIES)
def test_no_report_repeats_an_argument_of_a_hidden_case(grader: Grader, tmp_path: Path, spy: str) -> None:
    reports = set()
    for seed in ("one-seed", "another-seed"):
        made_up(tmp_path)
        (tmp_path / "solutions" / "01_gather" / f"{NAME}.py").write_text(FUNCTION)
        (tmp_path / "course.yaml").write_text(COURSE.replace("a-secret-seed", seed))
        own = with_workers_of(grader, load_course(tmp_path / "course.yaml"))
        report = own.grade(submitted(SPIES[spy]), [NAME])
        assert statuses(report) == ["failed"]
        reports.add(of_seed(report))
    assert len(reports) == 1


def test_a_function_that_is_wrong_only_on_hidden_cases_gets_a_fixed_message(grader: Grader, tmp_path: Path) -> None:
    made_up(tmp_path)
    (tmp_path / "solutions" / "01_gather" / f"{NAME}.py").write_text(FUNCTION)
    course = load_course(tmp_path / "course.yaml")
    own = with_workers_of(grader, course)
    shown = [case["n"] for ask in own.plan(NAME, False) if not ask.hidden_inputs for case in ask.cases]
    text = f"def gather(n):\n    return n + 1 if n in {shown} else print(n)\n"
    assert results(own.grade(submitted(text), [NAME]))["value"].reason == WRONG_ON_HIDDEN


# -- evidence ----------------------------------------------------------------------------------


def test_the_evidence_of_a_verdict_is_reported_to_staff_only(grader: Grader) -> None:
    report = grader.grade(submitted(RIGHT), [NAME])
    again = grader.grade(submitted(RIGHT.replace("local", "other_name")), [NAME])
    evidence = report.exercises[0].evidence
    assert [(e.mesh, e.dims["I"], e.secret) for e in evidence] == [
        ({"x": 4}, 8, False), ({"x": 2}, 8, False), ({"x": 4}, 1012, False), ({"x": 2}, 1012, False),
        ({"x": 4}, 1012, True), ({"x": 2}, 1012, True),
    ]  # fmt: skip
    assert all(len(e.program) == len(e.inputs) == 64 for e in evidence)
    assert len({e.program for e in evidence}) == 4 and len({e.inputs for e in evidence}) == 6
    assert again.exercises[0].evidence == evidence
    assert report.for_student().exercises[0].evidence == []


# -- time limit --------------------------------------------------------------------------------


def of_exercises(folder: Path, names: list[str]) -> Course:
    """Return a course that has one exercise under several names."""
    place = folder / "solutions" / "01_gather"
    made_up(folder)
    text = (place / f"{NAME}.py").read_text()
    for name in names[1:]:
        (place / f"{name}.py").write_text(text)
    (folder / "course.yaml").write_text(COURSE.replace("[x1_gather]", f"[{', '.join(names)}]"))
    return load_course(folder / "course.yaml")


def test_all_files_of_a_submission_share_one_time_limit(grader: Grader, tmp_path: Path) -> None:
    """The second file gets only the time that the first file left, and the grader does not run the third file."""
    names = [NAME, "x2_more", "x3_more"]
    own = with_workers_of(grader, of_exercises(tmp_path, names))
    burning = f"import time\n{RIGHT}\nwhile time.process_time() < 3: pass\n"
    workers = cast(Workers, own.worker_sets[0])
    limits, workers.limits = workers.limits, workers.limits.model_copy(update={"total_seconds": 5.0})
    try:
        report = own.grade(submitted(burning, x2_more=burning, x3_more=RIGHT), names)
    finally:
        workers.limits = limits
    reasons = [next(r for r in e.results if r.name == "value").reason for e in report.exercises]
    too_long = "gather: not finished, because the code of this submission takes more than 5 s together"
    assert reasons == ["", too_long, too_long]
