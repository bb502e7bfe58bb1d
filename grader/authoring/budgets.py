"""Propose budgets for a task's checks: the amounts that the reference solution needs on every mesh and with all sizes.

A budget of bytes or FLOPs is a formula: a constant times array dimensions, divided by sizes of mesh axes. It may have
the factor N - 1 for an axis of size N. If no such formula fits, no budget is proposed. The reference solution may need
more than the least possible amount, so the author must judge each proposed budget.

Memory budgets are not proposed, because they also depend on the memory that wrong programs need.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from grader.clock import Timeline
from grader.common.intervals import Interval
from grader.common.observation import Collective, Seen, total
from grader.expect import Failure, expect_overlap
from grader.reports.explained import Explained
from grader.reports.timelines import US

# The largest constant factor in a budget's formula. A formula with a larger factor probably fits only by chance.
MOST = 1 << 16
Key = tuple[str, tuple[str, ...]]


def check_lines(programs: Sequence[Explained]) -> list[str]:
    """Return lines of code with budgets, to paste into a task's checks.

    A program that is only timed and never runs (``exercise.timing``) gets lines that check its step time and overlap.

    Args:
        programs: the reference solution's programs for several meshes and sizes.
    """
    known = [p for p in programs if p.fault is None]
    run, timed = ([p for p in known if p.ran == ran] for ran in (True, False))
    return _lines_of_run(run) + _lines_of_timed(timed)


def _lines_of_run(known: Sequence[Explained]) -> list[str]:
    if not known:
        return []
    lines = [_collectives_line(known)]
    sent = [sum(s.most for s in p.traffic.values()) for p in known]
    numbers = {
        "expect_traffic": sent,
        "expect_flops": [max(p.dot_flops.most, p.other_flops.most) if p.dot_flops.most else 0 for p in known],
    }
    for word, values in numbers.items():
        if any(values) and (text := formula(known, values)):
            lines.append(f"{word}(seen, at_most={text})")
    return [line for line in lines if line]


def _lines_of_timed(known: Sequence[Explained]) -> list[str]:
    """Return a line that checks the step time, and a line for each kind of collective that overlaps in all programs."""
    found = [p.timeline for p in known if p.timeline is not None]
    if not found or len(found) < len(known):
        return []
    longest = -(-max(t.step for t in found) // US)
    work = float(f"{min(t.matmuls for t in found) / 1e12:.4g}")
    kinds = dict.fromkeys(kind for t in found for kind in t.shares()) if work else {}
    overlapped = [kind for kind in kinds if all(_is_overlapped(t, kind, work) for t in found)]
    return [
        f"expect_step_time(seen, at_most={longest}e-6)",
        *(f'expect_overlap(seen, "{kind}", work={work:g})' for kind in overlapped),
    ]


def _is_overlapped(timeline: Timeline, kind: str, work: float) -> bool:
    try:
        expect_overlap(Seen({}, clock=lambda **_: timeline), kind, work=work)
    except Failure:
        return False
    return True


# -- collectives -------------------------------------------------------------------------------


def _collectives_line(programs: Sequence[Explained]) -> str:
    """Return a line such as ``expect_collectives(seen, permute={"x": seen.mesh["x"] - 1})``; '' if no formula fits."""
    if any(c.partial for p in programs for c in p.collectives):
        return ""
    tables = [_counts(p.collectives) for p in programs]
    keys = dict.fromkeys(key for table in tables for key in table)
    budgets: dict[str, list[str]] = {}
    for kind, axes in keys:
        counts = [(p, table.get((kind, axes))) for p, table in zip(programs, tables, strict=True) if _moves(p, axes)]
        text = _count_formula(axes, counts)
        if not text:
            return ""
        budgets.setdefault(kind, []).append(f"{_quoted(axes)}: {text}")
    words = [f"{kind}={{{', '.join(parts)}}}" for kind, parts in budgets.items()]
    return f"expect_collectives({', '.join(['seen', *words])})"


def _counts(collectives: Sequence[Collective]) -> dict[Key, Interval]:
    groups: dict[Key, list[Collective]] = {}
    for c in collectives:
        groups.setdefault((c.kind, c.axes), []).append(c)
    return {key: total(same, lambda c: Interval.of(1)) for key, same in groups.items()}


def _moves(p: Explained, axes: tuple[str, ...]) -> bool:
    return all(p.mesh.get(axis, 1) > 1 for axis in axes)


def _quoted(axes: tuple[str, ...]) -> str:
    return f'"{axes[0]}"' if len(axes) == 1 else "(" + ", ".join(f'"{a}"' for a in axes) + ")"


def _count_formula(axes: tuple[str, ...], counts: Sequence[tuple[Explained, Interval | None]]) -> str:
    """Return code for the simplest formula that gives a collective's count on each mesh.

    The result is '' if no formula fits, or if a program's count is unknown or varies.

    Args:
        axes: the mesh axes of the collective.
        counts: (program, how often the collective runs in this program).
    """
    sized = [(math.prod(p.mesh[axis] for axis in axes), n.most) for p, n in counts if n is not None and n.exact]
    if len(sized) < len(counts):
        return ""
    first = sized[0][1]
    n = " * ".join(f'seen.mesh["{axis}"]' for axis in axes)
    n1 = f"({n} - 1)" if len(axes) == 1 else f"({n}) - 1"
    shapes: list[tuple[str, Callable[[int], float]]] = [(f"{first:g}", lambda _: first)]
    if len(axes) == 1:
        shapes += [(f"{n} - 1", lambda k: k - 1), (n, lambda k: k), (f"{n} // 2", lambda k: k // 2)]
        for c in range(2, 9):
            shapes += [(f"{c} * {n1}", lambda k, c=c: c * (k - 1)), (f"{c} * {n}", lambda k, c=c: c * k)]
    return next((text for text, of in shapes if all(of(k) == count for k, count in sized)), "")


# -- numbers -----------------------------------------------------------------------------------


def formula(programs: Sequence[Explained], values: Sequence[float]) -> str:
    """Return Python code for a product of sizes that has the value ``values[i]`` in ``programs[i]``; '' if none has.

    If several products fit, return the one with the smallest constant factor. A large constant may contain a size,
    which belongs in the formula.
    """
    if not all(math.isfinite(v) for v in values):
        return ""
    found = [(factor, text) for text, sizes in _products(programs) if (factor := _factor(values, sizes))]
    if not found:
        return ""
    factor, text = min(found, key=lambda f: (f[0], len(f[1])))
    return text.format(f"{factor}")


def _factor(values: Sequence[float], sizes: Sequence[float]) -> int:
    """Return the integer from 1 to MOST that equals value / size in all programs; 0 if there is no such integer."""
    if any((v == 0) != (s == 0) for v, s in zip(values, sizes, strict=True)):
        return 0
    ratios = [v / s for v, s in zip(values, sizes, strict=True) if s]
    whole = round(ratios[0]) if ratios else 0
    right = all(abs(r - whole) < 1e-9 * max(whole, 1) for r in ratios)
    return whole if right and 0 < whole <= MOST else 0


def _products(programs: Sequence[Explained]) -> Iterator[tuple[str, list[float]]]:
    """Yield (code, the value in each program) for each product of array dimensions, divided by sizes of mesh axes.

    The code has the placeholder ``{}`` for a constant factor.
    """
    dims = [d for d in _common([p.dims for p in programs]) if len({p.dims[d] for p in programs}) > 1]
    axes = _common([p.mesh for p in programs])
    for above, below in itertools.product(_subsets(dims), _subsets(axes)):
        for less in ("", *axes):
            text = "{}" + "".join(f' * seen.dims["{d}"]' for d in above)
            text += f' * (seen.mesh["{less}"] - 1)' if less else ""
            text += "".join(f' / seen.mesh["{a}"]' for a in below)
            yield (
                text,
                [
                    math.prod(p.dims[d] for d in above)
                    * (p.mesh[less] - 1 if less else 1)
                    / math.prod(p.mesh[a] for a in below)
                    for p in programs
                ],
            )


def _common(sizes: Sequence[Mapping[str, int]]) -> list[str]:
    return [name for name in sizes[0] if all(name in s for s in sizes)]


def _subsets(names: Sequence[str]) -> list[tuple[str, ...]]:
    return [chosen for count in range(len(names) + 1) for chosen in itertools.combinations(names, count)]
