"""The course, the files and the numbers that a command uses, and its messages about wrong names and files."""

from __future__ import annotations

import json
import re
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader import cli
from grader.cli import options
from grader.course import finding as courses
from grader.course.config import CourseError
from tests.commands import GOOD, ROOT, one_line, shardlings
from tests.sampled import sampled


def test_a_misspelt_exercise_is_reported_with_the_nearest_name() -> None:
    line = one_line(shardlings("check", "c3_contracing"))
    assert line == "shardlings: no exercise 'c3_contracing'; did you mean 'c3_contracting'?"


def test_an_unknown_field_in_course_yaml_is_reported_with_its_line(small: Path) -> None:
    text = (small / "course.yaml").read_text().replace("name: small\n", "name: small\ndevcies: 8\n")
    (small / "course.yaml").write_text(text)
    line = one_line(shardlings("list", cwd=small))
    assert line.endswith("course.yaml:2: devcies: no such field; did you mean 'devices'?")


def test_a_wrong_value_in_course_yaml_is_reported_with_its_line(small: Path) -> None:
    (small / "course.yaml").write_text((small / "course.yaml").read_text() + "limits:\n  run_seconds: -3\n")
    assert ":8: limits.run_seconds: Input should be greater than 0" in one_line(shardlings("list", cwd=small))


def test_an_exercise_that_does_not_load_is_reported_with_its_line(small: Path) -> None:
    path = small / "solutions" / "03_matmuls" / "c1_no_communication.py"
    path.write_text(path.read_text().replace("import jax\n", "import jaxx\n"))
    line = one_line(shardlings("list", cwd=small))
    assert "c1_no_communication.py:" in line and "No module named 'jaxx'" in line


def test_per_student_numbers_need_a_name_and_differ(small: Path) -> None:
    (small / "course.yaml").write_text((small / "course.yaml").read_text() + "variants: {mode: per_student, seed: s}\n")
    assert "--student NAME" in one_line(shardlings("show", "c1", cwd=small))
    texts = {shardlings("show", "c1", "--json", "--student", f"s{i}", cwd=small).stdout for i in range(4)}
    assert len(texts) > 1


def test_the_packaged_course_is_not_graded_as_a_submission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``submit`` and ``check`` read no stub of the packaged course. They name the places that they searched."""
    monkeypatch.chdir(tmp_path)
    for module in (options, courses):
        monkeypatch.setattr(module, "PACKAGED", ROOT / "exercises")
    for words in (["submit", "03_matmuls", "--student", "ada"], ["check", "c3"], ["check"]):
        done = CliRunner().invoke(cli.app, words)
        assert isinstance(done.exception, CourseError), done.output
        assert f" in {tmp_path}: the grader looked for " in str(done.exception)
        assert "go to the folder with your work or pass --work FOLDER" in str(done.exception)
    assert list(tmp_path.iterdir()) == []
    for words in (["list"], ["show", "c3"]):
        done = CliRunner().invoke(cli.app, words)
        assert done.exit_code == 0
        assert done.stderr == (
            f"note: no course.yaml in {tmp_path} or above, so this is the packaged course, shardlings {version('shardlings')}. "
            "To work in this course: shardlings start FOLDER. For another course, go to the folder of that course or pass --course\n"
        )
    shutil.copy(ROOT / "exercises" / "03_matmuls" / "c3_contracting.py", tmp_path)
    assert "not written yet" in CliRunner().invoke(cli.app, ["check"]).output


@pytest.mark.parametrize(
    "words",
    [
        ["build"],
        ["verify"],
        ["mutants"],
        ["new", "01_a/x1"],
        ["grade", ".", "--out", "out"],
        ["export", "out", "--to", "canvas"],
        ["nbgrader", "init", "folder"],
    ],
    ids=" ".join,
)
def test_commands_of_staff_and_authors_do_not_use_the_packaged_course(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for module in (options, courses):
        monkeypatch.setattr(module, "PACKAGED", ROOT / "exercises")
    done = CliRunner().invoke(cli.app, words)
    assert str(done.exception) == (
        f"no course.yaml in {tmp_path} or above; go to the course's folder, pass --course, "
        "or start a course: shardlings new course FOLDER"
    )
    assert list(tmp_path.iterdir()) == []


def evil_course(folder: Path, mark: Path) -> Path:
    """Return a submission with a solution and a course that writes a file when its code is executed."""
    for place in ("solutions/03_matmuls", "03_matmuls/_public"):
        (folder / place).mkdir(parents=True)
        (folder / place / "c1_no_communication.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    (folder / "course.yaml").write_text(
        "name: evil\nmodules:\n  - id: 03_matmuls\n    title: M\n    exercises: [c1_no_communication]\n"
    )
    shutil.copy(ROOT / GOOD, folder)
    return folder


@pytest.mark.parametrize(
    "command",
    sampled(2, [
        "check --work .",
        "grade . --out ../../out",
        "check --isolation auto",
        "submit 03_matmuls --work .",
        "grade .. --out ../../out",
    ]),
)  # fmt: skip
def test_no_command_executes_a_course_among_submitted_files(command: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    folder = evil_course(tmp_path / "class" / "alice", mark)
    if "--isolation" in command:
        shutil.rmtree(folder / "solutions")
    line = one_line(shardlings(*command.split(), cwd=folder))
    assert re.search(r"course\.yaml is (beside the learner's files|inside a submission)", line) and line.endswith(
        "trust: --course FOLDER"
    )
    assert not mark.exists()
    # In a checkout, the command uses the checkout's course.
    done = shardlings("check", "--work", str(folder), "--json")
    assert json.loads(done.stdout)["course"] == "shardlings" and not mark.exists()
