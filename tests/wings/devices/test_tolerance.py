"""Tolerances of a device's own arithmetic: right programs pass with rounded matmuls, and wrong programs do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from grader.batch.grade import Grader
from grader.common.observation import Sharded
from grader.common.result import Result
from grader.course.finding import find_course
from grader.course.reference import answers, reference_source
from grader.exercise import Misconception
from grader.expect import Failure, expect_close, values
from grader.intake.submission import Chunk, Source, Submission
from grader.wings.devices.backends import BACKENDS
from tests.commands import ROOT
from tests.wings.devices.emulation import Emulated

# Exercise c3 has one matmul. Exercise h2 has gradients through relus, and rounding may flip the relus' masks. For the
# whole course, run:
# python -m tests.wings.devices.emulation tpu
CASES = [("tpu", "c3_contracting"), ("tpu", "h2_buckets"), ("gpu", "c3_contracting")]


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    with Grader(find_course(ROOT), "none") as made:
        yield made


def graded(
    grader: Grader, name: str, emulated: Emulated, misconception: Misconception | None = None
) -> dict[str, Result]:
    exercise = grader.course.exercise(name)
    text = reference_source(exercise, answers(grader.course, exercise, "ada"), misconception)
    source = Source(f"{name}.py", (Chunk(f"{name}.py", text),))
    workers: Any = grader.worker_sets[0].without_devices()  # type: ignore[union-attr]
    workers.devices = emulated
    judge = Grader(grader.course, "none", here=workers)
    return {r.name: r for r in judge.grade(Submission("ada", {name: source}, (), ""), [name]).exercises[0].results}


@pytest.mark.parametrize(("backend", "name"), CASES)
def test_references_pass_with_the_rounded_matmuls_of_tpus_and_gpus(
    grader: Grader, name: str, backend: str, devices: int
) -> None:
    emulated = Emulated(BACKENDS[backend])
    results = graded(grader, name, emulated)
    assert {n: r.reason for n, r in results.items() if r.status != "passed"} == {}
    assert emulated.rounded > 0


def test_a_misconception_fails_the_same_checks_with_rounded_matmuls(grader: Grader, devices: int) -> None:
    """A device's tolerance is wide. So a program must pass the narrow tolerance of simulated devices, too."""
    misconception = grader.course.exercise("c3_contracting").misconceptions["psum_then_slice"]
    results = graded(grader, "c3_contracting", Emulated(BACKENDS["tpu"]), misconception)
    assert {n for n, r in results.items() if r.status == "failed"} == set(misconception.fails)


def sharded(value: np.ndarray, factors: float) -> Sharded:
    return Sharded(value.shape, value.dtype, {"x": 1}, [((0, value.size),)], [value], value.dtype, factors=factors)


@pytest.mark.parametrize(("backend", "off", "good"), [("tpu", 2.0**-6, True), ("tpu", 2.0**-4, False), ("gpu", 2.0**-9, True),
                                                      ("gpu", 2.0**-6, False), ("cpu", 2.0**-9, False)])  # fmt: skip
def test_the_tolerance_follows_the_rounding_of_the_factors(backend: str, off: float, good: bool) -> None:
    want = np.array([1.0, -0.5, 0.25])
    got = sharded((want + off).astype(np.float32), BACKENDS[backend].factors)
    if good:
        expect_close(got, want)
    else:
        with pytest.raises(Failure, match="values are wrong"):
            expect_close(got, want)


def test_float64_is_never_judged_by_rounded_factors() -> None:
    want = np.array([1.0, 2.0])
    with pytest.raises(Failure):
        expect_close(sharded(want + 1e-6, BACKENDS["tpu"].factors), want)
    assert values.FACTORS * BACKENDS["tpu"].factors == 2.0**-5
