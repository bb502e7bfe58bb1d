"""RESULTS ARE JUDGED HERE: findings and checks in, results out. NumPy and plain values, no JAX.

A finding is what one ask came to: an observation (a program that ran), outcomes (a function that was
called), a raw answer (a question), or a fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from grader.common.layout import show_device
from grader.common.observation import Collective, Fault, Observation, Outcome, Seen, Sharded
from grader.common.result import Result
from grader.exercise import Call, Cases, Check, Exercise, Misconception, Task
from grader.expect import Failure, same_outcome, show_value
from grader.judging.plan import Ask
from grader.wire.frames import decode, dtype_of, encode

Finding = Observation | list[Outcome] | Fault
# The same for everybody, whatever the secret inputs are and whatever came of them.
WRONG_IN_SECRET = (
    "right on all inputs that can be shown, wrong on hidden ones: what it does depends on more than it should"
)
BROKEN_IN_SECRET = "the grader failed on hidden inputs; a person must look"


@dataclass(frozen=True)
class Answered:
    """One ask and what it came to."""

    ask: Ask
    finding: Finding


def judge_checks(exercise: Exercise, answered: list[Answered], *, public: bool) -> list[Result]:
    """A result for every check (every public one when ``public``), in the exercise's order."""
    results: dict[str, Result] = {}
    for check in exercise.checks.values():
        if public and not check.public:
            continue
        before = [results[name] for name in check.after if name in results]
        of_check = [a for a in answered if a.ask.of is check.call]
        results[check.name] = _blocked(check, before) or judge_check(check, of_check, public=public)
    return list(results.values())


def _blocked(check: Check, before: list[Result]) -> Result | None:
    for result in before:
        if result.status == "broken":
            return _result(check, "broken", f"waits for {result.name!r}, which the grader could not judge")
        if result.status != "passed":
            return _result(check, "blocked", f"not tried: first make {result.label!r} pass")
    return None


def judge_check(check: Check, answered: list[Answered], *, public: bool) -> Result:
    """One check over all meshes and inputs; the first failure on inputs that are no secret is the one reported."""
    if not answered:
        return _result(check, "broken", "the grader asked nothing for this check")
    shown, secret = ([a for a in answered if a.ask.secret == late] for late in (False, True))
    return _verdict(check, shown, public=public) or _secret_verdict(check, secret) or _result(check, "passed")


def _verdict(check: Check, answered: list[Answered], *, public: bool) -> Result | None:
    """The first failure on inputs that are no secret, with all that can be said of it."""
    faults = [(a, a.finding) for a in answered if isinstance(a.finding, Fault)]
    for answer, fault in sorted(faults, key=lambda f: f[1].kind == "broken"):
        why = _on_mesh(_of_fault(fault, check), answer.ask, all(isinstance(a.finding, Fault) for a in answered))
        status = "broken" if fault.kind == "broken" else "failed"
        return _result(check, status, why, where=f"line {fault.line}" if fault.line else "")
    for answer in answered:
        for seen in seen_of(answer, public=public):
            try:
                check.fn(seen)
            except Failure as failure:
                return _failed(check, failure, answer.ask)
            except Exception as error:  # an author's mistake must not cost a learner points
                return _result(check, "broken", f"the check itself failed: {type(error).__name__}: {error}")
    return None


def _secret_verdict(check: Check, answered: list[Answered]) -> Result | None:
    """Whether it fails on secret inputs, in words that do not depend on them."""
    kinds = {a.finding.kind for a in answered if isinstance(a.finding, Fault)}
    if kinds:
        return _result(check, *(("broken", BROKEN_IN_SECRET) if kinds == {"broken"} else ("failed", WRONG_IN_SECRET)))
    for answer in answered:
        for seen in seen_of(answer, public=False):
            try:
                check.fn(seen)
            except Failure:
                return _result(check, "failed", WRONG_IN_SECRET)
            except Exception:
                return _result(check, "broken", BROKEN_IN_SECRET)
    return None


def verdicts(check: Check, answered: list[Answered]) -> list[tuple[Ask, int, str]]:
    """For the staff: of every ask and each of its runs, why the check fails there, secret ones included; '' where it passes."""
    decided = []
    for answer in answered:
        if isinstance(answer.finding, Fault):
            decided.append((answer.ask, 0, f"{answer.finding.kind}: {_of_fault(answer.finding, check)}"))
            continue
        for run, seen in enumerate(seen_of(answer, public=False)):
            try:
                check.fn(seen)
                decided.append((answer.ask, run, ""))
            except Failure as failure:
                decided.append((answer.ask, run, failure.staff or failure.reason))
            except Exception as error:
                decided.append((answer.ask, run, f"the check itself failed: {type(error).__name__}: {error}"))
    return decided


def _failed(check: Check, failure: Failure, ask: Ask) -> Result:
    expected, actual = failure.expected, failure.actual
    pictures = []
    if isinstance(actual, Sharded):
        actual = expected = None
    if isinstance(failure.layouts, tuple):
        pictures = [
            _picture(title, layout) for title, layout in zip(("actual", "expected"), failure.layouts, strict=True)
        ]
    reason = _on_mesh(failure.reason, ask, False)
    return _result(
        check,
        "failed",
        reason,
        where=failure.where,
        staff=failure.staff,
        expected=_plain(expected),
        actual=_plain(actual),
        pictures=pictures,
    )


def _picture(title: str, layout: tuple) -> dict[str, Any]:
    mesh, shape, slices = layout
    return {
        "title": title,
        "mesh": [[a, n] for a, n in mesh.items()],
        "shape": list(shape),
        "slices": [[list(p) for p in s] for s in slices],
    }


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    return show_value(value)


def _on_mesh(text: str, ask: Ask, always: bool) -> str:
    several = isinstance(ask.of, Call) and len(ask.of.meshes) > 1 and not always
    return f"on the mesh {show_device(ask.mesh)}, {text}" if several else text


def _of_fault(fault: Fault, check: Check) -> str:
    task = check.call.task.name
    place = f"line {fault.line}" if fault.line else ""
    if fault.file.startswith("cell"):  # a .py file's name says nothing that its line does not
        place = f"{fault.file}, {place}" if place else fault.file
    text = fault.message if fault.message.startswith(task) else f"{task}: {fault.message}"
    return f"{place}: {text}" if place else text


def _result(check: Check, status: Any, reason: str = "", **more: Any) -> Result:
    earned = check.points if status == "passed" else 0
    return Result(
        kind="check", name=check.name, label=check.label, task=check.call.task.name, status=status,
        points=check.points, earned=earned, public=check.public, reason=reason, **more,
    )  # fmt: skip


# -- what a check sees -------------------------------------------------------------------------


def seen_of(answer: Answered, *, public: bool) -> Iterable[Seen]:
    ask, finding = answer.ask, answer.finding
    if isinstance(ask.of, Cases):
        assert isinstance(finding, list)
        wanted = expected_outcomes(ask.of) if public and ask.of.expected else _wanted(ask)
        yield Seen({}, outcomes=list(zip(ask.cases, finding, wanted, strict=True)), public=not ask.secret)
        return
    assert isinstance(ask.of, Call) and isinstance(finding, Observation)
    for inputs, outputs in zip(ask.inputs, finding.outputs, strict=True):
        results, grads = outputs, {}
        if ask.of.wrt:
            cut = len(outputs) - len(ask.of.wrt)
            results, grads = outputs[:cut], dict(zip(ask.of.wrt, outputs[cut:], strict=True))
            grads = {name: replace(grad, due=dtype_of(ask.of.args[name].dtype)) for name, grad in grads.items()}
        results = [replace(r, due=ask.of.dtype, per_device=ask.of.task.kind == "body") for r in results]
        yield Seen(
            mesh=ask.mesh,
            dims=ask.dims,
            inputs={k: _exact(v) for k, v in inputs.items()},
            static=ask.of.static,
            out=results[0]
            if len(results) == 1
            else results,  # of a program, one result and a tuple of one are the same
            grads=grads,
            collectives=finding.collectives,
            memory=finding.memory,
            flops=finding.flops,
            dot_flops=finding.dot_flops,
            typed=finding.typed,
            mapped=finding.mapped,
            public=not ask.secret,
        )


def _exact(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.kind in "iub" else array.astype(np.float64)


@lru_cache(512)
def _wanted(ask: Ask) -> list[Outcome]:
    """Once for everybody: a plan is drawn once."""
    assert isinstance(ask.of, Cases)
    return [reference_outcome(ask.of.task, args) for args in ask.cases]


def reference_outcome(task: Task, args: Mapping[str, Any]) -> Outcome:
    """What the author's function does; its errors are outcomes too."""
    try:
        return Outcome(value=decode(encode(task.fn(**args))))
    except Exception as error:
        return Outcome(error=type(error).__name__)


def encode_outcome(outcome: Outcome) -> dict[str, Any]:
    return {"error": outcome.error} if outcome.error else {"value": encode(outcome.value)}


def expected_outcomes(cases: Cases) -> list[Outcome]:
    """Outcomes of the public cases as ``build`` wrote them."""
    return [Outcome(error=o["error"]) if "error" in o else Outcome(value=decode(o["value"])) for o in cases.expected]


# -- known slips -------------------------------------------------------------------------------


def matches(submitted: list[Answered], mistaken: list[Answered], reference: list[Answered]) -> int:
    """How well a submission fits a misconception on the same asks: 0 not, 1 by its results, 2 by its traffic too.

    Results decide only where the misconception's are wrong; where they are right, what it sends must fit.
    A program that could not be traced fits one that fails with the same error.

    Args:
        submitted: what came of the submission.
        mistaken: of the misconception.
        reference: of the solution.
    """
    if not submitted or len(submitted) != len(mistaken):
        return 0
    pairs = list(zip(submitted, mistaken, strict=True))
    if not all(_same_finding(a.finding, b.finding) for a, b in pairs):
        return 0
    if all(_same_traffic(a.finding, b.finding) for a, b in pairs):
        return 2
    right = all(_same_finding(a.finding, b.finding) for a, b in zip(mistaken, reference, strict=True))
    return 0 if right else 1


def _same_finding(a: Finding, b: Finding) -> bool:
    if isinstance(a, Fault) or isinstance(b, Fault):
        # a missing or unfinished task is nobody's misconception
        return isinstance(a, Fault) and isinstance(b, Fault) and a.kind == b.kind == "raised" and _gist(a) == _gist(b)
    if isinstance(a, Observation) and isinstance(b, Observation):
        return len(a.outputs) == len(b.outputs) and all(
            len(x) == len(y) and all(_same_array(s, t) for s, t in zip(x, y, strict=True))
            for x, y in zip(a.outputs, b.outputs, strict=True)
        )
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same_outcome(x, y, 1e-6) for x, y in zip(a, b, strict=True))
    return False


def _gist(fault: Fault) -> tuple[str, str]:
    """An error's type and the part of its message before anything that names shapes or lines."""
    import re

    return fault.type, re.sub(r"[\d\W_]+", " ", fault.message)[:60]


def _same_array(a: Sharded, b: Sharded) -> bool:
    if a.shape != b.shape or a.slices != b.slices:
        return False
    if "c" in (a.dtype.kind, b.dtype.kind):
        return False  # no misconception returns complex numbers
    pairs = [(s.astype(np.float64), t.astype(np.float64)) for s, t in zip(a.shards, b.shards, strict=True)]
    size = max((float(np.max(np.abs(t[np.isfinite(t)]), initial=0.0)) for _, t in pairs), default=0.0)
    return all(np.allclose(s, t, rtol=0.0, atol=1e-3 * size, equal_nan=True) for s, t in pairs)


def _same_traffic(a: Finding, b: Finding) -> bool:
    if not (isinstance(a, Observation) and isinstance(b, Observation)):
        return True

    def sent(cs: list[Collective]) -> list:
        return sorted((c.kind, c.axes, c.bytes, str(c.count), str(c.shift), c.by_compiler) for c in cs)

    return (a.typed, a.mapped) == (b.typed, b.mapped) and sent(a.collectives) == sent(b.collectives)


def with_hint(result: Result, slip: Misconception) -> Result:
    return result.model_copy(update={"hint": slip.hint, "misconception": slip.name})
