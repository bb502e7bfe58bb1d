"""What is asked of a submission: an exercise's calls, on every mesh, with inputs drawn from a seed.

A public plan holds what learners can try themselves: the dimensions and cases that they see. A grader's plan holds the
public one, the same again on hidden dimensions and more cases, and then *secret* asks, whose inputs are drawn from the
course's seed. Whatever is said about a submission comes from asks that are no secret; secret ones decide, and say nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from grader import declared
from grader.declared import AuthorError
from grader.exercise import Array, Call, Cases, Exercise, Number
from grader.wire.frames import encode

OPEN_SEED = "public"  # anybody may draw these inputs
SECRET_RUNS = 2  # with the open one, three on hidden dimensions


@dataclass(frozen=True, eq=False)
class Ask:
    """One question to a submission, and the inputs that only the runner and the judge get to see.

    Attributes:
        of: the call, the cases or the numeric question it stands for.
        mesh, dims: of a call.
        inputs: for each run, the arguments by name (and ``cotangent``).
        cases: argument sets of a function.
        secret: drawn from the course's seed: what comes of it decides, but nothing is said of it.
        exercise: whose ask it is.
    """

    of: Call | Cases | Number
    mesh: Mapping[str, int] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    inputs: list[dict[str, np.ndarray]] = field(default_factory=list)
    cases: list[dict[str, Any]] = field(default_factory=list)
    secret: bool = False
    exercise: str = ""

    @property
    def task(self) -> str:
        return self.of.name if isinstance(self.of, Number) else self.of.task.name

    def for_tracer(self, files: list[str]) -> dict[str, Any]:
        """The ask as JSON: of a call shapes, dtypes and specs, never values; of a plain function its argument sets."""
        if isinstance(self.of, Number):
            return {"kind": "number", "task": self.task}
        if isinstance(self.of, Cases):
            return {"kind": "function", "task": self.task, "cases": self.encoded}
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

    @property
    def program(self) -> tuple:
        """Asks of a call that are equal in this are answered by the same program."""
        return id(self.of), tuple(self.mesh.items()), tuple(sorted(self.dims.items()))

    @cached_property
    def encoded(self) -> list[Any]:
        """The cases as JSON."""
        return [encode(case) for case in self.cases]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all inputs, or of the cases."""
        runs = [(n, a.dtype.name, a.shape, a.tobytes()) for one in self.inputs for n, a in one.items()]
        return hashlib.sha256(repr((runs, self.cases)).encode()).hexdigest()

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
    """Every ask of an exercise, in a fixed order: calls and cases of its checks, then its questions; secret asks last.

    Args:
        exercise: whose checks are to be judged.
        public: only what learners can try themselves.
        seed: the secret one.
    """
    asks: list[Ask] = []
    checks = list(exercise.checks.values())
    chosen = [c for c in checks if c.public or not public]
    for call in dict.fromkeys(c.call for c in chosen):
        # The public check gives its name, so that a grader draws the data which learners had.
        of_call = [c for c in checks if c.call is call]
        where = f"{exercise.id}/{next((c for c in of_call if c.public), of_call[0]).name}"
        shown = any(c.public for c in of_call)
        asks += (
            _of_cases(call, public, seed, where)
            if isinstance(call, Cases)
            else _of_call(call, shown, public, seed, where)
        )
    asks += [Ask(question) for question in exercise.numbers.values()]
    return [replace(ask, exercise=exercise.id) for ask in sorted(asks, key=lambda ask: ask.secret)]


def _of_cases(cases: Cases, public: bool, seed: str, where: str) -> list[Ask]:
    if public or cases.hidden is None:
        return [Ask(cases, cases=list(cases.public))]
    drawn, secret = (_drawn(cases, rng(s, where)) for s in (OPEN_SEED, seed))
    return [Ask(cases, cases=[*cases.public, *drawn]), Ask(cases, cases=secret, secret=True)]


def _drawn(cases: Cases, draw: np.random.Generator) -> list[dict[str, Any]]:
    """Hidden argument sets. Raises AuthorError where the author's function does not give any."""
    assert cases.hidden is not None
    try:
        found = list(cases.hidden(draw))
    except Exception as error:  # the function is the author's
        raise AuthorError(f"{cases.task.name}: drawing hidden cases raises {type(error).__name__}: {error}") from None
    for case in found:
        declared.mapping(f"{cases.task.name}: a hidden case", case, '{"n": 8}')
    return found


def _of_call(call: Call, shown: bool, public: bool, seed: str, where: str) -> list[Ask]:
    """``shown``: learners have this call, so a grader asks for it too, exactly as they can."""
    asks = []
    if public or (shown and call.dims != call.hidden_dims):
        asks += [
            Ask(call, mesh, call.dims, _inputs(call, mesh, call.dims, OPEN_SEED, where, 1)) for mesh in call.meshes
        ]
    if public:
        return asks
    for secret, drawn, runs in ((False, OPEN_SEED, 1), (True, seed, SECRET_RUNS)):
        for mesh in call.meshes:
            inputs = _inputs(call, mesh, call.hidden_dims, drawn, where, runs)
            asks.append(Ask(call, mesh, call.hidden_dims, inputs, secret=secret))
    return asks


def _inputs(call: Call, mesh: Mapping[str, int], dims: Mapping[str, int], seed: str, where: str, runs: int) -> list:
    arrays = dict(call.args) | ({"cotangent": call.cotangent} if call.cotangent else {})
    draws = (rng(seed, f"{where}/{dict(mesh)}/{run}") for run in range(runs))
    return [{name: array.sample(dims, draw) for name, array in arrays.items()} for draw in draws]


def rng(seed: str, where: str) -> np.random.Generator:
    """A generator that depends on the course's seed and on what is drawn, on nothing else."""
    digest = hashlib.sha256(f"{seed}\0{where}".encode()).digest()
    return np.random.default_rng(np.random.SeedSequence(int.from_bytes(digest, "big")))
