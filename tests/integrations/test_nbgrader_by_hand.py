"""Staff grade answers in words in nbgrader's formgrader. Tests read the class page before and after."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from grader.course.build import build
from grader.course.loading import load_course
from grader.integrations.nbgrader import folder
from tests import classroom, commands
from tests.reports.example_reports import Nesting
from tests.test_documented import course_of
from tests.test_written_answers import NAME, TEXT

pytest.importorskip("nbgrader")
MODULE = "01_shown"
CELL = folder.cell_name(NAME, "why_it_waits")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a course folder with three submissions. Ada and Bob answered in words, and Cy did not."""
    course = course_of(tmp_path / "course", NAME, TEXT)
    build(course)
    root = tmp_path / "c"
    folder.init(course, root)
    commands.nbgrader("generate_assignment", MODULE, cwd=root)
    book = json.loads((root / "release" / MODULE / f"{MODULE}.ipynb").read_text())
    for who in ("ada", "bob", "cy"):
        answered = json.loads(json.dumps(book))
        for cell in answered["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("grade_id") == CELL and who != "cy":
                cell["source"] = f"why_it_waits = 'It waits for all rows, says {who}.'"
        classroom.hand_in(root, who, MODULE, answered)
    return root


def give(root: Path, who: str, points: float | None, comment: str | None = None, cell: str = CELL) -> None:
    """Save a score and a comment as the formgrader does."""
    with classroom.gradebook_of(root) as gradebook:
        grade = gradebook.find_grade(cell, MODULE, MODULE, who)
        grade.manual_score, grade.needs_manual_grade = points, points is None
        if cell == CELL:  # a check cell does not accept comments
            gradebook.find_comment(cell, MODULE, MODULE, who).manual_comment = comment


def exported(root: Path) -> dict[str, float]:
    """Return each student's score, as nbgrader exports it."""
    done = commands.nbgrader("export", cwd=root)
    assert done.returncode == 0, done.stderr
    with open(root / "grades.csv", newline="") as file:
        return {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}


def graded(root: Path) -> tuple[str, dict[str, str]]:
    """Return the text of the class page, and of the students' pages."""
    done = commands.shardlings("nbgrader", "grade", str(root), MODULE, "--jobs", "1", cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = root / ".shardlings" / "pages" / MODULE
    own = {path.stem: Nesting(path.read_text()).text for path in pages.glob("*.html") if path.stem != "index"}
    return " ".join(Nesting((pages / "index.html").read_text()).text.split()), own


@pytest.mark.slow
def test_formgrader_points_settle_a_pending_answer_and_others_stay_listed(root: Path) -> None:
    page, own = graded(root)
    assert page.count(f"by hand: grade {NAME}/why_it_waits in the formgrader") == 2, (
        "ada and bob; there is nothing to read of cy"
    )
    assert "the staff reads this answer" in own["ada"] and "not answered yet" in own["cy"]

    give(root, "ada", 1.5, "no word of <b>waiting</b>")
    page, own = graded(root)
    assert page.count("by hand: grade ") == 1
    assert "1.5" in own["ada"] and "set by hand by the staff, in nbgrader: no word of <b>waiting</b>" in own["ada"]
    assert "the staff reads this answer" not in own["ada"] and "the staff reads this answer" in own["bob"]
    assert exported(root) == {"ada": 1.5, "bob": 0, "cy": 0}

    give(root, "ada", None)
    page, own = graded(root)
    assert page.count("by hand: grade ") == 2 and "set by hand" not in own["ada"], "taken back"

    give(root, "ada", 2)
    path = root / "submitted" / "ada" / MODULE / f"{MODULE}.ipynb"
    path.write_text(path.read_text().replace("for all rows", "for each row"))
    page, own = graded(root)  # ada submitted again: she keeps the manual score, and needs review
    assert (
        f"this submission was graded again, but a person had set the score of {NAME}/why_it_waits: check that score"
        in page
    )
    assert "for each row" in own["ada"] and "set by hand by the staff, in nbgrader: no comment" in own["ada"]


BOTH = '''"""# {title}

Two questions.
"""

from grader.exercise import Exercise

exercise = Exercise(extension={extension})


@exercise.number(points=1, unit="B", params={{"n": [4]}})
def {name}_bytes(n):
    """How many bytes are four numbers of float32?"""
    return 4.0 * n


@exercise.written(points=2, rubric="1 point: rows. 1 point: waiting.")
def {name}_words():
    """Why does it wait?"""
    return "For the rows."
'''


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Return a course folder in which Ada answered all questions of an exercise and of a bonus exercise."""
    course = course_of(tmp_path / "course", "plain", BOTH.format(title="Plain", name="plain", extension=False))
    extra = BOTH.format(title="Extra", name="extra", extension=True)
    (course.root / "solutions" / "01_shown" / "extra.py").write_text(extra)
    config = course.root / "course.yaml"
    config.write_text(config.read_text().replace("[plain]", "[plain, extra]"))
    course = load_course(config)
    build(course)
    root = tmp_path / "c"
    folder.init(course, root)
    commands.nbgrader("generate_assignment", MODULE, cwd=root)
    book = json.loads((root / "release" / MODULE / f"{MODULE}.ipynb").read_text())
    written = {
        folder.cell_name(name, f"{name}_{part}"): f"{name}_{part} = {answer}"
        for name in ("plain", "extra")
        for part, answer in (("bytes", "16"), ("words", "'For all of its rows.'"))
    }
    for cell in book["cells"]:
        if answer := written.get(cell["metadata"].get("nbgrader", {}).get("grade_id")):
            cell["source"] = answer
    classroom.hand_in(root, "ada", MODULE, book)
    return root


@pytest.mark.slow
def test_scores_by_hand_and_extra_credit_agree_with_nbgraders_sums(mixed: Path) -> None:
    _, own = graded(mixed)
    assert "1 of 3 points" in own["ada"] and "1 bonus point" in own["ada"] and exported(mixed) == {"ada": 2}

    give(mixed, "ada", 0.5, cell=folder.check_cell("plain"))
    _, own = graded(mixed)
    assert "set by hand" not in own["ada"], "the sum of the exercise is not known while its words are to be read"

    give(mixed, "ada", 1, cell=folder.cell_name("plain", "plain_words"))
    with classroom.gradebook_of(mixed) as gradebook:
        # In the formgrader, staff type a bonus into the field for extra credit.
        words = gradebook.find_grade(folder.cell_name("extra", "extra_words"), MODULE, MODULE, "ada")
        assert words.max_score == 0
        assert words.needs_manual_grade
        words.extra_credit = 1.5
        words.needs_manual_grade = words.manual_score is None and words.auto_score is None
    for _ in range(2):  # a second run changes nothing
        page, own = graded(mixed)
        assert "1.5 of 3 points" in own["ada"] and "2.5 bonus points" in own["ada"]
        assert own["ada"].count("set by hand by the staff, in nbgrader: no comment") == 2
        assert "by hand: grade " not in page
        assert exported(mixed) == {"ada": 4}


@pytest.mark.slow
def test_extra_credit_by_a_person_is_on_the_pages_with_a_warning(mixed: Path) -> None:
    graded(mixed)
    with classroom.gradebook_of(mixed) as gradebook:
        for cell, points in ((folder.check_cell("plain"), 1.25), (folder.cell_name("plain", "plain_words"), 0.5)):
            gradebook.find_grade(cell, MODULE, MODULE, "ada").extra_credit = points
    _, own = graded(mixed)
    assert "2.25 bonus points" in own["ada"] and exported(mixed) == {"ada": 3.25}, "the words have no score yet"
    give(mixed, "ada", 0, cell=folder.cell_name("plain", "plain_words"))
    for _ in range(2):
        page, own = graded(mixed)
        assert "1 of 3 points" in own["ada"] and "2.75 bonus points" in own["ada"] and "2.75 bonus points" in page
        assert (
            "set by hand by the staff, in nbgrader: 1.25 for plain, 0.5 for plain/plain_words" in own["ada"]
            and "Results of Extra credit" not in own["ada"]
        )
        assert "Points set by hand change the points of 1 of 1 student" in page
        assert exported(mixed) == {"ada": 3.75}


READ_CODE = '''"""# Halves

**Write** `half(n)`.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function(hints=["Divide."])
def half(n):
    """Half of n."""
    return n / 2


halves = exercise.cases(half, public=[{"n": 3}], hidden=lambda rng: [{"n": int(rng.integers(5, 99))}])


@exercise.check(halves, points=1, public=True)
def half_value(seen):
    """half: the value"""
    expect_outcomes(seen)


@exercise.code(of=half, points=2, rubric={"short": (1, "one line"), "names": (1, "clear names")})
def half_clear():
    """Is it clear?"""
    return "One line."
'''


@pytest.mark.slow
def test_code_needs_grading_in_the_formgrader_though_its_own_cell_is_unchanged(tmp_path: Path) -> None:
    course = course_of(tmp_path / "course", "halves", READ_CODE)
    build(course)
    root = tmp_path / "c"
    folder.init(course, root)
    commands.nbgrader("generate_assignment", MODULE, cwd=root)
    book = json.loads((root / "release" / MODULE / f"{MODULE}.ipynb").read_text())
    classroom.hand_in(root, "cy", MODULE, json.loads(json.dumps(book)))
    for cell in book["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == folder.cell_name("halves", "half"):
            cell["source"] = "def half(n):\n    return n / 2"
    classroom.hand_in(root, "ada", MODULE, book)

    page, own = graded(root)
    assert page.count("by hand: grade halves/half_clear in the formgrader") == 1, "there is nothing to read of cy"
    assert "def half(n):" in own["ada"] and "needs grading" in own["ada"] and "not answered yet" in own["cy"]
    cell = folder.cell_name("halves", "half_clear")
    with classroom.gradebook_of(root) as gradebook:
        grade = gradebook.find_grade(cell, MODULE, MODULE, "ada")
        assert grade.needs_manual_grade and grade.auto_score is None
    with classroom.gradebook_of(root) as gradebook:
        grade = gradebook.find_grade(cell, MODULE, MODULE, "ada")
        grade.manual_score, grade.needs_manual_grade = 1.5, False
    page, own = graded(root)
    assert "by hand: grade " not in page and "2.5 of 3 points" in own["ada"]
    assert exported(root) == {"ada": 2.5, "cy": 0}
