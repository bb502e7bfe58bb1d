"""Check collectives and traffic against a budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from grader.common.budget import BudgetUse
from grader.common.intervals import ZERO, Interval
from grader.common.observation import Collective, Seen, over, total
from grader.expect.costs import as_different_texts, show_bytes
from grader.expect.failure import Failure, prefix
from grader.expect.mattering import collectives_that_matter

Counts = Mapping[str | tuple[str, ...], int]
Count = TypeVar("Count", bound=float)
Key = tuple[str, tuple[str, ...], bool]
Axes = str | tuple[str, ...] | None


def expect_collectives(seen: Seen, **wanted: Counts) -> None:
    """Check that exactly the named collectives run: ``expect_collectives(seen, reduce_scatter={"x": 1})``.

    Keywords are kinds (see ``Collective.kind``). Each keyword's value maps an axis (or a tuple of axes) to the number
    of runs, over all rounds of loops. The collectives must run exactly this number of times on every path through
    conditionals. A collective counts only if its values change a result (see ``mattering``).

    Collectives over axes of size 1 send no data and do not count. A collective in groups of only some devices along the
    axes, such as pairs, counts as a different collective.
    """
    want, found = _wanted(seen, wanted), _found(seen)
    _record(seen, "expect_collectives", wanted, found)
    if not wanted:
        seen.spent.append(BudgetUse("expect_collectives", sum(n.most for n in found.values()), 0))
    if seen.measuring:
        return
    _no_more(seen, want, found)
    most = max([*want.values(), *(n.most for n in found.values())], default=0)
    once = " once" if most > 1 else ""
    for key, count in want.items():
        if not found.get(key, ZERO).least >= count:
            raise Failure(
                f"the budget is {_say_table(want, once)}; the program has {_say_table(found, once)}{_part(seen)}",
                expected=_table(want),
                actual=_table(found),
            )
    if want:
        _expect_mattering(seen, want)


def expect_at_most(seen: Seen, **allowed: Mapping[str | tuple[str, ...], float]) -> None:
    """Check that only the named collectives run, each at most as often as the given number.

    ``expect_at_most(seen, all_gather={"x": needed(2, 4)})`` allows two all-gathers over x.

    Use this check if a right program may need fewer collectives. Keywords are as in ``expect_collectives``. The dicts'
    values are budgets of the numbers of runs (see ``grader.common.budget``).
    """
    want, found = _wanted(seen, allowed), _found(seen)
    _record(seen, "expect_at_most", allowed, found)
    if not seen.measuring:
        _no_more(seen, {key: int(count) for key, count in want.items()}, found)


def _wanted(seen: Seen, budgets: Mapping[str, Mapping[str | tuple[str, ...], Count]]) -> dict[Key, Count]:
    return {
        (kind, axes, False): count
        for kind, budget in budgets.items()
        for names, count in budget.items()
        if count and (axes := _real_axes((names,) if isinstance(names, str) else names, seen))
    }


def _record(
    seen: Seen, word: str, budgets: Mapping[str, Mapping[str | tuple[str, ...], Count]], found: Mapping[Key, Interval]
) -> None:
    """Record each collective's number of runs and its budget in ``seen.spent``.

    Paths through conditionals may have different numbers of runs. The function records the largest number. If the
    largest number equals the budget, the function records the smallest number.
    """
    for kind, budget in budgets.items():
        for names, count in budget.items():
            axes = (names,) if isinstance(names, str) else names
            if count and (real := _real_axes(axes, seen)):
                runs = found.get((kind, real, False), ZERO)
                amount = runs.least if runs.most == count else runs.most
                seen.spent.append(BudgetUse(word, amount, count, f"{kind} over {over(axes, False)}{_part(seen)}"))


def _found(seen: Seen) -> dict[Key, Interval]:
    """Return how often collectives run, by kind and axes. Raises Failure if a loop's number of rounds is unknown."""
    by_kind: dict[Key, list[Collective]] = {}
    for c in seen.collectives:
        if not c.rounds.known:
            raise Failure(
                f"{_line(c)}{c.kind} over {c.over} runs in a loop whose number of rounds cannot be read "
                "from the program; use a fixed number of rounds",
                where=_line(c).rstrip(": "),
            )
        by_kind.setdefault(_key(c), []).append(c)
    return {key: total(same, lambda c: Interval.of(1)) for key, same in by_kind.items()}


def _no_more(seen: Seen, want: Mapping[Key, int], found: Mapping[Key, Interval]) -> None:
    for c in seen.collectives:
        if not found[_key(c)].most <= want.get(_key(c), 0):
            raise Failure(
                f"{_line(c)}{_say(found, c)}{_part(seen)}; "
                + (f"the budget is {_say_table(want)}" if want else "no communication is needed"),
                expected=_table(want),
                actual=_table(found),
                where=_line(c).rstrip(": "),
            )


def _expect_mattering(seen: Seen, want: Mapping[Key, int]) -> None:
    matters = collectives_that_matter(seen)
    for key, count in want.items():
        done = total((c for c in matters if _key(c) == key), lambda c: Interval.of(1))
        if done.least >= count:
            continue
        idle = next(c for c in seen.collectives if _key(c) == key and c not in matters)
        raise Failure(
            f"{_line(idle)}{idle.kind} over {idle.over} is not counted{_part(seen)}: no result of the task depends on "
            f"its values; {count} such {'collective is' if count == 1 else 'collectives are'} required, and the "
            f"results depend on {done if done.most else 'none'} of these collectives",
            expected=_table(want),
            actual=_table({key: done}),
            where=_line(idle).rstrip(": "),
        )


def expect_no_collectives(seen: Seen) -> None:
    """Check that devices do not communicate."""
    expect_collectives(seen)


def expect_only(seen: Seen, *kinds: str) -> None:
    """Check that no collectives run except those of ``kinds``."""
    if seen.measuring:
        return
    for c in seen.collectives:
        if c.kind not in kinds and c.count.most:
            raise Failure(
                f"{_line(c)}{c.kind} over {c.over} is not allowed here; use only {' and '.join(kinds) or 'local work'}",
                expected=list(kinds),
                actual=c.kind,
                where=_line(c).rstrip(": "),
            )


def expect_traffic(seen: Seen, *, at_most: float | None = None, at_least: float = 0, axis: Axes = None) -> None:
    """Check that no device sends more than ``at_most`` bytes, whichever branches of conditionals run.

    Args:
        at_most: bytes; None for no budget.
        at_least: bytes that each device must send, whichever branches run. For ``at_least``, a collective counts only
            if its values change a result (see ``mattering``).
        axis: count only collectives that connect devices along this axis, or along at least one axis of a tuple. A
            group may lack some devices along the axis. By default, all collectives count.
    """
    if at_most is None and not at_least > 0:
        raise ValueError("expect_traffic: give at_most=... or at_least=...")
    if at_most is not None:
        _expect_traffic_at_most(seen, at_most, axis)
    if at_least > 0 and not seen.measuring:
        _expect_traffic_that_matters(seen, at_least, axis)


def _expect_traffic_at_most(seen: Seen, at_most: float, axis: Axes) -> None:
    counted = _crossing(seen.collectives, axis)
    sent = seen.sends(counted)
    if not sent.known:
        raise Failure("a loop's number of rounds cannot be read, so its traffic is unknown")
    along = _along(axis)
    counts = f"{along}{_part(seen)}".strip()
    if not seen.keeps(BudgetUse("expect_traffic", sent.most, at_most, counts)):
        worst, *_ = max(_by_operation(counted), key=lambda same: seen.sends(same).most, default=[None])
        who = "each device sends" if sent.exact else "a device sends up to"
        most, budget = as_different_texts(show_bytes, sent.most, at_most)
        raise Failure(
            f"{who} {most}{along}{_part(seen)}, the budget is {budget}"
            + (f"; the largest part is sent by {_line(worst)}{worst.kind} over {worst.over}" if worst else ""),
            expected=at_most,
            actual=sent.most,
            unit="B",
            where=_line(worst).rstrip(": ") if worst else "",
            of=counts,
        )


def _by_operation(collectives: Sequence[Collective]) -> Iterable[list[Collective]]:
    """Group collectives by source line, kind and axes, because a Python loop makes many collectives of one line."""
    found: dict[tuple[str, str, str], list[Collective]] = {}
    for c in collectives:
        found.setdefault((_line(c), c.kind, c.over), []).append(c)
    return found.values()


def _expect_traffic_that_matters(seen: Seen, at_least: float, axis: Axes) -> None:
    counted, along = _crossing(seen.collectives, axis), _along(axis)
    if seen.sends(counted).least >= at_least:
        matters = collectives_that_matter(seen)
        idle = next((c for c in counted if c not in matters), None)
        counted = [c for c in counted if c in matters]
    else:
        idle = None
    sent = seen.sends(counted).least
    if not sent >= at_least:
        least, needed = as_different_texts(show_bytes, sent, at_least)
        raise Failure(
            f"each device sends {least}{along}{_part(seen)}, but {needed} are needed"
            + (
                f"; {_line(idle)}{idle.kind} over {idle.over} is not counted: no result of the task depends on "
                "its values"
                if idle
                else ""
            ),
            expected=at_least,
            actual=sent,
            where=_line(idle).rstrip(": ") if idle else "",
            of=f"{along}{_part(seen)}".strip(),
        )


def _crossing(collectives: Sequence[Collective], axis: Axes) -> list[Collective]:
    return [c for c in collectives if axis is None or set(_names(axis)) & set(c.axes)]


def _along(axis: Axes) -> str:
    return f" over {' or '.join(_names(axis))}" if axis else ""


def _names(axis: str | tuple[str, ...]) -> tuple[str, ...]:
    return (axis,) if isinstance(axis, str) else axis


def _part(seen: Seen) -> str:
    return f" {seen.part}" if seen.part else ""


def _key(c: Collective) -> Key:
    return c.kind, c.axes, c.partial


def _real_axes(names: tuple[str, ...], seen: Seen) -> tuple[str, ...]:
    return tuple(a for a in seen.mesh if a in names and seen.mesh[a] > 1)


def _line(c: Collective) -> str:
    if c.by_compiler:
        return "added by the compiler, because shardings do not match: "
    return prefix(c.file, c.line)


def _times(count: Interval | int) -> str:
    return "" if count == 1 else f" {count} times"


def _say(found: Mapping[Key, Interval], c: Collective) -> str:
    sent = f"{show_bytes(c.sent.most)} sent by each device" if c.sent.exact else f"up to {show_bytes(c.sent.most)} sent"
    return f"{c.kind} over {c.over}{_times(found[_key(c)])} ({sent})"


def _say_table(table: Mapping[Key, Interval] | Mapping[Key, int], once: str = "") -> str:
    phrases = [f"{kind} over {over(axes, partial)}{_times(n) or once}" for (kind, axes, partial), n in table.items()]
    return ", ".join(phrases) or "none"


def _table(counts: Mapping[Key, Interval] | Mapping[Key, int]) -> dict[str, int | str]:
    exact = {k: n if isinstance(n, int) else int(n.most) if n.exact else str(n) for k, n in counts.items()}
    return {f"{kind} {over(axes, partial, ',')}": n for (kind, axes, partial), n in exact.items()}
