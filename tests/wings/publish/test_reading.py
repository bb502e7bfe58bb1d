"""The pages of solutions: statement, solution, and misconceptions with the checks that they fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.course.config import CourseError
from grader.course.loading import load_course
from grader.wings.publish import reading
from grader.wings.publish.reading import fenced, solution_files
from tests.made_up import EXERCISE, in_two_files, made_up

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
