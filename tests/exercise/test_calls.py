"""The calls that one check may compare."""

from __future__ import annotations

import pytest

from grader.exercise import AuthorError, Exercise, normal


def an_exercise() -> tuple[Exercise, dict]:
    exercise = Exercise(meshes=[{"x": 2}, {"x": 4}])

    @exercise.task
    def f(a, *, mesh):
        """f"""

    @exercise.body(out_specs=(), check_vma="both")
    def g(a):
        """g"""

    @exercise.function
    def h(n):
        """h"""

    calls = {
        "f": exercise.call(f, a=normal(8)),
        "again": exercise.call(f, a=normal(4)),
        "on_one": exercise.call(f, a=normal(8), meshes=[{"x": 2}]),
        "g": exercise.call(g, a=normal(8)),
        "h": exercise.cases(h, public=[{"n": 1}]),
    }
    return exercise, calls


def test_a_check_of_several_calls_belongs_to_all_their_tasks() -> None:
    exercise, calls = an_exercise()

    @exercise.check([calls["f"], calls["again"]], points=1)
    def less(one, other):
        """less"""

    assert less.calls == (calls["f"], calls["again"]) and less.tasks == (exercise.tasks["f"],)
    assert exercise.checks_of(exercise.tasks["f"]) == [less] and not exercise.checks_of(exercise.tasks["g"])


@pytest.mark.parametrize(
    ("of", "every_mesh", "told"),
    [
        ("h", True, "every_mesh is for calls on meshes; h is plain Python, so leave every_mesh out"),
        ("on_one", True, "every_mesh compares meshes, but f is called on one mesh: name at least two meshes"),
        (["f", "f"], False, "a check names the same call of f twice: name each call once"),
        (["f", "on_one"], False, "a check of f and f needs the same meshes for both calls"),
        (["f", "g"], False, "a check of f and g needs the same check_vma for both calls"),
        (["f", "h"], False, "a check names the Cases, not what exercise.call returned"),
        ([], False, "exercise.check is given the list [], not the result of exercise.call or exercise.cases"),
    ],
)
def test_calls_that_cannot_be_compared_are_reported(of: str | list[str], every_mesh: bool, told: str) -> None:
    exercise, calls = an_exercise()
    chosen = calls[of] if isinstance(of, str) else [calls[name] for name in of]
    with pytest.raises(AuthorError) as error:
        exercise.check(chosen, points=1, every_mesh=every_mesh)
    assert str(error.value) == told


def test_a_check_of_two_calls_takes_two_arguments() -> None:
    exercise, calls = an_exercise()

    def less(seen):
        """less"""

    with pytest.raises(AuthorError, match=r"less checks 2 calls: write def less\(seen, other\)"):
        exercise.check([calls["f"], calls["again"]], points=1)(less)


def test_a_misconception_may_fail_a_check_that_compares_its_task() -> None:
    exercise, calls = an_exercise()

    @exercise.check([calls["f"], calls["again"]], points=1)
    def less(one, other):
        """less"""

    with pytest.raises(AuthorError, match="the misconception wrong is about g, but less judges f"):
        exercise.misconception(of=exercise.tasks["g"], fails=less)(_wrong())
    assert exercise.misconception(of=exercise.tasks["f"], fails=less)(_wrong()).fails == ("less",)


def _wrong():
    def wrong(a, *, mesh):
        """You did not."""

    return wrong
