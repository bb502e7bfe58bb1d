"""The answers of module 09, and claims of its statements. The tests derive each answer in a second way.

Most tests simulate each tick. For small pipelines, a search over all schedules finds no schedule that is shorter than
1F1B. No schedule as short as 1F1B has fewer micro-batches in flight.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader.batch import explaining
from grader.batch.grade import Grader
from grader.course.exercises import load_exercise
from grader.course.loading import load_course
from grader.course.reference import reference_source
from grader.exercise import Cases, Exercise, Question
from grader.hardware import CHIPS, GPUS
from grader.intake.submission import Chunk, Source
from grader.reports.timeline_text import draw_timelines
from grader.reports.timelines import show_us

ROOT = Path(__file__).parents[1]
MODULE = "09_pipeline"
NAMES = ["i1_gpipe_forward", "i2_gpipe_backward", "i3_schedule_1f1b", "i4_run_ranks", "i5_1f1b_program"]
EXERCISES: dict[str, Exercise] = {
    name: load_exercise(ROOT / "solutions" / MODULE / f"{name}.py", f"keys_of_{name}", MODULE, 0.02) for name in NAMES
}
QUESTIONS = {question.name: question for exercise in EXERCISES.values() for question in exercise.questions.values()}
schedule_1f1b = EXERCISES["i3_schedule_1f1b"].tasks["schedule_1f1b"]
run_ranks = EXERCISES["i4_run_ranks"].tasks["run_ranks"]
Grid = list[list[str]]


# -- schedules ---------------------------------------------------------------------------------


def gpipe(P: int, M: int) -> Grid:
    """Return the grid of GPipe: all forward passes, then all backward passes."""
    ticks = 2 * (M + P - 1)
    at = [
        {s + i: f"F{i}" for i in range(M)} | {ticks // 2 + P - 1 - s + i: f"B{i}" for i in range(M)} for s in range(P)
    ]
    return [[row.get(tick, "") for tick in range(ticks)] for row in at]


def alternating(P: int, M: int) -> Grid:
    """Return the grid of I5, as its statement defines it."""
    at = [{s + 2 * i: f"F{i}" for i in range(M)} | {2 * P - 1 - s + 2 * i: f"B{i}" for i in range(M)} for s in range(P)]
    return [[row.get(tick, "") for tick in range(2 * (M + P - 1))] for row in at]


def needs(P: int, s: int, cell: str) -> tuple[int, str] | None:
    """Return the (device, cell) that must be done before device s can do ``cell``; None if there is none."""
    before = s - 1 if cell[0] == "F" else s + 1
    if 0 <= before < P:
        return before, cell
    return None if cell[0] == "F" else (s, "F" + cell[1:])


def in_flight(row: list[str]) -> int:
    """Return the largest number of micro-batches in flight (forward pass begun, backward pass not ended)."""
    now = most = 0
    for cell in row:
        now += cell[:1] == "F"
        most = max(most, now)
        now -= cell[:1] == "B"
    return most


def seconds(grid: Grid, cost: Mapping[str, float]) -> float:
    """Return the total time of a schedule. Each cell starts as soon as its device is free and its input has arrived."""
    P, done = len(grid), {}
    rows = [[cell for cell in row if cell] for row in grid]
    free = [0.0] * P
    while any(rows):
        for s in range(P):
            while rows[s] and ((need := needs(P, s, rows[s][0])) is None or need in done):
                cell = rows[s].pop(0)
                free[s] = done[s, cell] = max(free[s], done[need] if need else 0.0) + cost[cell[0]]
    return max(done.values())


def lock_step(grid: Grid, cost: Mapping[str, float]) -> float:
    """Return the total time of a schedule. Each tick takes as long as its longest cell."""
    return sum(max((cost[row[tick][0]] for row in grid if row[tick]), default=0) for tick in range(len(grid[0])))


@pytest.mark.parametrize("make", [schedule_1f1b, alternating, gpipe])
@pytest.mark.parametrize(("P", "M"), [(1, 1), (1, 3), (2, 5), (4, 2), (4, 8), (7, 7), (5, 11)])
def test_schedules_keep_their_order_and_take_two_ticks_for_each_micro_batch_and_stage(make: Callable, P: int, M: int):
    grid = make(P=P, M=M)
    at = {(s, cell): tick for s, row in enumerate(grid) for tick, cell in enumerate(row) if cell}
    assert len(at) == 2 * P * M == sum(cell != "" for row in grid for cell in row)
    for (s, cell), tick in at.items():
        need = needs(P, s, cell)
        assert need is None or at[need] < tick
    assert max(at.values()) + 1 == 2 * (M + P - 1)
    due = [M] * P if make is gpipe else [min(P - s, M) for s in range(P)]
    assert [in_flight(row) for row in grid] == due


def shortest(P: int, M: int, most: list[int]) -> int:
    """Return the ticks of the shortest schedule with at most ``most[s]`` micro-batches in flight on device s."""
    reached, ticks = {((0, 0),) * P}, 0
    while ((M, M),) * P not in reached:
        reached = {state for before in reached for state in following(before, M, most)}
        ticks += 1
    return ticks


def following(before: tuple[tuple[int, int], ...], M: int, most: list[int]) -> list[tuple[tuple[int, int], ...]]:
    """Return all states (passes done per device) after one more tick. Each device takes micro-batches in order."""
    choices = []
    for s, (f, b) in enumerate(before):
        arrived = M if s == 0 else before[s - 1][0]
        back = f if s == len(before) - 1 else before[s + 1][1]
        can = [(f, b)]
        can += [(f + 1, b)] if f < arrived and f - b < most[s] else []
        can += [(f, b + 1)] if b < min(back, f) else []
        choices.append(can)
    return list(itertools.product(*choices))


@pytest.mark.parametrize(("P", "M"), [(1, 3), (2, 1), (2, 4), (3, 2), (3, 4), (4, 2)])
def test_no_schedule_is_shorter_and_none_as_short_keeps_less(P: int, M: int):
    most = [min(P - s, M) for s in range(P)]
    assert shortest(P, M, [M] * P) == shortest(P, M, most) == 2 * (M + P - 1)
    for s in range(P):
        if most[s] > 1 and P - s < M:
            assert shortest(P, M, [n - (s == d) for d, n in enumerate(most)]) > 2 * (M + P - 1)


def test_four_devices_and_eight_micro_batches_take_22_ticks_or_33_where_backwards_take_twice_as_long():
    grid = schedule_1f1b(P=4, M=8)
    assert {len(row) for row in grid} == {22}
    assert all(row.count("") == 6 for row in grid)
    assert seconds(grid, {"F": 1, "B": 2}) == seconds(alternating(4, 8), {"F": 1, "B": 2}) == 33
    assert seconds(gpipe(4, 8), {"F": 1, "B": 2}) == 33
    # In exercise I5 all devices run one program. In this test each device has its own program.
    assert seconds(alternating(4, 8), {"F": 1, "B": 3}) == 11 * 4


def pictured(name: str, heading: str) -> Grid:
    """Return the schedule that a statement shows below ``heading``."""
    lines = EXERCISES[name].statement.split(heading)[1].splitlines()[1:]
    rows = list(itertools.takewhile(lambda line: line.strip().startswith("pp="), lines))
    cells = [line.split("=")[1].split()[1:] for line in rows]
    return [["" if cell == "." else cell for cell in row if not cell.isdigit() and cell[0] in "FB."] for row in cells]


def test_pictures_are_the_schedules():
    assert pictured("i3_schedule_1f1b", "GPipe       0")[:3] == gpipe(3, 4)
    assert pictured("i3_schedule_1f1b", "1F1B        0")[:3] == schedule_1f1b(P=3, M=4)
    assert pictured("i2_gpipe_backward", "tick     0")[:3] == gpipe(3, 4)
    assert pictured("i5_1f1b_program", "tick  0")[:4] == alternating(4, 5)


# -- ranks -------------------------------------------------------------------------------------


def steps_of(programs: list[list[tuple[str, int]]]) -> int:
    """Return the number of rounds until all programs end. In a round a rank sends or receives at most one message."""
    at, rounds = [0] * len(programs), 0
    while any(k < len(program) for k, program in zip(at, programs, strict=True)):
        now = [program[k] if k < len(program) else ("", -1) for k, program in zip(at, programs, strict=True)]
        pairs = [(a, b) for a, (kind, b) in enumerate(now) if kind == "send" and now[b] == ("recv", a)]
        assert pairs, "ranks wait for ever"
        for pair in pairs:
            for rank in pair:
                at[rank] += 1
        rounds += 1
    return rounds


def round_the_ring(n: int, first: Callable[[int], str]) -> int:
    """Return the rounds that n ranks need to send to their next rank. ``first``: does a rank send or receive first?"""
    both = [[("send", (r + 1) % n), ("recv", (r - 1) % n)] for r in range(n)]
    return steps_of([ops if first(r) == "send" else ops[::-1] for r, ops in enumerate(both)])


def shuffled_run(programs: list, rng: random.Random) -> list[int]:
    """Run the ranks in random order by the rules of exercise I4, and return the ranks that never end."""
    at, sent, taken = [0] * len(programs), {}, set()
    while True:
        here = {r: program[at[r]] for r, program in enumerate(programs) if at[r] < len(program)}
        for r, (kind, what, *_) in here.items():
            if kind in ("send", "isend") and (r, at[r]) not in sent.setdefault((r, what), []):
                sent[r, what].append((r, at[r]))
        moves = []
        for r, (kind, what, *_) in here.items():
            program = programs[r]
            free = kind == "isend" or (kind == "send" and (r, at[r]) in taken)
            if kind == "wait":
                last = max(k for k, op in enumerate(program[: at[r]]) if op[0] == "isend" and op[2] == what)
                free = (r, last) in taken
            if kind == "recv":
                free = any(m not in taken for m in sent.get((what, r), []))
            if kind == "all_reduce":
                free = all(here.get(o) == here[r] for o in what)
            if free:
                moves.append(r)
        if not moves:
            return list(here)
        r = rng.choice(moves)
        kind, what, *_ = here[r]
        if kind == "recv":
            taken.add(next(m for m in sent[what, r] if m not in taken))
        for o in what if kind == "all_reduce" else [r]:
            at[o] += 1


def test_stuck_ranks_do_not_depend_on_the_order_of_running():
    tried = 0
    for check in EXERCISES["i4_run_ranks"].checks.values():
        (cases,) = check.calls
        assert isinstance(cases, Cases) and cases.hidden
        for args in [*cases.public, *cases.hidden(np.random.default_rng(1))]:
            if any(
                op[0] == "wait" and not ever_sent(program, k)
                for program in args["programs"]
                for k, op in enumerate(program)
            ):
                continue
            _, stuck = run_ranks(**args)
            assert all(shuffled_run(args["programs"], random.Random(seed)) == stuck for seed in range(4)), args
            tried += bool(stuck)
    assert tried > 50


def ever_sent(program: list, k: int) -> bool:
    return any(op[0] == "isend" and op[2] == program[k][1] for op in program[:k])


# -- answers -----------------------------------------------------------------------------------


def matmul(chip: str, T: int, D: int) -> float:
    """Return the seconds of one matmul. The result has T · D elements, and each element needs 2 · D FLOPs."""
    return sum(2 * D for _ in range(T)) * D / CHIPS[chip].bf16


def ticks_there(P: int, M: int) -> list[list[bool]]:
    """Return for each tick of the forward pass which devices do useful work."""
    grid, found = gpipe(P, M), []
    for tick in range(M + P - 1):
        found.append([grid[s][tick] != "" for s in range(P)])
    return found


def elements(grid: Grid, T: int, D: int) -> list[int]:
    """Return the bytes of each device's stored inputs (bfloat16[T, D]): one for each micro-batch in flight."""
    return [in_flight(row) * T * D * 2 for row in grid]


def pipeline(chip: str, P: int, M: int, T: int, D: int) -> float:
    """Return the time of a forward pass: all ticks, and a hop after each tick except the last."""
    ticks = ticks_there(P, M)
    hops = [tick for tick in range(1, len(ticks)) if any(ticks[tick])]
    return len(ticks) * 2 * matmul(chip, T, D) + len(hops) * (T * D * 2 / CHIPS[chip].ici)


KEYS: dict[str, Callable[..., float]] = {
    "pipeline_time": pipeline,
    "bubble_flops": lambda P, M, T, D: (
        sum(not useful for tick in ticks_there(P, M) for useful in tick) * 3 * 2 * T * D * D
    ),
    "gpipe_stash": lambda M, P, L, T, D: max(elements(gpipe(P, M), T, D)),
    "gpipe_step_time": lambda chip, M, P, T, D: lock_step(
        gpipe(P, M), {"F": 3 * matmul(chip, T, D), "B": 9 * matmul(chip, T, D)}
    ),
    "in_flight_memory": lambda P, M, T, D: sum(elements(alternating(P, M), T, D)),
    "time_of_1f1b": lambda chip, P, M, T, D: seconds(
        alternating(P, M), {"F": 4 * matmul(chip, T, D), "B": 8 * matmul(chip, T, D)}
    ),
    "stash_saved": lambda M, P, T, D: elements(gpipe(P, M), T, D)[0] - max(elements(alternating(P, M), T, D)),
    "lock_step_time": lambda chip, M, P, T, D: len(alternating(P, M)[0]) * 3 * 2 * matmul(chip, T, D),
    "blocking_ring_time": lambda gpu, X, V: (
        round_the_ring(X, lambda r: "send" if r else "recv") * V * 1e9 / GPUS[gpu].egress
    ),
    "alternating_ring_time": lambda gpu, X, Y, V: (
        sum(round_the_ring(n, lambda r: "recv" if r % 2 else "send") for n in (X, Y)) * V * 1e9 / GPUS[gpu].egress
    ),
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=lambda q: q.name)
def test_answer_agrees_with_a_second_derivation(question: Question):
    for params in question.variants():
        assert question(**params) == pytest.approx(KEYS[question.name](**params), rel=1e-9), params


def test_every_second_derivation_has_its_question():
    assert set(KEYS) == set(QUESTIONS)


# -- claims of the statements ------------------------------------------------------------------


def test_the_idle_shares_of_i1_match_its_statement():
    for M, part in ((5, 3 / 8), (27, 1 / 10)):
        idle = [not useful for tick in ticks_there(4, M) for useful in tick]
        assert sum(idle) / len(idle) == pytest.approx(part)


def test_the_timeline_of_i1_is_in_its_statement():
    course = load_course(ROOT / "course.yaml")
    exercise: Any = course.exercise("i1_gpipe_forward")
    text = reference_source(exercise, {}, exercise.alternatives["forward_unrolled"])
    wanted = explaining.Wanted({"pp": 4}, {"L": 8, "M": 5, "B": 4096, "D": 4096}, "v5e:2x2")
    asks, _ = explaining.asks_of(course, exercise, explaining.calls_of(exercise, "gpipe_forward")[:1], wanted)
    with Grader(course, "none") as grader:
        (found,), _ = explaining.explained(grader, Source("i1.py", (Chunk("i1.py", text),)), asks, wanted)
    line = found.timeline
    assert line is not None, found
    line = replace(line, spans=tuple(replace(span, line=None, file=None) for span in line.spans))
    permutes = line.shares()["permute"]
    hops = sum(c.runs for c in line.collectives)
    drawn = [
        f"{show_us(line.step)}, {hops} permutes, {permutes.part:.0%} of their time overlapped",
        *draw_timelines([line], 76)[0],
    ]
    assert "\n".join(drawn) in exercise.further
