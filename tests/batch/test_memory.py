"""What is remembered over runs is what a fresh run gives, or nothing; and a check that changed is judged without tracing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.batch import grade, memory
from grader.batch.grade import Grader
from grader.batch.memory import Digest, Forgotten, Memory, remembered
from grader.batch.why import why
from grader.common.cache import Cache
from grader.common.observation import Fault
from grader.common.result import Report, Result
from grader.course.loading import Course
from grader.intake.submission import Chunk, Source
from grader.judging.plan import Ask
from grader.sandbox.tiers import available
from grader.sandbox.worker import Worker
from tests.batch.test_grade import NAME, RIGHT, ZEROS, submitted
from tests.batch.test_workers import array, cases, question
from tests.made_up import made_up

TIER = next((t for t in ("sandlock", "bwrap") if not available(t)), "none")
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


def reports(course: Course, cache: Cache | None, texts: dict[str, str] = CLASS) -> dict[str, str]:
    with Grader(course, TIER, cache=cache) as grader:
        return {s: grader.grade(submitted(text, s), [NAME]).dumps() for s, text in texts.items()}


@pytest.fixture(scope="module")
def fresh(course: Course) -> dict[str, str]:
    """What the class gets where nothing is remembered."""
    return reports(course, None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What workers are asked from now on: ``trace`` with the source's text, or ``run``."""
    told: list[str] = []
    trace, run = Worker.trace, Worker.run_program

    def traced(self: Worker, source: dict[str, Any], *more: Any) -> Any:
        told.append(source["chunks"][0][1])
        return trace(self, source, *more)

    def ran(self: Worker, *about: Any, **more: Any) -> Any:
        told.append("run")
        return run(self, *about, **more)

    monkeypatch.setattr(Worker, "trace", traced)
    monkeypatch.setattr(Worker, "run_program", ran)
    return told


@isolated
def test_the_second_time_nothing_is_traced_and_reports_are_the_same(
    course: Course, cache: Cache, fresh: dict[str, str], asked: list[str]
) -> None:
    assert reports(course, cache) == fresh
    assert set(CLASS.values()) <= set(asked)
    asked.clear()
    assert reports(course, cache) == fresh
    assert set(asked) == {CLASS["fay"]}, "what does not load is traced again"


@isolated
def test_whose_programs_are_the_same_are_judged_once_whatever_they_answer(
    course: Course, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = "\ngather_time = {}\n"
    texts = {
        f"{who} {n}": CLASS[who] + answer.format(n) for who in ("ada", "bo", "cy") for n in (1.5, "'3 us'", "'4 hours'")
    }
    texts["dot"] = CLASS["bo"].replace("zeros", "ones") + answer.format(1.5)  # another program, the same answer
    judged, judge = [], grade.judge_checks

    def counted(*about: Any, **public: Any) -> list[Result]:
        judged.append(about)
        return judge(*about, **public)

    monkeypatch.setattr(grade, "judge_checks", counted)
    together = reports(course, cache, texts)
    assert len(judged) == 4, "cy's stands one line further down, and what is wrong with bo's stands on no line"
    assert together == reports(course, None, texts)
    assert len({Report.loads(r).exercises[0].results[-1].reason for r in together.values()}) == 2


@isolated
def test_a_changed_check_is_judged_without_tracing_or_compiling(
    course: Course, cache: Cache, tmp_path: Path, asked: list[str]
) -> None:
    reports(course, cache)
    changed = made_up(
        tmp_path / "course", "expect_close(seen.out, seen.a)", "expect_close(seen.out, seen.a, scale=1e9)"
    )
    asked.clear()
    again = reports(changed, cache)
    assert set(CLASS.values()) & set(asked) == {CLASS["fay"]}, "slips that nobody had seemed to make are traced, too"
    assert again == reports(changed, None)
    was, now = (Report.loads(r["bo"]).exercises[0].results for r in (reports(course, cache), again))
    assert [r.status for r in was] != [r.status for r in now], "zeros are near enough now"


@isolated
def test_what_is_gone_or_damaged_is_traced_or_run_again(
    course: Course, cache: Cache, fresh: dict[str, str], monkeypatch: pytest.MonkeyPatch, asked: list[str]
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
def test_what_could_come_out_another_way_is_not_remembered(course: Course, cache: Cache, asked: list[str]) -> None:
    texts = {"ada": "import random\n" + RIGHT, "bo": RIGHT + "\nwhile True:\n    pass\n"}
    short = course.config.limits.model_copy(update={"trace_seconds": 2})
    impatient = Course(course.root, course.config.model_copy(update={"limits": short}))
    first = reports(impatient, cache, texts)
    asked.clear()
    assert reports(impatient, cache, texts) == first
    assert set(texts.values()) <= set(asked)


@isolated
def test_why_decides_afresh_and_what_differs_is_not_remembered_again(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    monkeypatch.setenv(memory.VARIABLE, str(tmp_path / "store"))
    with remembered() as cache:
        report = Report.loads(reports(course, cache, {"ada": RIGHT})["ada"])
    asked.clear()
    work = submitted(RIGHT, "ada")
    assert why(course, TIER, work, f"{NAME}/value", report).differs == []
    assert asked.count(RIGHT) == 2, "nothing that was remembered took part"
    results = [r.model_copy(update={"status": "failed"}) for r in report.exercises[0].results]
    forged = report.model_copy(update={"exercises": [report.exercises[0].model_copy(update={"results": results})]})
    asked.clear()
    with remembered() as cache:
        reports(course, cache, {"ada": RIGHT})
    assert asked == []
    assert why(course, TIER, work, f"{NAME}/value", forged).differs
    asked.clear()
    with remembered() as cache:
        reports(course, cache, {"ada": RIGHT})
    assert RIGHT in asked


def test_without_isolation_nothing_is_remembered(course: Course, cache: Cache) -> None:
    assert Grader(course, "none", cache=cache).memory is None


def test_the_place_is_named_turned_off_or_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(memory.VARIABLE, str(tmp_path / "mine"))
    assert memory.folder() == tmp_path / "mine"
    monkeypatch.setenv(memory.VARIABLE, memory.OFF)
    assert memory.folder() is None
    monkeypatch.delenv(memory.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert memory.folder() == tmp_path / "shardlings"
    with remembered(False) as cache:
        assert cache is None
    assert list(tmp_path.iterdir()) == []


# -- what is kept, and under which key ---------------------------------------------------------

CALL, PLAIN, NUMBER = array("f"), cases("g"), question("q")
ASKS: list[Ask] = [CALL, PLAIN, NUMBER]
TRUE: list[Any] = [({"program": True}, [b"bytecode"]), ({"values": [{"value": 1}]}, []), ({"raw": 2.5}, [])]


def source(text: str = "x = 1", name: str = "a.py") -> Source:
    return Source(name, (Chunk(name, text),))


def kept(made: Memory, replies: list[Any], text: str = "x = 1", notes: list[str] | None = None) -> Any:
    made.keep(source(text), ASKS, ASKS, replies, notes or [], 0.5)
    return made.recall(source(text), ASKS, ASKS)


def test_replies_come_back_as_they_were(cache: Cache) -> None:
    made = Memory(cache, "all else")
    found = kept(made, TRUE)
    assert found.replies[1:] == TRUE[1:] and (found.notes, found.cpu) == ([], 0.5)
    body, (digest,) = found.replies[0]
    assert body == {"program": True} and isinstance(digest, Digest) and made.program(digest) == b"bytecode"
    with pytest.raises(Forgotten):
        made.program(Digest(bytes(32)))


@pytest.mark.parametrize("kind", ["missing", "raised", "syntax", "untraceable"])
def test_faults_of_the_code_are_kept(cache: Cache, kind: str) -> None:
    fault = Fault(kind, "a word", 3, "a.py", "ValueError")
    assert kept(Memory(cache, ""), [fault, *TRUE[1:]]).replies[0] == fault


@pytest.mark.parametrize(
    "fault",
    [
        *(Fault(kind, "") for kind in ("timeout", "memory", "crashed", "broken", "refused", "compile")),
        *(Fault("raised", "", type=name) for name in ("OSError", "PermissionError", "MemoryError", "XlaRuntimeError")),
    ],
)
def test_faults_of_the_moment_are_not(cache: Cache, fault: Fault) -> None:
    assert kept(Memory(cache, ""), [TRUE[0], fault, TRUE[2]]) is None


def test_what_was_stopped_while_it_was_loaded_is_not(cache: Cache) -> None:
    assert kept(Memory(cache, ""), TRUE, notes=["a.py stopped at line 1: it did not finish"]) is None


@pytest.mark.parametrize(
    "reply",
    [
        ({"fault": None}, [b"bytecode"]), ({"replies": []}, []), ({}, [b"one", b"two"]), ({"body": {"x": ["\x00\ud800"]}}, []),
        ({"raw": float("nan")}, []), ({"raw": 10**400}, []),
    ],
)  # fmt: skip
def test_whatever_a_learners_process_says_comes_back_as_it_said_it(cache: Cache, reply: Any) -> None:
    found = kept(Memory(cache, ""), [TRUE[0], reply, TRUE[2]])
    assert repr(found.replies[1]) == repr((reply[0], []))
    of_call = kept(Memory(cache, "another"), [reply, *TRUE[1:]])
    assert repr(of_call.replies[0][0]) == repr(reply[0]) and len(of_call.replies[0][1]) == len(reply[1][:1])


def test_whatever_is_another_has_another_key(cache: Cache) -> None:
    made = Memory(cache, "all else")
    first = kept(made, TRUE).came_to
    assert Memory(cache, "all other").recall(source(), ASKS, ASKS) is None
    assert made.recall(source("x = 2"), ASKS, ASKS) is None
    assert made.recall(source(name="b.py"), ASKS, ASKS) is None
    assert made.recall(source(), ASKS[:2], ASKS[:2]) is None
    renamed = [array("h"), *ASKS[1:]]
    assert made.recall(source(), renamed, renamed) is None
    other_inputs = [array("f", runs=2), *ASKS[1:]]
    found = made.recall(source(), other_inputs, other_inputs)
    assert found and found.came_to[other_inputs[0]] != first[CALL], "the same program, and another run of it"
    other = kept(made, [({"program": True}, [b"another"]), *TRUE[1:]], text="x = 3").came_to
    assert first[CALL] != other[CALL] and first[PLAIN] == other[PLAIN]


def test_the_same_program_with_other_inputs_is_another_run(cache: Cache) -> None:
    made = Memory(cache, "")
    two = array("f", runs=2)
    one, other = made.asked(source(), ASKS, ASKS).inputs[CALL], made.asked(source(), [two], [two]).inputs[two]
    header = {"outputs": [], "memory": 3, "cpu": 0.1}
    made.keep_run(one, bytes(32), header, [b"abc", b"abc", b""])
    assert made.ran(one, bytes(32)) == ({"outputs": [], "memory": 3}, [b"abc", b"abc", b""])
    assert made.ran(other, bytes(32)) is None and made.ran(one, b"1" * 32) is None
    assert Memory(cache, "").ran(one, bytes(32)) == ({"memory": 3, "outputs": []}, [b"abc", b"abc", b""])


@pytest.mark.parametrize("header", [{"fault": {"kind": "compile"}}, {"broken": "it"}, {"outputs": [], "broken": "it"}])
def test_what_no_program_came_to_is_found_anew(cache: Cache, header: dict[str, Any]) -> None:
    made = Memory(cache, "")
    made.keep_run(b"ask", bytes(32), header, [])
    assert made.ran(b"ask", bytes(32)) is None


def test_a_source_that_does_something_else_is_never_remembered_again(cache: Cache) -> None:
    made = Memory(cache, "")
    assert kept(made, TRUE) and kept(made, TRUE)
    assert kept(made, [({"program": True}, [b"another"]), *TRUE[1:]]) is None
    assert kept(made, TRUE) is None
