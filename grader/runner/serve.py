"""The loop of the process that runs programs: read a request, run its program, answer."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

from grader.common import formulas
from grader.runner import compiling, execution, poison
from grader.wire.messages import RunnerAnswer, RunnerRequest, RunRequest
from grader.wire.text import one_line, without_marks

Send = Callable[[Mapping[str, Any], list[bytes]], None]


def serve(header: RunnerRequest, blobs: list[bytes], send: Send) -> None:
    """Answer one request. The fields of the header select the answer (see ``wire.messages``)."""
    if "ours" in header:
        send({"runs": execution.runs()}, [])
        return
    if "look" in header:
        if header["join"]:  # connect to other processes first
            execution.join(*header["join"])
        send({"found": execution.look()}, [])
        return
    if "formula" in header:
        signal.setitimer(signal.ITIMER_PROF, header["seconds"])
        send(formulas.answer(header["formula"]), [])
        signal.setitimer(signal.ITIMER_PROF, 0)
        return
    program, *rest = blobs
    compiling.on_phase = lambda phase: send({"phase": phase}, [])
    signal.setitimer(signal.ITIMER_PROF, header["seconds"])  # ends this process even in the middle of XLA's code
    before = time.process_time()
    answer: RunnerAnswer
    out: list[bytes] = []
    try:
        answer, out = _asked(header, program, rest)
    except Exception as error:  # faults of the learner raise no exception here, so the grader is at fault
        answer = {"broken": f"{type(error).__name__}: {without_marks(one_line(error))[:300]}"}
    signal.setitimer(signal.ITIMER_PROF, 0)
    # A result from the cache of this process costs as much as it cost when it was made.
    send({**answer, "cpu": max(time.process_time() - before, answer.get("cpu", 0.0))}, out)


def _asked(header: RunRequest, program: bytes, rest: list[bytes]) -> execution.Message:
    if "times" in header:
        return execution.times(header["ask"], program, *header["times"])
    inputs = execution.unpack_inputs(header, rest)
    if "poison" in header:
        return poison.moved(header["ask"], program, inputs, *header["poison"])
    if "exact" in header:
        return execution.values(header["ask"], program, inputs, header["exact"])
    return execution.execute(header["ask"], program, inputs)
