"""Bonus points, late penalties and points by hand of one student: the sums are right and never negative."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.batch.late import Handed
from grader.batch.overrides import Adjustments, Override, as_graded
from grader.common.result import Report
from grader.course.config import Config
from grader.intake.times import STATED
from grader.reports.wording import percent_of
from tests.reports.example_reports import exercise, make_report, result

MODULES = ("01_a", "02_b", "03_c")
SHARE = st.sampled_from([0.0, 0.1, 1 / 3, 0.5, 1.0])
EXERCISES = st.lists(
    st.tuples(st.sampled_from(MODULES), st.booleans(), st.booleans(), st.floats(0, 10).map(lambda p: round(p, 4))),
    min_size=1,
    max_size=6,
)
BY_HAND = st.lists(st.tuples(st.integers(0, 5), st.booleans(), SHARE), max_size=4, unique_by=lambda one: one[0])


def drawn(parts: list[tuple[str, bool, bool, float]]) -> Report:
    """Return a report. Each part gives one exercise: its module, whether it is an extension, whether it passes, its points."""
    exercises = [
        exercise(
            [result("v", "passed" if passes else "failed", points=points)],
            exercise=f"e{i}", module=module, extension=extension,
        )
        for i, (module, extension, passes, points) in enumerate(parts)
    ]  # fmt: skip
    points = round(sum(e.points for e in exercises if not e.extension), 6)
    return make_report(*exercises, points=points, earned=round(sum(e.earned for e in exercises), 6))


@given(EXERCISES, BY_HAND, st.lists(st.integers(0, 20), min_size=3, max_size=3), st.integers(0, 3), st.integers(1, 100))
@settings(deadline=None)
def test_bonus_penalty_and_points_by_hand_add_up_and_are_never_negative(parts, by_hand, days, free, cost) -> None:
    modules = [{"id": m, "title": m, "deadline": "2026-11-01T00:00:00+00:00"} for m in MODULES]
    late = {"percent_per_day": cost, "free_days": free}
    config = Config.model_validate({"name": "c", "modules": modules, "late": late})
    graded = drawn(parts)
    overrides = [
        Override(
            student="alice",
            check=f"e{i}{'' if whole else '/v'}",
            points=round(share * parts[i][3], 6),
            by="B",
            reason="r",
        )
        for i, whole, share in by_hand
        if i < len(parts)
    ]
    times = {m: Handed(datetime(2026, 11, 1 + late, tzinfo=UTC), "s") for m, late in zip(MODULES, days, strict=True)}
    whole = Adjustments(config, overrides, times={"alice": times}).settle(graded, None)

    required = whole.earned - whole.bonus
    assert 0 <= whole.bonus <= sum(e.points for e in whole.exercises if e.extension) + 1e-6
    assert 0 <= required <= whole.points + 1e-6
    percent = percent_of(whole)
    assert percent is None or 0 <= percent <= 100.01
    # Bonus exercises do not change the required points.
    without = drawn([part for part in parts if not part[1]])
    plain = Adjustments(config, times={"alice": times}).settle(without, None)
    if not overrides:
        assert required == pytest.approx(plain.earned, abs=1e-5)
    assert as_graded(whole) == graded


def test_a_module_that_is_no_longer_handed_in_is_not_late_and_uses_no_free_day() -> None:
    """Otherwise a late module that the student has removed still uses a free day."""
    modules = [{"id": m, "title": m, "deadline": "2026-11-01T00:00:00+00:00"} for m in MODULES]
    config = Config.model_validate({"name": "c", "modules": modules, "late": {"percent_per_day": 10, "free_days": 1}})

    def run(*handed_in: str, old: Report | None) -> Report:
        parts = [exercise([result()], exercise=f"e{m}", module=m, handed_in=m in handed_in) for m in MODULES]
        times = dict.fromkeys(handed_in, Handed(datetime(2026, 11, 2, tzinfo=UTC), STATED))
        return Adjustments(config, times={"alice": times}).settle(make_report(*parts), old)

    first = run("01_a", old=None)
    assert [(one.module, one.penalty) for one in first.hand_ins] == [("01_a", 0)]
    assert [(one.module, one.penalty) for one in run("02_b", old=first).hand_ins] == [("02_b", 0)]
    assert [one.module for one in run(old=first).hand_ins] == []
