"""The cache: its values equal those of a fresh run, and a changed check is judged without tracing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from grader.batch import verdicts
from grader.batch.cost import Cost
from grader.batch.grade import Grader
from grader.batch.remembering import CHECKED, RUNS, TRACES, Checked, Keys, Store
from grader.batch.replies import Replies, Reply, RunResult, lasting, reply_of
from grader.batch.why import why
from grader.batch.workers import Workers
from grader.common import cache as memory
from grader.common.cache import Cache, user_cache
from grader.common.observation import Fault
from grader.common.result import Report, Result, Status
from grader.course.loading import Course, load_course
from grader.intake.submission import Chunk, Source
from grader.judging.plan import Ask
from grader.sandbox.tiers import available
from grader.sandbox.worker import Worker
from grader.wire.messages import SourceCode
from tests.batch.test_grade import NAME, RIGHT, ZEROS, submitted
from tests.batch.test_workers import array, cases, question
from tests.made_up import made_up
from tests.reports.example_reports import result

TIER = next((t for t in ("sandlock", "bwrap") if not available(t)), "none")
Reports = Callable[..., dict[str, str]]
isolated = pytest.mark.skipif(TIER == "none", reason="nothing is remembered without isolation")
CLASS = {
    "ada": RIGHT,
    "bo": ZEROS,
    "cy": "# mine\n" + RIGHT,
    "di": "def gather(a, *, mesh):\n    return a.nothing\n",
    "ed": "import jax\ndef gather(a, *, mesh):\n    return jax.nothing(a)\n",
    "fay": "def gather(a",
}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return made_up(tmp_path_factory.mktemp("course"))


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    with Cache(tmp_path / "store", 1 << 26) as made:
        yield made


def graded(grader: Grader, texts: dict[str, str]) -> dict[str, str]:
    return {s: grader.grade(submitted(text, s), [NAME]).dumps() for s, text in texts.items()}


@pytest.fixture(scope="module")
def reports(course: Course) -> Iterator[Reports]:
    """Return a function that grades a class with a new grader. Graders with equal limits share their processes."""
    shared = Workers(course, TIER)

    def reports(course: Course, cache: Cache | None, texts: dict[str, str] = CLASS) -> dict[str, str]:
        if course.config.limits != shared.limits:
            with Grader(course, TIER, cache=cache) as grader:
                return graded(grader, texts)
        workers = copy(shared)
        grader = Grader(course, TIER, cache=cache, here=workers)
        workers.store = grader.store
        return graded(grader, texts)

    yield reports
    shared.close()


@pytest.fixture(scope="module")
def fresh(course: Course, reports: Reports) -> dict[str, str]:
    """Return the reports of the class without a cache."""
    return reports(course, None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that records requests to workers: a traced source's text, or ``run``."""
    told: list[str] = []
    trace, run = Worker.trace, Worker.run_program

    def traced(self: Worker, source: SourceCode, *more: Any) -> Any:
        told.append(source["chunks"][0][1])
        return trace(self, source, *more)

    def ran(self: Worker, *about: Any, **more: Any) -> Any:
        told.append("run")
        return run(self, *about, **more)

    monkeypatch.setattr(Worker, "trace", traced)
    monkeypatch.setattr(Worker, "run_program", ran)
    return told


@isolated
def test_a_second_run_traces_nothing_and_gives_the_same_reports(
    course: Course, reports: Reports, cache: Cache, fresh: dict[str, str], asked: list[str]
) -> None:
    assert reports(course, cache) == fresh
    assert set(CLASS.values()) <= set(asked)
    asked.clear()
    assert reports(course, cache) == fresh
    assert set(asked) == {CLASS["fay"]}, "what does not load is traced again"


@isolated
def test_programs_from_the_cache_cost_as_much_as_they_cost_when_they_ran(
    course: Course, reports: Reports, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier, they cost nothing. So the first of two equal submissions could exceed a limit that the second kept."""
    run = Worker.run_program

    def slow(self: Worker, *about: Any, **more: Any) -> Any:
        header, blobs = run(self, *about, **more)
        return header | {"cpu": 0.6 * course.config.limits.total_run_seconds}, blobs

    monkeypatch.setattr(Worker, "run_program", slow)
    for grading in range(3):
        report = Report.loads(reports(course, cache, {"ada": RIGHT})["ada"])
        reasons = [r.reason for r in report.exercises[0].results if "all programs together" in r.reason]
        assert reasons and report.earned == 0, grading


@isolated
def test_results_from_the_cache_that_exceed_the_limit_are_not_used(
    course: Course, reports: Reports, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file of a submission uses most of the time. Its other file has a program that another student handed in."""
    assert Report.loads(reports(course, cache, {"ada": RIGHT})["ada"]).earned > 0
    monkeypatch.setattr(Cost, "fits", lambda self, seconds: False)
    monkeypatch.setattr(Cost, "no_more_runs", Fault("timeout", "all programs together did not finish"))
    report = Report.loads(reports(course, cache, {"bo": RIGHT})["bo"])
    assert report.earned == 0 and "all programs together" in report.exercises[0].results[0].reason


@isolated
def test_equal_programs_are_judged_once_with_any_answers(
    course: Course, reports: Reports, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = "\ngather_time = {}\n"
    texts = {
        f"{who} {n}": CLASS[who] + answer.format(n) for who in ("ada", "bo", "cy") for n in (1.5, "'3 us'", "'4 hours'")
    }
    # A program that differs from bo's, with the answer of "bo 1.5".
    texts["dot"] = CLASS["bo"].replace("zeros", "ones") + answer.format(1.5)
    judged, judge = [], verdicts.judge_checks

    def counted(*about: Any, **public: Any) -> list[Result]:
        judged.append(about)
        return judge(*about, **public)

    monkeypatch.setattr(verdicts, "judge_checks", counted)
    together = reports(course, cache, texts)
    assert len(judged) == 4, "cy's stands one line further down, and what is wrong with bo's stands on no line"
    assert together == reports(course, None, texts)
    assert len({Report.loads(r).exercises[0].results[-1].reason for r in together.values()}) == 2


@isolated
def test_a_changed_check_is_judged_without_tracing_or_compiling(
    course: Course, reports: Reports, cache: Cache, tmp_path: Path, asked: list[str]
) -> None:
    reports(course, cache)
    changed = made_up(
        tmp_path / "course", "expect_close(seen.out, seen.a)", "expect_close(seen.out, seen.a, scale=1e9)"
    )
    asked.clear()
    again = reports(changed, cache)
    assert set(CLASS.values()) & set(asked) == {CLASS["fay"]}, (
        "misconceptions that nobody seemed to have are traced, too"
    )
    assert again == reports(changed, None)
    was, now = (Report.loads(r["bo"]).exercises[0].results for r in (reports(course, cache), again))
    assert [r.status for r in was] != [r.status for r in now], "zeros are near enough now"


@pytest.mark.slow
@isolated
def test_a_changed_tolerance_of_numbers_judges_only_the_answers_to_questions(
    course: Course, reports: Reports, cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {who: CLASS[who] + "\ngather_time = 1.0\n" for who in ("ada", "bo")}
    before = reports(course, cache, texts)
    made_up(tmp_path / "course")
    config = (tmp_path / "course" / "course.yaml").read_text()
    changed = f"{config.replace('title: Gather', 'title: Others')}    weight: 2\ntolerances: {{numbers: 0.49}}\n"
    (tmp_path / "course" / "course.yaml").write_text(changed)
    other = load_course(tmp_path / "course" / "course.yaml")
    with monkeypatch.context() as patch:
        patch.setattr(verdicts, "judge_checks", None)
        again = reports(other, cache, texts)
    assert again == reports(other, None, texts)
    assert again != before


@pytest.mark.slow
@isolated
def test_a_missing_cache_entry_is_traced_or_run_again(
    course: Course,
    reports: Reports,
    cache: Cache,
    fresh: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    asked: list[str],
) -> None:
    one = {"ada": CLASS["ada"]}
    reports(course, cache, one)
    cache.write()
    get, put = Cache.get, cache.put
    rows = [key for (key,) in cache._file.execute("SELECT key FROM kept")]  # pyright: ignore[reportOptionalMemberAccess]
    assert len(rows) > 8
    monkeypatch.setattr(cache, "put", lambda key, value: None)
    for lost in rows:
        monkeypatch.setattr(cache, "get", lambda key, lost=lost: None if key == lost else get(cache, key))
        assert reports(course, cache, one) == {"ada": fresh["ada"]}
    monkeypatch.setattr(cache, "put", put)
    monkeypatch.setattr(cache, "get", lambda key: None)
    asked.clear()
    assert reports(course, cache, one) == {"ada": fresh["ada"]}
    assert CLASS["ada"] in asked


@isolated
def test_results_that_may_differ_next_time_are_not_cached(
    course: Course, reports: Reports, cache: Cache, asked: list[str]
) -> None:
    texts = {"ada": "import random\n" + RIGHT, "bo": RIGHT + "\nwhile True:\n    pass\n"}
    short = course.config.limits.model_copy(update={"trace_seconds": 2})
    impatient = Course(course.root, course.config.model_copy(update={"limits": short}))
    first = reports(impatient, cache, texts)
    asked.clear()
    assert reports(impatient, cache, texts) == first
    assert set(texts.values()) <= set(asked)


@pytest.mark.slow
@isolated
def test_why_ignores_the_cache_and_bars_a_source_whose_verdict_differs(
    course: Course, reports: Reports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    monkeypatch.setenv(memory.VARIABLE, str(tmp_path / "store"))
    with user_cache() as cache:
        report = Report.loads(reports(course, cache, {"ada": RIGHT})["ada"])
    asked.clear()
    work = submitted(RIGHT, "ada")
    assert why(course, TIER, work, f"{NAME}/value", report).differs == []
    assert asked.count(RIGHT) == 2, "nothing that was remembered took part"
    results = [r.model_copy(update={"status": "failed"}) for r in report.exercises[0].results]
    forged = report.model_copy(update={"exercises": [report.exercises[0].model_copy(update={"results": results})]})
    assert why(course, TIER, work, f"{NAME}/value", report.model_copy(update={"versions": {"jax": "0"}})).differs
    asked.clear()
    with user_cache() as cache:
        reports(course, cache, {"ada": RIGHT})
    assert asked == [], "an upgrade alone bars no source"
    assert why(course, TIER, work, f"{NAME}/value", forged).differs
    asked.clear()
    with user_cache() as cache:
        reports(course, cache, {"ada": RIGHT})
    assert RIGHT in asked


def test_without_isolation_nothing_is_cached(course: Course, cache: Cache) -> None:
    assert Grader(course, "none", cache=cache).store.cache is None


def test_the_cache_folder_is_named_turned_off_or_the_users_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(memory.VARIABLE, str(tmp_path / "mine"))
    assert memory.cache_folder() == tmp_path / "mine"
    monkeypatch.setenv(memory.VARIABLE, memory.OFF)
    assert memory.cache_folder() is None
    monkeypatch.delenv(memory.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert memory.cache_folder() == tmp_path / "shardlings"
    with user_cache(False) as cache:
        assert cache is None
    assert list(tmp_path.iterdir()) == []


# -- cached values and their keys --------------------------------------------------------------

CALL, PLAIN, NUMBER = array("f"), cases("g"), question("q")
ASKS: list[Ask] = [CALL, PLAIN, NUMBER]
TRUE: list[Reply] = [
    Reply(program=b"bytecode"), Reply(None, {"values": [{"value": 1}]}), Reply(None, {"raw": 2.5}),
]  # fmt: skip
OTHER = [Reply(program=b"another"), *TRUE[1:]]


def source(text: str = "x = 1", name: str = "a.py") -> Source:
    return Source(name, (Chunk(name, text),))


def store(cache: Cache, about: str = "all else") -> Store:
    return Store(Keys(about), cache)


def kept(made: Store, replies: list[Reply], text: str = "x = 1", *, fresh: bool = False) -> Replies | None:
    """Cache replies of a source. Return the replies that a second store finds in the cache, or None."""
    own, key = source(text), made.keys.trace(source(text), ASKS)
    value = Replies(tuple(replies), (), 0.5, ("a.py",))
    writer = made.afresh() if fresh else made
    assert writer.find(TRACES, key, own) or writer.keep(TRACES, key, value, own) is value
    return Store(made.keys, made.cache).find(TRACES, key, own)


def test_cached_replies_are_read_back_unchanged(cache: Cache) -> None:
    found = kept(store(cache), TRUE)
    assert found is not None
    assert list(found.each) == TRUE and (found.notes, found.cpu, found.files) == ((), 0.5, ("a.py",))
    assert found.each[0].program == b"bytecode"


def test_a_cached_reply_without_its_program_is_traced_again(cache: Cache) -> None:
    made = store(cache)
    kept(made, TRUE)
    cache.drop(made.keys.part(hashlib.sha256(b"bytecode").digest()))
    assert store(cache).find(TRACES, made.keys.trace(source(), ASKS), source()) is None


@pytest.mark.parametrize("kind", ["missing", "raised", "syntax", "untraceable"])
def test_faults_of_the_code_are_cached(cache: Cache, kind: str) -> None:
    fault = Fault(kind, "a word", 3, "a.py", "ValueError")
    found = kept(store(cache), [Reply(fault), *TRUE[1:]])
    assert lasting(fault) and found is not None and found.each[0].fault == fault


@pytest.mark.parametrize(
    ("kinds", "repeats"),
    [
        (["ValueError"], True),
        (["MemoryError"], False),
        (["Mine", "FileNotFoundError", "OSError"], False),
        (["RecursionError", "RuntimeError"], False),
        ("a text of a forger", True),
        ([{}], True),
    ],
)
def test_an_error_of_the_machine_in_one_case_is_not_cached(cache: Cache, kinds: Any, repeats: bool) -> None:
    error = {"error": "E", "kinds": kinds, "message": "", "line": None}
    reply = reply_of(PLAIN, {"number": 3, "values": [{"value": 1}, error]}, [])
    assert reply.lasting is repeats and dict(reply.body) == {"values": [{"value": 1}, error]}
    assert lasting(None, [kind for kind in kinds if isinstance(kind, str) and len(kind) > 1]) is repeats
    assert (kept(store(cache), [reply, *TRUE[1:]]) is not None) is repeats


@pytest.mark.parametrize(
    "fault",
    [
        *(Fault(kind, "") for kind in ("timeout", "memory", "crashed", "broken", "refused", "compile")),
        *(Fault("raised", "", type=name) for name in ("OSError", "PermissionError", "MemoryError", "XlaRuntimeError")),
    ],
)
def test_faults_of_the_moment_are_not_cached(cache: Cache, fault: Fault) -> None:
    assert not lasting(fault)
    assert kept(store(cache), [TRUE[0], Reply(fault), TRUE[2]]) is None


def test_replies_of_a_source_that_may_act_differently_are_not_cached(cache: Cache) -> None:
    assert kept(store(cache), TRUE, "import random") is None


@pytest.mark.parametrize(
    "body", [{"fault": None}, {"replies": [], "number": 1}, {}, {"raw": {"x": ["\x00\ud800"]}}, {"raw": float("nan")}, {"raw": 10**400}]
)  # fmt: skip
def test_any_reply_of_a_learners_process_is_cached_unchanged(cache: Cache, body: dict[str, Any]) -> None:
    found = kept(store(cache), [TRUE[0], reply_of(PLAIN, body, [b"one", b"two"]), TRUE[2]])
    values = {"raw": body["raw"]} if "raw" in body else {}  # the reply drops all other fields
    assert found is not None and repr(found.each[1].body) == repr(values) and found.each[1].program is None
    of_call = kept(store(cache, "another"), [reply_of(CALL, body, [b"one", b"two"]), *TRUE[1:]])
    assert of_call is not None and of_call.each[0].program == b"one"


def test_any_change_of_source_asks_or_course_changes_the_cache_key() -> None:
    keys, answers = Keys("all else"), dict(zip(ASKS, TRUE, strict=True))
    other_inputs, renamed = [array("f", runs=2), *ASKS[1:]], [array("h"), *ASKS[1:]]
    traces = [
        keys.trace(source(), ASKS), Keys("all other").trace(source(), ASKS), keys.trace(source("x = 2"), ASKS),
        keys.trace(source(name="b.py"), ASKS), keys.trace(source(), ASKS[:2]), keys.trace(source(), renamed),
    ]  # fmt: skip
    assert len(set(traces)) == len(traces)
    assert keys.trace(source(), other_inputs) == traces[0], "the same program, and another run of it"
    checks = [
        keys.checks("x", ["a.py"], answers), keys.checks("y", ["a.py"], answers),
        keys.checks("x", ["a.py"], dict(zip(ASKS, OTHER, strict=True))),
        keys.checks("x", ["a.py"], dict(zip(other_inputs, TRUE, strict=True))),
        keys.checks("x", ["b.py"], answers), Keys("all other").checks("x", ["a.py"], answers),
    ]  # fmt: skip
    assert len(set(checks)) == len(checks)
    answered = {**answers, NUMBER: Reply(None, {"raw": 7})}
    assert keys.checks("x", ["a.py"], answered) == checks[0], "answers to questions are judged each time"


def test_equal_programs_with_other_inputs_are_separate_runs(cache: Cache) -> None:
    made, two = store(cache), array("f", runs=2)
    one, other = (made.keys.run(ask, ["a.py"], b"program") for ask in (CALL, two))
    assert len({one, other, made.keys.run(CALL, ["a.py"], b"another"), made.keys.run(CALL, ["b.py"], b"program")}) == 4
    ran = RunResult({"outputs": [], "memory": 3, "cpu": 0.1}, [b"abc", b"abc", b""])
    assert made.find(RUNS, one) is None and made.keep(RUNS, one, ran) is ran
    again = store(cache).find(RUNS, one)
    assert again == ran


@pytest.mark.parametrize("header", [{"fault": {"kind": "compile"}}, {"broken": "it"}, {"outputs": [], "broken": "it"}])
def test_a_run_without_a_usable_result_is_not_cached(cache: Cache, header: dict[str, Any]) -> None:
    made = store(cache)
    made.keep(RUNS, b"run", RunResult(header))
    assert made.find(RUNS, b"run") is None


@pytest.mark.parametrize("status", ["passed", "broken"])
@pytest.mark.parametrize("is_lasting", [True, False])
def test_only_results_that_would_repeat_are_cached(cache: Cache, status: Status, is_lasting: bool) -> None:
    made, checked = store(cache), Checked(results=[result("value", status)], evidence=[], lasting=is_lasting)
    made.keep(CHECKED, b"checks", checked)
    found = store(cache).find(CHECKED, b"checks")
    assert found == (checked if is_lasting and status == "passed" else None)


def test_a_source_whose_fresh_reply_differs_is_never_cached_again(cache: Cache) -> None:
    made = store(cache)
    assert kept(made, TRUE) and kept(made, TRUE, fresh=True)
    assert kept(made, OTHER, fresh=True) is None
    assert kept(made, TRUE) is None
