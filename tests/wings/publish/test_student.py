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
from grader.wings.publish import student as reading
from grader.wings.publish.student import fenced, leaking, solution_files, student_files
from tests.commands import ROOT
from tests.made_up import EXERCISE, in_two_files, made_up


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


PAGE = "solutions/01_gather/x1_gather.md"


@pytest.mark.parametrize("made", [made_up, in_two_files])
def test_a_page_has_statement_solution_checks_and_misconceptions_with_what_they_fail(made, tmp_path: Path) -> None:
    page = solution_files(made(tmp_path))[PAGE]
    assert page.startswith("# X1 Gather\n\nSay what to do.\n\n## The solution\n\n```python\n")
    assert 'jax.lax.all_gather(a, "x", axis=0, tiled=True)' in page
    assert "| 1 | it is whole |  |\n| 1 | one all-gather | hidden |" in page
    assert "### `zeroed`, for `gather`\n\n> You returned zeros.\n\nFails: it is whole.\n" in page
    assert (
        "### `gathered_twice`, for `gather`\n\n> You gathered and summed.\n\nFails: one all-gather (hidden).\n" in page
    )
    assert (
        "### `one_way`, for `gather_time`\n\n> You used one direction.\n\nThis is a wrong answer to `gather_time`."
        in page
    )
    assert re.search(
        r"\*\*Answer:\*\* `[\d.]+ us`\. This code gives the answer for any numbers, in SI units:\n\n```python\ndef gather_time\(I\):",
        page,
    )


def test_the_solution_is_as_it_would_be_handed_in(tmp_path: Path) -> None:
    text = solution_files(made_up(tmp_path))["solutions/01_gather/x1_gather.py"]
    assert (
        "grader" not in text
        and "def gather(a, *, mesh):" in text
        and re.search(r"^gather_time = '", text, re.MULTILINE)
    )
    compile(text, "x1_gather.py", "exec")


def test_every_link_of_the_index_leads_somewhere(tmp_path: Path) -> None:
    files = solution_files(made_up(tmp_path))
    links = re.findall(r"\]\(([^)]+)\)", files["README.md"])
    assert links == [PAGE, "solutions/01_gather/x1_gather.py"] and set(links) <= set(files)
    assert "@" not in files["README.md"] and not [path for path in files if path.startswith("solutions/course")]


def test_the_page_mentions_numbers_that_differ_per_student(tmp_path: Path) -> None:
    made_up(tmp_path)
    config = (tmp_path / "course.yaml").read_text()
    (tmp_path / "course.yaml").write_text(f"{config}variants: {{mode: per_student, seed: s}}\n")
    assert (
        "Each student has different numbers. These are an example."
        in solution_files(load_course(tmp_path / "course.yaml"))[PAGE]
    )


def test_the_seed_is_on_no_branch(tmp_path: Path) -> None:
    assert not [text for text in solution_files(made_up(tmp_path)).values() if "a-secret-seed" in text]
    course = made_up(tmp_path, "Say what to do.", "The seed is a-secret-seed.")
    with pytest.raises(CourseError, match=r"nothing is published: \S+ holds the course's seed \(and \d more\)"):
        solution_files(course)


def test_nothing_in_code_ends_its_fence() -> None:
    assert fenced("x = 1") == "```python\nx = 1\n```"
    assert fenced('"""\n````\n"""').startswith("`````python\n")


def test_declarations_made_in_a_loop_have_no_code_of_their_own(tmp_path: Path) -> None:
    misconception = EXERCISE.split("\n\n\n")[-1].rstrip()
    looped = "for _ in (1,):\n" + "".join(f"    {line}\n" for line in misconception.splitlines())
    page = solution_files(made_up(tmp_path, misconception, looped))[PAGE]
    assert "(this part is declared in a loop; see the file in the course)" in page
    assert reading.ANYBODY not in page
