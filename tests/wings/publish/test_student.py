"""The students' release: the exercises and the tool, and nothing that students must not have."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from grader.authoring.leaks import hidden_lines
from grader.course.build import products
from grader.course.config import CourseError
from grader.course.finding import find_course
from grader.course.loading import load_course
from grader.wings.publish import student
from grader.wings.publish.student import leaking, student_files
from tests.commands import ROOT
from tests.made_up import made_up


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return student_files(made_up(tmp_path_factory.mktemp("course")))


def test_the_release_holds_built_exercises_and_the_whole_tool(files: dict[str, str], tmp_path: Path) -> None:
    made = products(made_up(tmp_path))
    assert {path: files[f"exercises/{path}"] for path in made} == made
    assert {path.split("/")[0] for path in files} == {"exercises", "tool", "README.md", ".github", ".gitignore"}
    tool = {path.removeprefix("tool/") for path in files if path.startswith("tool/")}
    assert {"pyproject.toml", "grader/cli/__init__.py", "grader/reports/templates/style.css"} <= tool
    assert "grader/authoring/new_course/solutions/01_examples/a3_block.py" in tool
    assert not [path for path in tool if "__pycache__" in path or "_course/" in path.replace("new_course/", "")]


def test_the_tool_can_be_installed_as_this_one_is(files: dict[str, str]) -> None:
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    made = tomllib.loads(files["tool/pyproject.toml"])["project"]
    for key in ("name", "dependencies", "requires-python", "scripts"):
        assert made[key] == ours[key], key


def test_the_release_holds_no_solutions_hidden_checks_or_seed(files: dict[str, str], tmp_path: Path) -> None:
    course = made_up(tmp_path)
    assert list(leaking(course, files)) == []
    secrets = [line for line, _ in hidden_lines(course)]
    assert secrets
    whole = "".join("\n".join(text for path, text in files.items() if not path.startswith("tool/")).split())
    assert [line for line in secrets if line in whole] == []
    assert "1012" not in whole and "a-secret-seed" not in "".join(files.values())


def test_a_release_with_leaks_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    course = made_up(tmp_path)
    monkeypatch.setattr(
        student, "page", lambda *_: 'return jax.lax.all_gather(a, "x", axis=0, tiled=True)\na-secret-seed\n'
    )
    with pytest.raises(CourseError) as caught:
        student_files(course)
    assert str(caught.value) == (
        'nothing is published: README.md holds a line of x1_gather/secret_helper: return jax.lax.all_gather(a, "x", '
        "axis=0, tiled=True) (and 1 more); see: shardlings verify"
    )
    monkeypatch.setattr(student, "project_file", lambda: "a-secret-seed")
    assert "tool/pyproject.toml holds the course's seed" in list(leaking(course, student.common_files(course)))


@pytest.mark.slow
def test_the_courses_own_release_leaks_nothing() -> None:
    files = student_files(find_course(ROOT))
    assert "LICENSE" in files and "exercises/13_capstone/13_capstone.ipynb" in files
    assert not [path for path in files if path.startswith(("solutions", "course.yaml"))]


def test_the_readme_of_the_release_names_the_course(files: dict[str, str]) -> None:
    readme = files["README.md"]
    assert readme.startswith("# small\n") and "| `01_gather` | Gather | 1 |\n" in readme and " due |" not in readme
    assert "shardlings check x1_gather\n" in readme and "@" not in readme
    assert "exercises/01_gather/x1_gather.py" in files and "exercises/01_gather/01_gather.ipynb" in files
    assert max(map(len, readme.splitlines())) <= 125


def test_the_workflow_is_valid_yaml_and_its_steps_name_existing_files(files: dict[str, str]) -> None:
    flow = yaml.safe_load(files[".github/workflows/classroom.yml"])
    steps = flow["jobs"]["run-autograding-tests"]["steps"]
    (report,) = [s for s in steps if "autograding-grading-reporter" in s.get("uses", "")]
    (checks,) = [s for s in steps if s.get("id") == report["with"]["runners"]]
    assert re.findall(r"steps\.(\w+)\.outputs", str(report["env"])) == [checks["id"]]
    assert list(report["env"]) == [f"{checks['id'].upper()}_RESULTS"]
    assert "python -m grader.wings.publish.classroom" in checks["run"]


def test_a_readme_says_when_modules_are_due_where_any_is(tmp_path: Path) -> None:
    config = made_up(tmp_path).root / "course.yaml"
    config.write_text(
        config.read_text().replace("    title: Gather", "    title: Gather\n    deadline: 2026-11-30 23:59:00+00:00")
    )
    readme = student_files(load_course(config))["README.md"]
    assert (
        "| module | | exercises | due |\n|---|---|--:|---|\n| `01_gather` | Gather | 1 | 2026-11-30 23:59 |" in readme
    )
