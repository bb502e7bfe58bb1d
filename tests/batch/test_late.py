"""The arithmetic of late penalties, for any policy, time and points."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.batch.late import EVERY, Handed, days_late, extension_of, later_of, penalised, percent_of
from grader.common.result import HandIn
from grader.course.config import CourseError, LatePolicy, Module
from grader.intake.times import DATED, STAMP, STATED, ZIPPED

DUE = datetime(2026, 11, 1, 23, 59, tzinfo=UTC)
HOUR = timedelta(hours=1)
MODULES = [Module(id=f"0{i}_m", title="M", deadline=DUE + i * timedelta(days=7)) for i in range(3)]
POLICIES = st.builds(
    LatePolicy,
    grace_minutes=st.integers(0, 120),
    percent_per_day=st.floats(0.1, 100),
    at_most_percent=st.floats(0.1, 100),
    free_days=st.integers(0, 5),
)
LATENESS = st.timedeltas(timedelta(days=-30), timedelta(days=400))
POINTS = st.floats(0, 1000)


def policy(**changes: float | str) -> LatePolicy:
    return LatePolicy.model_validate({"percent_per_day": 10} | changes)


def one(late: timedelta, earned: float, of: LatePolicy | None, extension: str = "") -> HandIn:
    times = {"00_m": Handed(DUE + late, STATED)}
    (found,) = penalised(of, MODULES, {"00_m": earned}, times, extension_of(extension, "r.csv:2", ["00_m"]))
    return found


@pytest.mark.parametrize("source", [STAMP, ZIPPED, DATED])
def test_a_time_that_students_can_set_is_shown_and_costs_no_points(source: str) -> None:
    times = {"00_m": Handed(DUE + 26 * HOUR, source), "01_m": Handed(DUE + timedelta(days=9), STATED)}
    first, second = penalised(policy(free_days=1), MODULES, {"00_m": 8.5, "01_m": 10}, times)
    assert (first.penalty, first.text) == (
        0,
        f"26 h late according to {source}; a time from this source costs no points",
    )
    # Students can set the first module's time, so the first module uses no free day. The second module uses it.
    assert second.penalty == 1 and "1 late day used" in second.text


def test_file_dates_cost_points_only_if_the_policy_says_so() -> None:
    times = {"00_m": Handed(DUE + 26 * HOUR, DATED)}
    (found,) = penalised(policy(trust="file-dates"), MODULES, {"00_m": 8.5}, times)
    assert found.penalty == 1.7 and found.text.endswith("= 1.7 points off (time from the file's date)")
    with pytest.raises(ValueError, match="'record' or 'file-dates'"):
        policy(trust="dates")


@pytest.mark.parametrize(
    ("late", "changes", "penalty", "text"),
    [
        (-HOUR, {}, 0, ""),
        (0 * HOUR, {}, 0, ""),
        (26 * HOUR, {}, 1.7, "handed in 26 h late: 2 x 10 % of 8.5 = 1.7 points off (time from submitted.csv)"),
        (HOUR / 4, {"grace_minutes": 15}, 0, ""),
        (HOUR / 2, {"grace_minutes": 15}, 0.85, "handed in 30 min late: 1 x 10 % of 8.5 = 0.85 points off (time from submitted.csv)"),
        (24 * HOUR + HOUR / 4, {"grace_minutes": 15}, 0.85, "handed in 24 h 15 min late: 1 x 10 % of 8.5 = 0.85 points off (time from submitted.csv)"),
        (24 * 9 * HOUR, {"at_most_percent": 50}, 4.25, "handed in 216 h late: at most 50 % of 8.5 = 4.25 points off (time from submitted.csv)"),
        (24 * 99 * HOUR, {}, 8.5, "handed in 2376 h late: at most 100 % of 8.5 = 8.5 points off (time from submitted.csv)"),
        (HOUR, {"percent_per_day": 100 / 8.5}, 1, "handed in 1 h late: 1 x 11.7647 % of 8.5 = 1 point off (time from submitted.csv)"),
        (26 * HOUR, {"free_days": 1}, 0.85, "handed in 26 h late: 1 late day used, 1 x 10 % of 8.5 = 0.85 points off (time from submitted.csv)"),
        (26 * HOUR, {"free_days": 5}, 0, "handed in 26 h late: 2 late days used (time from submitted.csv)"),
    ],
)  # fmt: skip
def test_each_begun_day_late_costs_a_share_of_the_earned_points(late, changes, penalty, text) -> None:
    found = one(late, 8.5, policy(**changes))
    assert (found.penalty, found.text) == (penalty, text)


@given(LATENESS, POINTS, POLICIES)
def test_a_penalty_is_between_zero_and_the_earned_points_or_the_cap(late, earned, of) -> None:
    found = one(late, earned, of)
    assert 0 <= found.penalty <= earned + 1e-6
    assert found.penalty <= earned * of.at_most_percent / 100 + 1e-6
    assert bool(found.text) == (days_late(DUE + late, DUE, of) > 0)
    if late <= timedelta(minutes=of.grace_minutes):
        assert found.penalty == 0


@given(LATENESS, LATENESS, POINTS, POLICIES)
def test_a_later_submission_never_gets_a_smaller_penalty(first, second, earned, of) -> None:
    early, late = sorted((first, second))
    assert one(early, earned, of).penalty <= one(late, earned, of).penalty


@given(LATENESS, POINTS, POINTS, POLICIES)
def test_more_points_before_the_penalty_leave_no_fewer_after_the_penalty(late, first, second, of) -> None:
    less, more = sorted((first, second))
    assert less - one(late, less, of).penalty <= more - one(late, more, of).penalty + 2e-6


@given(LATENESS, POINTS, POLICIES, st.integers(0, 60))
def test_an_extension_or_a_free_day_never_raises_the_penalty(late, earned, of, days) -> None:
    plain = one(late, earned, of).penalty
    assert one(late, earned, of, f"{days}d").penalty <= plain
    assert one(late, earned, of.model_copy(update={"free_days": of.free_days + days})).penalty <= plain


@given(st.lists(LATENESS, min_size=3, max_size=3), POLICIES)
def test_free_days_are_used_once_in_the_order_of_the_deadlines(lates, of) -> None:
    deadlines = {m.id: m.deadline for m in MODULES if m.deadline}
    times = {name: Handed(at + late, STATED) for (name, at), late in zip(deadlines.items(), lates, strict=True)}
    found = penalised(of, MODULES[::-1], dict.fromkeys(times, 100.0), times)
    left = of.free_days
    for hand_in in sorted(found, key=lambda one: one.module):
        days = days_late(times[hand_in.module].time, deadlines[hand_in.module], of)
        least = percent_of(of, max(0, days - left))
        left -= next(spent for spent in range(left + 1) if percent_of(of, max(0, days - spent)) == least)
        assert hand_in.penalty == pytest.approx(least, abs=1e-5)


def test_no_free_day_is_used_where_it_saves_nothing() -> None:
    """With or without the 3 free days, 20 days late cost 50 %. The free days remain for the other module."""
    times = {"00_m": Handed(DUE + timedelta(days=20), STATED), "01_m": Handed(DUE + timedelta(days=8), STATED)}
    of = policy(free_days=3, at_most_percent=50)
    first, second = penalised(of, MODULES, {"00_m": 10, "01_m": 10}, times)
    assert (first.penalty, second.penalty) == (5, 0)
    assert "late days used" not in first.text and "1 late day used" in second.text


@given(LATENESS, POINTS)
def test_without_a_policy_or_a_deadline_there_is_no_penalty(late, earned) -> None:
    assert one(late, earned, None).penalty == 0
    free = [Module(id="00_m", title="M")]
    (found,) = penalised(policy(), free, {"00_m": earned}, {"00_m": Handed(DUE + late, STATED)})
    assert (found.penalty, found.text) == (0, "")


def test_an_extension_of_a_module_overrides_one_for_all_modules() -> None:
    assert extension_of("2d; 03_m=36h", "x", ["03_m"]) == {EVERY: timedelta(days=2), "03_m": timedelta(hours=36)}
    assert extension_of(" ", "x", []) == {}
    assert one(3 * 24 * HOUR, 10, policy(), "9d; 00_m=1d").penalty == 2


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("2", r"^r\.csv:7: '2' is not an extension; write 2d, 36h or 03_m=2d, with a semicolon between extensions$"),
        ("-2d", "'-2d' is not an extension"),
        ("99999d", "is not an extension"),
        ("04_n=2d", r"^r\.csv:7: extension for '04_n', which is not a module of the course$"),
        ("2d;3d", r"^r\.csv:7: two extensions for all modules; write one$"),
    ],
)
def test_an_unreadable_extension_is_reported_with_its_line(cell: str, said: str) -> None:
    with pytest.raises(CourseError, match=said):
        extension_of(cell, "r.csv:7", ["03_m"])


def on_file(at: datetime, source: str) -> list[HandIn]:
    return [HandIn(module="m", submitted=at.isoformat(), source=source)]


@pytest.mark.parametrize("weak", [DATED, ZIPPED])
def test_the_earlier_time_of_unchanged_submissions_counts_unless_staff_recorded_one(weak: str) -> None:
    late = DUE + HOUR

    def time(now: tuple, then: tuple, same: bool) -> tuple:
        found = later_of({"m": Handed(*now)}, on_file(*then), {"m": same})["m"]
        return found.time, found.source

    assert time((late, weak), (DUE, weak), True) == (
        DUE,
        weak,
    )  # a copy changed the files' dates
    assert time((late, weak), (DUE, weak), False) == (late, weak)  # the student submitted a changed file
    # The time read from a zip depends on the machine's time zone.
    assert time((DUE, weak), (late, weak), True) == (late if weak == ZIPPED else DUE, weak)
    # An unpacked copy of the zip had later dates.
    assert time((DUE, ZIPPED), (late, DATED), True) == (DUE, ZIPPED)
    assert time((DUE, weak), (late, STATED), True) == (late, STATED)
    assert time((late, STATED), (DUE, weak), True) == (late, STATED)
    assert time((DUE, STATED), (late, STATED), True) == (DUE, STATED)
    assert later_of({}, on_file(DUE, weak), {})["m"].time == DUE


def test_a_later_line_for_all_modules_makes_no_unchanged_submission_late() -> None:
    """A line of submitted.csv may have one time for all modules. The upload of module 2 must not make module 1 late."""
    before = [one(-HOUR, 10, policy())]
    later = Handed(DUE + timedelta(days=7), STATED, for_all=True)
    earlier = Handed(DUE - 2 * HOUR, STATED, for_all=True)
    named = Handed(DUE + timedelta(days=7), STATED)

    def held(at: Handed, same: bool = True) -> datetime:
        return later_of({"00_m": at}, before, {"00_m": same})["00_m"].time

    assert held(later) == DUE - HOUR and held(earlier) == earlier.time
    assert held(named) == named.time == held(later, same=False)
