"""What is asked of a submission: an exercise's calls, on every mesh, with inputs drawn from a seed.

``public`` plans use the dimensions and cases that learners see and one set of inputs; hidden plans
use the hidden dimensions, more cases and three sets of inputs, drawn from the course's secret seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grader.exercise import Array, Call, Cases, Exercise, Number
from grader.wire import encode

HIDDEN_RUNS = 3


@dataclass(frozen=True, eq=False)
class Ask:
    """One question to a submission, and the inputs that only the runner and the judge get to see.

    Attributes:
        of: the call, the cases or the numeric question it stands for.
        mesh, dims: of a call.
        inputs: for each run, the arguments by name (and ``cotangent``).
        cases: argument sets of a function.
        exercise: whose ask it is.
    """

    of: Call | Cases | Number
    mesh: Mapping[str, int] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    inputs: list[dict[str, np.ndarray]] = field(default_factory=list)
    cases: list[dict[str, Any]] = field(default_factory=list)
    exercise: str = ""

    @property
    def task(self) -> str:
        return self.of.name if isinstance(self.of, Number) else self.of.task.name

    def for_tracer(self, files: list[str]) -> dict[str, Any]:
        """The ask as JSON: shapes, dtypes and specs, never values."""
        if isinstance(self.of, Number):
            return {"kind": "number", "task": self.task}
        if isinstance(self.of, Cases):
            return {"kind": "function", "task": self.task, "cases": [encode(c) for c in self.cases]}
        call = self.of
        return {
            "kind": call.task.kind,
            "task": self.task,
            "mesh": dict(self.mesh),
            "args": [_argument(name, array, self.dims) for name, array in call.args.items()],
            "static": {k: encode(v) for k, v in call.static.items()},
            "wrt": list(call.wrt),
            "cotangent": _argument("cotangent", call.cotangent, self.dims) if call.cotangent else None,
            "out_specs": encode(call.task.out_specs) if call.task.kind == "body" else None,
            "check_vma": call.task.check_vma,
            "platform": "cpu",
            "files": files,
        }

    def arrays(self) -> list[list[np.ndarray]]:
        """The inputs in the program's order, one list per run."""
        return [list(one.values()) for one in self.inputs]


def _argument(name: str, array: Array, dims: Mapping[str, int]) -> dict[str, Any]:
    spec = [list(e) if isinstance(e, tuple) else e for e in array.spec]
    return {
        "name": name,
        "shape": list(array.sized(dims)),
        "dtype": array.dtype,
        "spec": {"spec": [{"tuple": e} if isinstance(e, list) else e for e in spec]},
    }


def plan(exercise: Exercise, *, public: bool, seed: str) -> list[Ask]:
    """Every ask of an exercise, in a fixed order: calls and cases of its checks, then its questions."""
    asks: list[Ask] = []
    done: set[int] = set()
    for check in exercise.checks.values():
        if (public and not check.public) or id(check.call) in done:
            continue
        done.add(id(check.call))
        where = f"{exercise.id}/{check.name}"
        if isinstance(check.call, Cases):
            asks.append(_ask_cases(check.call, public, seed, where, exercise.id))
        else:
            asks += _ask_call(check.call, public, seed, where, exercise.id)
    return asks + [Ask(question, exercise=exercise.id) for question in exercise.numbers.values()]


def _ask_cases(cases: Cases, public: bool, seed: str, where: str, exercise: str) -> Ask:
    chosen = list(cases.public)
    if not public and cases.hidden is not None:
        chosen += list(cases.hidden(rng(seed, where)))
    return Ask(cases, cases=chosen, exercise=exercise)


def _ask_call(call: Call, public: bool, seed: str, where: str, exercise: str) -> list[Ask]:
    dims = call.dims if public else call.hidden_dims
    asks = []
    for mesh in call.meshes:
        runs = []
        for run in range(1 if public else HIDDEN_RUNS):
            draw = rng(seed, f"{where}/{dict(mesh)}/{run}")
            arrays = dict(call.args) | ({"cotangent": call.cotangent} if call.cotangent else {})
            runs.append({name: array.sample(dims, draw) for name, array in arrays.items()})
        asks.append(Ask(call, mesh, dims, runs, exercise=exercise))
    return asks


def rng(seed: str, where: str) -> np.random.Generator:
    """A generator that depends on the course's seed and on what is drawn, on nothing else."""
    digest = hashlib.sha256(f"{seed}\0{where}".encode()).digest()
    return np.random.default_rng(np.random.SeedSequence(int.from_bytes(digest, "big")))
