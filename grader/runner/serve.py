"""The loop of the process that runs programs: read a request, run its program, answer."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

from grader.common import formulas
from grader.runner import compiling, execution, poison
from grader.wire.text import one_line, without_marks

Send = Callable[[dict[str, Any], list[bytes]], None]


def answer(header: dict[str, Any], blobs: list[bytes], send: Send) -> None:
    """Answer one request. Keys of the header select the answer. A request without such a key runs a learner's program.

    Keys:
        ours: True to run the grader's own test program.
        formula: evaluate a student's formula.
        look: describe the devices.
        times: time the program.
        poison: find out how far the program's results depend on operations.
        exact: run the program, but return only values. If True, compute its matmuls in float32; if False, at the
            precision that the program requests.
        join: first connect to other processes, then answer the request.
    """
    if header.get("ours"):
        send({"runs": execution.runs()}, [])
        return
    if joined := header.get("join"):
        execution.join(*joined)
    if header.get("look"):
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
    try:
        answer, out = _asked(header, program, rest)
    except Exception as error:  # faults of the learner raise no exception here, so the grader is at fault
        answer, out = {"broken": f"{type(error).__name__}: {without_marks(one_line(error))[:300]}"}, []
    signal.setitimer(signal.ITIMER_PROF, 0)
    send(answer | {"cpu": time.process_time() - before}, out)


def _asked(header: dict[str, Any], program: bytes, rest: list[bytes]) -> execution.Reply:
    if "times" in header:
        return execution.times(header["ask"], program, *header["times"])
    inputs = execution.unpack_inputs(header, rest)
    if "poison" in header:
        return poison.moved(header["ask"], program, inputs, *header["poison"])
    if "exact" in header:
        return execution.values(header["ask"], program, inputs, header["exact"])
    return execution.execute(header["ask"], program, inputs)
