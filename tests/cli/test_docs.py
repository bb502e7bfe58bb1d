"""``shardlings docs`` prints the documentation's pages, in a checkout and in a package."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from grader.cli import docs
from grader.course.config import CourseError

ROOT = Path(__file__).resolve().parents[2]


def printed(capsys: pytest.CaptureFixture[str], page: str = "") -> str:
    docs.docs(page)
    return capsys.readouterr().out


def test_docs_lists_every_page_with_its_title(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys).splitlines()
    pages = {p.relative_to(ROOT / "docs").with_suffix("").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    assert {line.split()[0] for line in lines} == pages | {"CONTRIBUTING", "SECURITY", "CHANGELOG"}
    assert any(re.fullmatch(r"own-course +A course of your own", line) for line in lines)


@pytest.mark.parametrize("name", ["own-course", "own", "docs/own-course.md"])
def test_a_page_is_found_by_name_beginning_or_path(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert printed(capsys, name) == (ROOT / "docs" / "own-course.md").read_text() + "\n"


def test_a_page_of_a_folder_is_found_by_its_last_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "answers") == printed(capsys, "checks/answers")
    assert printed(capsys, "contributing") == printed(capsys, "CONTRIBUTING.md")


def test_an_unknown_page_is_reported_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CourseError, match="no page 'own-cuorse'; did you mean 'own-course'"):
        printed(capsys, "own-cuorse")


def test_an_installed_package_prints_its_own_pages(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for source, target in packed().items():
        place = tmp_path / target
        place.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / source).is_dir() else shutil.copy)(ROOT / source, place)
    here = printed(capsys)
    monkeypatch.setattr(docs, "PACKAGE", tmp_path / "grader")
    assert printed(capsys) == here


def packed() -> dict[str, str]:
    """Return the documentation in the wheel: for each path in the checkout, the path in the wheel."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    return {source: target for source, target in wheel["force-include"].items() if "/_docs/" in target}
