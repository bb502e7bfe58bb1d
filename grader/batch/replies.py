"""Read the messages of worker processes: untrusted replies of the tracer, and the runner's observations of programs.

The tracer is the worker that runs learner code, and the runner is the worker that runs programs. A learner's process
can never report a fault of the grader. An unreadable answer of the runner is the grader's fault, because no learner
Python runs in the runner.
"""

from __future__ import annotations

import builtins
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from grader.common.dependency import placed
from grader.common.intervals import Interval
from grader.common.observation import Collective, Fault, Observation, Outcome, Sharded
from grader.exercise import Call, Quantity, Question
from grader.judging.plan import Ask
from grader.judging.seen import Finding
from grader.sandbox.worker import STUCK, WorkerDied
from grader.wire import schedule
from grader.wire.frames import BadFrame, decode, unpack_array
from grader.wire.limits import IDLE_SECONDS, MAX_KEY, MAX_PARTS, MAX_TEXT
from grader.wire.messages import DISK, FLOOD, GARBAGE, IDLE, KILLED, SILENT, THREADS, TIMEOUT, WORKER_ENDED
from grader.wire.operations import from_text
from grader.wire.schedule import Schedule
from grader.wire.text import crash_reason, describe_load

MAX_DEPTH = 16  # Nesting levels of the JSON of an answer with parts. A dict in the answer takes three levels.
LEARNERS_FAULTS = ("missing", "raised", "syntax", "untraceable", "timeout", "memory", "refused", "compile", "crashed")
# Errors that Python can raise while the grader reads an answer of the wrong form.
UNREADABLE = (
    KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, StopIteration, RecursionError, BadFrame,
)  # fmt: skip
OTHER_KIND = Fault("refused", "the process that runs the submission sent a reply of the wrong kind")
GAVE_UP = "Termination timeout for"
"""Part of the message that XLA writes when it ends a program whose devices wait for each other."""
LASTING = ("missing", "raised", "syntax", "untraceable")  # Kinds of faults that usually repeat in every run.


@dataclass(frozen=True, eq=False)
class Reply:
    """What a submission sends for one request: a fault, plain values, or a program.

    Attributes:
        fault: the error or limit that stopped the learner's code; None for an answer.
        body: the fields ``values`` or ``raw`` of ``wire.messages.ChildMessage``, until ``plain_values`` checks them.
        program: the traced program as MLIR bytecode; None if there is a fault, or if the request was not for a program.
    """

    fault: Fault | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    program: bytes | None = None

    @property
    def lasting(self) -> bool:
        """True if a new run would give an equal reply."""
        return lasting(self.fault, _error_kinds(self.body))

    @cached_property
    def text(self) -> str:
        """The reply as JSON, with a digest in place of the program."""
        if self.fault is not None:
            return json.dumps({"fault": asdict(self.fault)})
        digests = [hashlib.sha256(self.program).hexdigest()] if self.program is not None else []
        return json.dumps({"body": self.body, "programs": digests})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reply) and self.text == other.text


@dataclass(frozen=True)
class Replies:
    """All replies of one source (a learner's file or notebook).

    Attributes:
        each: one reply for each request, in the order of the requests.
        notes: errors that occurred while the source was loaded.
        cpu: CPU seconds and idle seconds of the processes that ran the source.
        files: the names by which programs refer to the source's files or notebook cells.
        hung: whether the keeper has ended a child of this submission for a time limit, for this source or an
            earlier one.
    """

    each: tuple[Reply, ...]
    notes: tuple[str, ...] = ()
    cpu: float = field(default=0.0, compare=False)
    files: tuple[str, ...] = ()
    hung: bool = field(default=False, compare=False)

    @property
    def lasting(self) -> bool:
        """True if a new run would give equal replies. For example, a fault of the machine may not repeat."""
        return not self.notes and all(reply.lasting for reply in self.each)


@dataclass(frozen=True)
class RunResult:
    """What a runner returned for one program.

    Attributes:
        header: facts about the program, which should have the form of ``wire.messages.RunnerAnswer``. If there are
            none, the key ``fault`` or ``broken`` has the reason.
        shards: the bytes of all outputs, in the order of the header's ``outputs``, and device by device.
    """

    header: Mapping[str, Any]
    shards: Sequence[bytes] = ()


def reply_of(ask: Ask, body: Mapping[str, Any], blobs: Sequence[bytes]) -> Reply:
    """Return the reply that a learner's process sent, from the untrusted JSON and binary parts of its message.

    ``wire.messages.ChildMessage`` describes the JSON that an honest process sends.
    """
    fault = body.get("fault")
    if fault is not None:
        return Reply(fault_of(fault))
    if isinstance(ask.of, Call):
        return Reply(program=blobs[0]) if blobs else Reply(OTHER_KIND)
    reply = Reply(body={key: body[key] for key in ("values", "raw") if key in body})
    try:
        return reply if reply.text else Reply(OTHER_KIND)
    # ``reply.text`` raises these errors, for example RecursionError if the answer is nested too deeply for JSON.
    except UNREADABLE:
        return Reply(OTHER_KIND)


def plain_values(ask: Ask, body: Mapping[str, Any]) -> Finding:
    """Return the outcomes of a function's cases, or the outcome of a question; a fault if ``body`` is malformed."""
    try:
        if isinstance(ask.of, Question):
            plain = _plain_raw if isinstance(ask.of.answer, Quantity) else _composed_raw
            return Finding(outcomes=[Outcome(value=plain(body["raw"]))])
        return Finding(outcomes=_outcomes(body["values"], len(ask.cases)))
    except UNREADABLE:
        return Finding(fault=OTHER_KIND)


def lasting(fault: Fault | None, kinds: Iterable[str] = ()) -> bool:
    """Return True if the fault, and errors in cases of a plain function, would repeat in every run.

    Args:
        fault: the fault; None if there is none.
        kinds: the names of the errors' classes and of their base classes.
    """
    return (fault is None or (fault.kind in LASTING and not _of_machine(fault.type))) and not any(
        map(_of_machine, kinds)
    )


def _of_machine(error: str) -> bool:
    """Return True if this kind of error may come from the machine: from its memory, operating system or XLA."""
    found = getattr(builtins, error, None)
    errors = OSError | MemoryError | RecursionError
    return error.endswith("RuntimeError") or (isinstance(found, type) and issubclass(found, errors))


def _error_kinds(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the kinds of errors in a reply from a plain function. The reply is untrusted."""
    values = body.get("values")
    for value in values if isinstance(values, list) else ():
        kinds = value.get("kinds") if isinstance(value, dict) else None
        yield from (kind for kind in kinds if isinstance(kind, str)) if isinstance(kinds, list) else ()


def ended_fault(how: str, what: str, seconds: float) -> Fault:
    """Return the fault for a child process that ended too early.

    If the worker that starts the child processes died, the grader is at fault.

    Args:
        how: how the child ended (see ``wire.messages``).
        what: the subject of the fault's message, such as "it" in "it did not finish".
    """
    if how == WORKER_ENDED:
        return Fault("broken", "the process that traces the code ended twice; a person must review this submission")
    if how == TIMEOUT:
        return Fault("timeout", f"{what} did not finish within {seconds:g} s")
    if how == IDLE:
        return Fault(
            "timeout",
            f"{what} did not finish within {IDLE_SECONDS:g} s of idle time. This limit is short because an exercise of "
            "this submission exceeded its time limit earlier",
        )
    reason = {
        DISK: "the process wrote too many files, or too large ones",
        FLOOD: "the process sent back more than 16 MiB",
        GARBAGE: "the process sent back unreadable bytes",
        SILENT: "the process closed the connection to the grader",
        THREADS: "the process started too many threads",
        # Signal 9 does not prove that memory ran out: the child may have killed itself.
        KILLED: "the process was killed, for example because it used more memory than allowed",
    }.get(how, how)
    return Fault("crashed", f"{what} ended the process: {reason}")


def run_fault(died: WorkerDied, seconds: float) -> Fault:
    """Return the fault for a program that ended its worker process twice.

    If a test program of the grader fails too (``died.ours`` is True), the grader is at fault.
    """
    # A program that only waits uses little CPU time. With a small limit, the grader ends it before XLA does.
    waited = not died.out_of_time and STUCK in died.stderr if died.reason == "timeout" else GAVE_UP in died.stderr
    if died.reason == "timeout" and not waited:
        return Fault("timeout", f"the program did not finish within {seconds:g} s, twice", ran=True)
    reason = crash_reason(died.stderr)
    what = "reading" if died.phase == "asked" else "running"
    text = f"XLA ended the process twice while {what} this program{': ' + reason if reason else ''}"
    if died.ours:
        return Fault("broken", f"{text}; a test program of the grader fails too, so the fault is the grader's")
    if waited:
        text = "the devices waited for each other without end, because some of them never take part in a collective"
        return Fault("timeout", text, ran=True)
    return Fault("crashed", text, ran=True)


def load_notes(faults: Any) -> list[str]:
    """Return a line for each of the first five errors that occurred while the source was loaded."""
    notes = []
    for fault in faults if isinstance(faults, list) else []:
        if isinstance(fault, dict) and {"chunk", "line", "message"} <= set(fault):
            notes.append(describe_load({k: fault.get(k) for k in ("chunk", "line", "message", "kind")})[:400])
    return notes[:5]


def fault_of(data: Any) -> Fault:
    """Return the fault that an untrusted process reports. Its kind is never ``broken`` (a fault of the grader)."""
    if not isinstance(data, dict):
        return Fault("raised", "failed")
    line = data.get("line")
    return Fault(
        kind=data["kind"] if data.get("kind") in LEARNERS_FAULTS else "raised",
        message=str(data.get("message"))[:700],
        line=line if type(line) is int else None,
        file=str(data.get("file", ""))[:100],
        type=str(data.get("type", ""))[:100],
    )


def _plain_raw(raw: Any) -> Any:
    if isinstance(raw, dict):
        return {str(k): v for k, v in list(raw.items())[:4]}
    return raw if raw is None or isinstance(raw, bool | int | float | str) else str(raw)


def _composed_raw(raw: Any, depth: int = 0) -> Any:
    """Return an answer that may have parts, with its texts cut. Raises BadFrame for too many parts or levels."""
    parts = list(raw.values()) if isinstance(raw, dict) else raw if isinstance(raw, list) else []
    if depth > MAX_DEPTH or len(parts) > MAX_PARTS:
        raise BadFrame("the returned value has too many parts or levels")
    if isinstance(raw, dict):
        return {str(key)[:MAX_KEY]: _composed_raw(part, depth + 1) for key, part in raw.items()}
    if isinstance(raw, list):
        return [_composed_raw(part, depth + 1) for part in parts]
    if isinstance(raw, str):
        return raw[:MAX_TEXT]
    return raw if raw is None or isinstance(raw, bool | int | float) else str(raw)


def _outcomes(values: Any, count: int) -> list[Outcome]:
    if not isinstance(values, list) or len(values) != count:
        raise BadFrame("the reply does not have exactly one outcome for each case")
    found = []
    for value in values:
        if "error" in value:
            found.append(_error_outcome(value))
        else:
            found.append(Outcome(value=decode(value["value"])))
    return found


def _error_outcome(value: dict) -> Outcome:
    line, kinds = value.get("line"), value.get("kinds", [])
    return Outcome(
        error=str(value["error"])[:100],
        kinds=tuple(str(k)[:100] for k in kinds[:20]) if isinstance(kinds, list) else (),
        message=str(value.get("message", ""))[:300],
        line=line if type(line) is int else None,
    )


def observed(ask: Ask, result: RunResult, before: Observation | None = None) -> Finding:
    """Return the finding: the runner's observation or fault. An unreadable answer is the grader's fault.

    Args:
        before: an earlier observation of this program on other inputs, if any. Its facts about the program are reused.
    """
    header = result.header
    if "fault" in header:
        return Finding(fault=fault_of(header["fault"]))
    if "broken" in header:
        why = f"the grader failed while it ran this program: {str(header['broken'])[:400]}"
        return Finding(fault=Fault("broken", why))
    try:
        observation = _observation(ask, result, before)
    except UNREADABLE as error:
        why = f"the grader cannot read the result that its own process sent: {type(error).__name__}: {error}"
        return Finding(fault=Fault("broken", why))
    assert isinstance(ask.of, Call)
    due = ask.of.arrays_due
    # The learner may have forged the program's bytes, so that the program returns too many or too few arrays.
    if any(len(results) != due for results in observation.outputs if due is not None):
        return Finding(fault=Fault("refused", "the program does not return the results and gradients of the call"))
    return Finding(observation)


def outputs_of(ask: Ask, header: Mapping[str, Any], blobs: Sequence[bytes]) -> list[list[Sharded]]:
    """Return the outputs of each step of each set of inputs. Raises one of ``UNREADABLE`` for a malformed answer."""
    devices = math.prod(ask.mesh.values())
    rest = iter(blobs)
    outputs = []
    for step in header["outputs"]:
        arrays = []
        for about in step:
            slices = [tuple((int(a), int(b)) for a, b in device) for device in about["slices"]]
            shards = [
                unpack_array({"shape": [b - a for a, b in where], "dtype": about["dtype"]}, next(rest))
                for where in slices
            ]
            if len(slices) != devices:
                raise BadFrame("the result does not have exactly one shard for each device")
            arrays.append(Sharded(tuple(about["shape"]), shards[0].dtype, dict(ask.mesh), slices, shards))
        outputs.append(arrays)
    if len(outputs) != len(ask.inputs):
        raise BadFrame("the answer does not have exactly one list of outputs for each step")
    return outputs


def _observation(ask: Ask, result: RunResult, before: Observation | None) -> Observation:
    header, outputs = result.header, outputs_of(ask, result.header, result.shards)
    if before is not None:
        if isinstance(before.compiled, Schedule):
            outputs = [_laid_out(of_step, before.compiled) for of_step in outputs]
        return replace(before, outputs=outputs)
    assert isinstance(ask.of, Call)
    graph = None if header["operations"] is None else from_text(header["operations"])
    made, on = header.get("compiled", (None, ""))
    compiled = None if made is None else compiled_of(made)
    found = [collective_of(c) for c in header["collectives"]]
    # The collectives in ``added`` replace those that the CPU's compiler added.
    if isinstance(compiled, Schedule) and compiled.added is not None:
        found = [c for c in found if not c.by_compiler] + [collective_of(c) for c in compiled.added]
    collectives = placed(found, graph, cotangents=len(ask.of.pulled))
    numbers = int(header["memory"]), Interval.of(header["flops"]), Interval.of(header["dot_flops"])
    flags = bool(header["mapped"]), str(header["program"])
    if isinstance(compiled, Schedule):
        outputs = [_laid_out(of_step, compiled) for of_step in outputs]
    return Observation(outputs, collectives, *numbers, *flags, graph, compiled=compiled, compiled_on=on)


def _laid_out(outputs: list[Sharded], compiled: Schedule) -> list[Sharded]:
    """Return the results with the compiler's layouts added. If the layouts are for other shapes, add none."""
    shapes = [
        tuple(max(ends) for ends in zip(*([b for _, b in part] for part in layout), strict=True))
        for layout in compiled.layouts
    ]
    if shapes != [out.shape for out in outputs]:
        return outputs
    return [replace(out, on_chip=list(cuts)) for out, cuts in zip(outputs, compiled.layouts, strict=True)]


def compiled_of(answer: Mapping[str, Any]) -> Schedule | Fault:
    """Return the schedule or the fault in a chip compiler's answer. Raises BadFrame or KeyError if it is malformed."""
    if "schedule" in answer:
        return schedule.from_json(answer["schedule"])
    if "too_large" in answer:
        needed, there = answer["too_large"]
        needs, has = (f"{n:.3g} GiB" if n < 1000 else f"{n:,.0f} GiB" for n in (needed / 2**30, there / 2**30))
        text = f"the program is too large for the chip: it needs {needs} of memory, and the chip has {has}"
        return Fault("memory", text, ran=True)
    if "broken" in answer:
        return Fault("broken", f"the grader failed while it compiled this program: {str(answer['broken'])[:400]}")
    return replace(fault_of(answer["fault"]), ran=True)


def collective_of(data: dict[str, Any]) -> Collective:
    known: dict[str, Any] = {f.name: data[f.name] for f in fields(Collective) if f.name in data}
    known["axes"] = tuple(data["axes"])
    known["senders"] = None if data.get("senders") is None else tuple(data["senders"])
    for name in ("path", "groups"):
        known[name] = tuple(tuple(map(int, part)) for part in data.get(name, ()))
    known["operands"] = tuple((str(dtype), tuple(map(int, shape))) for dtype, shape in data.get("operands", ()))
    return Collective(**known)
