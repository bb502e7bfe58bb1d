"""The confined child process: load one learner's file or notebook, and answer the grader's requests."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from jaxlib.mlir.dialects import builtin, mhlo  # noqa: F401  imported once, before the children fork

from grader.learner import answering
from grader.learner.answering import Message
from grader.learner.loading import load
from grader.learner.surroundings import prepare, tolerant_jax
from grader.wire import frames
from grader.wire.messages import SourceCode, TracerAsk

__all__ = ["prepare", "serve"]


def serve(read: Callable[[int], bytes], stream: BinaryIO, seconds: float) -> None:
    """Load the source (the learner's file or notebook), then answer every ask (request of the grader).

    Args:
        read: a function that returns the next n bytes of the input. The first frame (message) of the input has the
            source, and each later frame has a list of asks.
        stream: the output. The messages are ``started`` (requests the source), ``ran`` (a chunk of the source has run,
            and another one follows), ``loaded`` (the source has run), and a numbered answer for each ask (see
            ``wire.messages.ChildMessage``).
        seconds: limit of CPU time for each ask, and for each chunk of the source (a file, or a cell of a notebook).
    """
    _hide_grader()

    def say(body: Mapping[str, Any], blobs: list[bytes] | None = None) -> None:
        stream.write(frames.pack(body, blobs or []))
        stream.flush()

    with tolerant_jax():
        say({"started": True})
        header, texts = frames.read_frame(read)
        chunks = [[name, text.decode()] for name, text in zip(header["chunks"], texts, strict=True)]
        source: SourceCode = {"name": header["name"], "chunks": chunks}
        loaded = load(source, seconds, lambda number: say({"ran": number}))
        say({"loaded": True, "faults": loaded.faults[:20]})
        hung: dict[str, Message] = {}  # a task that hangs on one mesh is not tried on other meshes
        for number, ask in enumerate(_asks(read)):
            body, blobs = hung.get(ask["task"]) or answering.reply_to(ask, loaded, seconds)
            if body.get("fault", {}).get("kind") == "timeout":
                hung[ask["task"]] = body, blobs
            say({"number": number} | body, blobs)


def _asks(read: Callable[[int], bytes]) -> Iterator[TracerAsk]:
    while True:
        try:
            stage, _ = frames.read_frame(read)
        except EOFError:
            return
        yield from stage["asks"]


def _hide_grader() -> None:
    """Replace the package ``grader`` by empty modules.

    Learner code must not import the grader's own modules, because they compute formulas and layouts that students must
    find. The functions that notebooks call, such as ``check``, remain as functions that do nothing.
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
