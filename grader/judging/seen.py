"""What a check sees of an answer, and what the answer is compared with: NumPy and plain values, no JAX.

A finding is what one ask came to: an observation (a program that ran), outcomes (a function that was
called), a raw answer (a question), or a fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from grader.common.observation import Fault, Observation, Outcome, Seen
from grader.exercise import Call, Cases, Task
from grader.judging.plan import Ask
from grader.wire.frames import decode, dtype_of, encode

Finding = Observation | list[Outcome] | Fault


@dataclass(frozen=True)
class Answered:
    """One ask and what it came to."""

    ask: Ask
    finding: Finding


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
