"""The messages between the grader's processes, with a line for each field.

A message is a frame (see ``frames``): a JSON header, and binary parts (*blobs*). Before each request to a worker, the
grader sends the byte ``!`` (see ``sandbox/main.py``). The types below describe headers. They check nothing when the
grader runs.

| from, to | header | blobs |
|---|---|---|
| grader to keeper | ``TraceRequest`` | three frames: the source, the asks, the asks with hidden inputs |
| keeper to child | ``TraceRequest``, then the same three frames, one after another | |
| child to keeper | ``ChildMessage`` | the program, if there is one |
| keeper to grader | ``ChildFrame`` | the bytes of the child's frame |
| keeper to grader | ``KeeperFrame`` | |
| grader to runner | ``RunnerRequest`` | for a ``RunRequest``, the program and the bytes of all inputs |
| runner to grader | ``RunnerAnswer`` | the bytes of all shards of results |
| grader to parsing process | ``ParseRequest`` | the files to parse, or texts |
| parsing process to grader | ``ParseAnswer`` | the ``ParseRecord`` as JSON, and texts |

The header of the source's frame is a ``SourceCode``, and its blobs are the texts. The header of each frame of asks is
``{"asks": [TracerAsk, ...]}``.

Learner code can forge a ``ChildMessage``, so ``ChildMessage`` describes only the message of an honest child. In the
grader's own process, the message has the type ``Mapping[str, Any]`` until ``reply_of`` and ``plain_values`` in
``batch/replies.py`` have checked it. ``replies.py`` also reads each ``RunnerAnswer`` as a ``Mapping[str, Any]``,
because learners wrote the program that the runner ran. If the answer has another form, the fault is the grader's.

Two short messages have no type. A worker sends ``{"ready": True}`` when it accepts requests. A runner sends
``{"phase": name}`` when a phase begins (see ``WorkerDied`` in ``sandbox/worker.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict, final

Encoded = Any
"""A plain value as JSON, which ``frames.encode`` writes and ``frames.decode`` reads."""

# -- requests to a learner's process -----------------------------------------------------------


class TraceRequest(TypedDict):
    """What the keeper needs to start, confine and limit a child."""

    limits: dict[str, float]  # the fields of ``sandbox.limits.Limits``, and ``idle_seconds``
    env: dict[str, str]  # all environment variables of the child
    scratch: str  # the only folder that the child may write to
    tier: str  # the kind of sandbox, see ``sandbox.tiers``
    packages: dict[str, str]  # the path of each installed package that learners may import, by name
    chunks: int  # the number of the source's chunks
    counts: list[int]  # how many asks come first, and how many asks with hidden inputs come after them


class SourceCode(TypedDict):
    """A learner's file or notebook. In the frame, ``chunks`` has only the names, and the texts are blobs."""

    name: str  # the name of the file
    chunks: Sequence[Sequence[str]]  # pairs (name, text): one for a file, one for each code cell of a notebook


class QuestionAsk(TypedDict):
    """A request for the learner's answer to a question. The field ``kind`` is in the two types below."""

    task: str  # the name of the question, which the source binds to the answer
    after: NotRequired[str | None]  # as in ``CallAsk``


@final
class NumberAsk(QuestionAsk):
    """A request for a quantity: a number, which may have a unit."""

    kind: Literal["number"]  # selects this type


@final
class AnswerAsk(QuestionAsk):
    """A request for any other answer, which may have parts."""

    kind: Literal["answer"]  # selects this type


@final
class FunctionAsk(TypedDict):
    """A request to call a plain Python function, which is not traced."""

    kind: Literal["function"]  # selects this type
    task: str  # the name of the function
    cases: list[Encoded]  # a dict of arguments for each call
    after: NotRequired[str | None]  # as in ``CallAsk``


class Argument(TypedDict):
    """An array that a program takes. The message never has its values."""

    name: str  # the path of the array in the task's arguments
    shape: list[int]  # the shape of the whole array
    dtype: str  # the name of the dtype
    spec: Encoded  # the PartitionSpec


class Cotangent(Argument):
    """A cotangent: an array from which ``jax.vjp`` computes the gradients of one result."""

    of: int  # the position of the result


@final
class CallAsk(TypedDict):
    """A request to trace a task. The runner gets this request, too, with the program."""

    kind: Literal["array", "body"]  # body: the task is the body of a ``jax.shard_map``
    task: str  # the name of the task's function
    mesh: dict[str, int]  # the sizes of the mesh axes, in order
    args: list[Argument]  # the arrays of all arguments
    takes: list[Encoded]  # for each argument, the tree of the names of its arrays
    static: dict[str, Encoded]  # keyword arguments that are not arrays
    returns: Encoded  # the tree of the names of the results; None if the author declared no results
    wrt: list[str]  # names of the arrays with respect to which the program differentiates
    cotangents: list[Cotangent]  # the arrays that the program takes after ``args``
    steps: int  # how many times the runner runs the program on each set of inputs
    fed: list[list[int]]  # pairs (position of a result, position of the argument that it becomes in the next step)
    out_specs: Encoded  # ``out_specs`` of the shard_map, for the kind "body"; else None
    check_vma: bool  # ``check_vma`` of the shard_map
    axis_types: str  # the type of all mesh axes: "auto" or "explicit"
    platform: str  # the platform for which the task is lowered
    files: list[str]  # names of the learner's files, which the facts of a program may name; [] for a child
    timing: NotRequired[bool]  # True for a timing call, whose program the runner only reads
    compared: NotRequired[bool]  # True if the grader compares the program with a program for other sizes
    after: NotRequired[str | None]  # for a child, the cell after which to take the task, see ``LoadedSource.state_for``


TracerAsk = NumberAsk | AnswerAsk | FunctionAsk | CallAsk

# -- answers of a learner's process ------------------------------------------------------------


class FaultData(TypedDict):
    """An error, as in ``common.observation.Fault``."""

    kind: str  # missing, raised, syntax, untraceable, timeout, memory, refused or compile
    message: str  # one line for the learner
    line: int | None  # the line of the learner's code
    file: str  # the learner's file or cell; '' if there is none
    type: str  # the name of the error's class; '' if there is none


class LoadFault(FaultData):
    """An error that stopped a chunk of the source, or (kind "absent") the import of a module that is missing."""

    chunk: str  # the name of the file or cell


class CaseOutcome(TypedDict, total=False):
    """The result of one call of a plain function: either ``value`` alone, or the other fields."""

    value: Encoded  # what the function returned
    error: str  # the name of the error's class; ``frames.NOT_PLAIN`` if the result is not plain
    kinds: list[str]  # the names of the error's class and of its base classes
    message: str  # the error's text
    line: int | None  # the line of the learner's code


class ChildMessage(TypedDict, total=False):
    """What a child writes. UNTRUSTED: learner code can write any message in its place."""

    started: bool  # True in the first message, which asks for the source
    ran: int  # the number of a chunk of the source that has run; not sent for the last chunk
    loaded: bool  # True in the next message: the whole source has run
    faults: list[LoadFault]  # with ``loaded``: the first errors of the source
    number: int  # in the answer to an ask: the number of the ask, from 0. The answer has one of the next four fields.
    program: bool  # True if the task was traced; the blob is the program as MLIR bytecode
    values: list[CaseOutcome]  # an outcome for each case of a plain function
    raw: Any  # the answer to a question, see ``raw_answer`` and ``composed_answer`` in ``learner/answering.py``
    fault: FaultData  # the error that stopped the learner's code


ChildFrame = TypedDict(
    "ChildFrame",
    {
        "from": Literal["child"],
        "taken": Literal["started", "ran", "loaded", "number"],  # the field for which the keeper accepted the message
        "body": Any,  # a ``ChildMessage``, UNTRUSTED; ``Worker.trace`` reads it from the blob
    },
)
"""A message of the child, which the keeper passes on."""

KeeperFrame = TypedDict(
    "KeeperFrame",
    {
        "from": Literal["worker"],  # the keeper is a fork of the worker, and has its name in messages
        "asleep": NotRequired[bool],  # True when the child first sleeps; such a frame has no other field
        "end": NotRequired[str],  # in the last frame: how the child ended, one of the values below
        "cpu": NotRequired[float],  # in the last frame: CPU seconds and idle seconds of the child
        "clean": NotRequired[bool],  # False if processes or files of the child are left; not in ``Worker.trace``
    },
)
"""A message of the keeper itself."""

TraceFrame = ChildFrame | KeeperFrame

# How a child ended: the values of ``end``. Two more values have a number: "exited with N" has the child's exit code,
# and "died of signal N" has the signal that killed the child.
DONE = "done"  # All answers came.
TIMEOUT = "timeout"  # The limit for one frame was exceeded, such as the limit of a function.
TOTAL = "total"  # The submission's time was used up.
IDLE = "idle"  # The child was idle for too long.
FLOOD = "flood"  # The child sent too many bytes, or too many frames that were not expected.
DISK = "disk"  # The scratch folder was too large.
THREADS = "threads"  # The child had too many threads.
GARBAGE = "garbage"  # The child sent an invalid frame.
SILENT = "silent"  # The child closed its pipe, but did not exit.
KILLED = "died of signal 9"  # The child was killed, for example for lack of memory.
# These two values are in no frame.
ALONE = "alone"  # The grader or the sandbox's launcher ended, so the keeper sends no last frame.
WORKER_ENDED = "worker"  # The worker ended, and its child with it.

# -- requests to a runner ----------------------------------------------------------------------


class PackedArray(TypedDict):
    """An array whose bytes are a blob, see ``frames.pack_array``."""

    shape: list[int]  # the shape of the whole array
    dtype: str  # the name of the dtype


@final
class RunRequest(TypedDict):
    """Run or read a program. At most one of ``times``, ``poison`` and ``exact`` is there."""

    ask: CallAsk  # what the program must take and return, with ``files``
    inputs: list[list[PackedArray]]  # the arrays of each set of inputs
    seconds: float  # limit of CPU time
    times: NotRequired[tuple[int, int]]  # time the program: the number of rounds, and of calls in each round
    poison: NotRequired[tuple[str, list[int]]]  # change operations: their kind, and their numbers
    exact: NotRequired[bool]  # return only values; True: compute matmuls in float32


class FormulaText(TypedDict):
    """A formula that a student wrote."""

    text: str  # the formula
    names: list[str]  # the symbols that the formula may use
    points: list[list[float]]  # the points at which to evaluate it: a value for each symbol


@final
class FormulaRequest(TypedDict):
    """Evaluate a formula."""

    formula: FormulaText  # the formula and its points
    seconds: float  # limit of CPU time


@final
class LookRequest(TypedDict):
    """Describe the devices of the runner."""

    look: Literal[True]  # selects this type
    join: list[Any]  # arguments of ``execution.join``, which connects several runners; [] for one runner


@final
class OwnTestRequest(TypedDict):
    """Run the grader's own test program."""

    ours: Literal[True]  # selects this type
    seconds: float  # limit of CPU time


RunnerRequest = RunRequest | FormulaRequest | LookRequest | OwnTestRequest

# -- answers of a runner -----------------------------------------------------------------------


class ResultArray(PackedArray):
    """A result of a program. Each device's slice is a blob."""

    slices: list[list[list[int]]]  # for each device, a pair (start, stop) for each dimension


class RunnerAnswer(TypedDict, total=False):
    """What a runner answers. In place of facts, ``fault`` reports a fault of the program, and ``broken`` of the grader.

    An interval is the JSON of ``common.intervals.Interval``. A collective is the JSON of
    ``common.observation.Collective``.
    """

    fault: FaultData  # why the program was refused or could not run
    broken: str  # an error of the grader's own code
    cpu: float  # CPU seconds of the runner, in every answer to a ``RunRequest``
    outputs: list[list[ResultArray]]  # the results of each step of each set; [] for a timing call
    memory: int  # bytes of temporaries on one device
    collectives: list[dict[str, Any]]  # the collectives of the program, and then those in ``added``
    added: list[dict[str, Any]]  # the collectives that XLA's CPU compiler added
    flops: dict[str, Any]  # an interval: the FLOPs of a device
    dot_flops: dict[str, Any]  # an interval: the part of ``flops`` that matmuls compute
    compiled_flops: dict[str, Any]  # ``flops`` of the compiled program, if the program's own FLOPs are unknown
    compiled_dots: dict[str, Any]  # ``dot_flops`` of the compiled program, if the program's own FLOPs are unknown
    mapped: bool  # whether the results depend on a ``shard_map``, with little arithmetic outside of it
    operations: str | None  # the text of ``wire.operations.to_text``; None for a program with too many operations
    program: str  # SHA-256 of the canonical program
    compiled: tuple[dict[str, Any], str]  # what a chip's compiler answered, and the slice; the grader adds this field
    devices: list[int]  # with ``exact``: positions on the mesh of the devices of this process
    matmuls: bool  # with ``exact``: whether the program has matmuls or convolutions
    seconds: list[float]  # for ``times``: the mean seconds of one call, for each round
    largest: list[float]  # for ``poison``: the largest magnitude in each result of each step
    moved: list[list[float]]  # for ``poison``: for each operation, how far each of these results changed
    values: list[float]  # for a formula: its value at each point
    problem: str  # for a formula that cannot be evaluated: one line for the student
    found: dict[str, Any]  # for ``look``: ``platform``, ``kind`` and ``count`` of the devices, or ``problem``
    runs: bool  # for the grader's own test program: whether its result is right


# -- parsing -----------------------------------------------------------------------------------


@final
class ParseRequest(TypedDict):
    """Parse a file of a submission."""

    parse: str  # a key of ``OPERATIONS`` in ``intake/serve.py``; "words" for the wing ``similar``
    about: dict[str, Any]  # the operation's arguments that are not files
    submission: int  # the number of the submission; for a new number, the process forgets the earlier submission
    seconds: float  # limit of CPU time


class ParseAnswer(TypedDict):
    """What the parsing process answers. UNTRUSTED: a file of a submission may take over the process that parses it."""

    cpu: float  # CPU seconds of the request
    spent: bool  # whether the process has little memory left and must be replaced


class ParseRecord(TypedDict, total=False):
    """The result of parsing: one of these fields."""

    found: Any  # the operation's result
    refused: str  # why the file is refused: one line for the student
    memory: Literal[True]  # parsing the file takes too much memory
