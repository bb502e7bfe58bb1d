"""Wrong programs get the hint of their misconception. ``bench/hints.py`` tests many more wrong programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.hints import hints_of, verdict, written
from grader.batch.grade import Grader
from grader.batch.workers import Workers
from grader.course.finding import find_course


@pytest.fixture(scope="module")
def grader(workers: Workers) -> Grader:
    return Grader(find_course(Path(__file__).resolve().parent.parent), "none", here=workers)


def test_every_function_and_question_has_three_hints() -> None:
    course = find_course(Path(__file__).resolve().parent.parent)
    owners = [(e, {**course.exercise(e).tasks, **course.exercise(e).questions}) for e in course.module_of]
    assert [(e, name) for e, named in owners for name, owner in named.items() if len(set(owner.hints)) < 3] == []


def test_wrong_programs_get_the_hint_of_their_mistake_and_no_other(grader: Grader) -> None:
    cases = list(written(grader.course, ["g3_inner_grad"]))
    exercise = grader.course.exercise("g3_inner_grad")
    found = {case.name: (verdict(case, hints), hints) for case, hints in hints_of(grader, exercise, cases)}
    assert {name: what for name, (what, _) in found.items() if what not in ("right", "silent")} == {}
    assert found["psum_on"] == ("silent", {"on_value": ("", found["psum_on"][1]["on_value"][1])})
    assert found["grad_of_pmean_off"][1]["off_value"][0] == "off_of_mean_loss_alone"
    assert len(found) == len(cases) > 10


@pytest.mark.slow
@pytest.mark.by_hand
def test_a_mean_of_means_gets_its_hint_in_every_form(grader: Grader) -> None:
    """Each program uses a different mask, so the programs have different results."""
    cases = [c for c in written(grader.course, ["h1_ddp"]) if "means" in c.name or c.name == "guarded_and_right"]
    exercise = grader.course.exercise("h1_ddp")
    found = {case.name: verdict(case, hints) for case, hints in hints_of(grader, exercise, cases)}
    assert [n for n, what in found.items() if "means" in n and what == "right"] == [
        "mean_of_means_0_over_0", "mean_of_means_guarded", "mean_of_means_weighted", "mean_of_means_nan_to_num",
        "mean_of_means_by_cond", "mean_of_means_gathered", "mean_of_weights_of_means",
    ]  # fmt: skip
    assert found["guarded_and_right"] == "" and found["summed_means"] == "silent"
    assert "wrong" not in found.values()
