"""Timing calls, from their declaration to the learners' release. The grader gives their programs a timeline, and never runs them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from grader.batch.replies import RunResult, observed
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.course.public import public_source
from grader.exercise import Call, Misconception
from grader.judging.judge import judge_check
from grader.judging.misconceptions import Attempt, fitting
from grader.judging.plan import Ask, plan
from grader.judging.seen import AskFinding, seen_of
from grader.learner.answering import lower
from grader.runner import execution
from tests.made_up import made_up

IMPORT = "from grader.expect import expect_close, expect_collectives, expect_spec\n"
WHAT = "@exercise.misconception(fails=value)"
ON = 'on="v5e:16x16"'
TIMED = f"""\
narrow = exercise.call(gather, a=A, meshes=[{{"x": 5}}], dims={{"I": 55, "J": 13}}, hidden_dims={{"I": 65, "J": 11}})
big = exercise.timing(narrow, {ON}, meshes=[{{"x": 256}}], dims={{"I": 1 << 16, "J": 1 << 15}}, hidden_dims={{"I": 1 << 17, "J": 1 << 15}})


@exercise.check(narrow, points=1, public=True, after=value)
def on_five(seen):
    \"\"\"it is whole on five devices\"\"\"
    expect_close(seen.out, seen.a)


@exercise.check(big, points=1, public=True, after=value)
def quick(seen):
    \"\"\"a step of 48 ms\"\"\"
    expect_step_time(seen, at_most=48e-3 * seen.dims["I"] / (1 << 16))


{WHAT}"""


def timed(folder: Path, was: str = "", becomes: str = "") -> Course:
    made_up(folder, WHAT, TIMED.replace(was, becomes) if was else TIMED)
    path = folder / "solutions/01_gather/x1_gather.py"
    path.write_text(path.read_text().replace(IMPORT, f"{IMPORT.strip()}, expect_step_time\n"), encoding="utf-8")
    from grader.course.loading import load_course

    return load_course(folder / "course.yaml")


def asks(course: Course, *, public: bool = False) -> list[Ask]:
    found = plan(course.exercise("x1_gather"), public=public, seed="s")
    return [a for a in found if isinstance(a.of, Call) and a.of.timing]


def answered(ask: Ask, task: Any = None) -> AskFinding:
    """Trace and read the ask's program in this process."""
    request = ask.for_runner([])
    code = lower(task or ask.of.task.fn, request)  # type: ignore[union-attr]
    return AskFinding(ask, observed(ask, RunResult(*execution.execute(request, code, ask.arrays()))))


def test_a_timing_call_is_traced_without_data_or_hidden_cases(tmp_path: Path) -> None:
    course = timed(tmp_path)
    assert [a.dims["I"] for a in asks(course, public=True)] == [1 << 16]
    found = asks(course)
    assert [a.dims["I"] for a in found] == [1 << 16, 1 << 17]
    assert not any(a.inputs or a.hidden_inputs for a in found) and all(
        a.for_runner([]).get("timing") is True for a in found
    )
    everything = plan(course.exercise("x1_gather"), public=False, seed="s")
    assert sum("timing" in a.for_tracer([]) for a in everything) == len(found) < len(everything)


def test_arrays_of_paper_size_on_a_slice_of_256_chips_are_traced_and_judged(tmp_path: Path) -> None:
    """The array has 8 GiB in all, on 256 chips. Other calls have eight devices and are refused beyond 1 GiB."""
    course = timed(tmp_path)
    small, large = (answered(ask) for ask in asks(course))
    seen = small.finding.observation
    assert seen is not None and seen.outputs == [] and seen.memory == 0
    check = course.exercise("x1_gather").checks["quick"]
    (seen,) = seen_of(small, learners_run=True)
    assert seen.out is None and seen.timeline.axes == {"x": (0, 1)} and seen.timeline.chip == "v5e"
    assert judge_check(check, [small, large], learners_run=False).status == "passed"
    ordinary: Any = {k: v for k, v in small.ask.for_runner([]).items() if k != "timing"}
    header, _ = execution.execute(ordinary, lower(check.call.task.fn, small.ask.for_runner([])), [])
    assert (
        "fault" in header and header["fault"]["message"] == "the program makes an array of 8.0 GiB; 1 GiB is the limit"
    )


def test_a_program_with_a_misconceptions_time_gets_its_hint(tmp_path: Path) -> None:
    import jax
    from jax.sharding import PartitionSpec as P

    def gathered(times: int) -> list[AskFinding]:
        def task(a, *, mesh):
            def local(a):
                whole = jax.lax.all_gather(a, "x", tiled=True)
                for _ in range(times - 1):
                    whole = whole + jax.lax.all_gather(whole[: a.shape[0]] * 2, "x", tiled=True)
                return whole

            return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)

        return [answered(ask, task) for ask in every]

    course = timed(tmp_path)
    exercise = course.exercise("x1_gather")
    every = [a for a in plan(exercise, public=True, seed="s") if isinstance(a.of, Call) and a.compared]
    quick, twice = exercise.checks["quick"], gathered(2)

    def shown(_: Misconception, asks: Sequence[Ask]) -> Attempt:
        return Attempt([one for one in twice if one.ask in asks])

    misconception = Misconception("twice", "You gather twice.", lambda: None, exercise.tasks["gather"], ("quick",))
    for times, fits in ((2, [misconception]), (4, [])):
        mine = Attempt(gathered(times))
        assert fitting(quick, mine, {"quick": "failed"}, [misconception], exercise.checks, shown) == fits


def test_learners_get_timing_calls_without_the_hidden_sizes(tmp_path: Path) -> None:
    text = public_source(timed(tmp_path).exercise("x1_gather"))
    assert 'big = exercise.timing(narrow, on="v5e:16x16"' in text and "def quick(seen)" in text
    assert "1 << 17" not in text and "hidden_dims" not in text


@pytest.mark.parametrize(
    ("was", "becomes", "told"),
    [
        (ON, 'on="v5e:2x4"', "on='v5e:2x4': the mesh (x=256) has 256 devices, but v5e:2x4 has 8"),
        (ON, 'on="v5e:3x3"', "on='v5e:3x3': v5e has no slice of 3x3"),
        (ON, 'on="v5"', "on='v5': unknown chip 'v5'; did you mean 'v5p'? (known: v3, v4p, v5p, v5e, v6e, 7x, A100, H100, H200, B200, GB200 NVL72)"),
        (ON, "on=8", '`on` is the int 8, not a slice such as "v5e:2x4"'),
        (f", {ON}", "", "exercise.timing: on=... is missing"),
        (ON, f'{ON}, profile="v9e"', "no such profile 'v9e'; did you mean 'v6e'?"),
        (ON, f'{ON}, axes=["x"]', "`axes` is the list ['x'], not a dict such as {\"x\": [0, 1]}"),
        (ON, f'{ON}, axes={{"x": "01"}}', "`axes`: x is the str '01', but must list axes of the slice by number, such as [0, 1]"),
        (ON, f'{ON}, axes={{"x": [0]}}', "on='v5e:16x16': the mesh (x=256) does not fit on v5e:16x16 with axes={'x': (0,)}; give other axes, or leave axes out"),
        (ON, f"{ON}, dim=3", "exercise.timing: no such argument 'dim'; did you mean 'dims'?"),
        ("timing(narrow", "timing(gather", "exercise.timing times the Task gather, not a call: first write call = exercise.call(...)"),
        ('{"I": 1 << 16, "J": 1 << 15}, h', '{"I": 1 << 16}, h', "gather: `dims` gives sizes of I and `hidden_dims` gives sizes of I, J: both must name the same dimensions"),
        ('[{"x": 256}]', '[{"x": 16, "y": 16}]', "the mesh of exercise.timing has the axes x and y, but the mesh of its call has x; use the same axes in the same order"),
        ('"J": 13}', '"J": 3}', "exercise.timing: the dimension J has size 3 in the judged call and 32768 in the timing call. The grader recognizes a dimension by its size, so in the judged call choose a size with a prime factor that is larger than 5 (the number of devices) and that no other dimension has, such as 7"),
        ('"J": 11})', '"J": 5})', "exercise.timing: hidden_dims: the dimension J has size 5 in the judged call and 32768 in the timing call. The grader recognizes a dimension by its size, so in the judged call choose a size with a prime factor that is larger than 5 (the number of devices) and that no other dimension has, such as 7"),
    ],
)  # fmt: skip
def test_a_wrong_timing_declaration_is_reported_in_one_line(tmp_path: Path, was: str, becomes: str, told: str) -> None:
    with pytest.raises(CourseError) as error:
        timed(tmp_path, was, becomes).exercise("x1_gather")
    assert re.sub(r".*\.py:\d+: ", "", str(error.value)) == told
