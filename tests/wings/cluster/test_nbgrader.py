"""``nbgrader grade --cluster`` writes the gradebook that one machine writes, row for row."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

from grader.integrations.nbgrader import folder
from tests import classroom, commands
from tests.wings.cluster.machines import begun, ended, machines

pytest.importorskip("distributed")
pytest.importorskip("nbgrader")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="sandboxes")]
MODULE = "03_matmuls"


def rows(root: Path) -> dict[str, list[tuple]]:
    """Return all rows of the gradebook, without random ids."""
    gradebook = sqlite3.connect(root / "gradebook.db")
    chosen = {
        "grade": "select c.name, auto_score, manual_score, extra_credit, needs_manual_grade from grade join base_cell c "
        "on c.id = cell_id",
        "comment": "select c.name, auto_comment, manual_comment from comment join base_cell c on c.id = cell_id",
        "submitted_assignment": "select student_id, timestamp from submitted_assignment",
    }
    return {name: sorted(gradebook.execute(query), key=repr) for name, query in chosen.items()}


def notebooks(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("autograded/**/*")) if p.is_file()}


def test_the_gradebook_is_that_of_one_machine(tmp_path: Path) -> None:
    course = classroom.copied(tmp_path / "course", **{MODULE: ["c1_no_communication", "c3_contracting"]})
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    folder.init(course, alone)
    made = commands.nbgrader("generate_assignment", MODULE, cwd=alone)
    assert made.returncode == 0, made.stderr
    classroom.make_class(course, alone, MODULE, 5)
    shutil.copytree(alone, spread)
    with machines(tmp_path) as there:
        for name in ("a", "b"):
            there.start(name)
        for root, words in ((alone, []), (spread, ["--cluster", there.address])):
            code, said = ended(begun("nbgrader", "grade", ".", MODULE, "--no-store", *words, cwd=root))
            assert code == 0, said
        code, said = ended(begun("nbgrader", "grade", ".", MODULE, "--cluster", there.address, cwd=spread))
        assert code == 0, said  # nothing is left to grade, and the exit code is 0
    found = rows(spread)
    assert found == rows(alone) and len(found["grade"]) == 10 and any(score for _, score, *_ in found["grade"])
    assert notebooks(spread) == notebooks(alone) != {}
