"""Plan the asks of an exercise. An *ask* is one request to a submission; a *plan* is all asks of an exercise.

An ask is a call of a task on one mesh with drawn inputs, the cases (argument sets) of a plain Python function, or a
question. A public plan has only the dimensions and cases that learners see. A grader's plan adds asks on hidden
dimensions and more cases. It also adds asks with *hidden inputs*, drawn from the course's seed. A check can fail
because of hidden inputs, but reports show nothing about them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from grader import declared
from grader.declared import AuthorError
from grader.exercise import Array, Call, Cases, Check, Exercise, Quantity, Question
from grader.wire.frames import encode, widened
from grader.wire.messages import Argument, CallAsk, Cotangent, TracerAsk
from grader.wire.trees import fitted, flat, leaves, mapped, named, rebuilt

PUBLIC_SEED = "public"  # The public seed, with which anyone may draw inputs.
MOST_CASES = 10_000  # The author's function may draw at most this many hidden cases.
# Number of sets of inputs on hidden dimensions from the course's seed. One more set comes from the public seed.
HIDDEN_SETS = 2


@dataclass(frozen=True, eq=False)
class Ask:
    """One request to a submission, with its inputs.

    Attributes:
        of: the requested call, cases or question.
        mesh, dims, static, check_vma: settings of a call.
        inputs: inputs of a call. A call has one or more sets of inputs, each for one or more steps. The list has a dict
            for each step of the first set, then for each step of the second set, and so on. A dict has the arguments by
            name and, if the call has a cotangent, the entry ``cotangent``. Steps after the first leave out arguments
            that are results of the previous step.
        cases: argument sets of a plain Python function.
        hidden_inputs: True if the inputs or cases are drawn from the course's seed.
        exercise: id of the exercise.
        hidden_sizes: True for a call on hidden dimensions.
        compared: True for a timing call, and for its small call. The grader runs only the small call's program, judges
            its values, and compares the programs of both calls.
    """

    of: Call | Cases | Question
    mesh: Mapping[str, int] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    cases: list[dict[str, Any]] = field(default_factory=list)
    hidden_inputs: bool = False
    exercise: str = ""
    static: Mapping[str, Any] = field(default_factory=dict)
    check_vma: bool = False
    hidden_sizes: bool = False
    compared: bool = False

    @property
    def task(self) -> str:
        return self.of.name if isinstance(self.of, Question) else self.of.task.name

    def for_tracer(self, files: list[str]) -> TracerAsk:
        """Return the ask as JSON, for the process that runs learner code. ``files``: names of the learner's files.

        The JSON of a call has shapes, dtypes and specs, but no values. The JSON of a plain function has its argument
        sets.
        """
        if isinstance(self.of, Question):
            if isinstance(self.of.answer, Quantity):
                return {"kind": "number", "task": self.task}
            return {"kind": "answer", "task": self.task}
        if isinstance(self.of, Cases):
            return {"kind": "function", "task": self.task, "cases": self.encoded}
        return self.for_runner(files)

    def for_runner(self, files: list[str]) -> CallAsk:
        """Return the ask, which must be for a call, as JSON for the process that runs the call's program."""
        call = self.of
        assert isinstance(call, Call)
        args = [leaf for name, tree in call.args.items() for leaf in leaves(tree, name)]
        request: CallAsk = {
            "kind": "body" if call.task.kind == "body" else "array",
            "task": self.task,
            "mesh": dict(self.mesh),
            "args": [_argument(name, array, self.dims) for name, array in args],
            "takes": [encode(named(tree, name)) for name, tree in call.args.items()],
            "static": {k: encode(v) for k, v in self.static.items()},
            "returns": encode(call.names),
            "wrt": [leaf for name in call.wrt for leaf, _ in leaves(call.args[name], name)],
            "cotangents": _cotangents(call, self.dims),
            "steps": call.steps,
            "fed": _fed(call),
            "out_specs": encode(_out_specs(call)) if call.task.kind == "body" else None,
            "check_vma": self.check_vma,
            "axis_types": call.task.axis_types,
            "platform": "cpu",
            "files": files,
        }
        if call.timing is not None:
            request["timing"] = True
        if self.compared:
            request["compared"] = True
        return request

    @property
    def program_key(self) -> tuple:
        """A key for the program that answers the ask. One program answers all asks (requests) with equal keys."""
        static = repr([(name, encode(value)) for name, value in sorted(self.static.items())])
        dims = tuple(sorted(self.dims.items()))
        return id(self.of), tuple(self.mesh.items()), dims, static, self.check_vma

    @property
    def answer_key(self) -> tuple:
        """A key for the answer to the ask. Asks (requests) with equal keys get equal answers."""
        return self.hidden_inputs, self.program_key if isinstance(self.of, Call) else id(self.of), self.digest

    def group_key(self, every_mesh: bool) -> tuple:
        """Return a key for grouping asks (requests). A check's function gets the asks of one group together.

        ``every_mesh``: True if the check's function gets all meshes together.
        """
        modes = [] if isinstance(self.of, Question) else self.of.task.modes
        mode = self.check_vma if len(modes) > 1 else None
        return self.hidden_inputs, self.hidden_sizes, mode, () if every_mesh else tuple(self.mesh.items())

    @cached_property
    def encoded(self) -> list[Any]:
        """The cases (argument sets) of a plain function as JSON."""
        return [encode(case) for case in self.cases]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all inputs of a call, or of the cases of a plain function."""
        arrays = [(n, a.dtype.name, a.shape, a.tobytes()) for one in self.inputs for n, a in arrays_of(one)]
        return hashlib.sha256(repr((arrays, self.encoded)).encode()).hexdigest()

    @cached_property
    def request_digest(self) -> str:
        """SHA-256 of the request to a learner's process, without names of files."""
        return hashlib.sha256(json.dumps(self.for_tracer([])).encode()).hexdigest()

    def arrays(self) -> list[list[np.ndarray]]:
        """Return one list of arrays per set of inputs: of all steps, in the order in which the program takes them."""
        steps = self.of.steps if isinstance(self.of, Call) else 1
        each = [[array for _, array in arrays_of(one)] for one in self.inputs]
        return [list(itertools.chain(*each[at : at + steps])) for at in range(0, len(each), steps)]


def arrays_of(inputs: Mapping[str, Any]) -> list[tuple[str, np.ndarray]]:
    """Return the arrays of one step with their names, in the order in which the program takes them."""
    return [leaf for name, tree in inputs.items() for leaf in leaves(tree, name) if leaf[1] is not None]


def _out_specs(call: Call) -> Any:
    """Return the ``out_specs`` of a shard_map body; if the author declared the result as a tree, one spec per leaf."""
    specs = call.task.out_specs
    if call.returns is None:
        return specs if call.names is None else (specs,)
    return tuple(fitted(specs, call.names, prefix=True))


def _fed(call: Call) -> list[list[Any]]:
    """Return pairs (position of a result, position of the argument that this result becomes in the next step)."""
    results = call.results or () if call.steps > 1 else ()
    return [[at, result.feeds] for at, result in enumerate(results) if result.feeds is not None]


def _argument(name: str, array: Array, dims: Mapping[str, int]) -> Argument:
    spec = [list(e) if isinstance(e, tuple) else e for e in array.spec]
    return {
        "name": name,
        "shape": list(array.sized(dims)),
        "dtype": array.dtype,
        "spec": {"spec": [{"tuple": e} if isinstance(e, list) else e for e in spec]},
    }


def _cotangents(call: Call, dims: Mapping[str, int]) -> list[Cotangent]:
    arrays = [array for array in flat(call.cotangent) if array is not None]
    return [{**_argument("cotangent", a, dims), "of": of} for of, a in zip(call.pulled, arrays, strict=True)]


def plan(exercise: Exercise, *, public: bool, seed: str) -> list[Ask]:
    """Return all asks (requests to a submission) of an exercise.

    The asks for calls and cases come first, then the asks for questions, and last the asks with hidden inputs.

    Args:
        public: True to leave out asks with data that learners do not have.
        seed: the course's seed.
    """
    asks: list[Ask] = []
    checks = list(exercise.checks.values())
    chosen = [c for c in checks if c.public or not public]
    for call in dict.fromkeys(call for check in chosen for call in _calls_of(check)):
        # The inputs depend on the name of one of the call's checks. Choose a public check if there is one, so that the
        # grader draws the inputs that learners see.
        of_call = [check for check in checks if call in _calls_of(check)]
        public_checks = [check for check in of_call if check.public]
        where = f"{exercise.id}/{(public_checks or of_call)[0].name}"
        if isinstance(call, Cases):
            asks += _of_cases(call, public, seed, where)
        else:
            asks += _of_call(call, bool(public_checks), public, seed, where)
    asks += [Ask(question) for question in exercise.questions.values()]
    compared = _compared_calls(checks)
    asks = [replace(ask, exercise=exercise.id, compared=id(ask.of) in compared) for ask in asks]
    return sorted(asks, key=lambda ask: ask.hidden_inputs)


def _calls_of(check: Check) -> list[Call | Cases]:
    """Return the calls of a check, and before each timing call its small call, which the grader runs and judges."""
    return [each for call in check.calls for each in _with_values(call)]


def _compared_calls(checks: Sequence[Check]) -> set[int]:
    pairs = [_with_values(call) for check in checks for call in check.calls]
    return {id(call) for pair in pairs if len(pair) > 1 for call in pair}


def _with_values(call: Call | Cases) -> list[Call | Cases]:
    """Return the call; for a timing call, return its small call, then the timing call."""
    return [call.small, call] if isinstance(call, Call) and call.small is not None else [call]


def _of_cases(cases: Cases, public: bool, seed: str, where: str) -> list[Ask]:
    if public or cases.hidden is None:
        return [Ask(cases, cases=list(cases.public))]
    drawn, hidden = (_drawn(cases, rng(s, where)) for s in (PUBLIC_SEED, seed))
    return [Ask(cases, cases=[*cases.public, *drawn]), Ask(cases, cases=hidden, hidden_inputs=True)]


def _drawn(cases: Cases, draw: np.random.Generator) -> list[dict[str, Any]]:
    """Return the argument sets that ``hidden=`` draws. Raises AuthorError if drawing fails or a set is invalid."""
    assert cases.hidden is not None
    try:
        found = list(itertools.islice(cases.hidden(draw), MOST_CASES + 1))
    except Exception as error:  # the author's function failed
        raise AuthorError(f"{cases.task.name}: drawing hidden cases raises {type(error).__name__}: {error}") from None
    if not found:
        raise AuthorError(f"{cases.task.name}: the function `hidden` draws no cases; give at least one")
    if len(found) > MOST_CASES:
        raise AuthorError(f"{cases.task.name}: the function `hidden` draws more than {MOST_CASES:,} cases; draw fewer")
    for case in found:
        given = declared.mapping(f"{cases.task.name}: a hidden case", case, '{"n": 8}')
        declared.plain(f"{cases.task.name}: in a hidden case, argument", given)
        declared.takes(f"{cases.task.name}, in a hidden case,", cases.task.fn, given)
    return found


def _of_call(call: Call, shown: bool, public: bool, seed: str, where: str) -> list[Ask]:
    """Return the asks of a call.

    Args:
        shown: True if the learners' plan has the call. The grader's plan then also has the learners' asks (requests to
            a submission) of this call.
        public: True to return the asks for the learners' plan, False for the grader's plan.
        seed: the course's seed.
        where: a name for this call. The name, the seed, the mesh and the set's number decide the inputs.
    """

    def asks_with(hidden: bool, seed: str, sets: int, hidden_inputs: bool = False) -> Iterator[Ask]:
        for mesh in call.meshes:
            dims, static = call.sizes(mesh, hidden=hidden), call.keywords(hidden=hidden)
            draws = [] if call.timing else [rng(seed, f"{where}/{dict(mesh)}/{number}") for number in range(sets)]
            inputs = [step for draw in draws for step in inputs_of(call, mesh, dims, static, draw)]
            for mode in call.task.modes:
                yield Ask(
                    call, mesh, dims, inputs, static=static, check_vma=mode,
                    hidden_inputs=hidden_inputs, hidden_sizes=hidden,
                )  # fmt: skip

    same = (call.dims, call.keywords(hidden=False)) == (call.hidden_dims, call.keywords(hidden=True))
    asks = list(asks_with(False, PUBLIC_SEED, 1)) if public or (shown and not same) else []
    if not public:
        asks += asks_with(True, PUBLIC_SEED, 1)
    if not public and not call.timing:  # a timed program gets no inputs, so no inputs can be hidden
        asks += asks_with(True, seed, HIDDEN_SETS, hidden_inputs=True)
    return asks


def inputs_of(
    call: Call, mesh: Mapping[str, int], dims: Mapping[str, int], static: Mapping[str, Any], draw: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Draw and yield one set of inputs: one dict for each step. Raises AuthorError if this fails."""
    related: dict[str, Any] = {"mesh": dict(mesh), **dims, **static}
    for step in range(call.steps):
        found: dict[str, Any] = {}
        for argument, tree in call.drawn.items():
            if step and argument in call.fed:
                continue
            values = [_sample(call, name, array, dims, draw, related) for name, array in leaves(tree, argument)]
            found[argument] = rebuilt(tree, values)
            related[argument] = mapped(_widened, found[argument])
        yield found


def _sample(
    call: Call, name: str, array: Array | None, dims: Mapping[str, int], draw: np.random.Generator, related: Mapping
) -> np.ndarray | None:
    try:
        return None if array is None else array.sample(dims, draw, related)
    except AuthorError as error:
        raise AuthorError(f"{call.task.name}: argument {name}: {error}") from None


def _widened(array: np.ndarray | None) -> np.ndarray | None:
    return None if array is None else widened(array)


def rng(seed: str, where: str) -> np.random.Generator:
    """Return a random generator that depends only on the seed and on ``where``, a name for what is drawn."""
    digest = hashlib.sha256(f"{seed}\0{where}".encode()).digest()
    return np.random.default_rng(np.random.SeedSequence(int.from_bytes(digest, "big")))
