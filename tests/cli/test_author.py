"""The commands of a course's author (new, build, verify), also for courses with unusual modules and exercises."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader import cli
from grader.cli import author
from tests.commands import ROOT, bad_line, one_line, shardlings
from tests.made_up import EXERCISE, made_up


@pytest.mark.slow
def test_a_new_exercise_passes_verify_unchanged(small: Path) -> None:
    assert shardlings("new", "03_matmuls/c9_extra", cwd=small).returncode == 0
    assert shardlings("build", cwd=small).returncode == 0
    done = shardlings("verify", cwd=small)
    assert done.returncode == 0, done.stdout
    assert "c9_extra" in done.stdout


def test_new_prints_the_file_that_it_wrote_and_the_next_command(small: Path) -> None:
    done = shardlings("new", "04_more/d1_first", cwd=small)
    path = small / "solutions" / "04_more" / "d1_first.py"
    assert done.stdout == f"wrote {path}; edit it, then: shardlings build && shardlings verify d1_first\n"
    assert done.stderr == "note: 04_more is a new module, the last in course.yaml; choose a module title there\n"
    assert path.is_file()


def test_new_course_prints_the_next_command(tmp_path: Path) -> None:
    done = shardlings("new", "course", "own", cwd=tmp_path)
    assert done.stdout == "wrote a course to own; next: cd own && shardlings build && shardlings verify\n"
    (tmp_path / "empty").mkdir()
    assert "next: cd 'my own' && " in shardlings("new", "course", "my own", cwd=tmp_path).stdout
    done = shardlings("new", "course", ".", cwd=tmp_path / "empty")
    assert done.stdout == "wrote a course to .; next: shardlings build && shardlings verify\n"
    line = one_line(shardlings("new", "course", "own", cwd=tmp_path))
    assert line == "shardlings: own exists and is not an empty folder; name a new folder"
    line = one_line(shardlings("new", "course", cwd=tmp_path))
    assert line == "shardlings: name a folder for the course: shardlings new course FOLDER"
    line = one_line(shardlings("new", "01_a/b", "own", cwd=tmp_path))
    assert (
        line
        == "shardlings: a new exercise goes into its course, so name no folder; for a new course: shardlings new course own"
    )


def test_new_refuses_an_exercise_that_exists_and_a_malformed_name(small: Path) -> None:
    assert "already exists" in one_line(shardlings("new", "03_matmuls/c1_no_communication", cwd=small))
    assert "is not MODULE/EXERCISE" in one_line(shardlings("new", "C9", cwd=small))


def test_verify_in_the_learners_release_refuses_and_asks_for_the_course(small: Path) -> None:
    shardlings("build", cwd=small)
    release = small / "exercises"
    line = one_line(shardlings("verify", cwd=release))
    said = f"there is no solutions/ folder in {release} to verify; go to the course's folder or pass --course"
    assert line == f"shardlings: {said}"


@pytest.mark.slow
def test_verify_reports_an_unusable_exercise_and_proves_the_others(with_bad: Path) -> None:
    done = shardlings("verify", cwd=with_bad)
    assert done.returncode == 1 and done.stderr == ""
    asked = re.search(
        r"^    gather_time: How long do (\d+) bytes take .*\? .* us \(I=\1\)\n", done.stdout, re.MULTILINE
    )
    assert asked
    good, bad = f"✓ x1_gather\n{asked[0]}", f"✗ x2_bad\n    {bad_line(with_bad)}\n"
    assert done.stdout.startswith((good + bad, bad + good))  # the command prints each exercise when it is done
    rest = done.stdout.removeprefix(good + bad).removeprefix(bad + good).splitlines()
    outdated = [line for line in rest if line.endswith("is not current; run `shardlings build`")]
    assert [line for line in rest if line not in outdated] == [
        "✗ course",
        f"2 exercises, 3 misconceptions: {1 + len(outdated)} problems",
    ]


def test_build_writes_usable_exercises_and_reports_the_others(with_bad: Path) -> None:
    done = shardlings("build", cwd=with_bad)
    assert done.returncode == 2 and done.stderr == f"shardlings: {bad_line(with_bad)}\n"
    assert "exercises/01_gather/x1_gather.py\n" in done.stdout
    assert done.stdout.endswith("1 exercise cannot be used; files that contain an unusable exercise did not change\n")


QUESTION = EXERCISE[EXERCISE.index("@exercise.number") :]

ASKS = f'''\
"""# Q1 Questions

Answer.
"""

import pytest
from typer.testing import CliRunner

from grader.exercise import Scenario, Exercise
from grader.hardware import all_gather_time

exercise = Exercise()


{QUESTION}'''

WRITES = '''\
"""# F1 Functions

Write.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function(hints=["a nudge"])
def half(n):
    """Half of n."""
    return n // 2


cases = exercise.cases(half, public=[{"n": 4}, {"n": 6}], hidden=lambda rng: [{"n": int(rng.integers(2, 99))}])


@exercise.check(cases, points=1, public=True)
def halved(seen):
    """half: it is half"""
    expect_outcomes(seen)


@exercise.misconception(fails=halved)
def doubled(n):
    """You doubled it."""
    return 2 * n
'''


@pytest.mark.slow
def test_commands_work_with_modules_of_one_kind_and_without_exercises(tmp_path: Path) -> None:
    for module, name, text in (("01_ask", "q1_ask", ASKS), ("02_write", "f1_write", WRITES)):
        (tmp_path / "solutions" / module).mkdir(parents=True)
        (tmp_path / "solutions" / module / f"{name}.py").write_text(text)
    (tmp_path / "course.yaml").write_text(
        "name: kinds\nseed: a-secret-seed\nmodules:\n  - {id: 01_ask, title: Ask, exercises: [q1_ask]}\n"
        "  - {id: 02_write, title: Write, exercises: [f1_write]}\n"
        "  - {id: 03_empty, title: Empty, exercises: [], deadline: 2020-01-01T00:00:00}\n"
    )
    assert shardlings("build", cwd=tmp_path).stdout.endswith("7 files changed\n")
    for module, last in (("01_ask", 'check("q1_ask")'), ("02_write", 'check("f1_write")')):
        book = json.loads((tmp_path / "exercises" / module / f"{module}.ipynb").read_text())
        assert "".join(book["cells"][-1]["source"]) == last
    done = shardlings("verify", cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "2 exercises, 2 misconceptions: nothing to mend", done.stdout
    listed = shardlings("list", cwd=tmp_path)
    assert listed.returncode == 0 and "03_empty  Empty" in listed.stdout
    for words in (("show", "03"), ("check", "03")):
        assert one_line(shardlings(*words, cwd=tmp_path)) == "shardlings: no exercise in 03 yet"
    handed = shardlings("submit", "03_empty", "--student", "ada", cwd=tmp_path)
    assert one_line(handed) == "shardlings: no exercise in 03_empty yet"
    (tmp_path / "class" / "alice").mkdir(parents=True)
    shutil.copy(tmp_path / "exercises" / "02_write" / "f1_write.py", tmp_path / "class" / "alice")
    words = ("grade", "class", "--out", "graded", "--isolation", "none")
    graded = shardlings(*words, cwd=tmp_path)
    assert graded.returncode == 0 and "graded modules: all" in graded.stderr, graded.stderr
    empty = shardlings(*words, "--only", "03", cwd=tmp_path)
    assert one_line(empty) == "shardlings: no exercise in 03 yet: nothing to grade"


@pytest.mark.slow
def test_an_exception_in_an_authors_function_is_one_line_of_verify(tmp_path: Path) -> None:
    right = 'return all_gather_time(I, 4, "v5p")\n\n\nexercise.scenario'
    found = made_up(tmp_path, right, "return 1 / 0\n\n\nexercise.scenario")
    done = shardlings("verify", cwd=found.root)
    assert done.returncode == 1 and done.stderr == ""
    told = "gather_time: the right answer is not a valid number, in 8 of 8 variants, first I="
    assert told in done.stdout and "ZeroDivisionError: division by zero" in done.stdout


def test_quiet_verify_prints_only_exercises_with_problems_and_the_summary_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def verify(grader: object, names: list[str], proven: Callable[[str, list[str]], None], *_: object) -> int:
        proven(names[0], [])
        proven("course", ["a solution leaks"])
        return 1

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(author.verifier, "verify", verify)
    done = CliRunner().invoke(cli.app, ["verify", "c1", "--quiet"])
    assert re.fullmatch(r"✗ course\n    a solution leaks\n1 exercise, \d+ misconceptions: 1 problem\n", done.stdout)
