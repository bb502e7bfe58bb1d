"""Answers to requests, in the process that compiles programs."""

from __future__ import annotations

import signal
from typing import Any

from grader.runner.serve import Send
from grader.wings.chip.inside import tpu
from grader.wire.text import one_line, without_marks


def serve(header: dict[str, Any], blobs: list[bytes], send: Send) -> None:
    """Compile one program for TPU chips that need not be present, and send the result. The program does not run."""
    (program,) = blobs
    signal.setitimer(signal.ITIMER_PROF, header["seconds"])
    try:
        answer = tpu.compiled(header["ask"], program, header["on"])
    except Exception as error:  # every error here is a fault of the grader
        answer = {"broken": f"{type(error).__name__}: {without_marks(one_line(error))[:300]}"}
    signal.setitimer(signal.ITIMER_PROF, 0)
    send(answer, [])
