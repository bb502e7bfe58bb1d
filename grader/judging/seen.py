"""Convert findings on a submission to the values that a check's function gets: NumPy arrays and plain values.

An *ask* is one request to a submission. A *finding* is what the grader makes of the reply to an ask. A timed program
never runs, so a small program is judged in its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from grader.clock import Timeline, placed, replayed
from grader.common.observation import Fault, Observation, Outcome, Seen, Sharded
from grader.common.substitution import substitution
from grader.exercise import Call, Cases, Task
from grader.exercise.calls import mesh_beside
from grader.expect import laid_out
from grader.judging.plan import Ask
from grader.judging.same_program import difference
from grader.wire.frames import decode, dtype_of, encode, widened
from grader.wire.operations import Operations
from grader.wire.schedule import Schedule
from grader.wire.trees import flat, leaves, mapped, rebuilt


@dataclass(frozen=True)
class Finding:
    """What the grader makes of the reply to an ask (one request). At most one of the three attributes has a value.

    Attributes:
        observation: facts and values of a traced program.
        outcomes: one outcome for each case of a plain Python function, or one outcome for a question's answer.
        fault: the error or the exceeded limit, if the grader got neither an observation nor outcomes.
    """

    observation: Observation | None = None
    outcomes: Sequence[Outcome] = ()
    fault: Fault | None = None


@dataclass(frozen=True)
class AskFinding:
    """An ask (one request to a submission) and its finding."""

    ask: Ask
    finding: Finding


def seen_of(answer: AskFinding, *, learners_run: bool, on_devices: int | None = None) -> Iterable[Seen]:
    """Yield a ``Seen`` for each set of inputs of a call, or one ``Seen`` with all cases of a plain function.

    Args:
        learners_run: True in a learner's own run, which reads expected outcomes from the exercise file, and makes trial
            runs on public sizes (``_is_tried``).
        on_devices: the index in ``Observation.on_devices`` (outputs on real devices) of the outputs to use; None to use
            the outputs on simulated devices.
    """
    ask, finding = answer.ask, answer.finding
    if isinstance(ask.of, Cases):
        wanted = expected_outcomes(ask.of) if learners_run and ask.of.expected else _wanted(ask)
        yield Seen(
            {}, outcomes=list(zip(ask.cases, finding.outcomes, wanted, strict=True)), public=not ask.hidden_inputs
        )
        return
    observation = finding.observation
    assert isinstance(ask.of, Call) and observation is not None
    program = _program(ask, ask.of, observation, learners_run)
    if ask.of.timing:
        yield program
        return
    steps: list[Seen] = []
    found = observation.outputs
    if on_devices is not None and observation.on_devices:
        found = observation.on_devices[min(on_devices, len(observation.on_devices) - 1)]
    for inputs, outputs in zip(ask.inputs, found, strict=True):
        steps.append(_seen_of_step(ask, program, inputs, outputs, steps))
        if len(steps) == ask.of.steps:
            yield steps[0] if len(steps) == 1 else replace(steps[-1], inputs=steps[0].inputs, steps=steps)
            steps = []


def _program(ask: Ask, call: Call, observation: Observation, learners_run: bool) -> Seen:
    """Return the part of a ``Seen`` that is about the program itself, without inputs and results."""
    return Seen(
        mesh=ask.mesh,
        dims=ask.dims,
        static=ask.static,
        collectives=observation.collectives,
        memory=observation.memory,
        flops=observation.flops,
        dot_flops=observation.dot_flops,
        mapped=observation.mapped,
        public=not ask.hidden_inputs,
        check_vma=ask.check_vma,
        operations=observation.operations,
        timing=call.timing,
        clock=partial(laid_out, observation.operations, call.timing),
        chip=_scheduled(ask, call, observation),
        differentiated=bool(call.wrt),
        poison=observation.poison if _is_tried(ask, call, learners_run) else None,
    )


def _is_tried(ask: Ask, call: Call, learners_run: bool) -> bool:
    """Return True if the grader makes trial runs (see ``Poison``) of this ask's program.

    Trial runs find the operations that affect a result. For these runs, the grader compiles a changed copy of the
    program, which takes time. So there are trials only on the mesh with the most axes, and a grading run makes trials
    only for calls on hidden dimensions. This is enough, because a check must pass in all asks.
    """
    axes = [(sum(size > 1 for size in mesh.values()), math.prod(mesh.values())) for mesh in call.meshes]
    chosen = call.meshes[axes.index(max(axes))]
    return dict(ask.mesh) == dict(chosen) and (learners_run or ask.hidden_sizes)


def by_compiler(answer: AskFinding) -> AskFinding:
    """Return the ask and its finding, or the TPU compiler's fault if the compiler refused the timed program."""
    call, observation = answer.ask.of, answer.finding.observation
    if isinstance(call, Call) and call.timing and observation and isinstance(observation.compiled, Fault):
        return AskFinding(answer.ask, Finding(fault=observation.compiled))
    return answer


def _scheduled(ask: Ask, call: Call, observation: Observation) -> Callable[[], Timeline] | None:
    """Return a function that makes a timed program's timeline from a TPU compiler's schedule.

    Return None if there is no schedule for the slice of the timing call.
    """
    made, timing = observation.compiled, call.timing
    if not isinstance(made, Schedule) or timing is None or observation.compiled_on != timing.on:
        return None
    return partial(replayed, made, placed(timing.on, ask.mesh, timing.axes), apart=True)


def _seen_of_step(ask: Ask, program: Seen, inputs: dict, outputs: list[Sharded], before: list[Seen]) -> Seen:
    """Return what a check sees of one step.

    Args:
        program: the part of a ``Seen`` that is about the program itself, without inputs and results.
        inputs: the arguments drawn for this step.
        before: the earlier steps. Results of the previous step may be arguments of this step.
    """
    call = ask.of
    assert isinstance(call, Call)
    step = len(before) + 1
    given = {name: mapped(_exact, tree) for name, tree in inputs.items()}
    fed = _fed(call, before[-1].out) if before else {}
    gradients = [(name, array) for of in call.wrt for name, array in leaves(call.args[of], of)]
    cut = len(outputs) - len(gradients)
    when = f"step {step}: " if call.steps > 1 else ""
    pulled = [
        replace(grad, due=dtype_of(array.dtype), name=f"{when}the gradient of {name}", step=step)
        for grad, (name, array) in zip(outputs[cut:], gradients, strict=True)
    ]
    rest = iter(pulled)
    return replace(
        program,
        inputs={name: fed.get(name, given.get(name)) for name in call.drawn},
        out=_result(call, outputs[:cut], when, step),
        grads={name: rebuilt(call.args[name], rest) for name in call.wrt},
    )


def _result(call: Call, outputs: list[Sharded], when: str, step: int) -> Any:
    """Return the result as the tree that the author declared. Without a declaration, return one array, or a list."""
    found = [replace(r, due=call.dtype, per_device=call.task.kind == "body", step=step) for r in outputs]
    if call.results is None:
        return found[0] if len(found) == 1 else found
    return rebuilt(
        call.names,
        [
            replace(
                one, due=dtype_of(about.dtype) if about.dtype else one.due, name=about.name and f"{when}{about.name}"
            )
            for one, about in zip(found, call.results, strict=True)
        ],
    )


def _fed(call: Call, out: Any) -> dict[str, Any]:
    """Return the arguments of a step that are results of the previous step."""
    results = flat(out)
    arrays = {about.feeds: result for about, result in zip(call.results or (), results, strict=True)}
    places = {name: at for at, (name, _) in enumerate(leaf for a in call.args for leaf in leaves(call.args[a], a))}
    return {
        of: rebuilt(call.args[of], [widened(arrays[places[name]].value) for name, _ in leaves(call.args[of], of)])
        for of in call.args
        if of in call.fed
    }


def _exact(array: np.ndarray | None) -> np.ndarray | None:
    return None if array is None else widened(array)


@lru_cache(512)
def _wanted(ask: Ask) -> list[Outcome]:
    """Return the outcomes of the author's function for an ask's cases (argument sets), cached for all students."""
    assert isinstance(ask.of, Cases)
    return [reference_outcome(ask.of.task, args) for args in ask.cases]


def reference_outcome(task: Task, args: Mapping[str, Any]) -> Outcome:
    """Return the outcome of the author's function: its value, or the name of the error's type."""
    try:
        return Outcome(value=decode(encode(task.fn(**args))))
    except Exception as error:
        return Outcome(error=type(error).__name__)


def encode_outcome(outcome: Outcome) -> dict[str, Any]:
    return {"error": outcome.error} if outcome.error else {"value": encode(outcome.value)}


def expected_outcomes(cases: Cases) -> list[Outcome]:
    """Return the expected outcomes of the public cases, which the command ``build`` wrote into the exercise file."""
    return [Outcome(error=o["error"]) if "error" in o else Outcome(value=decode(o["value"])) for o in cases.expected]


OTHER = "the timed program differs from the judged program, which runs with small arrays"
MEND = "Write one program for all sizes: do not choose its operations by a shape"
TOO_LARGE = "the program has too many operations for a comparison with the timed program; use lax.fori_loop or lax.scan"


def paired(answered: Sequence[AskFinding]) -> list[AskFinding]:
    """Compare the program of each timing call with the program of its small call, and return all asks and findings.

    If the two programs differ in more than sizes, the finding of the timed program becomes a Fault. Otherwise, its
    observation gets the small program's ``poison``: the trial runs that find the operations that affect a result.
    """
    found = []
    for answer in answered:
        call, observation = answer.ask.of, answer.finding.observation
        if isinstance(call, Call) and call.timing and observation:
            answer = AskFinding(answer.ask, _paired(answer.ask, observation, partner(answer.ask, answered)))
        found.append(answer)
    return found


def _paired(ask: Ask, timed: Observation, judged: AskFinding) -> Finding:
    small = judged.finding.observation
    if small is None:
        return judged.finding
    if small.operations is None or timed.operations is None:
        return Finding(fault=Fault("refused", TOO_LARGE, ran=True))
    if fault := _difference(ask, judged.ask, small.operations, timed.operations):
        return Finding(fault=fault)
    return Finding(replace(timed, poison=small.poison))


def partner(ask: Ask, answered: Sequence[AskFinding]) -> AskFinding:
    """Return the ask, with its finding, for the small call of the timing call ``ask``.

    The small call is the same task with small arrays. The grader judges its values.

    Raises LookupError if ``answered`` lacks this ask, although every plan with a timing call also has its small call.
    """
    call = ask.of
    assert isinstance(call, Call) and call.small is not None
    mesh = mesh_beside(call.small, ask.mesh)
    due = dict(mesh), call.small.sizes(mesh, hidden=ask.hidden_sizes), ask.check_vma, False
    for other in answered:
        if other.ask.of is call.small and due == _key(other.ask):
            return other
    raise LookupError(f"{ask.task} is timed, but no check judges its values")


def _key(ask: Ask) -> tuple:
    return dict(ask.mesh), dict(ask.dims), ask.check_vma, ask.hidden_inputs


def _difference(timed: Ask, judged: Ask, small: Operations, large: Operations) -> Fault | None:
    sizes = substitution(judged.dims, timed.dims, judged.mesh, timed.mesh)
    found = difference(small, large, sizes)
    if found is None:
        return None
    return Fault("refused", f"{OTHER}: {found.message}. {MEND}", found.line, found.file, ran=True)
