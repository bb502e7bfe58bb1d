"""Each operator on a small source; what a course with a hole in its checks is told; the list of equivalents."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader.authoring import mutants
from grader.authoring.mutants import About, Equivalent
from grader.batch.grade import Grader
from grader.cli import app
from grader.course.config import CourseError
from grader.course.loading import Course, load_course

ROOT = Path(__file__).parents[2]
PLAIN = About(plain=True)
TRACED = About()


def made(source: str, operator: str, about: About = TRACED) -> set[str]:
    """What an operator makes of the statements in a function's body."""
    module = ast.parse("def f():\n" + textwrap.indent(source, "    "))
    whole = ast.unparse(module)
    found = {text for name, _, text in mutants.variations(module, module.body[0], about) if name == operator}
    return {textwrap.dedent(text.split("\n", 1)[1]) for text in found - {whole}}


@pytest.mark.parametrize(
    ("operator", "source", "wanted"),
    [
        ("axis", "n = axis_size('x')", {"n = axis_size('y')"}),
        ("axis", "n = 'z'", set()),
        ("spec", "s = P('x', None)", {"s = P(None, None)", "s = P('x', 'y')", "s = P(None, 'x')"}),
        ("spec", "s = P('x')", {"s = P(None)", "s = P(None, 'x')"}),
        ("spec", "s = jax.sharding.PartitionSpec()", {f"s = jax.sharding.PartitionSpec('{a}')" for a in "xy"}),
        ("order", "s = P(('x', 'y'))", {"s = P(('y', 'x'))", "s = P(('x',))", "s = P(('y',))"}),
        ("order", "p = [(i, i + 1) for i in r]", {"p = [(i + 1, i) for i in r]"}),
        ("order", "a, b = c", set()),
        ("collective", "c = lax.psum(a, 'x')", {"c = a", "c = lax.psum(lax.psum(a, 'x'), 'x')"}),
        ("collective", "c = axis_index('x')", {"c = 0"}),
        ("dimension", "c = all_gather(a, 'x', tiled=True)", {"c = all_gather(a, 'x', tiled=True, axis=1)"}),
        ("dimension", "c = all_gather(a, 'x', axis=0)", {"c = all_gather(a, 'x', axis=0, tiled=True)"}),
        (
            "dimension",
            "c = all_to_all(a, 'x', split_axis=1, concat_axis=0)",
            {"c = all_to_all(a, 'x', split_axis=0, concat_axis=1)"},
        ),
        ("name", "c = lax.psum(a, 'x')", {"c = lax.pmean(a, 'x')", "c = lax.pmax(a, 'x')"}),
        ("name", "c = max(a, b)", {"c = min(a, b)"}),
        ("constant", "c = f(a, axis=0)", {"c = f(a, axis=1)", "c = f(a, axis=-1)"}),
        ("constant", "c = f(a, tiled=True)", {"c = f(a, tiled=False)"}),
        ("constant", "c = a * 0.5 + 1e-06", {"c = a * 1.0 + 1e-06"}),
        ("constant", "c = shard_map(f, check_vma=False)", set()),
        ("constant", "c = zip(a, b, strict=True)", set()),
        ("bounds", "for i in range(n):\n    f(i)", {f"for i in range(n {s} 1):\n    f(i)" for s in "+-"}),
        ("bounds", "c = lax.fori_loop(0, n, f, a)", {f"c = lax.fori_loop(0, n {s} 1, f, a)" for s in "+-"}),
        ("bounds", "c = lax.scan(f, a, length=n)", {f"c = lax.scan(f, a, length=n {s} 1)" for s in "+-"}),
        ("comparison", "c = a < b", {"c = a <= b", "c = a >= b"}),
        ("comparison", "c = a in b", {"c = a not in b"}),
        ("arithmetic", "c = a * b", {"c = a // b"}),
        ("arithmetic", "c = (i + 1) % n", {"c = (i - 1) % n", "c = (i + 1) // n", "c = i + 1"}),
        ("arithmetic", "c //= n", {"c *= n", "c /= n", "pass"}),
        ("arithmetic", "c = a and not b", {"c = a or not b", "c = a and b"}),
        ("condition", "c = a if b else d", {"c = a", "c = d", "c = a if not b else d"}),
        ("condition", "if a:\n    b()", {f"if {t}:\n    b()" for t in ("True", "False", "not a")}),
        ("condition", "c = [a for a in b if a]", {"c = [a for a in b]", "c = [a for a in b if not a]"}),
        ("result", "raise ValueError(f'{n + 1}')", {"pass"}),
        ("operands", "c = a @ b", {"c = b @ a", "c = a.T @ b", "c = a @ b.T", "c = (a @ b).T"}),
        ("operands", "c = jnp.where(a, b, d)", {"c = jnp.where(a, d, b)"}),
        (
            "operands",
            "c = einsum('ij,jk->ik', a, b)",
            {"c = einsum('ij,jk->ki', a, b)", "c = einsum('jk,ij->ik', a, b)"},
        ),
    ],
)
def test_operator(operator, source, wanted):
    assert made(source, operator) == wanted


def test_constant_returns_are_for_plain_functions():
    assert made("return a + 1", "result", PLAIN) == {f"return {v}" for v in (None, 0, 1)}
    assert made("return a + 1", "result") == set()
    assert made("return a + 1", "detour", PLAIN) == set()


def test_a_detour_keeps_the_values():
    assert made("return g(a)", "detour") == {
        "return jax.lax.all_gather(g(a), 'x')[jax.lax.axis_index('x')]",
        "return jax.lax.pmax(g(a), 'x')",
    }


def test_an_index_that_would_count_from_the_end_keeps_its_remainder():
    for index, wraps in {"(i - 1) % n": True, "(i + 1) % n": False, "i % n": False}.items():
        assert mutants.is_wrapped(ast.parse(index, mode="eval").body) is wraps
    module = ast.parse("def f(c, i, n):\n    return c[(i - 1) % n]")
    index = next(n.slice for n in ast.walk(module) if isinstance(n, ast.Subscript))

    def texts(about: About) -> set[str]:
        return {text for _, _, text in mutants.variations(module, module.body[0], about)}

    gone = texts(TRACED) - texts(About(indices=frozenset({id(index)})))
    assert gone == {"def f(c, i, n):\n    return c[i - 1]"}


def test_messages_annotations_and_docstrings_stay():
    source = 'def f(a: P("x")) -> P("x"):\n    """x"""\n    raise ValueError("x" + "y")'
    assert made(source, "axis") == made(source, "arithmetic") == set()


def test_the_tree_is_left_as_it_was():
    module = ast.parse("def f(a):\n    return psum(a @ a, 'x') if a < 1 else [a, 2]")
    before = ast.unparse(module)
    assert len(list(mutants.variations(module, module.body[0], TRACED))) > 10
    assert ast.unparse(module) == before


def test_lines_that_differ():
    assert mutants.differing("a\nb\nc", "a\nd\nc") == ("b", "d")
    assert mutants.differing("a\nb\nc", "a\nc") == ("b", "")
    assert mutants.differing("a\n  b", "a\n  b\n  c") == ("", "c")


def test_unchecked_turns_the_check_off_once():
    assert "check_vma=False" in mutants.unchecked("f = partial(jax.shard_map, mesh=m)(g)")
    assert mutants.unchecked("f = jax.shard_map(g, check_vma=True)") == ""


# -- a course of one exercise with holes in its checks -----------------------------------------

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


@pytest.fixture(scope="module")
def holes(tmp_path_factory) -> Course:
    root = tmp_path_factory.mktemp("course")
    (root / "solutions" / "01_t").mkdir(parents=True)
    (root / "solutions" / "01_t" / "two.py").write_text(EXERCISE)
    (root / "course.yaml").write_text(
        "name: t\nseed: s\ndevices: 2\nmodules:\n  - {id: 01_t, title: T, exercises: [two]}\n"
    )
    return load_course(root / "course.yaml")


@pytest.fixture(scope="module")
def proof(holes):
    with Grader(mutants.impatient(holes), "none") as grader:
        (found,) = mutants.prove(grader, ["two"], [])
    return found


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(EXERCISE.splitlines(), 1) if text in line)


def survivors(proof) -> set[tuple[str, str, int]]:
    return {(v.mutant.operator, v.mutant.becomes, v.mutant.line) for v in proof.verdicts if v.fate == "survived"}


def test_holes_are_found_with_the_authors_lines(proof):
    assert survivors(proof) == {
        ("arithmetic", "return n / 2", line_of("return n // 2")),  # of even numbers the same
        ("comparison", "if n <= 0:", line_of("if n < 0")),  # no 0, and nothing negative
        ("constant", "if n < 1:", line_of("if n < 0")),
        ("constant", "if n < -1:", line_of("if n < 0")),
        ("condition", "if False:", line_of("if n < 0")),
        ("result", "pass", line_of("raise")),
        ("detour", "return jax.lax.all_gather(jax.lax.psum(a, 'x'), 'x')[jax.lax.axis_index('x')]", line_of("psum(a")),
        ("detour", "return jax.lax.pmax(jax.lax.psum(a, 'x'), 'x')", line_of("psum(a")),
    }


def test_most_are_killed_by_a_check_that_looked(proof):
    assert proof.count("killed") > proof.count("survived") and proof.count("broken") == 0
    by_name = {v.mutant.becomes: v for v in proof.verdicts}
    assert by_name["return a"].seen_by == ("total_value",)
    assert by_name["return jax.lax.psum(a, 'y')"].seen_by == ()  # there is no y: it never ran
    assert proof.not_run >= 1


def test_a_check_that_cannot_fail_is_named(proof):
    assert proof.unproven == ["pairs_nothing"]
    assert not any("pairs_nothing" in p for p in proof.problems)


def doubled(course: Course) -> mutants.Mutant:
    return next(m for m in mutants.mutants_of(course.exercise("two")) if m.becomes == "return n * 2")


def test_a_mutant_that_some_seeds_do_not_kill_survives(tmp_path):
    """Here n is 0 or, seldom, 1, and doubling shows only where it is not 0."""
    (tmp_path / "solutions" / "01_t").mkdir(parents=True)
    drawn = '[{"n": 0}], hidden=lambda rng: [{"n": int(rng.integers(0, 4) == 1)}])'
    (tmp_path / "solutions" / "01_t" / "two.py").write_text(EXERCISE.replace('[{"n": 8}, {"n": 4}])', drawn))
    (tmp_path / "course.yaml").write_text(
        "name: t\nseed: s\ndevices: 2\nmodules:\n  - {id: 01_t, title: T, exercises: [two]}\n"
    )
    course = load_course(tmp_path / "course.yaml")
    with Grader(mutants.impatient(course), "none") as grader:
        mutant = doubled(course)
        assert re.fullmatch(
            r"passes every check of pairs with \d+ of 20 seeds", mutants.escaped(grader, mutant, mutant.text, [], 20)
        )


def test_a_mutant_that_passes_what_it_fails_in_public_survives(holes):
    with Grader(mutants.impatient(holes), "none") as grader:
        right = ast.unparse(mutants.task_module(holes.exercise("two"), holes.exercise("two").tasks["pairs"])[0])
        graded = mutants.results_of(grader, "two", "pairs", right)
        mutant = doubled(holes)
        assert mutants.escaped(grader, mutant, mutant.text, graded, 1) == (
            "passes pairs_value when graded, which it fails in public"
        )
        assert mutants.judge_mutant(grader, mutant, seeds=3).fate == "killed"


def entry(**changes: str) -> Equivalent:
    known = {
        "exercise": "two",
        "task": "pairs",
        "was": "if n < 0:",
        "becomes": "if n <= 0:",
        "reason": "0 is not asked",
    }
    return Equivalent.model_validate(known | changes)


def test_listed_survivors_are_no_problem_and_stale_entries_are(holes):
    stale = entry(was="return n // 2", becomes="return n * 2")
    with Grader(mutants.impatient(holes), "none") as grader:
        exercise = grader.course.exercise("two")
        half = [m for m in mutants.mutants_of(exercise) if m.was in ("return n // 2", "if n < 0:")]
        known = {mutants.key(entry()), mutants.key(stale)}
        verdicts = [mutants.judge_mutant(grader, m, mutants.key(m) in known) for m in half]
        told = list(mutants.problems(grader, exercise, verdicts, [entry(), stale]))
    assert [v.fate for v in verdicts if v.mutant.becomes == "if n <= 0:"] == ["equivalent"]
    assert [v.fate for v in verdicts if v.mutant.becomes == "return n * 2"] == ["killed"]
    stale_line = (
        "equivalent_mutants.yaml lists a mutant of pairs that does not survive: `return n // 2` -> `return n * 2`"
    )
    assert [t for t in told if "equivalent" in t] == [stale_line]


def test_entries_of_no_exercise_and_too_many_survivors(holes, proof):
    told = list(mutants.course_problems(holes, [proof], [entry(exercise="gone")]))
    assert len(told) == 2
    assert "names the exercise gone" in told[0]
    assert "under 98%" in told[1]
    assert list(mutants.course_problems(holes, [], [entry()])) == []  # the share is the whole course's


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "a list of entries is expected"),
        ("- {exercise: two}", "entry 1: task: Field required"),
        ("- {exercise: two, task: t, was: a, becomes: b, reason: ''}", "entry 1: reason"),
        ("- [", "not YAML"),
    ],
)
def test_a_list_that_cannot_be_read_is_one_line(holes, text, message):
    path = holes.root / "solutions" / mutants.EQUIVALENT
    path.write_text(text)
    try:
        with pytest.raises(CourseError, match=message):
            mutants.equivalents(holes)
    finally:
        path.unlink()


def test_the_command_fails_on_holes_and_says_where(holes):
    done = CliRunner().invoke(app, ["mutants", "two", "-j", "1", "--json", "--course", str(holes.root)])
    assert done.exit_code == 1
    (row,) = json.loads(done.stdout)["exercises"]
    assert row["survived"] == 8 and row["mutants"] == row["killed"] + 8
    line = line_of("if n < 0")
    assert f"line {line}, comparison: `if n < 0:` -> `if n <= 0:` passes every check of pairs" in row["problems"]


def test_the_courses_own_list_fits_its_references():
    """Every listed mutant is still made; that it survives is what the command proves."""
    course = load_course(ROOT / "course.yaml")
    listed = mutants.equivalents(course)
    made_of = {name: {mutants.key(m) for m in mutants.mutants_of(course.exercise(name))} for name in {e.exercise for e in listed}}  # fmt: skip
    assert [e for e in listed if mutants.key(e) not in made_of[e.exercise]] == []
