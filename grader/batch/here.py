"""Asks answered in this very process, for one's own notebook, and where there is no fork."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from grader.batch.backends import Compiler
from grader.batch.findings import decoded, fault_of, load_notes
from grader.batch.poison import Poisoned
from grader.batch.workers import Spent
from grader.common.observation import Observation
from grader.intake.submission import Source
from grader.judging.plan import Ask
from grader.judging.seen import Answered

NO_LIMIT = 3600.0


class Here:
    """Asks answered in this very process, for one's own notebook: no limits, no isolation."""

    def __init__(self, namespace: dict[str, Any], compiler: Compiler | None = None) -> None:
        self.namespace, self.compiler = namespace, compiler

    def collect(self, source: Source, asks: list[Ask], spent: Spent | None = None) -> tuple[list[Answered], list[str]]:
        """As ``Workers.collect``; a source without chunks stands for the notebook's own namespace."""
        from grader.learner.answering import answer
        from grader.learner.loading import load
        from grader.learner.tolerance import tolerant_jax

        chunks = [[c.name, c.text] for c in source.chunks]
        with tolerant_jax():
            program = load({"name": source.name, "chunks": chunks}, NO_LIMIT)
            if not chunks:
                program.space.update(self.namespace)
                program.files = {f.__code__.co_filename: "" for f in self.namespace.values() if hasattr(f, "__code__")}
            files, ends = list(program.files), dict(source.ends)
            requests = [ask.for_tracer(files) | {"after": ends.get(ask.exercise)} for ask in asks]
            replies = [answer(request, program, NO_LIMIT) for request in requests]
        answered = []
        for ask, request, (body, blobs) in zip(asks, requests, replies, strict=True):
            finding = (
                fault_of(body["fault"])
                if "fault" in body
                else decoded(ask, body, blobs, lambda p, r=request, a=ask: self._run(r, p, a))
            )
            if isinstance(finding, Observation) and finding.outputs:
                finding = replace(finding, poison=Poisoned(finding, partial(_moved, request, blobs[0], ask), NO_LIMIT))
            answered.append(Answered(ask, finding))
        return answered, load_notes(program.faults)

    def _run(self, request: dict[str, Any], program: bytes, ask: Ask) -> tuple[dict[str, Any], list[bytes]]:
        from grader.runner.execution import execute

        header, shards = execute(request, program, ask.arrays())
        if self.compiler is None or "fault" in header:
            return header, shards
        made = self.compiler.compiled(request, program, ask)
        return (header if made is None else header | {"compiled": (made, str(self.compiler.on))}), shards


def _moved(request: dict[str, Any], program: bytes, ask: Ask, what: str, numbers: list[int]) -> dict[str, Any]:
    from grader.runner.poison import moved

    return moved(request, program, ask.arrays(), what, numbers)[0]
