"""verify: each kind of defect in a course gives one line. Exercises without a problem are remembered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from grader.authoring import declarations, inputs, seeds, tries, verify
from grader.authoring.leaks import leaked_solutions, leaks
from grader.authoring.learners_texts import learners_texts
from grader.batch.grade import Grader
from grader.batch.workers import Workers
from grader.common.cache import Cache
from grader.common.result import Result
from grader.course.build import build, products, usable_products
from grader.course.loading import Course, load_course
from grader.course.reference import reference_source
from grader.exercise import Call
from tests.made_up import in_two_files, made_up
from tests.proved import problems_of

Problems = Callable[..., list[str]]
WRONG = ("fails=traffic)", "fails=[value, traffic])")
Proof = Callable[..., tuple[list[str], bool]]


@pytest.fixture
def problems(workers: Workers) -> Problems:
    def problems(folder: Path, was: str = "", becomes: str = "") -> list[str]:
        course = made_up(folder, was, becomes)
        grader = Grader(course, "none", here=cast(Any, workers))
        return problems_of(grader)

    return problems


def test_a_sound_exercise_has_no_problem(problems: Problems, tmp_path: Path) -> None:
    assert problems(tmp_path) == []


def test_misconceptions_in_a_file_of_their_own_are_proved(workers: Workers, tmp_path: Path) -> None:
    course = in_two_files(tmp_path, "fails=traffic)", "fails=[value, traffic])")
    grader = Grader(course, "none", here=cast(Any, workers))
    assert problems_of(grader) == ["the misconception gathered_twice fails traffic, but fails= names traffic, value"]


@pytest.mark.parametrize(
    ("was", "becomes", "problem"),
    [
        ("expect_close(seen.out, seen.a)", "expect_close(seen.out, 2 * seen.a)", "the reference does not pass value: "),
        (
            "    expect_close(seen.out, seen.a)\n",
            "    pass\n",
            "the misconception zeroed fails traffic, but fails= names value",
        ),
        (
            "fails=traffic)",
            "fails=[value, traffic])",
            "the misconception gathered_twice fails traffic, but fails= names traffic, value",
        ),
        (
            '@exercise.task(hints=["a nudge"])',
            "@exercise.task",
            "gather has no hint: give hints=[...], with the hint nearest to the solution last",
        ),
        ("return 2 * all_gather_time", "return 1.01 * all_gather_time", "gather_time"),
    ],
    ids=[
        "wrong-check",
        "check-that-cannot-fail",
        "wrong-fails",
        "no-hint",
        "answers-too-close",
    ],
)
def test_a_defect_is_found(problems: Problems, tmp_path: Path, was: str, becomes: str, problem: str) -> None:
    found = problems(tmp_path, was, becomes)
    assert any(p.startswith(problem) for p in found), found
    assert all("\n" not in p for p in found)


def test_two_misconceptions_that_look_alike_are_reported(problems: Problems, tmp_path: Path) -> None:
    twin = '''@exercise.misconception(fails=value)
def also_zeroed(a, *, mesh):
    """Another text for the same."""
    return jax.numpy.zeros(a.shape)


@exercise.misconception(fails=traffic)'''
    found = problems(tmp_path, "@exercise.misconception(fails=traffic)", twin)
    assert (
        "the misconception also_zeroed fails value as expected, but the learner sees the hint of zeroed or also_zeroed"
        in found
    )


def test_an_alternative_has_to_pass_every_check(problems: Problems, tmp_path: Path) -> None:
    def declared(line: str) -> str:
        return f'''@exercise.alternative()
def doubled(a, *, mesh):
    """By hand."""
    return {line}


@exercise.misconception(fails=traffic)'''

    right = "jax.lax.with_sharding_constraint(1 * a, jax.sharding.NamedSharding(mesh, P()))"
    assert problems(tmp_path, "@exercise.misconception(fails=traffic)", declared(right)) == []
    wrong = problems(tmp_path, "@exercise.misconception(fails=traffic)", declared("2 * gather(a, mesh=mesh)"))
    assert wrong[0].startswith("the alternative doubled does not pass value: ")


LEAVES_SOMETHING = '''
@exercise.misconception(fails=value)
def patched(a, *, mesh):
    """You changed JAX."""
    jax.lax.all_gather = lambda a, *about, **more: 0 * jax.lax.psum(a, "x")
    return jax.numpy.zeros(a.shape)


@exercise.misconception(fails=value)
def harmless(a, *, mesh):
    """You did it right."""
    local = lambda a: jax.lax.all_gather(a, "x", axis=0, tiled=True)
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


@exercise.number('''


def test_state_left_by_a_misconception_does_not_affect_the_next(problems: Problems, tmp_path: Path) -> None:
    found = problems(tmp_path, "@exercise.number(", LEAVES_SOMETHING)
    assert "the misconception harmless fails nothing, but fails= names value" in found


def test_a_question_about_an_impossible_slice_is_reported(problems: Problems, tmp_path: Path) -> None:
    assert "gather_time: v5p has no slice with rings of 6, with I=1048576" in problems(
        tmp_path, "rings=(4,)", "rings=(6,)"
    )


def test_a_misconception_that_fails_only_in_public_is_reported(tmp_path: Path) -> None:
    """Learners can only try cases that the grader also tries, so this should not happen. ``verify`` reports it."""
    misconception = made_up(tmp_path).exercise("x1_gather").misconceptions["zeroed"]
    about: dict[str, Any] = {
        "kind": "check",
        "name": "value",
        "label": "",
        "task": "gather",
        "points": 1,
        "public": True,
    }
    shown = Result(status="failed", earned=0, misconception="zeroed", **about)
    passed, failed = Result(status="passed", earned=1, **about), shown
    assert list(verify.public_problems(misconception, shown, failed)) == []
    assert list(verify.public_problems(misconception, shown, passed)) == [
        "the misconception zeroed fails value on public inputs but passes this check with hidden inputs"
    ]


def test_a_misconception_that_fails_with_only_some_seeds_is_reported(workers: Workers, tmp_path: Path) -> None:
    """The result of this program is wrong only for some values of its arguments."""
    course = made_up(
        tmp_path, "return jax.numpy.zeros(a.shape)", "return jax.numpy.where(a[0, 0] > 1.75, 0, gather(a, mesh=mesh))"
    )
    grader = Grader(course, "none", here=cast(Any, workers))
    exercise = course.exercise("x1_gather")
    text = reference_source(exercise, {}, exercise.misconceptions["zeroed"])
    by_seed = seeds.results_by_seed(grader, exercise, text, seeds.SEEDS[:20], "gather")
    lucky = sum(results["value"].status == "passed" for results in by_seed)
    assert 0 < lucky < 20
    found = problems_of(grader, seeds=20)
    assert f"the misconception zeroed fails value by luck: the misconception passes with {lucky} of 20 seeds" in found


def test_a_reference_that_fails_with_some_seeds_is_reported(workers: Workers, tmp_path: Path) -> None:
    """With the seed of a later term, a right submission could fail."""
    helper = "return jax.lax.all_gather(a, "
    course = made_up(tmp_path, helper, helper.replace("(a, ", "(jax.numpy.where(a[0, 0] > 1.75, 0, a), "))
    grader = Grader(course, "none", here=cast(Any, workers))
    found = list(verify.reference_problems(grader, course.exercise("x1_gather"), 20))
    of_seeds = [problem for problem in found if "seeds" in problem]
    assert len(of_seeds) == 1, found
    assert re.match(r"the reference does not pass value with \d+ of 20 seeds: right on all", of_seeds[0])


AGAIN = """\
@exercise.task(hints=["a nudge"])
def again(a, *, mesh):
    \"""Gather A once more.\"""
    return gather(a, mesh=mesh)


@exercise.check(exercise.call(again, a=A, dims={"I": 8, "J": 3}, hidden_dims={"I": 1012, "J": 5}), points=1, after=value)
def whole_again(seen):
    \"""it is whole again\"""
    expect_close(seen.out, seen.a)
    expect_spec(seen.out, P())


@exercise.misconception(of=again, fails=whole_again)
def zeroed_again(a, *, mesh):
    \"""You returned zeros again.\"""
    return jax.numpy.zeros(a.shape)


@exercise.number("""


def test_a_check_after_another_tasks_check_is_tried_with_many_seeds(workers: Workers, tmp_path: Path) -> None:
    course = made_up(tmp_path, "@exercise.number(", AGAIN)
    grader = Grader(course, "none", here=cast(Any, workers))
    assert problems_of(grader, seeds=3) == []


def test_tasks_reaching_returns_a_task_and_the_tasks_that_call_it(tmp_path: Path) -> None:
    exercise = made_up(tmp_path, "@exercise.number(", AGAIN).exercise("x1_gather")
    assert tries.tasks_reaching(exercise, "gather") == {"gather", "again"}, "again calls gather"
    assert tries.tasks_reaching(exercise, "again") == {"again"}


@pytest.mark.parametrize(
    ("hidden", "problems"),
    [
        ('{"I": 12, "J": 5}', []),
        (
            '{"I": 16, "J": 5}',
            [
                "gather: on every mesh, the size of I on a device is even with hidden_dims; choose I in hidden_dims so that this size is odd"
            ],
        ),
        ('{"I": 20, "J": 20}', ["gather: two hidden dimensions have equal sizes; give different sizes"]),
    ],
)
def test_hidden_dimensions_that_hide_mistakes_are_reported(tmp_path: Path, hidden: str, problems: list[str]) -> None:
    call = made_up(tmp_path, '{"I": 1012, "J": 5}', hidden).exercise("x1_gather").checks["value"].call
    assert isinstance(call, Call) and list(inputs.tame_dims(call)) == problems


def test_a_hidden_block_that_is_even_where_the_public_one_is_odd_is_reported(tmp_path: Path) -> None:
    course = made_up(tmp_path, 'dims={"I": 8, "J": 3}, hidden_dims={"I": 1012, "J": 5}', 'dims={"I": 20, "J": 3}, hidden_dims={"I": 24, "J": 5}')  # fmt: skip
    call = course.exercise("x1_gather").checks["value"].call
    assert isinstance(call, Call)
    assert next(inputs.tame_dims(call)) == (
        "gather: on the mesh {'x': 4}, a device's part of I has an odd size for `dims`, but an even size for `hidden_dims`; change I in `hidden_dims` so that the part's size is odd"
    )


# -- the whole course


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Path]:
    build(made_up(tmp_path))
    yield tmp_path


def course_problems(folder: Path, was: str = "", becomes: str = "") -> list[str]:
    return list(verify.course_problems(made_up(folder, was, becomes)))


def test_a_sound_course_has_no_problem(built: Path) -> None:
    assert course_problems(built) == []


def test_an_edited_learners_file_is_reported_as_not_current(built: Path) -> None:
    (built / "exercises" / "01_gather" / "x1_gather.py").write_text("edited")
    assert course_problems(built) == ["exercises/01_gather/x1_gather.py is not current; run `shardlings build`"]


def test_a_file_that_course_yaml_does_not_list_is_reported(built: Path) -> None:
    (built / "solutions" / "01_gather" / "x2.py").write_text("")
    assert course_problems(built) == [
        "solutions/01_gather/x2.py is not listed in course.yaml: add the exercise to its module"
    ]


def test_a_grading_file_without_an_exercise_is_reported(built: Path) -> None:
    folder = built / "solutions" / "01_gather" / "grading"
    folder.mkdir()
    (folder / "x2.py").write_text("")
    assert course_problems(built) == [
        "solutions/01_gather/grading/x2.py belongs to no exercise in course.yaml: name the file after its exercise"
    ]


def test_a_line_of_a_misconception_in_what_learners_get_is_reported(tmp_path: Path) -> None:
    course = in_two_files(tmp_path)
    line = 'local = lambda a: jax.lax.pmax(secret_helper(a), "x")'
    leak = [f"exercises/leaked.md holds a line of x1_gather/gathered_twice: {line}"]
    assert list(leaks(course, products(course))) == []
    assert list(leaks(course, {"leaked.md": f"    {line}\n"})) == leak
    assert list(leaks(made_up(tmp_path / "one"), {"leaked.md": f"    {line}\n"})) == leak


def test_a_line_of_a_solution_in_the_statement_is_reported(built: Path) -> None:
    line = 'return jax.lax.all_gather(a, "x", axis=0, tiled=True)'
    course = made_up(built)
    made = products(course) | {"leaked.md": f"Here it is:\n    {line}\n"}
    assert list(leaks(course, made)) == [f"exercises/leaked.md holds a line of x1_gather/secret_helper: {line}"]


def test_the_seed_in_what_learners_get_is_reported(built: Path) -> None:
    course = made_up(built)
    assert list(leaks(course, {"a.py": "x = 'a-secret-seed'"})) == ["exercises/a.py holds the course's seed"]


def test_a_name_used_twice_in_the_course_is_reported(built: Path) -> None:
    folder = built / "solutions" / "01_gather"
    (folder / "x2_again.py").write_text((folder / "x1_gather.py").read_text())
    text = (built / "course.yaml").read_text().replace("[x1_gather]", "[x1_gather, x2_again]")
    (built / "course.yaml").write_text(text)
    found = list(verify.course_problems(load_course(built / "course.yaml")))
    assert (
        "the name gather is used by solutions/01_gather/x1_gather.py and by solutions/01_gather/x2_again.py: rename one of them"
        in found
    )


# -- defects that are found without a worker


@pytest.mark.parametrize(
    ("was", "becomes", "problem"),
    [
        ('@exercise.task(hints=["a nudge"])', "@exercise.task", "gather has no hint: give hints=[...], with the hint nearest to the solution last"),
        ("points=1, public=True)", "points=1)", "the exercise has no public check, so learners could check nothing: mark a check with public=True"),
        ("@exercise.check(call, points=1, after=value)", "@exercise.check(call, points=0, after=value)", "traffic has no points: give points=... above 0"),
        ("@exercise.misconception(fails=value)", '@exercise.task(hints=["h"])\ndef second(a, *, mesh):\n    """Twice."""\n\n\n@exercise.misconception(of=gather, fails=value)', "second has no check: add an exercise.call of this task and an @exercise.check of that call"),
        ("@exercise.misconception(fails=value)", '@exercise.task(hints=["h"])\ndef second(a, *, mesh):\n    """Twice."""\n\n\n@exercise.misconception(of=gather, fails=value)', "second has no misconception to prove its checks: add an @exercise.misconception(fails=...)"),
    ],
)  # fmt: skip
def test_a_missing_declaration_is_reported(tmp_path: Path, was: str, becomes: str, problem: str) -> None:
    course = made_up(tmp_path, was, becomes)
    if "second" in problem:
        path = tmp_path / "solutions" / "01_gather" / "x1_gather.py"
        path.write_text(path.read_text().replace("fails=traffic)", "of=gather, fails=traffic)"))
    assert problem in list(declarations.declaration_problems(course.exercise("x1_gather")))


def test_words_before_going_further_are_counted(tmp_path: Path) -> None:
    text = "# One two\n\n```\n a picture | of words\n```\n\n| `three` | |\n|---|---|\n| four · 5 | **six** |\n"
    assert declarations.words_in(text) == 6
    course = made_up(tmp_path, "Say what to do.\n", "Say what to do.\n\n## Going further\n\n" + "many " * 50)
    exercise = course.exercise("x1_gather")
    assert list(declarations.declaration_problems(exercise, 6)) == []
    assert list(declarations.declaration_problems(exercise, 5)) == [
        "the statement has 6 words before '## Going further', but course.yaml allows statement_words: 5; "
        "move sentences that the task does not need below this heading"
    ]


def test_lines_of_pictures_wider_than_a_terminal_are_found() -> None:
    wide, narrow = "x" * 77, "x" * 76
    assert declarations.wide_lines(f"{wide}\n```\n{narrow}\n```\n    {narrow[4:]}\n{wide}") == []
    assert declarations.wide_lines(f"```\n{wide}\n{narrow}\n```\n\n    {wide}") == [wide, f"    {wide}"]


def test_an_exercise_without_task_or_question_is_reported(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    path = tmp_path / "solutions" / "01_gather" / "x1_gather.py"
    path.write_text('"""# T"""\nfrom grader.exercise import Exercise\n\nexercise = Exercise()\n')
    assert list(declarations.declaration_problems(course.exercise("x1_gather"))) == [
        "the exercise has neither a task to write nor a question to answer",
    ]


SOLUTION = 'return jax.lax.all_gather(a, "x", axis=0, tiled=True)'


@pytest.mark.parametrize(
    "disguise",
    [SOLUTION, f"    {SOLUTION}  # found it", SOLUTION.replace(", ", ","), f"\t{SOLUTION}   "],
    ids=["as it is", "with a comment", "without blanks", "with blanks"],
)
def test_formatting_hides_no_leak(built: Path, disguise: str) -> None:
    course = made_up(built)
    assert [p.split(": ")[0] for p in leaks(course, {"a.py": f"x = 1\n{disguise}\n"})] == [
        "exercises/a.py holds a line of x1_gather/secret_helper"
    ]


@pytest.mark.parametrize(
    ("line", "owner"),
    [
        ("expect_collectives(seen, all_gather={'x': 1})".replace("'", '"'), "traffic"),
        ("return jax.numpy.zeros(a.shape)", "zeroed"),
        ('return all_gather_time(I, 4, "v5p")', "gather_time"),
        ('return 2 * all_gather_time(I, 4, "v5p")', "one_way"),
        ("return jax.shard_map(secret_helper, mesh=mesh, in_specs=P('x'), out_specs=P(), check_vma=False)(a)".replace("'", '"'), "gather"),
    ],
)  # fmt: skip
def test_a_line_of_any_hidden_definition_is_a_leak(built: Path, line: str, owner: str) -> None:
    course = made_up(built)
    (found,) = leaks(course, {"a.py": line})
    assert found.startswith(f"exercises/a.py holds a line of x1_gather/{owner}: ")


def test_a_line_that_only_reads_a_part_of_a_value_is_no_leak(built: Path) -> None:
    read, made, line = 'n_devices = mesh.shape["x"]', 'n_devices = 2 * mesh.shape["x"]', f"    {SOLUTION}\n"
    course = made_up(built, line, f"    {read}\n    {made}\n{line}")
    found = list(leaks(course, {"a.py": f"{read}\n{made}\n"}))
    assert found == [f"exercises/a.py holds a line of x1_gather/secret_helper: {made}"]


def test_given_code_public_checks_and_docstrings_are_no_leak(built: Path) -> None:
    course = made_up(built)
    lines = ["return math.prod(a.shape)", "expect_close(seen.out, seen.a)", '"""Gather A[I_X, J] into A[I, J]."""']
    assert list(leaks(course, {"a.py": "\n".join(lines)})) == []


@pytest.mark.parametrize(
    "path", ["course.yaml", "01_gather/x1_gather.py", "01_gather/_public/x1_gather.py", "01_gather/01_gather.ipynb"]
)
def test_any_file_that_was_edited_or_removed_is_reported(built: Path, path: str) -> None:
    outdated = [f"exercises/{path} is not current; run `shardlings build`"]
    file = built / "exercises" / path
    text = file.read_text()
    file.write_text(text + "\n")
    assert course_problems(built) == outdated
    file.unlink()
    assert course_problems(built) == outdated


def test_a_changed_exercise_makes_its_files_for_learners_stale(built: Path) -> None:
    """Files in which learners see no change stay current."""
    assert course_problems(built, "return jax.numpy.zeros(a.shape)", "return jax.numpy.ones(a.shape)") == []
    found = course_problems(built, "Say what to do.", "Do as you like.")
    assert {p.split()[0] for p in found} == {
        "exercises/01_gather/x1_gather.py", "exercises/01_gather/_public/x1_gather.py",
        "exercises/01_gather/01_gather.ipynb", "exercises/course.yaml",
    }  # fmt: skip


def test_an_exercise_that_cannot_be_built_is_reported_in_one_line(built: Path) -> None:
    found = course_problems(built, '    """Gather A[I_X, J] into A[I, J]."""\n', "")
    cannot = "x1_gather cannot be used, so its files for learners were not tested; see: shardlings verify x1_gather"
    assert cannot in found
    made = usable_products(load_course(built / "course.yaml"))
    assert made.unusable == {
        "x1_gather": "the task gather has no docstring; write a docstring that tells learners what to do"
    }


def test_a_task_and_a_question_of_one_name_in_two_exercises_are_reported(built: Path) -> None:
    folder = built / "solutions" / "01_gather"
    text = (folder / "x1_gather.py").read_text()
    (folder / "x2_again.py").write_text(
        text.replace("def gather(", "def second(").replace("call(gather", "call(second")
    )
    (built / "course.yaml").write_text(
        (built / "course.yaml").read_text().replace("[x1_gather]", "[x1_gather, x2_again]")
    )
    found = list(verify.course_problems(load_course(built / "course.yaml")))
    assert [p for p in found if p.startswith("the name")] == [
        "the name gather_time is used by solutions/01_gather/x1_gather.py and by solutions/01_gather/x2_again.py: rename one of them"
    ]


def test_problems_are_reported_by_exercise_and_counted(workers: Workers, built: Path) -> None:
    problems_of: dict[str, list[str]] = {}
    course = made_up(built, '@exercise.task(hints=["a nudge"])', "@exercise.task")
    grader = Grader(course, "none", here=cast(Any, workers))
    count = verify.verify(grader, ["x1_gather"], problems_of.__setitem__)
    assert problems_of["x1_gather"] == [
        "gather has no hint: give hints=[...], with the hint nearest to the solution last"
    ] and list(problems_of) == ["x1_gather", "course"]
    assert count == 1 + len(problems_of["course"])


# -- solutions in statements and hints


STATEMENT = "Say what to do.\n"


def told(course: Course) -> list[str]:
    return list(leaked_solutions(course, learners_texts(course, usable_products(course).texts, course.module_of)))


@pytest.mark.parametrize(
    ("was", "becomes", "shown"),
    [
        (STATEMENT, f"```\n{SOLUTION}\n```\n", "the statement shows a line of secret_helper: return jax.lax.all_gather("),
        (STATEMENT, f"Write `{SOLUTION}`.\n".replace('"', "'"), "the statement shows a line of secret_helper: "),
        ('hints=["a nudge"]', f"hints=[{SOLUTION!r}, 'a nudge']", "hints= of gather shows a line of secret_helper: "),
        ('hints=["a nudge"]', f"hints=['a nudge', {SOLUTION!r}]", ""),
        ('"""Gather A[I_X, J] into A[I, J]."""', f'"""Gather: {SOLUTION}"""'.replace('"x"', "'x'"), "the docstring of gather shows a line of "),
        (STATEMENT, "`jax.lax.all_gather` sends.\n", ""),
    ],
)  # fmt: skip
def test_a_solution_in_a_text_is_reported(tmp_path: Path, was: str, becomes: str, shown: str) -> None:
    found = told(made_up(tmp_path, was, becomes))
    assert len(found) == bool(shown) and all(one.startswith(f"x1_gather: {shown}") for one in found)


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        ("2·I·J / X bytes", True),
        ("2 × I*J/X", True),
        ("2·I·J·K / X", False),
        ("12·I·J / X", False),
        ("2·I·J / X·Y", False),
    ],
)
def test_a_formula_is_reported_only_if_it_is_whole(tmp_path: Path, text: str, tells: bool) -> None:
    course = made_up(tmp_path, STATEMENT, f"It is {text}.\n")
    path = course.path_of("x1_gather")
    path.write_text(
        path.read_text()
        + '\n\n@exercise.number(points=1, unit="", params={"I": [1, 3], "J": [2], "X": [4]})\ndef f(I, J, X):\n    """How many?"""\n    return 2 * I * J / X\n'
    )
    found = [one.partition(";")[0] for one in told(load_course(tmp_path / "course.yaml"))]
    assert found == (["x1_gather: the statement shows the answer of f: 2 * I * J / X"] if tells else [])


@pytest.fixture
def proof(tmp_path: Path) -> Iterator[Proof]:
    """Yield ``proof(course)``, which returns the problems and whether a program was traced."""
    with Cache(tmp_path / "cache", 1 << 20) as cache:

        def proof(course: Course, seeds: int = 1) -> tuple[list[str], bool]:
            found: list[str] = []
            with Grader(course, "none") as grader:
                verify.verify(grader, ["x1_gather"], lambda _, problems: found.extend(problems), seeds, cache)
                return found, cast(Workers, grader.worker_sets[0]).tracer.process is not None

        yield proof


def built_course(course: Course) -> Course:
    build(course)
    return course


@pytest.mark.slow
def test_an_unchanged_exercise_is_not_proved_again(proof: Proof, tmp_path: Path) -> None:
    place = tmp_path / "course"
    place.mkdir()
    course = built_course(made_up(place))
    assert proof(course) == ([], True)
    assert proof(load_course(place / "course.yaml")) == ([], False)
    assert proof(course, seeds=2) == ([], True)
    (place / "course.yaml").write_text((place / "course.yaml").read_text() + "tolerances: {numbers: 0.015}\n")
    assert proof(built_course(load_course(place / "course.yaml"))) == ([], True)


def test_problems_of_the_whole_course_are_cached_until_a_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []

    def problems(course: Course, reported: object) -> list[str]:
        searched.append(course.root.name)
        return ["the notes are wrong"] if (course.root / "solutions" / "notes.txt").exists() else []

    monkeypatch.setattr(verify, "course_problems", problems)
    place = tmp_path / "course"
    place.mkdir()
    course = built_course(made_up(place))
    with Cache(tmp_path / "cache", 1 << 20) as cache, Grader(course, "none") as grader:

        def searches() -> int:
            verify.verify(grader, [], lambda name, problems: None, cache=cache)
            return len(searched)

        assert [searches(), searches()] == [1, 1]
        (place / "exercises" / "stray.txt").write_text("x")
        assert [searches(), searches()] == [2, 2]
        (place / "solutions" / "notes.txt").write_text("x")
        assert [searches(), searches()] == [3, 4]  # a problem is reported on every run
        (place / "solutions" / "notes.txt").unlink()
        saved = place / "solutions" / "01_gather" / "x1_gather.py"
        saved.write_text(saved.read_text() + "# saved after it was loaded\n")
        assert [searches(), searches()] == [5, 5]
    with Cache(tmp_path / "cache", 1 << 20) as cache, Grader(load_course(place / "course.yaml"), "none") as grader:
        assert [searches(), searches()] == [6, 6]


@pytest.mark.slow
def test_verify_reports_a_defect_on_every_run(proof: Proof, tmp_path: Path) -> None:
    place = tmp_path / "course"
    place.mkdir()
    course = built_course(made_up(place, *WRONG))
    told = ["the misconception gathered_twice fails traffic, but fails= names traffic, value"]
    assert proof(course) == proof(course) == (told, True)


@pytest.mark.slow
def test_verify_checks_the_course_as_a_whole_on_every_run(proof: Proof, tmp_path: Path) -> None:
    place = tmp_path / "course"
    place.mkdir()
    course = built_course(made_up(place))
    assert proof(course) == ([], True)
    (place / "exercises" / "01_gather" / "x1_gather.py").write_text("# another\n")
    assert proof(course) == (["exercises/01_gather/x1_gather.py is not current; run `shardlings build`"], False)
