"""Typical mistakes of authors, each in a small exercise in ``mistakes/``, and the problems that ``verify`` reports.

The first lines of each file name the mistake and a part of the message. One mistake passes, and its file gives the
reason.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from grader.authoring.verify import verify
from grader.batch.grade import Grader
from grader.course.build import build
from grader.course.loading import load_course

FILES = sorted((Path(__file__).parent / "mistakes").glob("*.py"))
RIGHT = "sound"
SEED = "a-seed-of-mistakes"
pytestmark = pytest.mark.xdist_group("mistakes")


def noted(path: Path, what: str) -> list[str]:
    return re.findall(rf"^# {what}: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[str]]:
    """Return the problems of each exercise and of the course, from one course with all mistakes."""
    folder = tmp_path_factory.mktemp("mistakes")
    solutions = folder / "solutions" / "01_mistakes"
    solutions.mkdir(parents=True)
    for path in FILES:
        shutil.copy(path, solutions)
    names = ", ".join(path.stem for path in FILES)
    (folder / "course.yaml").write_text(
        f"name: Mistakes\nseed: {SEED}\ndevices: 8\nmodules:\n  - id: 01_mistakes\n    title: Mistakes\n"
        f"    exercises: [{names}]\n"
    )
    course = load_course(folder / "course.yaml")
    build(course)
    found: dict[str, list[str]] = {}
    with Grader(course, "none", 2) as grader:
        verify(grader, list(course.module_of), found.__setitem__)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_mistake_is_reported(told: Mapping[str, list[str]], path: Path) -> None:
    problems = [*told[path.stem], *(one for one in told["course"] if path.stem in one)]
    for message in noted(path, "Message"):
        assert any(message in problem for problem in problems), problems
        assert all("\n" not in problem for problem in problems)
        assert sum(message in problem for problem in problems) == 1, "told once"
    if noted(path, "Passes"):
        assert told[path.stem] == []


def test_the_mistakes_are_100_and_one_passes() -> None:
    mistakes = [path for path in FILES if path.stem != RIGHT]
    assert len(mistakes) == 100
    assert [path.stem for path in mistakes if noted(path, "Passes")] == ["formula_in_words"]
    assert all(len(noted(path, "Message")) + len(noted(path, "Passes")) == 1 for path in FILES)
