from grader.hardware import CHIPS


def simulate(P, M, warm, same_tick=False, back_first=True, pad=0):
    """Run each device's own list of cells; a cell runs as soon as what it needs has come."""
    f, b = [0] * P, [0] * P
    done, grid = {}, [[] for _ in range(P)]
    t = 0
    while min(b) < M and t < 20 * (M + P):
        now = []
        for s in range(P):

            def can_f():
                return f[s] < M and (s == 0 or done.get(("F", s - 1, f[s]), t) < t + same_tick)

            def can_b():
                if b[s] >= f[s]:
                    return False
                if s == P - 1:
                    return done.get(("F", s, b[s]), t) < t + same_tick
                return done.get(("B", s + 1, b[s]), t) < t + same_tick

            cell = ""
            if f[s] - b[s] < warm(s) and can_f() and not (back_first and can_b()):
                cell = f"F{f[s]}"
                done["F", s, f[s]] = t
                f[s] += 1
            elif can_b() and (back_first or f[s] == M):
                cell = f"B{b[s]}"
                done["B", s, b[s]] = t
                b[s] += 1
            elif f[s] - b[s] < warm(s) and can_f():
                cell = f"F{f[s]}"
                done["F", s, f[s]] = t
                f[s] += 1
            now.append(cell)
        for s in range(P):
            grid[s].append(now[s])
        t += 1
    return [row + [""] * pad for row in grid]


def all_forwards_first(P, M):
    """schedule_1f1b: schedule_of_gpipe"""
    return simulate(P, M, lambda s: M, back_first=False)


def one_more_on_each(P, M):
    """schedule_1f1b: schedule_one_more"""
    return simulate(P, M, lambda s: P - s + 1)


def one_less_on_each(P, M):
    """schedule_1f1b: schedule_one_less"""
    return simulate(P, M, lambda s: max(P - s - 1, 1))


def p_on_every_device(P, M):
    """schedule_1f1b: schedule_p_everywhere, schedule_one_more"""
    return simulate(P, M, lambda s: P)


def idle_ticks_appended(P, M):
    """schedule_1f1b: schedule_idle_at_the_end"""
    return simulate(P, M, lambda s: P - s, pad=2)


def at_once(P, M):
    """schedule_1f1b: schedule_same_tick"""
    return simulate(P, M, lambda s: P - s, same_tick=True)


def one_micro_batch_at_a_time(P, M):
    """schedule_1f1b: schedule_one_at_a_time"""
    grid = [[] for _ in range(P)]
    for i in range(M):
        for t in range(2 * P):
            for s in range(P):
                grid[s].append(f"F{i}" if t == s else f"B{i}" if t == 2 * P - 1 - s else "")
    return grid


def warm_up_without_min(P, M):
    """schedule_1f1b: schedule_never_clamped"""
    grid = [[] for _ in range(P)]
    for s in range(P):
        order = [f"F{i}" for i in range(P - s)]
        for i in range(M):
            order.append(f"B{i}")
            if P - s + i < M:
                order.append(f"F{P - s + i}")
        grid[s] = [""] * s + order
    return grid


def unordered(P, M):
    """schedule_1f1b: schedule_back_from_the_first"""
    return [[""] * s + [c for i in range(M) for c in (f"F{i}", f"B{i}")] for s in range(P)]


def _play(P, M, warm, ready=lambda done, tick: done < tick):
    """Simulate greedily; ``warm(s)`` is the number of forwards that device s runs before its first backward."""
    at = {}
    rows = [[] for _ in range(P)]
    f, b = [0] * P, [0] * P
    tick = 0
    while min(b) < M and tick < 20 * (P + M):
        for s in range(P):
            can_f = f[s] < M and (s == 0 or ready(at.get(("F", f[s], s - 1), 10**9), tick)) and f[s] - b[s] < warm(s)
            need = ("F", b[s], s) if s == P - 1 else ("B", b[s], s + 1)
            can_b = b[s] < f[s] and ready(at.get(need, 10**9), tick)
            if can_b:
                rows[s].append(f"B{b[s]}")
                at["B", b[s], s] = tick
                b[s] += 1
            elif can_f:
                rows[s].append(f"F{f[s]}")
                at["F", f[s], s] = tick
                f[s] += 1
            else:
                rows[s].append("")
        tick += 1
    return rows


def devices_the_other_way_round(P, M):
    """schedule_1f1b: schedule_one_at_a_time"""
    return _play(P, M, lambda s: s + 1)


def twice_as_many(P, M):
    """schedule_1f1b: schedule_one_more"""
    return _play(P, M, lambda s: 2 * (P - s))


def only_two_in_flight(P, M):
    """schedule_1f1b: schedule_two_in_flight"""
    return _play(P, M, lambda s: min(2, P - s))


def result_used_in_the_same_tick(P, M):
    """schedule_1f1b: schedule_same_tick"""
    return _play(P, M, lambda s: P - s, ready=lambda done, tick: done <= tick)


def _simulate(P, M, limit, late=True):
    fwd, bwd = [0] * P, [0] * P
    rows = [[] for _ in range(P)]
    while min(bwd) < M:
        seen = (list(fwd), list(bwd)) if late else (fwd, bwd)
        for s in range(P):
            f, b = fwd[s], bwd[s]
            can_b = f > b and (s == P - 1 or seen[1][s + 1] > b)
            can_f = f < M and f - b < limit(s) and (s == 0 or seen[0][s - 1] > f)
            if can_b:
                rows[s].append(f"B{b}")
                bwd[s] += 1
            elif can_f:
                rows[s].append(f"F{f}")
                fwd[s] += 1
            else:
                rows[s].append("")
    return rows


def all_forwards_first_again(P, M):
    """schedule_1f1b: schedule_of_gpipe"""
    rows = []
    for s in range(P):
        row = [""] * s + [f"F{m}" for m in range(M)]
        row += [""] * (2 * (P - 1 - s)) + [f"B{m}" for m in range(M)] + [""] * s
        rows.append(row)
    return rows


def no_limit_in_flight(P, M):
    """schedule_1f1b: schedule_one_more"""
    return _simulate(P, M, lambda s: M)


def limit_turned_round(P, M):
    """schedule_1f1b: schedule_one_at_a_time"""
    return _simulate(P, M, lambda s: s + 1)


def needs_in_the_same_tick(P, M):
    """schedule_1f1b: schedule_same_tick"""
    return _simulate(P, M, lambda s: P - s, late=False)


def warm_up_longer_than_the_batch(P, M):
    """schedule_1f1b: schedule_never_clamped"""
    order = []
    for s in range(P):
        warm = P - 1 - s
        cells = [f"F{m}" for m in range(warm)]
        for m in range(M - warm):
            cells += [f"F{m + warm}", f"B{m}"]
        cells += [f"B{m}" for m in range(max(M - warm, 0), M)]
        order.append(cells)
    when, rows, tick = {}, [[] for _ in range(P)], 0
    at = [0] * P
    while any(at[s] < len(order[s]) for s in range(P)) and tick < 6 * (M + P):
        for s in range(P):
            cell = order[s][at[s]] if at[s] < len(order[s]) else ""
            if cell:
                if cell[0] == "F":
                    need = (s - 1, cell) if s else None
                else:
                    need = (s + 1, cell) if s < P - 1 else (s, "F" + cell[1:])
                if need is None or when.get(need, tick) < tick:
                    when[s, cell] = tick
                    at[s] += 1
                else:
                    cell = ""
            rows[s].append(cell)
        tick += 1
    return rows


def one_list_per_tick(P, M):
    """schedule_1f1b: schedule_of_ticks"""
    ticks = [[""] * P for _ in range(2 * (M + P - 1))]
    for s in range(P):
        for m in range(M):
            ticks[s + 2 * m][s] = f"F{m}"
            ticks[2 * P - 1 - s + 2 * m][s] = f"B{m}"
    return ticks


def more_inputs_than_micro_batches(P, M, T, D):
    """in_flight_memory: in_flight_beyond_m"""
    return sum(P - s for s in range(P)) * T * D * 2


def backward_as_long_as_forward(chip, P, M, T, D):
    """time_of_1f1b: time_of_equal_ticks"""
    f = 4 * 2 * T * D * D / CHIPS[chip].bf16
    return (M + P - 1) * 2 * f


def no_bubble(chip, P, M, T, D):
    """time_of_1f1b: time_of_work_alone"""
    f = 4 * 2 * T * D * D / CHIPS[chip].bf16
    return M * 3 * f
