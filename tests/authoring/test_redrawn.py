"""Inputs, keys and texts that a second process computes differently, and authors' code that does not end."""

from __future__ import annotations

import datetime
import time
from pathlib import Path

import pytest

from grader.authoring.drawing import CPU_SECONDS, constants, drawn_of, too_large, too_long
from grader.authoring.redrawn import HASH_SEEDS, Redrawn
from grader.course.config import CourseError
from tests.made_up import made_up
from tests.sampled import sampled

CALL = 'call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, hidden_dims={"I": 1012, "J": 5})'
KEY = "return all_gather_time(I, 4, "
INPUTS = "gather: each process draws different inputs: draw only with the given rng"
DEPENDS = "it must not depend on the order of a set, hash(), random numbers, the time, the folder or the machine"
ONE = HASH_SEEDS[:1]


def problems(place: Path, was: str, becomes: str) -> list[str]:
    course = made_up(place, was, becomes)
    redrawn = Redrawn(course, ["x1_gather"], ONE)
    assert redrawn.stopped(course.exercise("x1_gather")) == ""
    return list(redrawn.problems(course.exercise("x1_gather")))


@pytest.mark.parametrize(
    ("before", "told"),
    sampled(2, [
        ("", []),
        ("import os\nA = normal('I', 'J', spec=P('x', None), dtype='float32')\nSIZE = os.getpid() % 1000", [INPUTS]),
        ("SIZE = hash('text') % 1000", [INPUTS]),
        ("import time\nSIZE = int(time.time() // 86400) % 100", [INPUTS]),
        ("import datetime\nSIZE = datetime.date.today().toordinal() % 100", [INPUTS]),
        ("from datetime import datetime\nSIZE = datetime.now().toordinal() % 100", [INPUTS]),
        ("SIZE = len(__file__) % 100", [INPUTS]),
        ("import time\nSIZE = time.gmtime().tm_yday % 100", [INPUTS]),
        ("import time\nSIZE = int(time.strftime('%y'))", [INPUTS]),
        ("import os\nSIZE = os.cpu_count() % 100", [INPUTS]),
        ("SIZE = jax.local_device_count() % 100", [INPUTS]),
    ]),
)  # fmt: skip
def test_an_input_that_differs_between_processes_is_reported(tmp_path: Path, before: str, told: list[str]) -> None:
    size = "5 + 2 * SIZE" if "SIZE" in before else "5"
    assert problems(tmp_path, CALL, f"{before}\n{CALL.replace('5}', size + '}')}") == told


def test_a_key_that_differs_is_reported_once_with_both_values(tmp_path: Path) -> None:
    (told,) = problems(tmp_path, KEY, "import os\n    return os.getpid() * I * all_gather_time(I, 4, ")
    assert told.startswith("gather_time: the right answer with I=134217728 differs between two processes (")
    assert told.endswith(f": {DEPENDS}") and told.count(" us") == 2


@pytest.mark.parametrize(
    ("was", "becomes", "told"),
    sampled(1, [
        ("model=", 'where=lambda I: I % (len(__file__) + 1) > 0, title=__file__, model=', "gather_time: the text with I="),
        ("model=", "rtol=len(__file__) / 1e4, model=", "gather_time: the points and the tolerance differs"),
        ("model=", "where=lambda I: hash(str(I)) % 5 > 0, model=", "gather_time: the list of draws differs"),
    ]),
)  # fmt: skip
def test_texts_draws_and_tolerances_that_differ_are_reported(tmp_path: Path, was: str, becomes: str, told: str) -> None:
    assert any(problem.startswith(told) for problem in problems(tmp_path, was, becomes))


def test_a_key_that_depends_on_earlier_draws_is_reported(tmp_path: Path) -> None:
    counted = "helper.asked = getattr(helper, 'asked', 0) + 1\n    return helper.asked * all_gather_time(I, 4, "
    (told,) = problems(tmp_path, KEY, counted)
    assert told.startswith("gather_time: the right answer with I=") and told.endswith(DEPENDS)


def test_a_constant_is_reported_if_nothing_else_differs(tmp_path: Path) -> None:
    (told,) = problems(tmp_path, CALL, f"import os\nSIZE = os.getpid()\n{CALL}")
    assert told.startswith("the constant SIZE differs between two processes (") and told.endswith(DEPENDS)


def test_constants_are_plain_values_with_sorted_sets() -> None:
    space = {"B": {"x", "y", "z"}, "C": [1, (2.5, None)], "D": {"k": print}, "__file__": "x", "f": print}
    found = dict(constants(space))
    assert found == {"B": "set('x', 'y', 'z')", "C": "list(1, tuple(2.5, None))", "D": "dict('k': None)"}


def test_the_order_of_draws_changes_nothing(tmp_path: Path) -> None:
    exercise = made_up(tmp_path).exercise("x1_gather")
    assert sorted(drawn_of(exercise)) == sorted(drawn_of(exercise, backwards=True))
    real = time.clock_gettime(time.CLOCK_REALTIME)  # drawn_of changes time.time, but not this clock
    assert [time.time(), datetime.datetime.now().timestamp()] == pytest.approx([real, real], abs=3600)


@pytest.mark.parametrize(
    ("body", "told"),
    sampled(3, [
        ("while True: pass", too_long(1)),
        ("raise SystemExit('no reason')", "no reason"),
        ("raise ValueError('odd')", "gather: argument a: its function `draw` raises ValueError: odd"),
        ("sum(iter(int, 1))", too_long(1)),  # a loop in C, which no signal handler interrupts
        ("bytearray(1 << 40)", too_large()),
        (
            "__import__('os').abort()",
            "the process that computes inputs and answers ended with SIGABRT; perhaps " + too_large(),
        ),
        ("__import__('os')._exit(7)", "the process ended with status 7"),
        ("print('{}'); return rng.random(4)", "gather: argument a: the drawn array has shape (4,), expected (8, 3)"),
    ]),
)  # fmt: skip
def test_authors_code_that_does_not_end_stops_only_its_exercise(tmp_path: Path, body: str, told: str) -> None:
    draw = f"def draw(rng, shape):\n    {body}\n\n\nfrom grader.exercise import array\n"
    array = f'{draw}A = array("I", "J", draw=draw, spec=P("x", None))\n{CALL}'
    course = made_up(tmp_path, CALL, array)
    seconds = 1 if told == too_long(1) else CPU_SECONDS
    redrawn = Redrawn(course, ["x1_gather"], HASH_SEEDS[:2], seconds)
    assert redrawn.stopped(course.exercise("x1_gather")) == told


def test_a_course_that_another_process_cannot_load_is_an_error(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    exercise = course.exercise("x1_gather")
    (tmp_path / "course.yaml").write_text("nonsense")
    with pytest.raises(CourseError, match=r"^a second process could not draw the inputs: .*course.yaml"):
        Redrawn(course, ["x1_gather"], ONE).stopped(exercise)
