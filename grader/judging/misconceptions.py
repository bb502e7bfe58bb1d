"""Find the misconception that a submission has.

A misconception is a known mistake with a hint; its *forms* are programs that make the mistake. A misconception fits if
checks find equal mistakes in a form and in the submission: equal wrong values, equal excess collectives, or an equal
operation that waits. Only inputs that are not secret are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from grader.common.observation import Collective, Fault, Observation, Outcome, Seen
from grader.common.result import Result
from grader.exercise import Check, Misconception
from grader.expect import Failure, same_outcome
from grader.expect.failure import Compared
from grader.judging.judge import together
from grader.judging.seen import Answered, Finding, paired
from grader.wire.frames import wide

NEAR = 0.01  # relative to the largest error: forms of one mistake differ by less
CLEAR = 4  # multiples of the tolerance; smaller errors do not show their cause
MOST_NAMED = 2
"""Largest number of misconceptions that a report names if all fit equally well. If more fit, the report names none."""

Found = Failure | Fault | Outcome | None


@dataclass
class Shown:
    """A submission's or misconception's results on inputs that are not secret, and the findings of checks in them."""

    answered: Sequence[Answered]
    _found: dict[str, list[Found]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.answered = [a for a in paired(self.answered) if not a.ask.secret]

    def to(self, check: Check) -> list[Found]:
        """Return what a check finds for each mesh and case; None where the check passes."""
        if check.name not in self._found:
            self._found[check.name] = list(_found(check, self.answered))
        return self._found[check.name]


def fitting(
    check: Check,
    submitted: Shown,
    results: dict[str, str],
    known: Sequence[tuple[Misconception, Shown]],
    checks: Mapping[str, Check],
) -> list[Misconception]:
    """Return the misconceptions that explain why a check fails; [] if too many misconceptions explain it equally well.

    If the ``gives`` of misconceptions predicts the results, return these misconceptions. Otherwise a misconception fits
    if each check that it fails was not tried on the submission, or fails on the submission in an equal way. Among
    fitting misconceptions, return those that agree most with the submission (``_rank``).

    Args:
        results: the status of each check of the submission.
        known: the misconceptions that fail this check.
        checks: all checks by name.
    """
    if given := [misconception for misconception, _ in known if _gives(misconception, submitted, checks)]:
        return given if len(given) <= MOST_NAMED else []
    failed = {name for name, status in results.items() if status == "failed"}
    ranks: dict[str, int] = {}
    forms = _possible_forms(results, known, checks)
    for name, every in forms.items():
        compared = [checks[other] for other in every[0][0].fails if other in {check.name, *failed}]
        if _fails_as(submitted, every, compared):
            ranks[name] = max(
                _rank(submitted, mistaken, misconception, failed, results) for misconception, mistaken in every
            )
    best = [forms[name][0][0] for name, rank in ranks.items() if rank == max(ranks.values())]
    return best if len(best) <= MOST_NAMED else []


def _fails_as(submitted: Shown, forms: Sequence[tuple[Misconception, Shown]], checks: Iterable[Check]) -> bool:
    """Return True if the submission fails each check like one of the forms, or in the way that all forms share."""
    return all(_fits(submitted.to(check), [mistaken.to(check) for _, mistaken in forms]) for check in checks)


def _gives(misconception: Misconception, submitted: Shown, checks: Mapping[str, Check]) -> bool:
    """Return True if the submission's results are those that ``gives`` predicts, on every mesh."""
    if misconception.gives is None:
        return False
    check = checks[misconception.fails[0]]
    found = submitted.to(replace(check, name=f"{misconception.name} gives", fn=misconception.gives))
    return bool(found) and not any(found)


def _possible_forms(
    results: Mapping[str, str], known: Sequence[tuple[Misconception, Shown]], checks: Mapping[str, Check]
) -> dict[str, list[tuple[Misconception, Shown]]]:
    """Return each misconception's possible forms: forms that fail no check that the submission passes."""
    forms: dict[str, list[tuple[Misconception, Shown]]] = {}
    for misconception, mistaken in known:
        passed = [checks[name] for name in misconception.fails if results.get(name) == "passed"]
        if not any(any(mistaken.to(check)) for check in passed):
            forms.setdefault(misconception.known_as, []).append((misconception, mistaken))
    return forms


def _rank(
    submitted: Shown, mistaken: Shown, misconception: Misconception, failed: set[str], results: Mapping[str, str]
) -> int:
    """Return how many of four properties agree: the failed checks, all collectives, all matmuls, all results."""
    return sum((failed == set(misconception.fails) & results.keys(), *_likeness(submitted, mistaken, misconception)))


def with_hint(result: Result, misconceptions: Sequence[Misconception]) -> Result:
    """Return the result with the hint of one misconception, or with the hints of both if there are two."""
    hints = list(dict.fromkeys(misconception.hint for misconception in misconceptions))
    hint = hints[0] if len(hints) == 1 else f"Either: {hints[0]}\n\nOr: {hints[1]}"
    return result.model_copy(
        update={"hint": hint, "misconception": " or ".join(misconception.known_as for misconception in misconceptions)}
    )


# -- findings of a check -----------------------------------------------------------------------


def _found(check: Check, answered: Sequence[Answered]) -> Iterator[Found]:
    for group in together(check, list(answered)):
        faults = [a.finding for a in group.each if isinstance(a.finding, Fault)]
        if faults:
            yield faults[0]
            continue
        for seen in group.seen(public=False):
            for case in _cases(seen):
                try:
                    group.judged(case)
                except Failure as failure:
                    yield _of_case(case[0], failure) if _outcomes(case) else failure
                except Exception as error:  # the check skips this case, or raises an error
                    yield None if _outcomes(case) else Fault("broken", str(error))
                else:
                    yield None


def _of_case(seen: Seen, failure: Failure) -> Outcome:
    """Return the outcome of a wrong case; "wrong" if the check's failure does not show the actual outcome."""
    return Outcome(error="wrong") if failure.actual is None else seen.outcomes[0][1]


def _outcomes(seen: tuple) -> bool:
    return len(seen) == 1 and isinstance(seen[0], Seen) and bool(seen[0].outcomes)


def _cases(seen: tuple) -> list[tuple]:
    """Split the outcomes of a plain function into one tuple per case; other values stay whole."""
    return [(replace(seen[0], outcomes=[one]),) for one in seen[0].outcomes] if _outcomes(seen) else [seen]


# -- compare findings --------------------------------------------------------------------------


def _fits(submitted: Sequence[Found], forms: Sequence[Sequence[Found]]) -> bool:
    """Return True if the findings match one form of a misconception, or what all its forms have in common."""
    if any(_same_way(submitted, form) for form in forms):
        return True
    alike = {len(submitted), *map(len, forms)}
    if len(forms) == 1 or len(alike) > 1:
        return False
    common = [_common(found) for found in zip(*forms, strict=True)]
    shared = [n for n, found in enumerate(common) if found is not OPEN]
    return _same_way([submitted[n] for n in shared], [common[n] for n in shared])


OPEN = Fault("open", "the forms of a mistake have nothing in common here")


def _common(found: Sequence[Found]) -> Found:
    """Return what all forms of a misconception have in common, or OPEN."""
    failures = [one for one in found if isinstance(one, Failure)]
    compared = [one.compared for one in failures]
    if len(failures) < len(found) or failures[0].others or not all(compared):
        return found[0] if all(_alike(found[0], other)[0] for other in found[1:]) else OPEN
    first, *rest = (one for one in compared if one is not None)
    if any(_shapes(other.held) != _shapes(first.held) for other in rest):
        return OPEN
    informative = [
        _near_all(held, [other.held[n] for other in rest], 2 * first.bound) for n, held in enumerate(first.held)
    ]
    common = Failure(failures[0].reason, compared=replace(first, informative=informative))
    return common.about(failures[0].of)


def _shapes(arrays: Sequence[np.ndarray]) -> list[tuple[int, ...]]:
    return [array.shape for array in arrays]


def _near_all(held: np.ndarray, others: Sequence[np.ndarray], bound: float) -> np.ndarray:
    """Return a mask of the elements of ``held`` that differ by at most ``bound`` from those of all ``others``."""
    near = [np.abs(wide(held) - wide(other)) <= bound for other in others]
    return np.logical_and.reduce([np.ones(held.shape, bool), *near])


def _same_way(submitted: Sequence[Found], mistaken: Sequence[Found]) -> bool:
    """Return True if a check fails in equal places and for equal reasons in both programs.

    Undefined values may be NaN in one program and a number in the other. Places with undefined values are ignored, but
    at least as many other places must agree.
    """
    if len(submitted) != len(mistaken):
        return False
    agreed = undefined = 0
    for one, other in zip(submitted, mistaken, strict=True):
        if one is None and other is None:
            continue
        same, open_ = _alike(one, other)
        if same is None:
            return False
        agreed, undefined = agreed + same, undefined + open_
    return agreed > 0 and agreed >= undefined


def _alike(one: Found, other: Found) -> tuple[int | None, int]:
    """Return the number of places that agree (None if some disagree) and of places that cannot be compared."""
    if isinstance(one, Failure) and isinstance(other, Failure):
        return _same_failures(one, other)
    same = False
    if isinstance(one, Fault) and isinstance(other, Fault):  # a missing or unfinished task is not a misconception
        same = one.kind == other.kind and one.kind in ("raised", "refused") and _gist(one) == _gist(other)
    elif isinstance(one, Outcome) and isinstance(other, Outcome):
        same = same_outcome(one, other, 1e-6)
    return (1 if same else None), 0


def _gist(fault: Fault) -> tuple[str, str]:
    """Return an error's type and the beginning of its message, without digits and punctuation."""
    return fault.type, re.sub(r"[\d\W_]+", " ", fault.message)[:60]


def _same_failures(one: Failure, other: Failure) -> tuple[int | None, int]:
    submitted, mistaken = ({f.of: f for f in (each, *each.others)} for each in (one, other))
    if submitted.keys() != mistaken.keys():
        return None, 0
    agreed = undefined = 0
    for a, b in ((failure, mistaken[name]) for name, failure in submitted.items()):
        if a.compared is not None and b.compared is not None:
            same, open_ = _same_values(a.compared, b.compared)
        else:
            same, open_ = (1 if a.compared is b.compared and _same_finding(a, b) else None), 0
        if same is None:
            return None, 0
        agreed, undefined = agreed + same, undefined + open_
    return agreed, undefined


def _same_finding(one: Failure, other: Failure) -> bool:
    """Return True if the data of both failures agree.

    If the data are not numbers, the words of the reasons must agree too. If there are no data, the words and the
    numbers of the reasons must agree.
    """
    submitted, mistaken = ([f.expected, f.actual] for f in (one, other))
    if not all(isinstance(n, int | float) for n in (*submitted, *mistaken)):
        numbers = submitted == mistaken == [None, None]
        submitted, mistaken = (
            [*data, _says(f.reason), *(_numbers(f.reason) if numbers else [])]
            for f, data in ((one, submitted), (other, mistaken))
        )
    return len(submitted) == len(mistaken) and all(
        _same_data(a, b, one.spread) for a, b in zip(submitted, mistaken, strict=True)
    )


def _says(reason: str) -> str:
    """Return the words of a reason, without lines, numbers and shapes."""
    return re.sub(r"[^a-z]+", " ", re.sub(r"line \d+|\S*\d\S*( ?[a-zA-Z%]+\b)?", " ", reason.lower())).strip()


def _numbers(reason: str) -> list[float]:
    """Return the numbers of a reason, without the numbers of lines, devices and shapes."""
    return [float(n) for n in re.findall(r"(?<![\w.=])\d+(?:\.\d+)?", re.sub(r"line \d+|\[.*?\]|\(.*?\)", "", reason))]


def _same_data(a: object, b: object, spread: float) -> bool:
    if isinstance(a, bool | int | float) and isinstance(b, bool | int | float):
        return abs(a - b) <= spread * max(abs(a), abs(b))
    return a == b


def _same_values(submitted: Compared, mistaken: Compared) -> tuple[int | None, int]:
    """Compare wrong values: equal places must be wrong, by equal errors where both values are numbers.

    Expected values may depend on random numbers that a program draws. If expected values differ for this reason, only
    places are compared.
    """
    if _shapes(submitted.held) != _shapes(mistaken.held):
        return None, 0
    errors, others = ([wide(h) - d for h, d in zip(c.held, c.due, strict=True)] for c in (submitted, mistaken))
    largest = max((float(np.max(np.abs(b), initial=0, where=np.isfinite(b))) for b in others), default=0.0)
    bound = mistaken.bound + NEAR * largest
    agreed = undefined = 0
    random = any(np.any(np.abs(d - e) > mistaken.bound) for d, e in zip(submitted.due, mistaken.due, strict=True))
    informative = mistaken.informative or [np.ones(held.shape, bool) for held in mistaken.held]
    for a, b, good_a, good_b, of in zip(errors, others, submitted.good, mistaken.good, informative, strict=True):
        sure_a, sure_b, wrong = np.isfinite(a), np.isfinite(b), of & ~(good_a & good_b)
        numbers = wrong & sure_a & sure_b
        apart = not random and (np.abs(a - b) > bound if largest > CLEAR * mistaken.bound else True)
        if np.any(of & (good_a != good_b) & ~numbers) or np.any(numbers & apart):
            return None, 0
        agreed += int(np.count_nonzero((numbers & (not random)) | (wrong & ~sure_a & ~sure_b)))
        undefined += int(np.count_nonzero(of & (sure_a != sure_b)))
    return agreed, undefined


# -- compare everything else -------------------------------------------------------------------


def _likeness(submitted: Shown, mistaken: Shown, misconception: Misconception) -> tuple[bool, ...]:
    """Return whether all collectives, all matmuls and all results agree."""
    others = {answer.ask.same: answer.finding for answer in mistaken.answered}
    pairs = [(a.finding, others.get(a.ask.same)) for a in submitted.answered if a.ask.task == misconception.of.name]
    if plain := _outcome_pairs(pairs):
        return True, True, all(same_outcome(x, y, 1e-6) for x, y in plain)
    seen = [(a, b) for a, b in pairs if isinstance(a, Observation) and isinstance(b, Observation)]
    sent = all(_traffic(a.collectives) == _traffic(b.collectives) for a, b in seen)
    return sent, all(_matmuls(a) == _matmuls(b) for a, b in seen), all(_results(a, b) for a, b in seen)


def _outcome_pairs(pairs: Sequence[tuple[Finding, Finding | None]]) -> list[tuple[Outcome, Outcome]]:
    """Return the outcomes of plain functions in pairs, case by case."""
    lists = [(a, b) for a, b in pairs if isinstance(a, list) and isinstance(b, list)]
    return [pair for a, b in lists for pair in zip(a, b, strict=True)]


def _traffic(collectives: Sequence[Collective]) -> list:
    return sorted((c.kind, c.over, c.bytes, str(c.count), str(c.shift), c.by_compiler) for c in collectives)


def _matmuls(seen: Observation) -> list[int]:
    return sorted(op.flops for op in seen.operations.walk() if op.flops) if seen.operations else []


def _results(a: Observation, b: Observation) -> bool:
    pairs = [(x, y) for of, other in zip(a.outputs, b.outputs, strict=False) for x, y in zip(of, other, strict=False)]
    shards = [(wide(s), wide(t)) for x, y in pairs for s, t in zip(x.shards, y.shards, strict=False)]
    return all(s.shape == t.shape and _close(s, t) for s, t in shards)


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    size = np.max(np.abs(b), initial=0, where=np.isfinite(b))
    return np.allclose(a, b, rtol=0, atol=1e-3 * size, equal_nan=True)
