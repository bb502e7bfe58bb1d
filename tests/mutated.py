"""Mutants for tests: mutants of a few statements, and a course in which the checks miss some mistakes."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

from grader.authoring.mutants.making import Mutant, mutants_of, variations
from grader.authoring.mutants.operators import TaskContext
from grader.course.loading import Course, load_course

PLAIN = TaskContext(plain=True)
TRACED = TaskContext()
EXERCISE = '''"""# Two tasks

With a hole in the checks of each.
"""

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import expect_close, expect_outcomes

exercise = Exercise(meshes=[{"x": 2}])


def half(n):
    return n // 2


@exercise.function(hints=["divide"])
def pairs(n):
    """How many pairs n things make."""
    if n < 0:
        raise ValueError("no things")
    return half(n)


@exercise.body(out_specs=P(), hints=["psum"])
def total(a):
    """The sum over x."""
    return jax.lax.psum(a, "x")


even = exercise.cases(pairs, public=[{"n": 8}, {"n": 4}])
negative = exercise.cases(pairs, public=[{"n": -1}])
summed = exercise.call(total, a=normal(4, 3, spec=P("x")))


@exercise.check(even, points=1, public=True)
def pairs_value(seen):
    """pairs: even numbers"""
    expect_outcomes(seen)


@exercise.check(even, points=1)
def pairs_nothing(seen):
    """pairs: a check that never fails"""


@exercise.check(summed, points=1)
def total_value(seen):
    """total: the sum"""
    expect_close(seen.out, seen.a[:2] + seen.a[2:])
'''


def made(source: str, operator: str, context: TaskContext = TRACED) -> set[str]:
    """Return the mutants that an operator makes of the statements ``source``, the body of a function."""
    module = ast.parse("def f():\n" + textwrap.indent(source, "    "))
    whole = ast.unparse(module)
    found = {text for name, _, text in variations(module, module.body[0], context) if name == operator}
    return {textwrap.dedent(text.split("\n", 1)[1]) for text in found - {whole}}


def with_holes(root: Path, exercise: str = EXERCISE) -> Course:
    """Write a course of one exercise. Its checks miss some mistakes."""
    (root / "solutions" / "01_t").mkdir(parents=True)
    (root / "solutions" / "01_t" / "two.py").write_text(exercise)
    (root / "course.yaml").write_text(
        "name: t\nseed: s\ndevices: 2\nmodules:\n  - {id: 01_t, title: T, exercises: [two]}\n"
    )
    return load_course(root / "course.yaml")


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(EXERCISE.splitlines(), 1) if text in line)


def doubled(course: Course) -> Mutant:
    return next(m for m in mutants_of(course.exercise("two")) if m.becomes == "return n * 2")
