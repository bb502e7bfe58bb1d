"""``publish`` and ``start`` as users run them. Clone the published branch, and follow its README to the end."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.course.finding import find_course
from grader.course.reference import answers, reference_source
from tests.commands import one_line, shardlings
from tests.installing import needed_packages
from tests.made_up import made_up
from tests.repository import git, repository


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "course")


def test_both_branches_are_published_and_the_second_time_are_current(repo: Path) -> None:
    done = shardlings("publish", "--branch", "student", "--branch", "solutions", cwd=repo)
    assert (done.returncode, done.stderr) == (0, "")
    student, hint, solutions, _ = done.stdout.splitlines()
    assert re.fullmatch(r"student: \d+ files changed, commit [0-9a-f]{12}", student)
    assert hint == (
        "next: git push URL student; URL must not be the course's repository, which holds hidden checks and the seed"
    )
    assert solutions.startswith("solutions: ")
    assert git(repo, "branch", "--format=%(refname:short)").split() == ["main", "solutions", "student"]
    assert git(repo, "show", "student:LICENSE") == "do as you like"
    again = shardlings("publish", "--branch", "student", cwd=repo)
    assert again.stdout == f"student is current, commit {git(repo, 'rev-parse', 'student')[:12]}\n"


def test_uncommitted_files_are_published_with_a_note(repo: Path) -> None:
    source = repo / "solutions" / "01_gather" / "x1_gather.py"
    source.write_text(source.read_text().replace("Say what to do.", "Say it anew."))
    done = shardlings("publish", "--branch", "student", cwd=repo)
    assert done.stderr == "note: published with uncommitted changes: solutions/01_gather/x1_gather.py\n"
    assert "Say it anew." in git(repo, "show", "student:exercises/01_gather/x1_gather.py")
    (repo / "solutions" / "ü.py").touch()
    done = shardlings("publish", "--branch", "student", cwd=repo)
    assert "solutions/01_gather/x1_gather.py and 1 more\n" in done.stderr


def test_an_uncommitted_licence_is_published_with_a_note(repo: Path) -> None:
    (repo / "COPYING").write_text("do nothing")
    done = shardlings("publish", "--branch", "student", cwd=repo)
    assert done.stderr == "note: published with uncommitted changes: COPYING\n"


def test_work_in_exercises_is_not_published(repo: Path) -> None:
    assert shardlings("build", cwd=repo).returncode == 0
    (repo / "exercises" / "01_gather" / "x1_gather.py").write_text("my work")
    assert shardlings("publish", "--students", str(repo.parent / "given"), cwd=repo).returncode == 0
    given = (repo.parent / "given" / "exercises" / "01_gather" / "x1_gather.py").read_text()
    assert "TODO: write this function" in given and "my work" not in given


def test_publish_errors_are_one_line(repo: Path, tmp_path: Path) -> None:
    assert one_line(shardlings("publish", cwd=repo)).startswith("shardlings: name a target: --branch student")
    assert "is not an empty folder" in one_line(shardlings("publish", "--students", str(repo), cwd=repo))
    both = shardlings("publish", "--branch", "student", "--students", str(repo), cwd=repo)
    assert "is not an empty folder" in one_line(both)  # this error comes before the branch is written
    git(repo, "switch", "--quiet", "--orphan", "student")
    git(repo, "reset", "--quiet", "--hard", "main")
    assert "the branch student is checked out" in one_line(shardlings("publish", "--branch", "student", cwd=repo))
    shardlings("publish", "--students", str(tmp_path / "given"), cwd=repo)
    released = shardlings("publish", "--branch", "student", cwd=tmp_path / "given")
    assert one_line(released) == "shardlings: publishing needs the solutions; this is the learners' release"
    plain = tmp_path / "plain"
    made_up(plain)
    said = one_line(shardlings("publish", "--branch", "student", cwd=plain, GIT_CEILING_DIRECTORIES=str(tmp_path)))
    assert "this folder is not in a git repository; run git init in it" in said


# -- cloned ------------------------------------------------------------------------------------


def commands(readme: Path) -> list[str]:
    """Return the shell commands in a README, as one text for each code block."""
    return re.findall(r"^```\n(.*?)^```", readme.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def offline(tmp_path: Path) -> dict[str, str]:
    """Return environment variables for tests without a network.

    With them, ``python3 -m venv`` makes an environment with all installed packages except shardlings.
    """
    packages, python = needed_packages(tmp_path / "packages"), tmp_path / "bin" / "python3"
    python.parent.mkdir()
    add = f"for at in .venv/lib/python*/site-packages; do echo {packages} > $at/here.pth; done"
    python.write_text(f'#!/bin/sh\n{sys.executable} "$@" && {add}\n')
    python.chmod(0o755)
    mine = ("XLA_FLAGS", "JAX_PLATFORMS", "SHARDLINGS_STUDENT", "PYTHONPATH")
    return {k: v for k, v in os.environ.items() if k not in mine} | {
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads the value 0 of this variable as true
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_QUIET": "1",
    }


def run(clone: Path, blocks: list[str], env: dict[str, str]) -> str:
    """Run these commands in one shell, and return their output."""
    done = subprocess.run(
        ["bash", "-ec", "\n".join(blocks)], cwd=clone, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="the README's commands are a shell's")
def test_each_branch_is_cloned_and_its_readme_followed_to_the_end(
    repo: Path, tmp_path: Path, offline: dict[str, str]
) -> None:
    shardlings("publish", "--branch", "student", "--branch", "solutions", cwd=repo)
    git(tmp_path, "clone", "--quiet", "--branch", "student", "--single-branch", str(repo), "student")
    clone = tmp_path / "student"
    assert git(clone, "rev-list", "--count", "--all") == "1"
    course = find_course(repo)
    exercise = course.exercise("x1_gather")
    solved = reference_source(exercise, answers(course, exercise, "me"))
    stub = clone / "exercises" / "01_gather" / "x1_gather.py"
    assert "TODO" in stub.read_text()
    install, look, check, submit = commands(clone / "README.md")
    stub.write_text(solved)  # the student pastes the solution after reading it
    said = run(clone, [install, "python -c 'import grader; print(grader.__file__)'", look, check, submit], offline)
    assert str(clone / ".venv") in said.splitlines()[0]
    assert "Say what to do." in said and "Hidden checks are worth 1 point more" in said
    assert (clone / "your_login_01_gather.zip").is_file()
    assert git(clone, "status", "--porcelain").split() == ["M", "exercises/01_gather/x1_gather.py"]
    grade_zip(repo, clone / "your_login_01_gather.zip")
    git(tmp_path, "clone", "--quiet", "--branch", "solutions", "--single-branch", str(repo), "solutions")
    read = run(tmp_path / "solutions", commands(tmp_path / "solutions" / "README.md"), offline)
    assert "it is whole" in read


def grade_zip(repo: Path, zipped: Path) -> None:
    """Grade the student's zip, which must get all points."""
    (repo / "handed").mkdir()
    shutil.copy(zipped, repo / "handed")
    done = shardlings("grade", "handed", "--out", "graded", "--isolation", "none", "--json", cwd=repo)
    assert done.returncode == 0, done.stderr
    (report,) = [json.loads(p.read_text()) for p in (repo / "graded" / "reports").glob("*.json")]
    assert report["earned"] == report["points"] == 3


def test_an_unknown_branch_gets_our_own_message(tmp_path: Path) -> None:
    done = shardlings("publish", "--branch", "main", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(
        "Invalid value for '--branch': 'main' is not one of 'student', 'solutions'."
    )
