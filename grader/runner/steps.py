"""A program that is run again and again: some of its results are arguments of its next run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.runner.admission import ProgramRefused
from grader.runner.program import Program


@dataclass(frozen=True)
class Steps:
    """How often a program is run on one set of inputs, and which result is which argument of the next run.

    ``fed``: positions of results by the position of the argument, both flat.
    """

    count: int
    fed: Mapping[int, int]

    @classmethod
    def of(cls, ask: Mapping[str, Any]) -> Steps:
        return cls(ask["steps"], {argument: result for result, argument in ask["fed"]})

    def check(self, program: Program, arguments: Sequence[Mapping[str, Any]]) -> None:
        """Raise Refused if a result that is fed is missing, or differs in shape or dtype from its argument."""
        for argument, result in self.fed.items():
            asked = arguments[argument]
            if result >= len(program.results):
                raise ProgramRefused(f"the program does not return {asked['name']} for the next step")
            shape, dtype = program.results[result]
            if (list(shape), dtype) != (list(asked["shape"]), asked["dtype"]):
                takes = f"the next step takes {asked['dtype']}{list(asked['shape'])}"
                raise ProgramRefused(f"returned {dtype}{list(shape)} for {asked['name']}, {takes}")

    def arguments_after(self, results: Sequence[Any], fresh: Iterator[Any], count: int) -> list[Any]:
        """Return the ``count`` arguments of the next run: results of the last one where fed, else ``fresh`` ones."""
        return [results[self.fed[i]] if i in self.fed else next(fresh) for i in range(count)]
