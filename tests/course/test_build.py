"""What learners are given: chosen by an allow-list, so that what is not marked is missing, never leaked."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from pathlib import Path

import nbformat
import pytest
from rich.console import Console

from grader.cli import author
from grader.course import build
from grader.course.loading import Course, CourseError, find_course, load_course
from grader.exercise import Cases
from tests.made_up import in_two_files, made_up

ROOT = Path(__file__).resolve().parents[2]


def test_a_stub_holds_what_is_given_and_asked(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    text = build.stub_source(course, course.exercise("x1_gather"))
    compile(text, "stub", "exec")
    for line in ("# X1 Gather", "ROWS = 8", "return math.prod(a.shape)  # a comment that stays", "import jax",
                 '"""Gather A[I_X, J] into A[I, J]."""', 'raise NotImplementedError("gather")', "# TODO",
                 "gather_time = None", "ring, bandwidth only"):  # fmt: skip
        assert line in text, line


def test_nothing_else_is_in_a_stub(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    text = build.stub_source(course, course.exercise("x1_gather"))
    for secret in (
        "secret_helper",
        "all_gather(",
        "zeroed",
        "You returned",
        "1012",
        "expect",
        "grader",
        "all_gather_time",
    ):
        assert secret not in text, secret


def test_the_public_part_holds_public_checks_and_no_answer(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    text = build.public_source(course.exercise("x1_gather"))
    compile(text, "public", "exec")
    for there in ("def value(seen)", "expect_close(seen.out, seen.a)", "A = normal(", '"I": 8', "How long do"):
        assert there in text, there
    for secret in ("secret_helper", "def traffic", "zeroed", "1012", "all_gather_time(I", "a-secret-seed", "You "):
        assert secret not in text, secret


def test_learners_are_told_what_hidden_checks_are_worth(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    build.build(course)
    given = load_course(tmp_path / "exercises" / "course.yaml").exercise("x1_gather")
    assert list(given.checks) == ["value"] and given.hidden_points == 1
    assert given.points == course.exercise("x1_gather").points == 3


def test_learners_are_given_the_same_wherever_the_misconceptions_stand(tmp_path: Path) -> None:
    one, two = made_up(tmp_path / "one"), in_two_files(tmp_path / "two")
    assert build.products(one) == build.products(two)
    for name, slip in one.exercise("x1_gather").misconceptions.items():
        same = two.exercise("x1_gather").misconceptions[name]
        text = build.reference_source(two.exercise("x1_gather"), {"gather_time": "1 us"}, same)
        assert text == build.reference_source(one.exercise("x1_gather"), {"gather_time": "1 us"}, slip)
        assert "x1_gather" not in text and "import exercise" not in text


def test_a_public_check_may_not_use_a_private_function(tmp_path: Path) -> None:
    course = made_up(tmp_path, "expect_close(seen.out, seen.a)\n", "expect_close(seen.out, secret_helper(seen.a))\n")
    with pytest.raises(CourseError, match=r"uses the private function secret_helper; mark it with @exercise.given"):
        build.public_source(course.exercise("x1_gather"))


def test_hidden_sizes_may_not_hide_in_a_dict(tmp_path: Path) -> None:
    course = made_up(
        tmp_path,
        'call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, hidden_dims={"I": 1012, "J": 5})',
        'SIZES = {"dims": {"I": 8, "J": 3}, "hidden_dims": {"I": 1012, "J": 5}}\ncall = exercise.call(gather, a=A, **SIZES)',
    )
    with pytest.raises(CourseError, match="must be keywords of the call itself"):
        build.public_source(course.exercise("x1_gather"))


def test_a_task_needs_a_specification(tmp_path: Path) -> None:
    course = made_up(tmp_path, '    """Gather A[I_X, J] into A[I, J]."""\n', "")
    with pytest.raises(CourseError, match="the task gather has no docstring"):
        build.stub_source(course, course.exercise("x1_gather"))


def test_the_reference_is_a_submission(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    text = build.reference_source(course.exercise("x1_gather"), {"gather_time": "3 us"})
    compile(text, "reference", "exec")
    assert "def secret_helper" in text and "gather_time = '3 us'" in text
    assert "exercise" not in text and "grader" not in text and "zeroed" not in text


def test_a_mutant_takes_its_tasks_place(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    exercise = course.exercise("x1_gather")
    text = build.reference_source(exercise, {}, exercise.misconceptions["gathered_twice"])
    space: dict = {}
    exec(text, space)
    assert text.count("def gather(") == 1 and "jax.lax.pmax" in text
    assert space["gather"].__doc__ == "You gathered and summed."


def test_a_misconception_may_call_the_task_it_replaces(tmp_path: Path) -> None:
    course = made_up(tmp_path, "    return jax.numpy.zeros(a.shape)", "    return 0 * gather(a, mesh=mesh)")
    exercise = course.exercise("x1_gather")
    text = build.reference_source(exercise, {}, exercise.misconceptions["zeroed"])
    assert "return 0 * right_gather(a, mesh=mesh)" in text and "def right_gather(" in text


def test_a_notebook_is_valid_with_ids_that_stay(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    text = build.notebook(course, "01_gather")
    book = nbformat.reads(text, as_version=4)
    nbformat.validate(book)
    assert [c.id for c in book.cells] == [
        "01_gather-intro", "01_gather-setup", "x1_gather-statement", "x1_gather-given", "x1_gather-gather",
        "x1_gather-gather_time-text", "x1_gather-gather_time", "x1_gather-check",
    ]  # fmt: skip
    assert build.notebook(course, "01_gather") == text
    setup = book.cells[1].source
    assert setup.index("XLA_FLAGS") < setup.index("import jax")


def test_everyones_own_numbers_are_not_printed_in_what_everybody_gets(tmp_path: Path) -> None:
    made_up(tmp_path)

    (tmp_path / "course.yaml").write_text(
        (tmp_path / "course.yaml").read_text() + "variants: {mode: per_student, seed: s}\n"
    )
    course = load_course(tmp_path / "course.yaml")
    text = build.stub_source(course, course.exercise("x1_gather"))
    assert "Your numbers: run `shardlings show gather_time`." in text
    assert "1048576" not in text and "4194304" not in text
    assert "1048576" not in json.dumps(build.notebook(course, "01_gather"))


# -- forgetting to mark is missing, never leaked

UNMARKED = {
    "value": 'NEEDLE = "needle-1012"',
    "annotated_value": 'NEEDLE: str = "needle-1012"',
    "pair": 'NEEDLE, OTHER = "needle-1012", 2',
    "function": 'def needle():\n    """needle-1012"""\n    return "needle-1012"',
    "async_function": 'async def needle():\n    return "needle-1012"',
    "class": 'class Needle:\n    """needle-1012"""\n    value = "needle-1012"',
    "condition": 'if ROWS:\n    NEEDLE = "needle-1012"',
    "loop": 'for NEEDLE in ["needle-1012"]:\n    pass',
    "try": 'try:\n    NEEDLE = "needle-1012"\nfinally:\n    pass',
    "assertion": 'assert ROWS == 8, "needle-1012"',
    "augmented": 'NEEDLE = ""\nNEEDLE += "needle-1012"',
    "lambda": 'needle = lambda: "needle-1012"',
    "text": '"""needle-1012"""',
    "comment": "# needle-1012",
    "misspelt_given": 'needle = exercise.given\nNEEDLE = needle("needle-1012")',
    "given_of_another": 'other = exercise\n\n\n@other.given\ndef needle():\n    return "needle-1012"',
    "wrapped_given": 'NEEDLE = str(exercise.given("needle-1012"))',
    "hidden_check": '@exercise.check(call, points=1)\ndef needle(seen):\n    """needle-1012"""\n    expect_close(seen.out, seen.a)',
    "hidden_call": 'needle = exercise.call(gather, a=A, dims={"I": 1012, "J": 8})\nNEEDLE = "needle-1012"',
    "misconception": '@exercise.misconception(fails=value)\ndef needle(a, *, mesh):\n    """needle-1012"""\n    return a',
}  # fmt: skip


@pytest.mark.parametrize("kind", UNMARKED)
def test_what_is_not_marked_is_in_nothing_that_learners_get(tmp_path: Path, kind: str) -> None:
    marker = "@exercise.number("
    course = made_up(tmp_path, marker, f"{UNMARKED[kind]}\n\n\n{marker}")
    made = build.products(course)
    assert set(made) == {
        "01_gather/x1_gather.py", "01_gather/_public/x1_gather.py", "01_gather/01_gather.ipynb", "course.yaml",
    }  # fmt: skip
    for path, text in made.items():
        assert "1012" not in text and "needle" not in text.lower(), path


@pytest.mark.parametrize(
    "hidden",
    [
        'SIZES = {"hidden_dims": {"I": 1012, "J": 5}}\ncall = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, **SIZES)',
        'call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, **{"hidden_dims": {"I": 1012, "J": 5}})',
        'call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, **dict(hidden_dims={"I": 1012, "J": 5}))',
    ],
)
def test_hidden_sizes_in_any_dict_are_refused(tmp_path: Path, hidden: str) -> None:
    plain = 'call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, hidden_dims={"I": 1012, "J": 5})'
    course = made_up(tmp_path, plain, hidden)
    with pytest.raises(CourseError, match="x1_gather: hidden_dims and hidden must be keywords of the call itself"):
        build.public_source(course.exercise("x1_gather"))


CASES = '''\
@exercise.function
def half(n):
    """Half of an even n."""
    if n % 2:
        raise ValueError("odd")
    return n // 2


def draw(rng):
    return [{"n": 1012}]


halves = exercise.cases(half, public=[{"n": 4}, {"n": 3}], hidden=draw)


@exercise.check(halves, points=1, public=True, after=value)
def halved(seen):
    """it is halved"""
    expect_outcomes(seen)


@exercise.number('''


def with_cases(folder: Path) -> Course:
    made_up(folder, "@exercise.number(", CASES)
    path = folder / "solutions" / "01_gather" / "x1_gather.py"
    path.write_text(path.read_text().replace("import expect_close,", "import expect_close, expect_outcomes,"))
    return load_course(folder / "course.yaml")


def test_public_cases_come_with_their_outcomes_and_no_hidden_ones(tmp_path: Path) -> None:
    course = with_cases(tmp_path)
    build.build(course)
    text = (tmp_path / "exercises" / "01_gather" / "_public" / "x1_gather.py").read_text()
    assert "1012" not in text and "draw" not in text and "n // 2" not in text
    cases = load_course(tmp_path / "exercises" / "course.yaml").exercise("x1_gather").checks["halved"].call
    assert isinstance(cases, Cases)
    assert cases.public == ({"n": 4}, {"n": 3}) and cases.hidden is None
    assert cases.expected == ({"value": 2}, {"error": "ValueError"})


def test_learners_are_given_the_same_wherever_the_checks_stand(tmp_path: Path) -> None:
    one, two = with_cases(tmp_path / "one"), with_cases(tmp_path / "two")
    place = tmp_path / "two" / "solutions" / "01_gather"
    blocks = (place / "x1_gather.py").read_text().split("\n\n\n")
    graded = [
        b for b in blocks if b.startswith(("@exercise.check", "@exercise.misconception", "A = ", "def draw", "halves"))
    ]
    imports = "\n".join(line for line in blocks[0].splitlines() if line.startswith(("import", "from")))
    names = "from x1_gather import exercise, gather, gather_time, half, secret_helper"
    (place / "grading").mkdir()
    second = "\n\n\n".join(['"""What is checked."""', imports, names, *graded])
    (place / "grading" / "x1_gather.py").write_text(second.replace("tion(fails", "tion(of=gather, fails"))
    (place / "x1_gather.py").write_text("\n\n\n".join(b for b in blocks if b not in graded))
    two = load_course(tmp_path / "two" / "course.yaml")
    assert not {"value", "traffic", "halved"} & set(re.findall(r"def (\w+)", two.exercise("x1_gather").source))
    given = []
    for course in (one, two):
        build.build(course)
        exercise = load_course(course.root / "exercises" / "course.yaml").exercise("x1_gather")
        assert "1012" not in exercise.source and "secret" not in exercise.source
        calls = [c.call for c in exercise.checks.values()]
        given.append((
            [(c.name, c.label, c.points, c.after) for c in exercise.checks.values()],
            [(c.public, c.expected) if isinstance(c, Cases) else (c.dims, c.args, c.meshes) for c in calls],
            exercise.points,
        ))  # fmt: skip
    assert given[0] == given[1] and [name for name, *_ in given[0][0]] == ["value", "halved"]


def test_a_public_check_after_a_hidden_one_comes_without_it(tmp_path: Path) -> None:
    course = made_up(tmp_path, "@exercise.check(call, points=1, after=value)", "@exercise.check(call, points=1)")
    path = tmp_path / "solutions" / "01_gather" / "x1_gather.py"
    late = '@exercise.check(call, points=1, public=True, after=traffic)\ndef late(seen):\n    """late"""\n    expect_close(seen.out, seen.a)\n\n\n@exercise.number('
    path.write_text(path.read_text().replace("@exercise.number(", late))
    course = load_course(tmp_path / "course.yaml")
    build.build(course)
    checks = load_course(tmp_path / "exercises" / "course.yaml").exercise("x1_gather").checks
    assert list(checks) == ["value", "late"] and checks["late"].after == ()


def test_a_notebooks_ids_stay_when_an_exercise_is_added_before(tmp_path: Path) -> None:
    """So that what was handed in for the old notebook is found in the new one."""
    old = {c.id: c.source for c in nbformat.reads(build.notebook(made_up(tmp_path), "01_gather"), as_version=4).cells}
    folder = tmp_path / "solutions" / "01_gather"
    (folder / "x0_first.py").write_text((folder / "x1_gather.py").read_text())
    text = (tmp_path / "course.yaml").read_text().replace("[x1_gather]", "[x0_first, x1_gather]")
    (tmp_path / "course.yaml").write_text(text)
    new = {
        c.id: c.source
        for c in nbformat.reads(build.notebook(load_course(tmp_path / "course.yaml"), "01_gather"), as_version=4).cells
    }
    assert set(old) < set(new) and all(new[i] == text for i, text in old.items())


def test_long_names_have_ids_that_fit_and_differ() -> None:
    names = ["x1_" + "long_" * 12 + end for end in ("one", "two")]
    ids = {build.cell("code", f"{n}-given", "").id for n in names}
    assert len(ids) == 2 and all(len(i) <= 64 for i in ids)


def test_stubs_fail_by_saying_that_nothing_is_written(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    space: dict = {}
    exec(build.stub_source(course, course.exercise("x1_gather")), space)
    with pytest.raises(NotImplementedError, match=r"^gather$"):
        space["gather"](None, mesh=None)
    assert space["gather_time"] is None and space["ROWS"] == 8


def test_nothing_is_built_where_there_are_no_solutions(tmp_path: Path) -> None:
    build.build(made_up(tmp_path))
    with pytest.raises(CourseError, match="there is no solutions/ here to build from"):
        build.build(load_course(tmp_path / "exercises" / "course.yaml"))


# -- somebody's work in exercises/ is left alone


STUB, PUBLIC = "01_gather/x1_gather.py", "01_gather/_public/x1_gather.py"


def renamed(folder: Path) -> Course:
    """The course after its exercise was renamed: what was built for the old name goes."""
    made_up(folder)
    place = folder / "solutions" / "01_gather"
    (place / "x1_gather.py").rename(place / "x2_other.py")
    (folder / "course.yaml").write_text((folder / "course.yaml").read_text().replace("x1_gather", "x2_other"))
    return load_course(folder / "course.yaml")


def test_building_twice_changes_nothing(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    assert len(build.build(course).changed) == 4
    assert build.build(course) == build.Built([], [], {}) and build.stale(course) == []


def test_a_stub_that_nobody_touched_follows_its_exercise(tmp_path: Path) -> None:
    build.build(made_up(tmp_path))
    course = made_up(tmp_path, "Say what to do.", "Say it better.")
    assert STUB in build.stale(course)
    done = build.build(course)
    assert STUB in done.changed and not done.left and not done.saved
    assert "Say it better." in (tmp_path / "exercises" / STUB).read_text() and build.stale(course) == []


def test_a_stub_that_was_worked_on_is_left_alone_and_named(tmp_path: Path) -> None:
    build.build(made_up(tmp_path))
    stub = tmp_path / "exercises" / STUB
    stub.write_text("my work")
    course = made_up(tmp_path, "Say what to do.", "Say it better.")
    for _ in range(2):  # the next build does not take it for its own either
        done = build.build(course)
        assert done.left == [STUB] and STUB not in done.changed and not done.saved
        assert stub.read_text() == "my work" and build.stale(course) == [STUB]
    assert "Say it better." in (tmp_path / "exercises" / PUBLIC).read_text()


def test_work_on_an_exercise_that_is_no_more_is_left_alone_too(tmp_path: Path) -> None:
    build.build(made_up(tmp_path))
    stub = tmp_path / "exercises" / STUB
    stub.write_text("my work")
    for _ in range(2):
        done = build.build(renamed(tmp_path))
        assert done.left == [STUB] and stub.read_text() == "my work"
        assert not (tmp_path / "exercises" / PUBLIC).exists()


def test_what_build_never_wrote_is_never_removed(tmp_path: Path) -> None:
    build.build(made_up(tmp_path))
    notes = [tmp_path / "exercises" / "01_gather" / n for n in ("notes.md", "old.py", ".ipynb_checkpoints/a.ipynb")]
    for path in notes:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    (tmp_path / "exercises" / "01_gather" / "empty").mkdir()
    for make in (made_up, renamed):
        for force in (False, True):
            build.build(make(tmp_path), force=force)
            assert [p.read_text() for p in notes] == ["mine"] * 3
            assert (tmp_path / "exercises" / "01_gather" / "empty").is_dir()


def test_without_a_record_nothing_that_differs_is_replaced(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    build.build(course)
    (tmp_path / "exercises" / build.BUILT).write_bytes(b"\xff not a record")
    (tmp_path / "exercises" / STUB).write_text("my work")
    assert build.build(course).left == [STUB]
    done = build.build(made_up(tmp_path, "Say what to do.", "Say it better."))
    assert done.left == [STUB] and PUBLIC in done.changed  # the others are known again


def test_a_record_that_git_merged_knows_both(tmp_path: Path) -> None:
    build.build(made_up(tmp_path, "Say what to do.", "Theirs."))
    record, stub = tmp_path / "exercises" / build.BUILT, tmp_path / "exercises" / STUB
    theirs, text = record.read_text(), stub.read_text()
    build.build(made_up(tmp_path, "Say what to do.", "Ours."))
    record.write_text(f"<<<<<<< HEAD\n{record.read_text()}=======\n{theirs}>>>>>>> theirs\n")
    stub.write_text(text)
    assert not build.build(made_up(tmp_path)).left


def test_a_record_names_no_file_outside(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    build.build(course)
    digest = hashlib.sha256(b"mine").hexdigest()
    (tmp_path / "mine.txt").write_text("mine")
    with open(tmp_path / "exercises" / build.BUILT, "a") as record:
        record.write(f"{digest}  ../mine.txt\n{digest}  {tmp_path}/mine.txt\n")
    assert build.build(course) == build.Built([], [], {}) and (tmp_path / "mine.txt").exists()


def test_force_replaces_and_keeps_a_copy_of_everything(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    build.build(course)
    for number, place in enumerate(("", ".1", ".2")):
        (tmp_path / "exercises" / STUB).write_text(f"my work {number}")
        done = build.build(course, force=True)
        assert done.saved == {STUB: f"exercises.bak/{STUB}{place}"} and done.changed == [STUB] and not done.left
        assert (tmp_path / f"exercises.bak/{STUB}{place}").read_text() == f"my work {number}"
        assert build.stale(course) == []


def test_force_moves_what_stands_where_nothing_is_built_any_more(tmp_path: Path) -> None:
    build.build(made_up(tmp_path))
    (tmp_path / "exercises" / STUB).write_text("my work")
    done = build.build(renamed(tmp_path), force=True)
    assert done.saved == {STUB: f"exercises.bak/{STUB}"} and STUB not in done.changed
    assert not (tmp_path / "exercises" / STUB).exists()


def test_the_command_says_what_it_left_and_what_force_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    course = made_up(tmp_path)
    build.build(course)
    (tmp_path / "exercises" / STUB).write_text("my work")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(author, "out", Console(width=80))
    author.build(course=None)
    assert capsys.readouterr().out == (
        f"left alone, for it was worked on: exercises/{STUB}\n"
        "to replace what was left alone and keep it in exercises.bak/: shardlings build --force\n"
    )
    author.build(course=None, force=True)
    assert capsys.readouterr().out == (
        f"exercises/{STUB}\nreplaced exercises/{STUB}; what was worked on there is now exercises.bak/{STUB}\n"
        "1 files changed\n"
    )
    author.build(course=None)
    assert capsys.readouterr().out == "exercises/ is current\n"


# -- the same bytes on every Python


def test_exercises_are_what_this_python_builds() -> None:
    """Run under each Python that is supported (.ci/run), it proves that they all build the same bytes."""
    assert build.stale(find_course(ROOT)) == []


def test_the_record_of_what_was_built_is_current() -> None:
    text = (ROOT / "exercises" / build.BUILT).read_text()
    made = build.products(find_course(ROOT))
    assert text == "".join(f"{hashlib.sha256(t.encode()).hexdigest()}  {p}\n" for p, t in sorted(made.items()))


PLAIN_CALL = """\
A = normal("I", "J", spec=P("x", None))
call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, hidden_dims={"I": 1012, "J": 5})
"""
PLAIN_CHECK = '''\
@exercise.check(call, points=1, public=True)
def value(seen):
    """it is whole"""
    expect_close(seen.out, seen.a)
'''
ODD_CALL = """\
A = normal(
    'I',   "J", spec=P( "x" , None )  # needle
)
WIDTH = 1_0; NEEDLE = "needle"
call = exercise.call(gather, a=A, dims={'I': 0x8, "J": 3},  # needle
                     hidden_dims={"I": 1012, "J": 5})
"""
ODD_CHECK = '''\
@exercise.check(call , points=1,
                public=True, after=[])  # needle
def value(seen):  # needle
    """it is "whole\\\\" é"""
    # needle
    text = f"{seen.a!r:>{WIDTH}} # no comment"  # needle
    expect_close(seen.out, seen.a)
'''


def test_what_learners_are_given_is_copied_not_written_anew(tmp_path: Path) -> None:
    """Texts written from a syntax tree differ between Pythons: quotes, f-strings, numbers."""
    made_up(tmp_path, PLAIN_CALL, ODD_CALL)
    path = tmp_path / "solutions" / "01_gather" / "x1_gather.py"
    assert PLAIN_CHECK in path.read_text()
    path.write_text(path.read_text().replace(PLAIN_CHECK, ODD_CHECK), encoding="utf-8")
    course = load_course(tmp_path / "course.yaml")
    text = build.public_source(course.exercise("x1_gather"))
    for there in (
        """A = normal(\n    'I',   "J", spec=P( "x" , None )\n)\n""",
        "\nWIDTH = 1_0\n",
        """call = exercise.call(gather, a=A, dims={'I': 0x8, "J": 3})\n""",
        "@exercise.check(call, points=1, public=True, after=[])\ndef value(seen):\n",
        '''    """it is "whole\\\\" é"""\n    text = f"{seen.a!r:>{WIDTH}} # no comment"\n    expect_close(''',
    ):
        assert there in text, there
    assert "needle" not in text.lower() and "1012" not in text


def test_nothing_of_a_release_is_written_from_a_syntax_tree() -> None:
    assert "unparse(" not in Path(build.__file__).read_text()


def test_what_follows_a_docstring_on_its_line_is_the_solution(tmp_path: Path) -> None:
    course = made_up(tmp_path, 'J]."""\n', 'J]."""; needle = 1012\n')
    for text in build.products(course).values():
        assert "needle" not in text and "1012" not in text
    course = made_up(
        tmp_path,
        'def gather(a, *, mesh):\n    """Gather A[I_X, J] into A[I, J]."""\n    return',
        'def gather(a, *, mesh): """Gather."""; return',
    )
    with pytest.raises(CourseError, match="the docstring of gather must stand on lines of its own"):
        build.products(course)


def test_a_form_feed_ends_no_line(tmp_path: Path) -> None:
    plain = build.products(made_up(tmp_path / "plain"))
    made = build.products(made_up(tmp_path / "odd", "import math\n", "import math\n\f\n# \u2028 \x1c\n"))
    assert made == plain


def test_a_statement_that_is_indented_is_read_alike_everywhere(tmp_path: Path) -> None:
    course = made_up(tmp_path, "\n\nSay what to do.\n", "\n\n    Say what to do.\n      Do it.\n")
    assert course.exercise("x1_gather").statement == "# X1 Gather\n\nSay what to do.\n  Do it."


def test_a_dimension_may_be_called_hidden(tmp_path: Path) -> None:
    course = made_up(tmp_path, "def helper(a):", "def helper(a, hidden=0):")
    assert "def helper(a, hidden=0):" in build.public_source(course.exercise("x1_gather"))


def test_empty_folders_go_with_their_module(tmp_path: Path) -> None:
    build.build(made_up(tmp_path))
    text = (tmp_path / "course.yaml").read_text()
    (tmp_path / "solutions" / "01_gather").rename(tmp_path / "solutions" / "02_other")
    (tmp_path / "course.yaml").write_text(text.replace("01_gather", "02_other"))
    done = build.build(load_course(tmp_path / "course.yaml"))
    assert {PUBLIC, STUB} < set(done.changed)
    assert not (tmp_path / "exercises" / "01_gather").exists()


def test_every_page_of_a_traced_exercise_says_what_a_trace_cannot_do(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    exercise = course.exercise("x1_gather")
    stub = " ".join(build.stub_source(course, exercise).split())
    assert " ".join(build.TRACED.split()) in stub
    cells = json.loads(build.notebook(course, "01_gather"))["cells"]
    assert build.TRACED in "".join("".join(c["source"]) for c in cells if c["id"] == "x1_gather-statement")
    assert build.page(dataclasses.replace(exercise, tasks={})) == exercise.statement
