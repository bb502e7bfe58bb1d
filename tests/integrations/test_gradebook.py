"""One transaction writes the rows of several students: the gradebook gets all of these rows, or none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")

from nbgrader.api import Gradebook

from grader.integrations.nbgrader.gradebook import one_transaction


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the folder of the program ``alembic`` to PATH, because nbgrader runs this program."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


def students(place: Path) -> list[str]:
    with Gradebook(f"sqlite:///{place}") as other:
        return [str(one.id) for one in other.students]


def test_one_transaction_commits_all_rows_at_once(tmp_path: Path) -> None:
    place = tmp_path / "gradebook.db"
    with Gradebook(f"sqlite:///{place}") as gradebook:
        with one_transaction(gradebook):
            for name in ("ada", "bo", "cy"):
                gradebook.update_or_create_student(name)
                assert students(place) == [], "others see nothing of it yet"
        assert students(place) == ["ada", "bo", "cy"]
        gradebook.add_student("di")  # after the transaction, the gradebook commits each change separately
    assert students(place) == ["ada", "bo", "cy", "di"]


def test_an_error_in_a_transaction_discards_all_its_rows(tmp_path: Path) -> None:
    place = tmp_path / "gradebook.db"
    with Gradebook(f"sqlite:///{place}") as gradebook:
        with pytest.raises(ZeroDivisionError), one_transaction(gradebook):
            gradebook.update_or_create_student("ada")
            raise ZeroDivisionError
        gradebook.update_or_create_student("bo")
    assert students(place) == ["bo"]
