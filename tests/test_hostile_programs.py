"""Programs of the hostile corpus. An attack earns what its header says, and honest programs earn all points.

``tests/submissions/hostile/programs`` has a folder for each attacked exercise. The files ``honest*.py`` define some
of its tasks and earn all their points. Every other file is an attack on some tasks. Its docstring has these fields:

    changes: optional; a file of the folder; the attack replaces some of its functions and variables
    kind: the kind of attack
    earns: points, of the points of its tasks
    fails: the names of checks that fail or are not tried, or "nothing"
    says: part of the first failed check's reason, or "nothing"
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from grader.batch.grade import Grader
from grader.common.result import Result
from tests import texts

PROGRAMS = Path(__file__).resolve().parent / "submissions" / "hostile" / "programs"
KINDS = {
    "branch on dtype", "branch on size", "matmuls of 1 by 1", "values of another round", "operands of eight bits",
    "other kernels", "a mask that is never true", "a collective that nothing needs", "pairs in a tournament",
    "comparisons as data", "tiny matmuls", "patched jax.jit", "only raises", "one value for all",
    "a hash for random numbers", "no checkpoint", "duplicates removed", "busy all the time",
    "arithmetic in disguise", "groups over several axes", "overlap with work for nothing",
    "nearly equal random numbers", "a step below rounding", "guessed from other numbers", "numbers cut to integers",
    "work of other devices", "sums of one axis after the other", "branch on mesh",
    "sums in a wider dtype", "branch on differentiation", "sums of single numbers",
    "branch on the number of calls", "more kept than needed",
}  # fmt: skip

# To grade one program of these exercises takes less than 2 s of CPU time. The others are slow tests.
QUICK = {
    "c1_no_communication", "f1_ag_matmul", "a6_three_modes", "g5_batch_norm", "a1_local_shape", "k4_mesh_for",
    "d1_ring_and_line", "l1_collectives",
}  # fmt: skip
# To grade one program of these exercises takes 10 to 40 s of CPU time.
HEAVY = {"h4_fsdp", "h6_sequence_parallel", "i1_gpipe_forward", "j2_ring_attention", "m1_block", "m2_train_step"}


@dataclass(frozen=True)
class Program:
    """A file of the corpus: an honest program or an attack."""

    path: Path

    def __str__(self) -> str:
        return f"{self.exercise}/{self.path.stem}"

    @property
    def exercise(self) -> str:
        return self.path.parent.name

    @cached_property
    def own(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def text(self) -> str:
        """Return the submission: the text of the file in ``changes``, if any, followed by the text of this file."""
        changed = self.header.get("changes")
        return f"{(self.path.parent / changed).read_text(encoding='utf-8')}\n\n{self.own}" if changed else self.own

    @property
    def defines(self) -> set[str]:
        """Return the names of the program's functions, and of the variables that it assigns."""
        nodes = list(ast.walk(ast.parse(self.text)))
        assigned = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        return assigned | {n.name for n in nodes if isinstance(n, ast.FunctionDef)}

    @cached_property
    def header(self) -> dict[str, str]:
        lines = (ast.get_docstring(ast.parse(self.own)) or "").split("\n")
        return {key: value for key, _, value in (line.partition(": ") for line in lines[2:])}


def programs(*, honest: bool) -> list[Program]:
    return [Program(p) for p in sorted(PROGRAMS.glob("*/*.py")) if p.stem.startswith("honest") is honest]


def first_of_each_kind() -> list[Program]:
    """Return the first attack of each kind."""
    return list({attack.header["kind"]: attack for attack in reversed(programs(honest=False))}.values())


def params(*, honest: bool) -> list[Any]:
    """Return parameters of a test. Attacks on QUICK exercises that are the first of a kind run in ``make test``.

    All others are slow tests, and for HEAVY exercises all but the first of a kind run by hand.
    """
    first = first_of_each_kind()
    attacked = {attack.exercise for attack in first}

    def marks(program: Program) -> list[pytest.MarkDecorator]:
        further = program.exercise not in attacked if honest else program not in first
        slow = [pytest.mark.slow] * (further or program.exercise not in QUICK)
        return [*slow, *[pytest.mark.by_hand] * (further and program.exercise in HEAVY)]

    return [pytest.param(program, marks=marks(program)) for program in programs(honest=honest)]


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    with texts.course_grader() as made:
        yield made


def results(grader: Grader, program: Program) -> list[Result]:
    """Return the results of the checks of the tasks that a program defines."""
    exercise = grader.course.exercise(program.exercise)
    report = texts.graded(grader, program.exercise, program.text)
    assert report.pending == 0
    assert not report.evidence or any(
        one.step is None for one in report.evidence
    )  # ``step`` is None in evidence that shows values
    names = {c.name for t in exercise.tasks.values() if t.name in program.defines for c in exercise.checks_of(t)}
    return [r for r in report.results if r.name in names]


def test_the_corpus_has_every_kind_of_attack() -> None:
    """Every kind of attack occurs. Every folder has an honest program and an attack, and no other files."""
    attacks, honest = programs(honest=False), programs(honest=True)
    assert {a.header["kind"] for a in attacks} == KINDS
    assert {a.exercise for a in attacks} == {h.exercise for h in honest} == {p.name for p in PROGRAMS.iterdir()}


@pytest.mark.parametrize("program", params(honest=True), ids=str)
def test_an_honest_program_loses_nothing(program: Program, grader: Grader) -> None:
    found = results(grader, program)
    assert found and {r.name: r.reason for r in found if r.status != "passed"} == {}


@pytest.mark.parametrize("program", params(honest=False), ids=str)
def test_an_attack_earns_what_its_header_says(program: Program, grader: Grader) -> None:
    found = results(grader, program)
    lost = [r for r in found if r.status != "passed"]
    assert program.header == program.header | {
        "earns": f"{sum(r.earned for r in found):g} of {sum(r.points for r in found):g}",
        "fails": " ".join(r.name for r in lost) or "nothing",
    }
    assert program.header["says"] in (lost[0].reason if lost else "nothing")
