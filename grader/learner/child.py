"""The confined child process: load one source and answer requests to it, stage by stage."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from jaxlib.mlir.dialects import builtin, mhlo  # noqa: F401  imported once, before the children fork

from grader.learner import answering
from grader.learner.answering import Reply
from grader.learner.loading import load
from grader.learner.surroundings import prepare
from grader.learner.tolerance import tolerant_jax
from grader.wire import frames

__all__ = ["answer", "prepare"]


def answer(read: Callable[[int], bytes], stream: BinaryIO, seconds: float) -> None:
    """Load the source, which is the first input, then answer every ask (request to the source).

    Args:
        read: returns the next n bytes of the input. The input is a frame (a header and bytes) with the source, then a
            frame for each stage of asks.
        stream: gets three kinds of output. ``started`` asks the grader to send the source, ``loaded`` says that the
            source ran, and then come the numbered answers.
        seconds: CPU time for loading, and for each ask.
    """
    _hide_grader()

    def say(body: dict[str, Any], blobs: list[bytes] | None = None) -> None:
        stream.write(frames.pack(body, blobs or []))
        stream.flush()

    with tolerant_jax():
        say({"started": True})
        source, texts = frames.read_frame(read)
        source["chunks"] = [[name, text.decode()] for name, text in zip(source["chunks"], texts, strict=True)]
        program = load(source, seconds)
        say({"loaded": True, "faults": program.faults[:20]})
        hung: dict[str, Reply] = {}  # a task that hangs on one mesh is not tried on other meshes
        for number, ask in enumerate(_asks(read)):
            body, blobs = hung.get(ask["task"]) or answering.answer(ask, program, seconds)
            if body.get("fault", {}).get("kind") == "timeout":
                hung[ask["task"]] = body, blobs
            say({"number": number} | body, blobs)


def _asks(read: Callable[[int], bytes]) -> Iterator[dict[str, Any]]:
    """Yield all asks (requests to the source), stage by stage. A stage (a list of asks) arrives in this process only
    after the earlier stages were answered."""
    while True:
        try:
            stage, _ = frames.read_frame(read)
        except EOFError:
            return
        yield from stage["asks"]


def _hide_grader() -> None:
    """Replace ``grader`` by empty modules, because the package holds formulas and layouts that learners must find.

    Cells of a notebook call the package's ``check`` below each exercise, and may call ``explain``, ``chip`` and
    ``show``. In this process, these functions do nothing.
    """
    for name in [n for n in sys.modules if n.split(".")[0] == "grader"]:
        del sys.modules[name]
    for place in ("grader.notebook", "grader.integrations.nbgrader.check"):
        parts = place.split(".")
        for name in (".".join(parts[: n + 1]) for n in range(len(parts))):
            module = sys.modules.setdefault(name, types.ModuleType(name))
            module.__path__ = []
            parent, _, own = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], own, module)
        for word in ("check", "explain", "chip", "show"):
            setattr(sys.modules[place], word, lambda *args, **kwargs: None)
