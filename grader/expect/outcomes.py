"""Compare the values and errors of pure functions with the reference."""

from __future__ import annotations

import cmath
from collections.abc import Sequence
from typing import Any

from grader.common.layout import show_spec
from grader.common.observation import Outcome, Seen
from grader.expect.failure import Failure, place
from grader.wire.frames import NOT_PLAIN, is_spec

UNTOLD = "the function is wrong for arguments that are not shown here"
SHOWN = 300  # longest value that a message shows, in characters


def expect_outcomes(seen: Seen, *, where: Any = None, rtol: float = 0.0, ints: bool = False) -> None:
    """Check the outcomes of a plain function against the reference.

    For every argument set that ``where`` selects, the learner's function must return the value that the reference
    returns, or raise the error that the reference raises. The failure's reason names the arguments only if learners may
    see them.

    Args:
        where: a function ``where(args) -> bool``, which selects the cases (argument sets) to compare; None for all
            cases.
        rtol: relative tolerance for numbers; strings, specs and slices are compared exactly. Some different values
            count as equal: 3.0 and 3, a list and a tuple with equal elements, slice(0, 12) and slice(None, 12, 1).
        ints: if True, the float 3.0 does not equal the int 3. Use this if only an int is right, as in a shape. In a
            slice, a float bound never equals an int bound.
    """
    cases = [c for c in seen.outcomes if where is None or where(c[0])]
    if not cases:
        raise ValueError("the check's `where` selects no case")
    wrong = [c for c in cases if not same_outcome(c[1], c[2], rtol, ints)]
    if not wrong:
        return
    args, got, want = wrong[0]
    call = ", ".join(f"{k}={show_value(v)}" for k, v in args.items())
    problem = (
        f"for {call} the function {show_outcome(got)}, but the solution {show_outcome(want)}{_why(got, want, ints)}"
    )
    if seen.public:
        raise Failure(problem, expected=show_outcome(want), actual=show_outcome(got), where=place(None, got.line))
    raise Failure(UNTOLD, staff=f"in {len(wrong)} of {len(cases)} cases the function is wrong: {problem}")


def _why(got: Outcome, want: Outcome, ints: bool) -> str:
    """Return a note on a difference that a reader may overlook, such as a float for an int; '' if there is none."""
    if got.error or want.error:
        return ""
    if got.value is None:
        return "; is a return missing?"
    number = _float_for_int(got.value, want.value, ints)
    if number is None:
        return ""
    return f"; {number!r} is a float where an int is needed{': use //' if number == number // 1 else ''}"


def same_outcome(got: Outcome, want: Outcome, rtol: float = 0.0, ints: bool = False) -> bool:
    """Return True if the function returned the wanted value, or raised the wanted error or a subclass of this error."""
    if want.error or got.error:
        return want.error is not None and want.error in (got.error, *got.kinds)
    return _same(got.value, want.value, rtol, ints)


def _same(got: Any, want: Any, rtol: float, ints: bool) -> bool:
    match want:
        case list() | tuple():
            return _are_sequences(got, want) and all(_same(g, w, rtol, ints) for g, w in zip(got, want, strict=True))
        case dict():
            same_keys = isinstance(got, dict) and got.keys() == want.keys()
            return same_keys and all(_same(got[k], want[k], rtol, ints) for k in want)
        case bool() | str() | None:
            return type(got) is type(want) and got == want
        case slice():
            return isinstance(got, slice) and _same(_bounds(got), _bounds(want), 0.0, True)
    if is_spec(want):
        return is_spec(got) and _trimmed(got) == _trimmed(want) and got.unreduced == want.unreduced
    return _same_number(got, want, rtol, ints)


def _are_sequences(got: Any, want: Sequence[Any]) -> bool:
    return isinstance(got, list | tuple) and len(got) == len(want)


def _same_number(got: Any, want: complex, rtol: float, ints: bool) -> bool:
    if isinstance(got, bool) or not isinstance(got, int | float | complex):
        return False
    if isinstance(got, complex) and not isinstance(want, complex):
        return False
    if ints and isinstance(want, int) and not isinstance(got, int):
        return False
    if got == want:  # also true for equal infinities
        return True
    if rtol == 0:  # Python compares integers beyond 2**53 with floats exactly, but subtracts them inexactly
        return False
    try:
        return cmath.isfinite(got) and cmath.isfinite(want) and abs(got - want) <= rtol * abs(want)
    except OverflowError:  # the integer is too large for a float
        return False


def _float_for_int(got: Any, want: Any, ints: bool) -> float | None:
    """Return the first float in ``got`` where ``want`` has an int, or None. Without ``ints``, look only in slices."""
    if isinstance(want, slice) and isinstance(got, slice):
        return _float_for_int(_bounds(got), _bounds(want), True)
    if isinstance(want, list | tuple) and isinstance(got, list | tuple):
        pairs = list(zip(got, want, strict=False))
    elif isinstance(want, dict) and isinstance(got, dict):
        pairs = [(got[k], want[k]) for k in want if k in got]
    else:
        return got if ints and isinstance(got, float) and type(want) is int else None
    return next((number for g, w in pairs if (number := _float_for_int(g, w, ints)) is not None), None)


def _bounds(part: slice) -> tuple[Any, Any, Any]:
    """Return a slice's start, stop and step. A step of None becomes 1; with step 1, a start of None becomes 0."""
    step = 1 if part.step is None else part.step
    return 0 if part.start is None and step == 1 else part.start, part.stop, step


def _trimmed(spec: Any) -> list:
    """Return a spec's entries without trailing None, because P('x') and P('x', None) are one layout of a 2D array."""
    entries = list(spec.partitions)
    while entries and entries[-1] is None:
        entries.pop()
    return entries


def show_value(value: Any) -> str:
    """Return a value as a learner would type it, cut short if it is long."""
    text = show_spec(value) if is_spec(value) else repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def show_outcome(outcome: Outcome) -> str:
    if outcome.error == NOT_PLAIN:
        return outcome.message
    if outcome.error:
        message = f" ({outcome.message})" if outcome.message else ""
        return f"raised {outcome.error}{message}"
    return f"returned {show_value(outcome.value)}"
