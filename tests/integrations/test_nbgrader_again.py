"""Later runs of ``shardlings nbgrader grade``: which results a run writes again, and what it keeps of people's points."""

from __future__ import annotations

import json
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from grader.integrations.nbgrader import folder
from grader.integrations.nbgrader.autograder import Shardlings
from grader.integrations.nbgrader.class_page import BatchOutcome
from tests import classroom, commands
from tests.integrations.test_nbgrader_by_hand import MODULE, exported, give, mixed
from tests.reports.example_reports import Nesting

__all__ = ["mixed"]  # a fixture
EXTRA, PLAIN = folder.check_cell("extra"), folder.check_cell("plain")


@contextmanager
def quiet(total: int, what: str) -> Iterator[Callable[[str], None]]:
    yield lambda who: None


def grade(root: Path, **options: Any) -> BatchOutcome:
    from grader.integrations.nbgrader import batch

    return batch.grade(root, MODULE, quiet, jobs=1, isolation="none", **options)


def submit_again(root: Path, who: str, old: str = "", new: str = "", of: str = "ada", **changes: Any) -> None:
    """Submit the notebook of ``of``, with ``old`` replaced by ``new``."""
    text = (root / "submitted" / of / MODULE / f"{MODULE}.ipynb").read_text()
    assert old in text
    classroom.hand_in(root, who, MODULE, text.replace(old, new).encode(), **changes)


def page_of(root: Path, who: str) -> str:
    return Nesting((root / ".shardlings" / "pages" / MODULE / f"{who}.html").read_text()).text


def lose_the_gradebook(root: Path, old: Path) -> None:
    shutil.copy(old, root / "gradebook.db")


def lose_the_reports(root: Path, old: Path) -> None:
    shutil.rmtree(root / ".shardlings")


def lose_the_notebooks(root: Path, old: Path) -> None:
    shutil.rmtree(root / "autograded")


@pytest.mark.slow
@pytest.mark.parametrize("lose", [lose_the_gradebook, lose_the_reports, lose_the_notebooks])
def test_results_that_were_lost_are_written_again(lose: Callable[[Path, Path], None], mixed: Path) -> None:
    submit_again(mixed, "ada", "plain_bytes = 16", "plain_bytes = 17")
    assert grade(mixed).graded == ["ada"] and exported(mixed) == {"ada": 1}
    old = Path(shutil.copy(mixed / "gradebook.db", mixed / "old.db"))
    submit_again(mixed, "ada", "plain_bytes = 17", "plain_bytes = 16")
    assert grade(mixed).graded == ["ada"] and exported(mixed) == {"ada": 2}
    assert grade(mixed).kept == ["ada"]
    lose(mixed, old)
    assert grade(mixed).graded == ["ada"] and exported(mixed) == {"ada": 2}
    assert (mixed / "autograded" / "ada" / MODULE / f"{MODULE}.ipynb").is_file()
    assert "1 of 3 points" in page_of(mixed, "ada")
    assert grade(mixed).kept == ["ada"]


@pytest.mark.slow
def test_the_next_run_grades_pending_points(mixed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = Shardlings.batch

    def failing(self: Shardlings, notebooks: Any, done: Any) -> None:
        def broken(book: Any, report: Any) -> None:
            exercise = next(e for e in report.exercises if e.exercise == "plain")
            for result in exercise.results:
                if result.kind != "check" and result.name == "plain_bytes":
                    result.__dict__.update(status="broken", earned=0.0)
            exercise.__dict__.update(earned=0.0)
            self.keep(book.fingerprint, report)
            done(book, report)

        batch(self, notebooks, broken)

    with monkeypatch.context() as patch:
        patch.setattr(Shardlings, "batch", failing)
        for _ in range(2):
            done = grade(mixed)
            assert done.pending == ["ada"] and "points are pending" in " ".join(done.attention["ada"])
    assert exported(mixed) == {"ada": 1}
    done = grade(mixed)
    assert done.graded == ["ada"] and not done.pending and exported(mixed) == {"ada": 2}
    assert not any("pending" in reason for reason in done.attention["ada"])


@pytest.mark.slow
def test_a_bonus_that_a_person_set_survives_a_regrade(mixed: Path) -> None:
    grade(mixed)
    submit_again(mixed, "ada", "extra_bytes = 16", "extra_bytes = 15")
    assert not any("a person had set" in why for why in grade(mixed).attention["ada"]), "the grader set 1 point, and 0"
    with classroom.gradebook_of(mixed) as gradebook:
        gradebook.find_grade(EXTRA, MODULE, MODULE, "ada").extra_credit = 0.75
        gradebook.find_grade(folder.cell_name("extra", "extra_words"), MODULE, MODULE, "ada").extra_credit = 0
    grade(mixed)
    assert "0.75 bonus points" in page_of(mixed, "ada") and exported(mixed) == {"ada": 1.75}
    submit_again(mixed, "ada", "extra_bytes = 15", "extra_bytes = 14")
    for _ in range(2):
        why = " ".join(grade(mixed).attention["ada"])
        assert "this submission was graded again, but a person had set the score of extra: check that score" in why
        assert "0.75 bonus points" in page_of(mixed, "ada") and exported(mixed) == {"ada": 1.75}


@pytest.mark.slow
def test_a_score_out_of_range_is_listed(mixed: Path) -> None:
    """Earlier, a slip such as 10 for 1.0 counted in nbgrader's sums, and no page showed it."""
    words = folder.cell_name("plain", "plain_words")
    for who in ("bob", "cy"):
        submit_again(mixed, who)
    grade(mixed)
    give(mixed, "ada", 10, cell=words)
    give(mixed, "bob", -1, cell=PLAIN)
    give(mixed, "cy", 2, cell=words)
    with classroom.gradebook_of(mixed) as gradebook:
        gradebook.find_grade(EXTRA, MODULE, MODULE, "cy").extra_credit = 4
    found = {student: [why for why in of if "is not between" in why] for student, of in grade(mixed).attention.items()}
    end = ": nbgrader counts this score, but the pages do not"
    assert found == {
        "ada": [f"the score 10 of plain/plain_words is not between 0 and 2{end}"],
        "bob": [f"the score -1 of plain is not between 0 and 1{end}"],
        "cy": [f"the score 4 of extra is not between 0 and 3{end}"],
    }


PLUGIN = """
from nbgrader.plugins import BasePlugin

class Half(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return score / (0 if student_id == "bob" else 2)
"""


def use_plugin(root: Path) -> None:
    (root / "half.py").write_text(PLUGIN)
    with open(root / "nbgrader_config.py", "a") as settings:
        settings.write(f"import sys\nsys.path.insert(0, {str(root)!r})\n")
        settings.write("c.AssignLatePenalties.plugin_class = 'half.Half'\n")


@pytest.mark.slow
def test_late_penalties_follow_scores_by_hand_and_a_failure_concerns_one_student(mixed: Path) -> None:
    use_plugin(mixed)
    late = {"timestamp": "2026-11-02 10:00:00 UTC"}
    for who in ("bob", "cy", "ada"):
        submit_again(mixed, who, **late)
    with classroom.gradebook_of(mixed) as gradebook:
        gradebook.update_or_create_assignment(MODULE, duedate="2026-11-01 10:00:00 UTC")
    for _ in range(2):
        done = grade(mixed)
        reason = "Half cannot compute the late penalty: ZeroDivisionError: float division by zero"
        assert done.failures == {"bob": reason}
        assert exported(mixed) == {"ada": 1, "bob": 2, "cy": 1}
    give(mixed, "ada", 2, cell=folder.cell_name("plain", "plain_words"))
    give(mixed, "cy", 0, cell=PLAIN)
    done = grade(mixed)
    assert done.kept == ["ada", "cy"] and exported(mixed) == {"ada": 2, "bob": 2, "cy": 0.5}


@pytest.mark.slow
def test_cells_that_only_a_person_can_grade_are_listed(mixed: Path) -> None:
    """An exercise was removed from the course after the release. Its cell stays in the gradebook."""
    course = mixed.parent / "course" / "course.yaml"
    course.write_text(course.read_text().replace("[plain, extra]", "[extra]"))
    done = grade(mixed)
    assert f"by hand: grade extra/extra_words, {PLAIN}, plain-plain_words in the formgrader" in done.attention["ada"]
    give(mixed, "ada", 1, cell=PLAIN)
    submit_again(mixed, "ada", "extra_bytes = 16", "extra_bytes = 15")
    again = f"this submission was graded again, but a person had set the score of {PLAIN}: check that score"
    assert again in grade(mixed).attention["ada"]


def with_essay(root: Path) -> dict[str, Any]:
    """Release the assignment again, with a second notebook that has no exercise. Return this notebook."""
    book = json.loads((root / "source" / MODULE / f"{MODULE}.ipynb").read_text())
    book["cells"] = [cell for cell in book["cells"] if cell["metadata"].get("nbgrader", {}).get("grade") is None][:1]
    (root / "source" / MODULE / "essay.ipynb").write_text(json.dumps(book))
    (root / "gradebook.db").unlink()
    assert commands.nbgrader("generate_assignment", MODULE, "--force", cwd=root).returncode == 0
    return book


@pytest.mark.slow
def test_a_submission_without_all_notebooks_is_listed(mixed: Path) -> None:
    (mixed / "submitted" / "ada" / MODULE / "essay (1).ipynb").write_text(json.dumps(with_essay(mixed)))
    reason = "essay.ipynb is missing; the grader did not read these notebooks: essay (1).ipynb"
    for _ in range(2):
        assert reason in grade(mixed).attention["ada"]


@pytest.mark.slow
def test_a_withdrawn_notebook_keeps_no_result(mixed: Path) -> None:
    """Earlier, the rows kept the comments, and after `nbgrader autograde` also the penalty and the bonus points."""
    essay = with_essay(mixed)
    use_plugin(mixed)
    with classroom.gradebook_of(mixed) as gradebook:
        gradebook.update_or_create_assignment(MODULE, duedate="2026-11-01 10:00:00 UTC")
    found = []
    for way in ("grade", "autograde"):
        submit_again(mixed, "ada", "plain_bytes = 16", "plain_bytes = 17", timestamp="2026-11-02 10:00:00 UTC")
        own = mixed / "submitted" / "ada" / MODULE
        (own / "essay.ipynb").write_text(json.dumps(essay))
        grade(mixed)
        rows = rows_of(mixed, "ada")
        assert any(row[2:] == (1.0, 0.5) for row in rows) and any(row[0] == "comment" and row[2] for row in rows)
        text = (own / f"{MODULE}.ipynb").read_text()
        (own / f"{MODULE}.ipynb").unlink()
        if way == "grade":
            grade(mixed)
        else:
            assert commands.nbgrader("autograde", MODULE, "--force", cwd=mixed).returncode == 0
        found.append(rows_of(mixed, "ada"))
        assert [row for row in found[-1] if any(row[2:])] == [] and exported(mixed) == {"ada": 0}, way
        (own / f"{MODULE}.ipynb").write_text(text.replace("plain_bytes = 17", "plain_bytes = 16"))
    assert found[0] == found[1]


def rows_of(root: Path, who: str) -> list[tuple[Any, ...]]:
    """Return the results in the gradebook: kind and name of each row, and the values that the grader writes."""
    found: list[tuple[Any, ...]] = []
    with classroom.gradebook_of(root) as gradebook:
        for book in gradebook.find_submission(MODULE, who).notebooks:
            found.append(("notebook", book.name, book.score, book.late_submission_penalty))
            found += [("grade", g.name, g.auto_score, g.extra_credit, g.needs_manual_grade) for g in book.grades]
            found += [("comment", c.name, c.auto_comment) for c in book.comments]
    return sorted(found, key=str)


@pytest.mark.slow
def test_students_with_names_that_look_alike_are_listed(mixed: Path) -> None:
    """The staff imported a class list with composed names. A student's computer wrote a decomposed name."""
    submit_again(mixed, "Ada")
    decomposed = unicodedata.normalize("NFD", "Zoë")
    submit_again(mixed, decomposed)
    with classroom.gradebook_of(mixed) as gradebook:
        gradebook.update_or_create_student("Zoë")
    for _ in range(2):
        done = grade(mixed)
        for student, other in (("Ada", "ada"), ("ada", "Ada"), (decomposed, "Zoë")):
            reason = f"the name looks like that of another student, {other}: are both one student?"
            assert reason in done.attention[student]
    removed = commands.nbgrader("db", "student", "remove", "Zoë", "--force", cwd=mixed)
    assert removed.returncode == 0, removed.stderr
    assert not any("looks like" in reason for reason in grade(mixed).attention[decomposed])
