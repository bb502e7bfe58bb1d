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
from grader.exercise import Array, Call, Cases, Exercise, Quantity, Question
from grader.wire.frames import encode, widened

OPEN_SEED = "public"  # anybody may draw these inputs
SECRET_RUNS = 2  # with the open one, three on hidden dimensions


@dataclass(frozen=True, eq=False)
class Ask:
    """One question to a submission, and the inputs that only the runner and the judge get to see.

    Attributes:
        of: the call, the cases or the numeric question it stands for.
        mesh, dims, static: of a call.
        inputs: for each run, the arguments by name (and ``cotangent``).
        cases: argument sets of a function.
        secret: drawn from the course's seed: what comes of it decides, but nothing is said of it.
        exercise: whose ask it is.
    """

    of: Call | Cases | Question
    mesh: Mapping[str, int] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    inputs: list[dict[str, np.ndarray]] = field(default_factory=list)
    cases: list[dict[str, Any]] = field(default_factory=list)
    secret: bool = False
    exercise: str = ""
    static: Mapping[str, Any] = field(default_factory=dict)

    @property
    def task(self) -> str:
        return self.of.name if isinstance(self.of, Question) else self.of.task.name

    def for_tracer(self, files: list[str]) -> dict[str, Any]:
        """The ask as JSON: of a call shapes, dtypes and specs, never values; of a plain function its argument sets."""
        if isinstance(self.of, Question):
            return {"kind": "number" if isinstance(self.of.answer, Quantity) else "answer", "task": self.task}
        if isinstance(self.of, Cases):
            return {"kind": "function", "task": self.task, "cases": self.encoded}
        call = self.of
        return {
            "kind": call.task.kind,
            "task": self.task,
            "mesh": dict(self.mesh),
            "args": [_argument(name, array, self.dims) for name, array in call.args.items()],
            "static": {k: encode(v) for k, v in self.static.items()},
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
        static = repr([(name, encode(value)) for name, value in sorted(self.static.items())])
        return id(self.of), tuple(self.mesh.items()), tuple(sorted(self.dims.items())), static

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
        mine = [c for c in checks if c.call is call]
        where = f"{exercise.id}/{next((c for c in mine if c.public), mine[0]).name}"
        shown = any(c.public for c in mine)
        asks += (
            _of_cases(call, public, seed, where)
            if isinstance(call, Cases)
            else _of_call(call, shown, public, seed, where)
        )
    asks += [Ask(question) for question in exercise.questions.values()]
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

    def asked(mesh: Mapping[str, int], hidden: bool, seed: str, runs: int, secret: bool = False) -> Ask:
        dims, static = call.sizes(mesh, hidden=hidden), call.keywords(hidden=hidden)
        inputs = [_inputs(call, mesh, dims, static, rng(seed, f"{where}/{dict(mesh)}/{run}")) for run in range(runs)]
        return Ask(call, mesh, dims, inputs, secret=secret, static=static)

    same = (call.dims, call.keywords(hidden=False)) == (call.hidden_dims, call.keywords(hidden=True))
    asks = [asked(mesh, False, OPEN_SEED, 1) for mesh in call.meshes] if public or (shown and not same) else []
    if not public:
        asks += [asked(mesh, True, OPEN_SEED, 1) for mesh in call.meshes]
        asks += [asked(mesh, True, seed, SECRET_RUNS, secret=True) for mesh in call.meshes]
    return asks


def _inputs(
    call: Call, mesh: Mapping[str, int], dims: Mapping[str, int], static: Mapping[str, Any], draw: np.random.Generator
) -> dict[str, np.ndarray]:
    """The arguments of one run, each drawn after those before it. Raises AuthorError where one cannot be."""
    found: dict[str, np.ndarray] = {}
    related: dict[str, Any] = {"mesh": dict(mesh), **dims, **static}
    for name, array in call.arrays.items():
        try:
            found[name] = array.sample(dims, draw, related)
        except AuthorError as error:
            raise AuthorError(f"{call.task.name}: argument {name}: {error}") from None
        related[name] = widened(found[name])
    return found


def rng(seed: str, where: str) -> np.random.Generator:
    """A generator that depends on the course's seed and on what is drawn, on nothing else."""
    digest = hashlib.sha256(f"{seed}\0{where}".encode()).digest()
    return np.random.default_rng(np.random.SeedSequence(int.from_bytes(digest, "big")))
