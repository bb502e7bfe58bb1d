"""I3: checks, misconceptions and alternatives."""

from jax.sharding import PartitionSpec

from grader.exercise import Scenario
from grader.expect import Failure
from grader.hardware import matmul_time
from i3_schedule_1f1b import exercise, in_flight_memory, schedule_1f1b, time_of_1f1b


def drawn(rng):
    """Draw sizes with fewer micro-batches than devices, as many, and more; also one device, and one micro-batch."""
    for P in range(1, 8):
        for M in {1, 2, int(rng.integers(1, P + 1)), P, int(rng.integers(P, 3 * P + 3))}:
            yield {"P": P, "M": M}


sizes = exercise.cases(
    schedule_1f1b,
    public=[{"P": 3, "M": 4}, {"P": 4, "M": 8}, {"P": 4, "M": 2}],
    hidden=drawn,
)


@exercise.helper
def ticks_of(grid, P, M):
    """Return the tick of each cell, by device and name. Raises ValueError if a row is not valid."""
    if not isinstance(grid, list | tuple) or len(grid) != P or not all(isinstance(row, list | tuple) for row in grid):
        raise ValueError(f"the result is not a list of {P} lists")
    due, when = {f"{kind}{i}" for kind in "FB" for i in range(M)}, {}
    for s, row in enumerate(grid):
        for tick, cell in enumerate(row):
            if cell in ("", None):
                continue
            if not isinstance(cell, str) or cell not in due:
                raise ValueError(
                    f"cells are F0 to F{M - 1}, B0 to B{M - 1} or empty, but device {s} has {cell!r} in tick {tick}"
                )
            if (s, cell) in when:
                raise ValueError(f"device {s} has {cell} twice, in ticks {when[s, cell]} and {tick}")
            when[s, cell] = tick
        missing = sorted(due - {cell for device, cell in when if device == s})
        if missing:
            raise ValueError(f"device {s} never has {missing[0]}")
    return when


@exercise.helper
def too_early(when, P):
    """Describe the first cell that is too early: the cell that it needs is not in an earlier tick. "" if no cell is."""
    for (s, cell), tick in sorted(when.items(), key=lambda found: found[1]):
        before = s - 1 if cell[0] == "F" else s + 1
        need = (before, cell) if 0 <= before < P else (s, "F" + cell[1:])
        if need != (s, cell) and when[need] >= tick:
            return f"device {s} has {cell} in tick {tick}, but needs {need[1]} of device {need[0]}, which is in tick {when[need]}"
    return ""


@exercise.helper
def each_schedule(seen):
    """Yield P, M, the tick of each cell, and the number of ticks, for every schedule."""
    for args, got, _ in seen.outcomes:
        of = f"P={args['P']}, M={args['M']}" if seen.public else "some P and M that are not shown here"
        if got.error:
            place = f"line {got.line}" if got.line else ""
            raise Failure(f"for {of} your function raised {got.error}", where=place, staff=f"{args}: {got.message}")
        try:
            when = ticks_of(got.value, **args)
        except ValueError as problem:
            raise Failure(
                f"for {of}: {problem}" if seen.public else f"for {of} the result is not a schedule",
                staff=f"{args}: {problem}",
            ) from None
        yield args["P"], args["M"], when, max(map(len, got.value)), of


@exercise.check(sizes, points=1, public=True)
def schedule_complete(seen):
    """schedule_1f1b: every device has every F and B once, at most one in a tick"""
    for _ in each_schedule(seen):
        pass


@exercise.check(sizes, points=1, public=True, after=schedule_complete)
def schedule_order(seen):
    """schedule_1f1b: every cell comes after the cell that it needs"""
    for P, M, when, _, of in each_schedule(seen):
        problem = too_early(when, P)
        if problem:
            told = f"for {of}: {problem}" if seen.public else f"for {of} a cell comes too early"
            raise Failure(told, staff=f"P={P}, M={M}: {problem}")


@exercise.check(sizes, points=1, public=True, after=schedule_order)
def schedule_makespan(seen):
    """schedule_1f1b: at most 2 (M + P - 1) ticks"""
    for P, M, when, ticks, of in each_schedule(seen):
        most, idle = 2 * (M + P - 1), ticks - 1 - max(when.values())
        if ticks > most:
            told = f"the schedule takes {ticks} ticks, the budget is {most}"
            told += f"; every device is idle in the last {idle} of them" if idle else ""
            raise Failure(
                f"for {of} {told}" if seen.public else f"for {of} the schedule takes too many ticks",
                staff=f"P={P}, M={M}: {told}",
            )


def most_in_flight(when, s, M):
    """Return the largest number of micro-batches in flight on device s."""
    spans = [(when[s, f"F{i}"], when[s, f"B{i}"]) for i in range(M)]
    return max(sum(first <= tick <= last for first, last in spans) for tick, _ in spans)


@exercise.check(sizes, points=1, after=schedule_order)
def schedule_in_flight(seen):
    """schedule_1f1b: at most P - s micro-batches are in flight on device s"""
    for P, M, when, _, of in each_schedule(seen):
        for s in range(P):
            if (most := most_in_flight(when, s, M)) > P - s:
                told = f"device {s} has {most} micro-batches in flight, the budget is {P - s}"
                raise Failure(
                    f"for {of}: {told}" if seen.public else f"for {of} too many micro-batches are in flight",
                    staff=f"P={P}, M={M}: {told}",
                )


def run(todo, P):
    """Run each device's list in order. A cell runs as soon as the cell that it needs is done."""
    grid, done = [[] for _ in range(P)], set()
    for _ in range(4 * sum(map(len, todo)) + 1):
        cells = []
        for s in range(P):
            cell = todo[s][0] if todo[s] else ""
            before = s - 1 if cell[:1] == "F" else s + 1
            need = (before, cell) if 0 <= before < P else (s, "F" + cell[1:])
            free = not cell or (cell[0] == "F" and s == 0) or need in done
            cells.append(todo[s].pop(0) if cell and free else "")
            grid[s].append(cells[s])
        done.update((s, cell) for s, cell in enumerate(cells) if cell)
        if not any(todo):
            return grid
    raise ValueError("waits for ever")


def lists(P, M, ahead):
    """Return each device's list: the given number of forwards, then a backward and a forward in turn."""
    found = []
    for s in range(P):
        first = ahead(s)
        order = [f"F{i}" for i in range(first)]
        for i in range(M):
            order += [f"B{i}"] + ([f"F{first + i}"] if first + i < M else [])
        found.append(order)
    return found


def all_in_flight(seen):
    """For `gives`: require that the first device keeps all micro-batches."""
    for _, M, when, *_ in each_schedule(seen):
        if most_in_flight(when, 0, M) < M:
            raise Failure("GPipe keeps all micro-batches")


def some_in_flight(seen):
    """For `gives`: require that the first device does not keep all of many micro-batches."""
    for P, M, when, *_ in each_schedule(seen):
        if M > 2 * P and most_in_flight(when, 0, M) == M:
            raise Failure("this mistake keeps fewer micro-batches")


def keeps(most):
    """Return a function for `gives`. It requires that device s keeps most(P, M, s) micro-batches."""

    def gives(seen):
        for P, M, when, *_ in each_schedule(seen):
            for s in range(P):
                if most_in_flight(when, s, M) != most(P, M, s):
                    raise Failure("this mistake keeps a different number of micro-batches")

    return gives


@exercise.misconception(fails=schedule_in_flight, gives=all_in_flight, breaks="at most P − s micro-batches in flight")
def schedule_of_gpipe(P, M):
    """Your schedule is GPipe's: all forwards end before the first backward, and device 0 keeps M inputs. Start each backward as soon as you can."""
    there = [[""] * s + [f"F{i}" for i in range(M)] + [""] * (P - 1 - s) for s in range(P)]
    return [there[s] + [""] * (P - 1 - s) + [f"B{i}" for i in range(M)] + [""] * s for s in range(P)]


@exercise.misconception(fails=schedule_complete, breaks="every device has F and B of every micro-batch once")
def schedule_never_clamped(P, M):
    """You schedule P - s forwards first, even if M is smaller than P - s. Schedule min(P - s, M) forwards first."""
    return run(lists(P, M, lambda s: P - s), P)


@exercise.misconception(fails=schedule_in_flight, gives=some_in_flight, breaks="at most P − s micro-batches in flight")
def schedule_one_more(P, M):
    """You schedule too many forwards before the first backward. On device s the first backward comes after P - s forwards. On the last device it comes after one forward."""
    return run(lists(P, M, lambda s: min(P - s + 1, M)), P)


def two_at_most(P, M, s):
    return min(2, P - s, M)


def one_less(P, M, s):
    return min(max(P - 1 - s, 1), M)


@exercise.misconception(fails=schedule_makespan, gives=keeps(two_at_most), breaks="at most 2 (M + P − 1) ticks")
def schedule_two_in_flight(P, M):
    """You keep at most two micro-batches in flight on each device. The first devices then wait: device s needs P - s micro-batches in flight."""
    return run(lists(P, M, lambda s: two_at_most(P, M, s)), P)


@exercise.misconception(fails=schedule_makespan, gives=keeps(one_less), breaks="at most 2 (M + P − 1) ticks")
def schedule_one_less(P, M):
    """You schedule P - 1 - s forwards first, which is one too few: devices wait although they could work."""
    return run(lists(P, M, lambda s: one_less(P, M, s)), P)


@exercise.misconception(fails=schedule_order, breaks="every cell comes in a later tick than the cell that it needs")
def schedule_same_tick(P, M):
    """You use a result in the tick that computes it. The result arrives in the next tick."""
    return [[cell for i in range(M) for cell in (f"F{i}", f"B{i}")] for _ in range(P)]


@exercise.misconception(fails=schedule_complete, breaks="one cell in a tick")
def schedule_two_in_a_cell(P, M):
    """You have a forward and a backward in one tick. A device does one thing at a time."""
    ticks = M + 2 * (P - 1)

    def cell(kind, i):
        return f"{kind}{i}" if 0 <= i < M else ""

    return [[cell("F", t - s) + cell("B", t - 2 * (P - 1) + s) for t in range(ticks)] for s in range(P)]


@exercise.misconception(fails=schedule_makespan, gives=keeps(lambda P, M, s: 1), breaks="at most 2 (M + P − 1) ticks")
def schedule_one_at_a_time(P, M):
    """You finish forward and backward of a micro-batch on all devices before the next micro-batch begins. Start the next micro-batch while the previous ones are on other devices. The first device needs P micro-batches in flight; the last device needs one."""
    span = 2 * P

    def row(s):
        return [[f"F{i}" if t == s else f"B{i}" if t == span - 1 - s else "" for t in range(span)] for i in range(M)]

    return [[cell for part in row(s) for cell in part] for s in range(P)]


@exercise.misconception(fails=schedule_makespan, breaks="at most 2 (M + P − 1) ticks, idle ticks at the end included")
def schedule_idle_at_the_end(P, M):
    """Your grid continues after all work is done. Each cell is a tick: end the rows with the last backward."""
    return [[*row, "", ""] for row in schedule_1f1b(P, M)]


@exercise.misconception(fails=schedule_order, breaks="every cell comes in a later tick than the cell that it needs")
def schedule_back_from_the_first(P, M):
    """Your gradients start at the first device. They start at the last device, which has the loss."""

    def here(s, t):
        return next(
            (f"{k}{i}" for i in range(M) for k, at in (("F", s + 2 * i), ("B", P + s + 2 * i + 1 - P % 2)) if at == t),
            "",
        )

    return [[here(s, t) for t in range(2 * (M + P))] for s in range(P)]


@exercise.misconception(fails=schedule_complete, breaks="one list per device, one entry per tick")
def schedule_of_ticks(P, M):
    """You returned a list for each tick. Return a list for each device, with one cell for each tick."""
    return [list(cells) for cells in zip(*schedule_1f1b(P, M), strict=True)]


@exercise.alternative(of=schedule_1f1b)
def by_closed_form(P, M):
    """Device s has F of micro-batch i in tick s + 2i, and B in tick 2P - 1 - s + 2i."""
    grid = [[""] * (2 * (M + P - 1)) for _ in range(P)]
    for s in range(P):
        for i in range(M):
            grid[s][s + 2 * i], grid[s][2 * P - 1 - s + 2 * i] = f"F{i}", f"B{i}"
    return grid


@exercise.alternative(of=schedule_1f1b)
def backward_first(P, M):
    """Run a possible backward, else a forward while fewer than P - s micro-batches are in flight. Idle cells are None,
    and rows are tuples."""
    done, rows = {}, [[] for _ in range(P)]
    for tick in range(2 * (M + P - 1)):
        now = {}
        for s in range(P):
            f, b = (sum(1 for (d, k, _) in done if d == s and k == kind) for kind in "FB")
            back = b < f and (s == P - 1 or (s + 1, "B", b) in done)
            there = f < M and f - b < P - s and (s == 0 or (s - 1, "F", f) in done)
            cell = ("B", b) if back else ("F", f) if there else None
            rows[s].append(f"{cell[0]}{cell[1]}" if cell else None)
            if cell:
                now[(s, *cell)] = tick
        done |= now
    return tuple(tuple(row) for row in rows)


@exercise.misconception(of=in_flight_memory)
def in_flight_of_gpipe(P, M, T, D):
    """You counted GPipe's micro-batches, M on each device. In 1F1B device s has the smaller of P - s and M."""
    return P * M * 2 * T * D


@exercise.misconception(of=in_flight_memory)
def in_flight_everywhere(P, M, T, D):
    """You counted P micro-batches on each device. Device s holds P - s, and never more than M."""
    return P * P * 2 * T * D


@exercise.misconception(of=in_flight_memory)
def in_flight_beyond_m(P, M, T, D):
    """You counted P - s micro-batches on each device, even if there are only M micro-batches in all."""
    return P * (P + 1) / 2 * 2 * T * D


@exercise.misconception(of=in_flight_memory)
def in_flight_one_less(P, M, T, D):
    """You did not count the micro-batch of the first backward. With this micro-batch, P - s micro-batches are in flight on device s."""
    return sum(min(P - s - 1, M) for s in range(P)) * 2 * T * D


@exercise.misconception(of=time_of_1f1b)
def time_of_work_alone(chip, P, M, T, D):
    """You counted only the ticks in which a device computes. The device also waits for P - 1 forwards and P - 1 backwards, while the pipeline fills and drains."""
    return M * 3 * matmul_time(4 * 2 * T * D**2, chip)


@exercise.misconception(of=time_of_1f1b)
def time_of_equal_ticks(chip, P, M, T, D):
    """You let a backward take as long as a forward. A backward takes twice as long."""
    return 2 * (M + P - 1) * matmul_time(4 * 2 * T * D**2, chip)


@exercise.misconception(of=time_of_1f1b)
def time_in_lock_step(chip, P, M, T, D):
    """You let every tick last as long as a backward. Devices with their own programs do not wait for the end of a tick."""
    return 2 * (M + P - 1) * 2 * matmul_time(4 * 2 * T * D**2, chip)


@exercise.misconception(of=time_of_1f1b)
def time_of_one_matmul(chip, P, M, T, D):
    """You counted one matmul. A stage has four matmuls."""
    return (M + P - 1) * 3 * matmul_time(2 * T * D**2, chip)


@exercise.misconception(of=in_flight_memory)
def in_flight_on_one_device(P, M, T, D):
    """You counted one device. Add the inputs of all devices."""
    return min(P, M) * 2 * T * D


exercise.scenario(
    in_flight_memory, lambda P, M, T, D: Scenario(mesh={"pp": P}, arrays=[((M, T, D), ())], branches=("P - s", "M"))
)
exercise.scenario(
    time_of_1f1b,
    lambda chip, P, M, T, D: Scenario(chip=chip, mesh={"pp": P}, arrays=[((4 * P, D, D), PartitionSpec("pp"))]),
)
