"""Send requests to workers, and list the sandbox tiers that work on this machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grader.sandbox.limits import Limits
from grader.sandbox.tiers import TIERS, available
from grader.sandbox.worker import Worker
from grader.wire.messages import FunctionAsk, TracerAsk

WORKING = [tier for tier in TIERS if not available(tier)]

CONFINED = [tier for tier in WORKING if tier != "none"]

LIMITS = Limits(trace_seconds=3, total_seconds=12, run_seconds=20)


def ask(text: str, worker: Worker, cases: int = 1) -> list[Any]:
    """Send a file to a worker, with the request to call its function ``f()``. Return the worker's frames."""
    question: FunctionAsk = {"kind": "function", "task": "f", "cases": [{"dict": []}] * cases}
    return [frame for frame, _ in worker.trace({"name": "a.py", "chunks": [["a.py", text]]}, [question])]


def value(frames: Sequence[Any]) -> object:
    return next(f["body"]["values"][0] for f in frames if "values" in f.get("body", {}))["value"]


def staged(worker: Worker, text: str, asks: Sequence[TracerAsk], secret: Sequence[TracerAsk]) -> list[Any]:
    return [frame for frame, _ in worker.trace({"name": "a.py", "chunks": [["a.py", text]]}, asks, secret)]


def call(task: str, **arguments: object) -> FunctionAsk:
    return {"kind": "function", "task": task, "cases": [{"dict": [[k, v] for k, v in arguments.items()]}]}


def answers(frames: Sequence[Any]) -> list[object]:
    return [b["values"][0].get("value", b["values"][0]) for f in frames if "values" in (b := f.get("body", {}))]


def processes_at(folder: str) -> list[Path]:
    """Return the processes that work in a folder, as folders of /proc."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found += [process] if os.readlink(process / "cwd").startswith(folder) else []
    return found
