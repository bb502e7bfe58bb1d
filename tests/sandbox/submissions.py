"""Send requests to workers, and list the sandbox tiers that work on this machine."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from grader.sandbox.limits import Limits
from grader.sandbox.tiers import TIERS, available
from grader.sandbox.worker import Worker

WORKING = [tier for tier in TIERS if not available(tier)]

CONFINED = [tier for tier in WORKING if tier != "none"]

LIMITS = Limits(trace_seconds=3, total_seconds=12, run_seconds=20)


def ask(text: str, worker: Worker, cases: int = 1) -> list[dict]:
    """Send a file to a worker, with the request to call its function ``f()``. Return the worker's frames."""
    question = {"kind": "function", "task": "f", "cases": [{"dict": []}] * cases}
    return [frame for frame, _ in worker.trace({"name": "a.py", "chunks": [["a.py", text]]}, [question])]


def value(frames: list[dict]) -> object:
    return next(f["body"]["values"][0] for f in frames if "values" in f.get("body", {}))["value"]


def staged(worker: Worker, text: str, asks: list[dict], secret: list[dict]) -> list[dict]:
    return [frame for frame, _ in worker.trace({"name": "a.py", "chunks": [["a.py", text]]}, asks, secret)]


def call(task: str, **arguments: object) -> dict:
    return {"kind": "function", "task": task, "cases": [{"dict": [[k, v] for k, v in arguments.items()]}]}


def answers(frames: list[dict]) -> list[object]:
    return [b["values"][0].get("value", b["values"][0]) for f in frames if "values" in (b := f.get("body", {}))]


def processes_at(folder: str) -> list[Path]:
    """Return the processes that work in a folder, as folders of /proc."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found += [process] if os.readlink(process / "cwd").startswith(folder) else []
    return found
