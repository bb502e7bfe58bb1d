"""Find the misconception that a submission has.

A misconception is a known mistake with a hint; its *forms* are programs that make the mistake. What a check finds in a
run (``Found``) is a failure, a fault or, for a plain Python function, a wrong outcome. A misconception fits if the
checks find equal mistakes in a form and in the submission. Examples are equal wrong values, equal excess collectives,
and equal operations that wait for a matmul although they must not. Runs on hidden inputs (drawn from the course's seed)
are not compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from grader.common.observation import Fault, Outcome, Seen
from grader.exercise import Call, Check, Misconception
from grader.expect import Failure, same_outcome
from grader.expect.failure import Compared
from grader.judging.answers import MOST_NAMED
from grader.judging.judge import Together, together
from grader.judging.likeness import findings_of, likeness, shared_traffic
from grader.judging.plan import Ask
from grader.judging.seen import AskFinding, paired, partner
from grader.wire.frames import wide

# If two programs make one mistake, their errors differ by less than this fraction of the misconception's largest error.
NEAR = 0.01
CLEAR = 4  # Numerical errors below this multiple of the tolerance do not show which mistake caused them.
Found = Failure | Fault | Outcome | None
NO_DATA = "wrong: "
"""Begins the error of the outcome that replaces a returned value, if the failure does not show this value."""


@dataclass
class Attempt:
    """The answers of a submission, or of a misconception's form, and what checks find in these answers.

    Answers to requests with hidden inputs are left out.
    """

    answered: Sequence[AskFinding]
    _found: dict[str, list[tuple[Together, list[Found]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.answered = [a for a in paired(self.answered) if not a.ask.hidden_inputs]

    def found(self, check: Check) -> list[Found]:
        """Return what a check finds in each run and case; None for a run or case that passes."""
        return list(chain.from_iterable(found for _, found in self._runs(check)))

    def first_failure(self, check: Check) -> tuple[list[Ask], list[Found]]:
        """Return the asks of the first run that fails a check, and what the check finds; ([], []) if all runs pass.

        An ask is one request to a submission. A timed program never runs, so for a timing call, the asks include the
        ask for its small call.
        """
        for group, found in self._runs(check):
            if any(found):
                asks = [a.ask for a in group.each]
                timed = [ask for ask in asks if isinstance(ask.of, Call) and ask.of.timing]
                return list(dict.fromkeys([*asks, *(partner(ask, self.answered).ask for ask in timed)])), found
        return [], []

    def _runs(self, check: Check) -> list[tuple[Together, list[Found]]]:
        if check.name not in self._found:
            self._found[check.name] = [(group, list(_found(group))) for group in together(check, list(self.answered))]
        return self._found[check.name]


AttemptOf = Callable[[Misconception, Sequence[Ask]], Attempt]
Forms = Mapping[str, list[tuple[Misconception, Attempt]]]


def fitting(
    check: Check,
    submitted: Attempt,
    statuses: dict[str, str],
    known: Sequence[Misconception],
    checks: Mapping[str, Check],
    attempt_of: AttemptOf,
) -> list[Misconception]:
    """Return the misconceptions that explain why a check fails; [] if too many explain it equally well.

    A misconception may have a function ``gives``, which tests whether the mistake can be the cause of a program's
    results. If these tests pass for some misconceptions, return these misconceptions.

    Otherwise, compare the submission with the programs of the misconceptions without ``gives``. Such a misconception
    fits if the submission also fails every check that its program fails, and if the checks find the same. Checks that
    the grader did not try are ignored. If several misconceptions fit, return those whose programs agree with the
    submission in most properties (see ``_rank``).

    Args:
        statuses: the status of each check of the submission.
        known: the misconceptions that may explain the failure.
        checks: all checks by name.
        attempt_of: returns a misconception's answers to the given asks (requests). To save time, each misconception
            first answers only the asks of the submission's first failing run. Misconceptions that may explain this run
            then answer all asks.
    """
    if given := [misconception for misconception in known if _gives(misconception, submitted, checks)]:
        return given if len(given) <= MOST_NAMED else []
    asks = [a.ask for a in submitted.answered]
    compared = [misconception for misconception in known if misconception.gives is None]
    near = [(one, attempt_of(one, asks)) for one in _near(check, submitted, compared, attempt_of)]
    best = _most_alike(check, submitted, statuses, _possible_forms(statuses, near, checks), checks)
    return best if len(best) <= MOST_NAMED else []


def _most_alike(
    check: Check, submitted: Attempt, statuses: Mapping[str, str], forms: Forms, checks: Mapping[str, Check]
) -> list[Misconception]:
    """Return the misconceptions that fit (see ``fitting``) and agree most with the submission (see ``_rank``)."""
    failed = {name for name, status in statuses.items() if status == "failed"}
    ranks: dict[str, tuple[int, float]] = {}
    for name, every in forms.items():
        compared = [checks[other] for other in every[0][0].fails if other in {check.name, *failed}]
        if _fails_as(submitted, every, compared):
            ranks[name] = max(_rank(submitted, mistaken, one, statuses) for one, mistaken in every)
    return [forms[name][0][0] for name, rank in ranks.items() if rank == max(ranks.values())]


def _near(check: Check, submitted: Attempt, known: Sequence[Misconception], of: AttemptOf) -> Iterator[Misconception]:
    """Yield the misconceptions that may fit, judged only by the submission's first run that fails the check.

    A misconception's program is ignored if the check runs more or fewer times on it than on the submission.
    """
    asks, found = submitted.first_failure(check)
    forms: dict[str, list[Misconception]] = {}
    for misconception in known if asks else ():
        forms.setdefault(misconception.known_as, []).append(misconception)
    for every in forms.values():
        comparable = [form for one in every if len(form := of(one, asks).found(check)) == len(found)]
        if comparable and _fits(found, comparable, _no_other_way):
            yield from every


def _fails_as(submitted: Attempt, forms: Sequence[tuple[Misconception, Attempt]], checks: Iterable[Check]) -> bool:
    """Return True if each check finds the same in the submission as in a misconception's forms (see ``_fits``)."""
    return all(_fits(submitted.found(check), [form.found(check) for _, form in forms], _same_way) for check in checks)


def _gives(misconception: Misconception, submitted: Attempt, checks: Mapping[str, Check]) -> bool:
    """Return True if the submission fails the misconception's first check, and ``gives`` passes in each of its runs."""
    if misconception.gives is None or not any(submitted.found(check := checks[misconception.fails[0]])):
        return False
    found = submitted.found(replace(check, name=f"{misconception.name} gives", fn=misconception.gives))
    return bool(found) and not any(found)


def _possible_forms(
    statuses: Mapping[str, str], known: Sequence[tuple[Misconception, Attempt]], checks: Mapping[str, Check]
) -> Forms:
    """Return each misconception's forms, except the forms that fail a check which the submission passes."""
    forms: dict[str, list[tuple[Misconception, Attempt]]] = {}
    for misconception, mistaken in known:
        passed = [checks[name] for name in misconception.fails if statuses.get(name) == "passed"]
        if not any(any(mistaken.found(check)) for check in passed):
            forms.setdefault(misconception.known_as, []).append((misconception, mistaken))
    return forms


def _rank(
    submitted: Attempt, mistaken: Attempt, misconception: Misconception, statuses: Mapping[str, str]
) -> tuple[int, float]:
    """Return how many of four properties agree between two programs, and a fraction that breaks ties.

    The programs are the submission's (``submitted``) and a misconception's (``mistaken``). The properties are the set
    of failed checks, the collectives, the matmuls and the results. The fraction is the share of all collectives that
    occur in both programs.
    """
    pairs = findings_of(misconception.of.name, submitted.answered, mistaken.answered)
    failed = {name for name, status in statuses.items() if status == "failed"}
    same_checks = failed == set(misconception.fails) & statuses.keys()
    return sum((same_checks, *likeness(pairs))), shared_traffic(pairs)


# -- what a check finds ------------------------------------------------------------------------


def _found(group: Together) -> Iterator[Found]:
    faults = [a.finding.fault for a in group.each if a.finding.fault]
    if faults:
        yield faults[0]
        return
    for seen in group.seen(learners_run=False):
        for case in _cases(seen):
            try:
                group.run_check(case)
            except Failure as failure:
                yield _of_case(case[0], failure) if _outcomes(case) else failure
            except Exception as error:  # the check skips this case, or raises an error
                yield None if _outcomes(case) else Fault("broken", str(error))
            else:
                yield None


def _of_case(seen: Seen, failure: Failure) -> Outcome:
    """Return a function's outcome in a failing case, or the failure's words if it does not show the returned value."""
    outcome = seen.outcomes[0][1]
    hidden = failure.actual is None and not outcome.error
    return Outcome(error=NO_DATA + _says(failure.reason)) if hidden else outcome


def _outcomes(seen: tuple) -> bool:
    return len(seen) == 1 and isinstance(seen[0], Seen) and bool(seen[0].outcomes)


def _cases(seen: tuple) -> list[tuple]:
    """Return one tuple per case if ``seen`` is from a plain Python function, else [``seen``]."""
    return [(replace(seen[0], outcomes=[one]),) for one in seen[0].outcomes] if _outcomes(seen) else [seen]


# -- compare what checks find ------------------------------------------------------------------


def _fits(submitted: Sequence[Found], forms: Sequence[Sequence[Found]], match: Callable[..., bool]) -> bool:
    """Return True if ``match(submitted, form)`` is True for at least one of the misconception's ``forms``.

    Also return True if ``match`` is True for the submission and for what all forms have in common (see ``_common``).
    """
    if any(match(submitted, form) for form in forms):
        return True
    alike = {len(submitted), *map(len, forms)}
    if len(forms) == 1 or len(alike) > 1:
        return False
    common = [_common(found) for found in zip(*forms, strict=True)]
    shared = [n for n, found in enumerate(common) if found is not OPEN]
    return match([submitted[n] for n in shared], [common[n] for n in shared])


OPEN = Fault("open", "the programs of this misconception fail this check in different ways")


def _common(found: Sequence[Found]) -> Found:
    """Return what a check finds in all forms of a misconception; ``OPEN`` if the forms have nothing in common.

    For wrong values, these are the values that are nearly equal in all forms.
    """
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
    near = [np.abs(wide(held) - wide(other)) <= bound for other in others]
    return np.logical_and.reduce([np.ones(held.shape, bool), *near])


def _same_way(submitted: Sequence[Found], mistaken: Sequence[Found]) -> bool:
    """Return True if a check fails in equal places and for equal reasons in both programs.

    A place, such as an array element, cannot be compared if both programs are wrong there and only one of their values
    is finite. At least one place must agree. The places that cannot be compared must not be more than the places that
    agree.
    """
    agreed, undefined = _agreement(submitted, mistaken) or (0, 0)
    return agreed > 0 and agreed >= undefined


def _no_other_way(submitted: Sequence[Found], mistaken: Sequence[Found]) -> bool:
    """Return True if the two programs disagree in no place. They may agree in few places or none."""
    return _agreement(submitted, mistaken) is not None


def _agreement(submitted: Sequence[Found], mistaken: Sequence[Found]) -> tuple[int, int] | None:
    """Return how many places (such as array elements) agree, and how many cannot be compared; None if one disagrees."""
    if len(submitted) != len(mistaken):
        return None
    pairs = zip(submitted, mistaken, strict=True)
    return _sums(_alike(one, other) for one, other in pairs if one is not None or other is not None)


def _sums(counts: Iterable[tuple[int | None, int]]) -> tuple[int, int] | None:
    agreed = undefined = 0
    for same, open_ in counts:
        if same is None:
            return None
        agreed, undefined = agreed + same, undefined + open_
    return agreed, undefined


def _alike(one: Found, other: Found) -> tuple[int | None, int]:
    """Return how many places, such as elements, agree (None if some disagree), and how many cannot be compared."""
    if isinstance(one, Failure) and isinstance(other, Failure):
        return _same_failures(one, other)
    same = False
    # The submission is right in this case, perhaps because it makes a milder form of the mistake.
    if one is None and isinstance(other, Outcome):
        return 0, 1
    # Faults show a mistake only if their kind is "raised" or "refused". Faults of missing and unfinished tasks have
    # other kinds.
    if isinstance(one, Fault) and isinstance(other, Fault):
        same = one.kind == other.kind and one.kind in ("raised", "refused") and _gist(one) == _gist(other)
    elif isinstance(one, Outcome) and isinstance(other, Outcome):
        if _no_data(one) and _no_data(other) and one != other:
            return 0, 0
        same = same_outcome(one, other, 1e-6)
    return (1 if same else None), 0


def _no_data(outcome: Outcome) -> bool:
    return (outcome.error or "").startswith(NO_DATA)


def _gist(fault: Fault) -> tuple[str, str]:
    """Return an error's type and the beginning of its message, without digits, punctuation and function names."""
    unnamed = re.sub(r"function '[^']+'", "function", fault.message)
    return fault.type, re.sub(r"[\d\W_]+", " ", unnamed)[:60]


def _same_failures(one: Failure, other: Failure) -> tuple[int | None, int]:
    submitted, mistaken = ({f.of: f for f in (each, *each.others)} for each in (one, other))
    if submitted.keys() != mistaken.keys():
        return None, 0
    return _sums(_same_failure(failure, mistaken[name]) for name, failure in submitted.items()) or (None, 0)


def _same_failure(one: Failure, other: Failure) -> tuple[int | None, int]:
    if one.compared is not None and other.compared is not None:
        return _same_values(one.compared, other.compared)
    return (1 if one.compared is other.compared and _same_data_and_words(one, other) else None), 0


def _same_data_and_words(one: Failure, other: Failure) -> bool:
    """Return True if two failures have equal expected data and equal actual data.

    Unless all data are numbers, the words of the failures' reasons must also be equal. If there are no data, the
    numbers in the reasons must be equal, too.
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
    """Return the words of a reason, without numbers and shapes."""
    return re.sub(r"[^a-z]+", " ", re.sub(r"line \d+|\S*\d\S*( ?[a-zA-Z%]+\b)?", " ", reason.lower())).strip()


def _numbers(reason: str) -> list[float]:
    """Return the numbers in a reason, except the numbers of lines, devices (``x=1``) and shapes (``[3, 4]``)."""
    return [float(n) for n in re.findall(r"(?<![\w.=])\d+(?:\.\d+)?", re.sub(r"line \d+|\[.*?\]|\(.*?\)", "", reason))]


def _same_data(a: object, b: object, spread: float) -> bool:
    if isinstance(a, bool | int | float) and isinstance(b, bool | int | float):
        return abs(a - b) <= spread * max(abs(a), abs(b))
    return a == b


@np.errstate(invalid="ignore")  # infinity minus infinity
def _same_values(submitted: Compared, mistaken: Compared) -> tuple[int | None, int]:
    """Compare the wrong values of both programs, and return counts as ``_alike`` does.

    Where both values are finite, their errors must be nearly equal. Elsewhere, both values must be wrong or both right.
    Finite values are not compared if the expected values of the two programs differ, as with random numbers.
    """
    if _shapes(submitted.held) != _shapes(mistaken.held):
        return None, 0
    errors, others = ([wide(h) - wide(d) for h, d in zip(c.held, c.due, strict=True)] for c in (submitted, mistaken))
    largest = max((float(np.max(np.abs(b), initial=0, where=np.isfinite(b))) for b in others), default=0.0)
    bound = mistaken.bound + NEAR * largest
    agreed = undefined = 0
    pairs = zip(submitted.due, mistaken.due, strict=True)
    random = any(np.any(np.abs(wide(d) - wide(e)) > mistaken.bound) for d, e in pairs)
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
