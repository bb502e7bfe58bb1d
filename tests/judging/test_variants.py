"""Draw a learner's parameters, find the student that an answer belongs to, and test the questions of D1."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.common.observation import Outcome, Seen
from grader.course.finding import find_course
from grader.exercise import AuthorError, Exercise
from grader.expect import Failure
from grader.judging.answers import OfAClass, judge_answer, kind_of, params_for
from grader.judging.problems import question_problems
from grader.judging.units import BadAnswer

ROOT = Path(__file__).parents[2]


def question(**options):
    exercise = Exercise()
    options = {"params": {"n": [1, 2, 3, 4], "m": [10, 20]}, **options}

    @exercise.number(points=1, unit="us", **options)
    def area(n, m):
        """{{ n }} times {{ m }}?"""
        return n * m * 1e-6

    return area


def test_draws_equal_recorded_values():
    """If a draw changes, every learner's question changes, and past reports no longer fit."""
    area = question()
    drawn = [params_for(area, seed="2027", student=s) for s in ("ada", "bo", None)]
    assert drawn == [{"n": 1, "m": 10}, {"n": 4, "m": 20}, {"n": 1, "m": 20}]


def test_draws_are_the_same_in_another_process():
    code = (
        "import sys; sys.path.insert(0, 'tests/judging'); from test_variants import question; "
        "from grader.judging.answers import params_for; print(params_for(question(), seed='2027', student='ada'))"
    )
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == str(params_for(question(), seed="2027", student="ada"))


def test_draws_depend_on_seed_student_and_nothing_else():
    area = question()
    assert params_for(area, seed="a", student="ada") == params_for(question(), seed="a", student="ada")
    by_student = Counter(str(params_for(area, seed="a", student=f"s{i}")) for i in range(800))
    by_seed = Counter(str(params_for(area, seed=str(i), student="ada")) for i in range(800))
    assert len(by_student) == len(by_seed) == 8
    assert min(*by_student.values(), *by_seed.values()) > 60  # 100 each on average


def test_a_student_called_shared_is_a_student():
    names = [f"q{i}" for i in range(40)]
    differ = [
        params_for(question(), seed=n, student="shared") != params_for(question(), seed=n, student=None) for n in names
    ]
    assert any(differ)


def test_draws_satisfy_the_where_condition():
    even = question(where=lambda n, m: n % 2 == 0)
    assert all(params_for(even, seed="a", student=str(i))["n"] % 2 == 0 for i in range(50))
    with pytest.raises(AuthorError, match="area: no parameters satisfy its `where`"):
        params_for(question(where=lambda n, m: False), seed="a", student=None)


def test_an_answer_that_fits_another_student():
    others = {"cy": {"n": 4, "m": 20}, "bo": {"n": 4, "m": 20}, "di": {"n": 1, "m": 10}}
    drawn = OfAClass(question(), {"ada": {"n": 1, "m": 20}, **others})
    assert drawn.fits_others("ada", "80 us") == ["bo", "cy"]
    assert drawn.fits_others("ada", "80.5 us") == ["bo", "cy"]
    assert drawn.fits_others("ada", "33 us") == []
    assert drawn.fits_others("ada", "80 B") == []


def test_a_right_answer_is_not_suspicious():
    assert OfAClass(question(), {"ada": {"n": 1, "m": 20}, "bo": {"n": 2, "m": 10}}).fits_others("ada", "20 us") == []


def one_by_one(of, student, text, params):
    """Return the other students with questions that the answer fits. ``OfAClass`` must find these students, too."""

    def fits(drawn):
        kind = kind_of(of, drawn)
        try:
            return kind.distance(kind.read(text), kind.want(of(**drawn))) is not None
        except BadAnswer:
            return False

    own = params[student]
    return [] if fits(own) else sorted(s for s, drawn in params.items() if drawn != own and fits(drawn))


NUMBERS = st.sampled_from([10, 20, 20.0, 30, 40, 41, 60, 80, 80.5])


@given(
    params=st.dictionaries(
        st.text("abé0", max_size=3), st.fixed_dictionaries({"n": NUMBERS, "m": NUMBERS}), min_size=1
    ),
    texts=st.lists(st.one_of(NUMBERS.map(lambda n: f"{n * 20} us"), st.just("1 MiB"), st.just("?")), max_size=5),
)
def test_other_students_answers_are_found_from_draws_alone(params, texts):
    area = question()
    drawn = OfAClass(area, params)
    for text in texts:
        assert {s: drawn.fits_others(s, text) for s in params} == {s: one_by_one(area, s, text, params) for s in params}


def test_each_draw_is_computed_once_for_all_students():
    asked = []
    area = question(params={"n": [1, 2, 3, 4], "m": [10, 20]})
    area.fn = lambda n, m: asked.append((n, m)) or n * m * 1e-6
    students = [f"s{i}" for i in range(300)]
    drawn = OfAClass(area, {s: params_for(area, seed="a", student=s) for s in students})
    found = [drawn.fits_others(s, "80 us") for s in students]
    assert len(asked) == 8 and any(found)


# -- the exercise D1 --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def d1():
    return find_course(ROOT).exercise("d1_ring_and_line")


def test_no_two_answers_of_d1_coincide(d1):
    misconceptions = d1.misconceptions.values()
    for asked in d1.questions.values():
        assert list(question_problems(asked, misconceptions)) == []
        assert len(list(asked.variants())) >= 60
        answers = {f"{asked(**p):.3g}" for p in asked.variants()}
        assert len(answers) >= 25, asked.name


def test_every_misconception_of_d1_gets_its_own_hint(d1):
    misconceptions = d1.misconceptions.values()
    for asked in d1.questions.values():
        for params in list(asked.variants())[::7]:
            for misconception in (m for m in misconceptions if m.of is asked):
                result = judge_answer(asked, params, misconceptions, f"{misconception.fn(**params) * 1e3:.4g} ms")
                assert (result.status, result.misconception) == ("failed", misconception.name)
            assert judge_answer(asked, params, misconceptions, asked(**params) * 1e6).status == "passed"


def outcome(fn, args) -> Outcome:
    try:
        return Outcome(value=fn(**args))
    except Exception as error:
        return Outcome(error=type(error).__name__)


def failing(d1, fn, *, public: bool) -> set[str]:
    """Return the names of the checks of D1's function that fail for ``fn``."""
    times = d1.checks["ring_gather_seconds"].call
    cases = times.public if public else list(times.hidden(np.random.default_rng(0)))
    reference = d1.tasks["axis_collective_time"].fn
    outcomes = [(args, outcome(fn, args), outcome(reference, args)) for args in cases]
    failed = set()
    for check in d1.checks.values():
        if check.public or not public:
            try:
                check.fn(Seen(mesh={}, outcomes=outcomes, public=public))
            except Failure:
                failed.add(check.name)
    # Leave out checks that a failed check blocks.
    return {name for name in failed if not failed & set(d1.checks[name].after)}


@pytest.mark.parametrize("public", [True, False])
def test_mutants_fail_the_checks_of_the_d1_function(d1, public):
    seen = {c.name for c in d1.checks.values() if c.public or not public}
    assert failing(d1, d1.tasks["axis_collective_time"].fn, public=public) == set()
    assert failing(d1, lambda **_: None, public=public) == {n for n in seen if not d1.checks[n].after}
    for misconception in d1.misconceptions.values():
        if misconception.of is d1.tasks["axis_collective_time"]:
            assert failing(d1, misconception.fn, public=public) == set(misconception.fails) & seen, misconception.name


def test_d1_is_worth_what_the_curriculum_says(d1):
    assert d1.points == 3
