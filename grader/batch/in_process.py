"""Grade in this process, without limits or isolation: in the learner's own notebook, and on systems without fork."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from grader.batch.backends import Compiler
from grader.batch.remembering import Keys, Store
from grader.batch.replies import Replies, load_notes, reply_of
from grader.batch.workers import Workers
from grader.common import formulas
from grader.intake.submission import Source
from grader.judging.plan import Ask
from grader.sandbox.limits import Limits
from grader.wire.messages import CallAsk, FormulaText

NO_LIMIT = 3600.0


class InProcess(Workers):
    """Workers that trace and run in this process.

    Args:
        namespace: the names that the open notebook defines. A source without code represents the open notebook: its
            functions and answers are those in ``namespace``.
        compiler: compiles each program that ran without a fault, for chips that this machine lacks.
    """

    def __init__(self, namespace: dict[str, Any], compiler: Compiler | None = None) -> None:
        self.namespace, self.compiler = namespace, compiler
        self.limits = Limits(
            **dict.fromkeys(("trace_seconds", "total_seconds", "run_seconds", "total_run_seconds"), NO_LIMIT)
        )
        self.runners, self.devices, self.store = [], None, Store(Keys(None))

    @property
    def each_worker(self) -> list[Any]:
        return []

    def replies(self, source: Source, asks: Sequence[Ask], seconds: float, hung: bool) -> Replies:
        """Load a source (a file or notebook) in this process, and return its replies to all requests."""
        from grader.learner.answering import reply_to
        from grader.learner.loading import load
        from grader.learner.surroundings import tolerant_jax

        chunks = [[c.name, c.text] for c in source.chunks]
        with tolerant_jax():
            loaded = load({"name": source.name, "chunks": chunks}, NO_LIMIT)
            if not chunks:
                loaded.space.update(self.namespace)
                loaded.files = {f.__code__.co_filename: "" for f in self.namespace.values() if hasattr(f, "__code__")}
            files, ends = list(loaded.files), dict(source.ends)
            requests = [ask.for_tracer(files) for ask in asks]
            for ask, request in zip(asks, requests, strict=True):
                request["after"] = ends.get(ask.exercise)
            answers = [reply_to(request, loaded, NO_LIMIT) for request in requests]
        each = tuple(reply_of(ask, *one) for ask, one in zip(asks, answers, strict=True))
        return Replies(each, tuple(load_notes(loaded.faults)), 0.0, tuple(files))

    def executed(self, ask: Ask, request: CallAsk, program: bytes) -> tuple[Mapping[str, Any], list[bytes]]:
        """Run a program. Return (header with the program's facts, bytes of its results)."""
        from grader.runner.execution import execute

        return execute(request, program, ask.arrays())

    def formula(self, request: FormulaText) -> Mapping[str, Any]:
        """Evaluate a formula that a student wrote."""
        return formulas.answer(request)

    def changed(self, ask: Ask, request: CallAsk, program: bytes, poison: list[Any]) -> Mapping[str, Any]:
        """Run a program with changed operations, and return how much its results change.

        ``poison``: the kind and the numbers of the operations, see ``runner.poison.moved``.
        """
        from grader.runner.poison import moved

        return moved(request, program, ask.arrays(), *poison)[0]
