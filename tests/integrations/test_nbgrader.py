"""The nbgrader flow with nbgrader's own commands, on a small course."""

from __future__ import annotations

import html
import json
import os
import random
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest
from typer.testing import CliRunner

from grader.batch.replies import run_fault
from grader.cli import app
from grader.cli.console import BROKEN
from grader.common.result import ExerciseReport, Report, Result
from grader.course.loading import Course, load_course
from grader.intake.parsers import Parsers
from grader.intake.submission import Place
from grader.integrations.nbgrader import cells, folder, scan
from grader.integrations.nbgrader.repair import ReleasedCell, repair
from grader.judging.answers import params_for
from grader.sandbox.worker import WorkerDied
from tests import classroom, commands
from tests.commands import ROOT, one_line
from tests.test_unlucky import can_mount
from tests.watched import parsed_by

pytest.importorskip("nbgrader")
MODULE = "03_matmuls"
C1, C3, C5 = "c1_no_communication", "c3_contracting", "c5_choose"
ALL_DONE = {C1: "done", C3: "done", C5: "done"}


@pytest.fixture(scope="session")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return classroom.copied(tmp_path_factory.mktemp("course") / "c", **{MODULE: [C1, C3, C5]})


def nbgrader(root: Path, *args: str, fails: bool = False, env: dict[str, str] | None = None) -> str:
    """Run an nbgrader command in a course folder, and return its log."""
    done = commands.nbgrader(*args, cwd=root, **(env or {}))
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def released(course: Course, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a course folder with one generated assignment. Tests that change the folder must copy it first."""
    root = tmp_path_factory.mktemp("nbgrader") / "c"
    folder.init(course, root)
    nbgrader(root, "generate_assignment", MODULE)
    return root


@pytest.fixture
def root(released: Path, tmp_path: Path) -> Path:

    return Path(shutil.copytree(released, tmp_path / "c"))


def book_of(root: Path) -> dict[str, Any]:
    return json.loads((root / "release" / MODULE / f"{MODULE}.ipynb").read_text(encoding="utf-8"))


@contextmanager
def quiet(total: int, what: str):
    yield lambda who: None


def grade(root: Path, **options: Any):
    from grader.integrations.nbgrader import batch

    return batch.grade(root, MODULE, quiet, jobs=2, **options)


def rows(root: Path, student: str = "") -> list[tuple]:
    """Return the scores, comments and times in the gradebook, of one student or ("") of all students."""
    found: list[tuple] = []
    with classroom.gradebook_of(root) as gradebook:
        for one in gradebook.assignment_submissions(MODULE):
            who: Any = one.student.id
            if student in ("", who):
                found.append((who, str(one.timestamp), one.score, one.max_score, one.needs_manual_grade))
                for book in one.notebooks:
                    found.append((who, book.name, book.late_submission_penalty, book.score))
                    found += [
                        (who, g.name, g.auto_score, g.manual_score, g.extra_credit, g.needs_manual_grade)
                        for g in book.grades
                    ]
                    found += [(who, c.name, c.auto_comment, c.manual_comment) for c in book.comments]
    return sorted(found, key=repr)


def scores(root: Path, student: str) -> dict[str, float]:
    return {r[1].removesuffix("-check"): r[2] for r in rows(root, student) if r[1].endswith("-check")}


def comments(root: Path, student: str) -> dict[str, str]:
    return {r[1]: r[2] or "" for r in rows(root, student) if len(r) == 4 and "-" in r[1]}


# -- the folder --------------------------------------------------------------------------------


def test_check_cells_have_the_points_of_the_course(course: Course, released: Path) -> None:
    marks = [c["metadata"].get("nbgrader", {}) for c in book_of(released)["cells"]]
    points = {m["grade_id"]: m["points"] for m in marks if m.get("grade")}
    assert points == {
        folder.check_cell(C1): course.exercise(C1).points,
        folder.check_cell(C3): course.exercise(C3).points,
        folder.check_cell(C5): 0,  # C5 is an extension, so its points are extra credit
    }


def test_the_released_notebook_has_the_cells_of_the_learners_notebook(course: Course, released: Path) -> None:
    given = json.loads((course.root / "exercises" / MODULE / f"{MODULE}.ipynb").read_text())
    own = {c["id"]: "".join(c["source"]) for c in given["cells"]}
    for cell in book_of(released)["cells"]:
        text = "".join(cell["source"])
        if cell["metadata"].get("nbgrader", {}).get("grade"):
            assert text.startswith("# Checks of ") and text.endswith(own[cell["id"]])
        else:
            assert text.replace(folder.OUR_CHECK, "from grader.notebook import check") == own[cell["id"]]


def test_init_twice_changes_nothing_and_keeps_the_settings(course: Course, root: Path) -> None:
    (root / "nbgrader_config.py").write_text("# mine\n")
    assert folder.init(course, root) == []
    assert (root / "nbgrader_config.py").read_text() == "# mine\n"


def test_the_settings_name_the_course_by_its_full_path(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path would be wrong for commands that run in the new folder."""
    monkeypatch.chdir(course.root.parent)
    folder.init(load_course(Path(course.root.name) / "course.yaml"), tmp_path)
    assert f"course={str(course.root.resolve() / 'course.yaml')!r}" in (tmp_path / "nbgrader_config.py").read_text()


# -- grading -----------------------------------------------------------------------------------


def a_class(course: Course, root: Path) -> None:
    book = book_of(root)
    misconception = next(s.name for s in course.exercise(C3).misconceptions.values() if s.fails)
    for student, choices in {
        "ada": ALL_DONE,
        "bob": {C1: "done", C3: misconception},
        "cy": {},
    }.items():
        classroom.hand_in(
            root, student, MODULE, classroom.fill(book, course, MODULE, choices), "2026-11-01 10:00:00 UTC"
        )


@pytest.mark.slow
def test_the_flow_with_nbgraders_own_commands(course: Course, root: Path) -> None:
    a_class(course, root)
    nbgrader(root, "autograde", MODULE)
    assert scores(root, "ada") == {C1: course.exercise(C1).points, C3: course.exercise(C3).points, C5: 0}
    extra = [r[4] for r in rows(root, "ada") if r[1] == folder.check_cell(C5)]
    assert extra == [course.exercise(C5).points]
    assert not any(comments(root, "ada").values())
    assert scores(root, "bob")[C1] == course.exercise(C1).points
    assert 0 < scores(root, "bob")[C3] < course.exercise(C3).points
    assert any("Hint:" in text for text in comments(root, "bob").values())
    assert set(scores(root, "cy").values()) == {0.0}
    assert set(comments(root, "cy").values()) == {"No response."}
    nbgrader(root, "generate_feedback", MODULE)
    page = (root / "feedback" / "bob" / MODULE / f"{MODULE}.html").read_text(encoding="utf-8")
    assert "Hint:" in page and "hidden data" in page

    from_nbgrader = rows(root)
    books = {p: p.read_bytes() for p in (root / "autograded").rglob("*.ipynb")}
    (root / "gradebook.db").unlink()
    nbgrader(root, "generate_assignment", MODULE, "--force")
    done = grade(root)
    assert done.graded == ["ada", "bob", "cy"] and not done.failures
    assert rows(root) == from_nbgrader
    assert {p: p.read_bytes() for p in (root / "autograded").rglob("*.ipynb")} == books


@pytest.mark.slow
def test_only_what_changed_is_graded_again(course: Course, root: Path) -> None:
    a_class(course, root)
    assert grade(root).graded == ["ada", "bob", "cy"]
    assert grade(root).kept == ["ada", "bob", "cy"]
    classroom.hand_in(root, "cy", MODULE, classroom.fill(book_of(root), course, MODULE, {C1: "done"}))
    again = grade(root)
    assert (again.graded, again.kept) == (["cy"], ["ada", "bob"])
    assert scores(root, "cy")[C1] == course.exercise(C1).points


@pytest.mark.slow
def test_manual_scores_and_comments_survive_a_regrade(course: Course, root: Path) -> None:
    a_class(course, root)
    grade(root)
    with classroom.gradebook_of(root) as gradebook:
        one = gradebook.find_grade(folder.check_cell(C1), MODULE, MODULE, "bob")
        one.manual_score, one.extra_credit = 2.5, 0.5
        comment = gradebook.find_comment(folder.cell_name(C1, "matmul_local"), MODULE, MODULE, "bob")
        comment.manual_comment = "Nice."
    before = [r for r in rows(root, "bob") if "Nice." in r or 2.5 in r]
    for regrade in (lambda: grade(root, again=True), lambda: nbgrader(root, "autograde", MODULE, "--force")):
        regrade()
        after = [r for r in rows(root, "bob") if "Nice." in r or 2.5 in r]
        assert [r[:5] for r in after] == [r[:5] for r in before]
        assert next(r for r in after if 2.5 in r)[5]  # nbgrader still marks the cell for a manual check


@pytest.mark.slow
def test_late_penalties_are_the_configured_plugins(course: Course, root: Path) -> None:
    with open(root / "nbgrader_config.py", "a") as settings:
        settings.write("c.LateSubmissionPlugin.penalty_method = 'zero'\n")
    a_class(course, root)
    with classroom.gradebook_of(root) as gradebook:
        gradebook.update_or_create_assignment(MODULE, duedate="2026-10-31 10:00:00 UTC")
    warning = grade(root).warnings[0]
    assert warning.startswith("Late penalties change the points of 2 of 2 students: the class mean is 0%, and ")
    pages = root / ".shardlings" / "pages" / MODULE
    page = (pages / "index.html").read_text()
    assert 'href="./ada.html"' in page and warning in page.split("<main")[0]
    assert "handed in 24 h late" not in page, "ada and bob lost points, and cy wrote nothing"
    lost = course.exercise(C1).points + course.exercise(C3).points + course.exercise(C5).points
    assert f"handed in 24 h late: {lost:g} points off" in (pages / "ada.html").read_text()
    ours = rows(root)
    assert next(r[2] for r in ours if r[:2] == ("ada", MODULE)) > 0
    nbgrader(root, "autograde", MODULE, "--force")
    assert rows(root) == ours


@pytest.mark.slow
def test_a_changed_tolerance_heads_the_output_and_names_are_shown(course: Course, root: Path, tmp_path: Path) -> None:
    own = Path(shutil.copytree(course.root, tmp_path / "own")) / "course.yaml"
    with open(root / "nbgrader_config.py", "a") as settings:
        settings.write(f"c.Shardlings.course = {str(own)!r}\n")
    with classroom.gradebook_of(root) as gradebook:
        gradebook.add_student("ada", first_name="Ada", last_name="Lovelace")
    for student in ("ada", "bob"):
        about = classroom.fill(book_of(root), course, MODULE, ALL_DONE, random.Random(student))
        classroom.hand_in(root, student, MODULE, about)
    (root / "submitted" / "ada" / MODULE / "book.db").symlink_to(root / "gradebook.db")
    words = ("nbgrader", "grade", ".", MODULE)
    first = shardlings(root, *words)
    assert "ada (Ada Lovelace)" in first and "Since the last run" not in first
    assert own.read_text().count("numbers: 0.02") == 1
    own.write_text(own.read_text().replace("numbers: 0.02", "numbers: 0.00001"))
    again = shardlings(root, *words)
    line = (
        "Since the last run, causes other than new submissions change the points of 2 of 2 students: the class mean is "
    )
    warning = next(text for text in again.splitlines() if text.startswith(line))
    assert again.index(warning) < again.index("2 graded, 0 unchanged") and "Causes: the course changed" in warning
    pages = root / ".shardlings" / "pages" / MODULE
    page = (pages / "index.html").read_text()
    assert warning in page.split("<main")[0] and "Ada Lovelace" in page
    assert "Ada Lovelace" in (pages / "ada.html").read_text()
    assert "Since the last run" not in shardlings(root, *words)
    with classroom.gradebook_of(root) as gradebook:
        gradebook.update_or_create_student("ada", last_name="King")
    shardlings(root, *words)
    assert "Ada King" in (pages / "ada.html").read_text()


@pytest.mark.slow
def test_changed_points_are_reported_before_grading_starts(course: Course, root: Path) -> None:
    from grader.course.config import CourseError

    a_class(course, root)
    with classroom.gradebook_of(root) as gradebook:
        gradebook.update_or_create_grade_cell(folder.check_cell(C1), MODULE, MODULE, max_score=99)
    with pytest.raises(CourseError, match="generate_assignment --force"):
        grade(root)


def test_the_replaced_package_is_the_one_that_jsonschema_imports() -> None:
    """The grader puts None in place of the package ``rfc3987_syntax`` to save time.

    The test fails if jsonschema imports a different package.
    """
    text = """
import sys
import grader.integrations.nbgrader
import nbformat
nbformat.validate(nbformat.v4.new_notebook())
import inspect, jsonschema._format
assert "from rfc3987_syntax import" in inspect.getsource(jsonschema._format)
print(sys.modules["rfc3987_syntax"], "lark" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.split() == ["None", "False"], done.stderr


# -- damage ------------------------------------------------------------------------------------

Book = dict[str, Any]


def marks(cell: Any) -> dict[str, Any]:
    return cell["metadata"].get("nbgrader", {})


def without_checks(book: Book) -> None:
    book["cells"] = [c for c in book["cells"] if not marks(c).get("grade")]


def without_marks(book: Book) -> None:
    for number, cell in enumerate(book["cells"]):
        cell["metadata"], cell["id"] = {}, f"x{number}"


def shuffled(book: Book) -> None:
    """Reverse the order of the tasks' cells."""
    solutions = [i for i, c in enumerate(book["cells"]) if marks(c).get("solution")]
    moved = [book["cells"][i] for i in reversed(solutions)]
    for i, cell in zip(solutions, moved, strict=True):
        book["cells"][i] = cell


def doubled(book: Book) -> None:
    book["cells"] = [c for cell in book["cells"] for c in (cell, json.loads(json.dumps(cell)))]


def retyped(book: Book) -> None:
    for cell in book["cells"]:
        if marks(cell):
            cell["cell_type"] = "markdown"
            cell.pop("outputs", None)
            cell.pop("execution_count", None)


def wrong_ids(book: Book) -> None:
    found = [c for c in book["cells"] if marks(c)]
    names = [marks(c)["grade_id"] for c in found]
    for cell, name in zip(found, names[1:] + names[:1], strict=True):
        marks(cell)["grade_id"] = name


def edited_checks(book: Book) -> None:
    for cell in book["cells"]:
        if marks(cell).get("grade"):
            cell["source"] = "1e9"


def magics(book: Book) -> None:
    for cell in book["cells"]:
        if marks(cell).get("solution"):
            cell["source"] = "%matplotlib inline\n!ls\n" + "".join(cell["source"])


def noisy(book: Book) -> None:
    book["cells"].insert(2, nbformat.v4.new_code_cell("raise SystemExit('stop')"))
    book["cells"].append(nbformat.v4.new_code_cell("1 / 0"))
    book["cells"].append({"cell_type": "code"})
    book["cells"].append(17)


def bad_metadata(book: Book) -> None:
    for number, cell in enumerate(book["cells"]):
        cell["metadata"] = {"nbgrader": [None, 3, {"grade_id": 4}, {"grade": "yes", "points": "many"}][number % 4]}


HARMLESS = [without_checks, without_marks, shuffled, doubled, retyped, wrong_ids, edited_checks, magics, noisy]
USELESS: dict[str, bytes] = {
    "empty": b"",
    "no JSON": b"{",
    "no notebook": b"[1, 2]",
    "no text": b"\xff\xfe\x00\x01",
    "no cells": b'{"cells": 7, "nbformat": 4}',
    "odd cells": b'{"cells": [null, {"cell_type": "code", "source": 5}], "nbformat": 4, "metadata": {}}',
}


@pytest.mark.slow
def test_a_damaged_notebook_keeps_the_points_of_its_functions(course: Course, root: Path) -> None:
    for hurt in [*HARMLESS, bad_metadata]:
        book = classroom.fill(book_of(root), course, MODULE, ALL_DONE)
        hurt(book)
        classroom.hand_in(root, hurt.__name__, MODULE, book)
    for name, data in USELESS.items():
        classroom.hand_in(root, name.replace(" ", "_"), MODULE, data)
    done = grade(root)
    assert not done.failures
    full = {C1: course.exercise(C1).points, C3: course.exercise(C3).points, C5: 0}
    whole = {h.__name__: scores(root, h.__name__) for h in HARMLESS}
    assert whole == dict.fromkeys(whole, full)
    for name in USELESS:
        assert set(scores(root, name.replace(" ", "_")).values()) == {0.0}
    ours = rows(root)
    nbgrader(root, "autograde", MODULE, "--force")
    assert rows(root) == ours


def known_of(book: Book) -> list[ReleasedCell]:
    return [
        ReleasedCell(m["grade_id"], c["cell_type"], "".join(c["source"]), m["checksum"], m.get("points"), m["solution"],
              m["task"], m["locked"])
        for c in book["cells"] if (m := marks(c))
    ]  # fmt: skip


@pytest.mark.parametrize("hurt", HARMLESS, ids=lambda h: h.__name__)
def test_repair_restores_each_known_cell_once_and_notes_the_damage(
    hurt: Callable[[Book], None], course: Course, released: Path, tmp_path: Path
) -> None:
    known = known_of(book_of(released))
    book = classroom.fill(book_of(released), course, MODULE, ALL_DONE)
    hurt(book)
    path = tmp_path / f"{MODULE}.ipynb"
    path.write_text(json.dumps(book))
    repaired = repair(path, "ada", known, [C1, C3, C5], folder.texts_given(course))
    names = [marks(n)["grade_id"] for n in repaired.cells if marks(n)]
    assert sorted(names) == sorted(k.name for k in known)
    assert len({n.id for n in repaired.cells}) == len(repaired.cells)
    assert repaired.submission.notes or hurt is shuffled
    assert repaired.unread == (("damaged cells were left out: 33, 34",) if hurt is noisy else ())
    own = next(n for n in repaired.cells if marks(n).get("grade_id") == folder.cell_name(C1, "matmul_local"))
    assert "def matmul_local" in own.source and own.cell_type == "code"
    nbformat.validate(nbformat.from_dict({"cells": repaired.cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))


def test_any_bytes_are_repaired(released: Path, tmp_path: Path) -> None:
    """Change random bytes of a notebook. The repair raises no exception and returns every known cell once."""
    known = known_of(book_of(released))
    text = json.dumps(book_of(released)).encode()
    rng = random.Random(0)
    path = tmp_path / "x.ipynb"
    for _ in range(150):
        data = bytearray(text)
        for _ in range(rng.randrange(1, 20)):
            at = rng.randrange(len(data))
            data[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
        path.write_bytes(data)
        repaired = repair(path, "ada", known, [C1], frozenset())
        names = [marks(n)["grade_id"] for n in repaired.cells if marks(n)]
        assert sorted(names) == sorted(k.name for k in known)


# -- outputs -----------------------------------------------------------------------------------


def report_of(**changes: Any) -> Report:
    result = Result(kind="check", name="v", label="<b>x</b> `y`", task="t", status="failed", points=2, earned=0,
                    public=True, reason="[a](javascript:x) <script>alert(1)</script> $x$ ![i](u)")  # fmt: skip
    exercise = ExerciseReport(exercise="e", module="m", title="E", points=2, earned=0, pending=0, results=[result])
    return Report(student="s", course="c", versions={}, isolation="none", backend="cpu", fingerprint="f", points=2,
                  earned=0, pending=0, exercises=[exercise.model_copy(update=changes)])  # fmt: skip


def test_an_unknown_graded_cell_gets_an_error_and_no_points() -> None:
    cell = nbformat.v4.new_code_cell("", metadata={"nbgrader": {"grade": True, "solution": False, "grade_id": "mine"}})
    cells.fill([cell], report_of(), {}, {"mine": 3.0})
    assert [o.output_type for o in cell.outputs] == ["error"]


@pytest.mark.parametrize(("earned", "number"), [(1.5, "1.5"), (0, "0.0"), (7, "2.0"), (-3, "0.0")])
def test_a_grade_cell_says_one_plain_number_within_its_points(earned: float, number: str) -> None:
    report = report_of(earned=earned)
    made = cells.outputs(report, report.exercises[0], 2.0, notes=True)
    assert [o.output_type for o in made] == ["display_data", "execute_result"]
    assert made[1]["data"]["text/plain"] == number


@pytest.mark.parametrize("earned", [float("nan"), float("inf")])
def test_nan_or_infinite_points_give_an_error_and_no_points(earned: float) -> None:
    from nbgrader.utils import determine_grade

    report = report_of(earned=earned)
    cell = nbformat.v4.new_code_cell("", metadata={"nbgrader": {"grade": True, "solution": False, "points": 2}})
    cell.outputs = cells.outputs(report, report.exercises[0], 2.0, notes=True)
    assert cell.outputs[0].output_type == "error"
    assert determine_grade(cell)[0] == 0


def test_comments_are_escaped_for_markdown_and_html() -> None:
    from nbconvert.filters import markdown2html

    text = cells.comment(report_of().exercises[0], "t") or ""
    page = markdown2html(text)
    assert "<script" not in page and "<b>" not in page and "href" not in page and "<img" not in page
    assert "$" not in page and "alert(1)" in page


def test_the_comment_says_that_a_program_crashed_xla_twice() -> None:
    died = WorkerDied("died", phase="executing")
    died.ours = False
    (failed,) = report_of().exercises[0].results
    failed = failed.model_copy(update={"reason": f"t: {run_fault(died, 60).message}"})
    text = cells.comment(report_of(results=[failed]).exercises[0], "t") or ""
    assert "t: XLA ended the process twice while running this program" in text


# -- the exchange and zips ---------------------------------------------------------------------


def with_exchange(root: Path, place: Path) -> dict[str, str]:
    """Add an exchange folder to the course's settings. Return the environment of a student's nbgrader commands."""
    exchange, home = place / "exchange", place / "home"
    exchange.mkdir(mode=0o777)
    exchange.chmod(0o777)
    (home / ".jupyter").mkdir(parents=True)
    line = f"c.Exchange.root = {str(exchange)!r}\nc.CollectApp.check_owner = False\n"
    with open(root / "nbgrader_config.py", "a") as settings:
        settings.write(line)
    (home / ".jupyter" / "nbgrader_config.py").write_text(
        f"c = get_config()\nc.CourseDirectory.course_id = 'shardlings'\n{line}"
    )
    return {"HOME": str(home), "JUPYTER_CONFIG_DIR": str(home / ".jupyter"), "JUPYTER_DATA_DIR": str(home / "data")}


@pytest.mark.slow
def test_the_exchange_carries_submissions_and_feedback(course: Course, root: Path, tmp_path: Path) -> None:
    student = with_exchange(root, tmp_path)
    own = tmp_path / "own"
    own.mkdir()
    nbgrader(root, "release_assignment", MODULE, env=student)
    nbgrader(own, "fetch_assignment", MODULE, env=student)
    book = own / MODULE / f"{MODULE}.ipynb"
    book.write_text(json.dumps(classroom.fill(json.loads(book.read_text()), course, MODULE, ALL_DONE)))
    handed = shardlings(own / MODULE, "submit", MODULE, env=student)
    assert "handed in: shardlings 03_matmuls" in handed
    nbgrader(root, "collect", MODULE, env=student)
    who = next((root / "submitted").iterdir()).name
    nbgrader(root, "autograde", MODULE, env=student)
    assert scores(root, who)[C1] == course.exercise(C1).points
    nbgrader(root, "generate_feedback", MODULE, env=student)
    nbgrader(root, "release_feedback", MODULE, env=student)
    nbgrader(own, "fetch_feedback", MODULE, env=student)
    assert list(own.rglob("feedback/*/*.html"))
    nbgrader(root, "export", env=student)
    lines = (root / "grades.csv").read_text().splitlines()
    assert len(lines) == 2 and who in lines[1]


def shardlings(where: Path, *args: str, fails: bool = False, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "grader", *args], cwd=where, env=os.environ | {"COLUMNS": "200"} | (env or {}),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_zips_of_another_platform_are_collected(course: Course, root: Path) -> None:
    import zipfile

    place = root / "downloaded" / MODULE / "archive"
    place.mkdir(parents=True)
    with zipfile.ZipFile(place / "all.zip", "w") as archive:
        for who in ("ada", "bob"):
            book = classroom.fill(book_of(root), course, MODULE, {C1: "done"})
            archive.writestr(f"{who}_{MODULE}.ipynb", json.dumps(book))
    with open(root / "nbgrader_config.py", "a") as settings:
        settings.write(
            f"c.FileNameCollectorPlugin.named_regexp = r'^(?:.*/)?(?P<student_id>[a-z]+)_(?P<file_id>{MODULE})'\n"
        )
    nbgrader(root, "zip_collect", MODULE)
    assert grade(root).graded == ["ada", "bob"]
    assert scores(root, "bob")[C1] == course.exercise(C1).points


@pytest.mark.slow
def test_validate_reports_success_or_failed_checks(course: Course, root: Path) -> None:
    place = root / "release" / MODULE
    assert "failed" in nbgrader(place, "validate", f"{MODULE}.ipynb")
    book = classroom.fill(book_of(root), course, MODULE, ALL_DONE)
    (place / f"{MODULE}.ipynb").write_text(json.dumps(book))
    assert "Success" in nbgrader(place, "validate", f"{MODULE}.ipynb")


# -- leaks, kills and full disks ---------------------------------------------------------------


@pytest.mark.slow
def test_no_solution_seed_or_answer_leaks_to_students(course: Course, root: Path) -> None:
    book = book_of(root)
    for n, choices in enumerate([{}, {C1: "left", C3: "left"}, {C5: "left"}]):
        classroom.hand_in(root, f"s{n}", MODULE, classroom.fill(book, course, MODULE, choices))
    misconceptions = [s.name for s in course.exercise(C3).misconceptions.values()][:4]
    for n, misconception in enumerate(misconceptions):
        classroom.hand_in(root, f"t{n}", MODULE, classroom.fill(book, course, MODULE, {C3: misconception}))
    grade(root)
    nbgrader(root, "generate_feedback", MODULE)
    assert {p.name for p in root.iterdir()} >= set(scan.STEPS)
    assert list(scan.scan(course, root, Parsers())) == []

    planted = {
        "a line of c3_contracting/reduced_traffic": "    expect_spec(seen.out, P())",
        "the course's seed": course.config.seed,
    }
    texts = course.exercise(C3).source.splitlines()
    planted["a line of c3_contracting/matmul_reduce_scatter"] = next(t for t in texts if "return jax.lax.psum_s" in t)
    question = course.exercise(C3).questions["scatter_time"]
    value = question(**params_for(question, seed=course.config.variants.seed, student=None))
    planted["the answer to scatter_time"] = f"expected {value:.9g}"
    for step in scan.STEPS:
        place = root / step / ("s1" if step in ("submitted", "autograded", "feedback") else "") / MODULE
        for what, text in planted.items():
            for file in ("told.txt", "told.html", "told.ipynb"):
                written = json.dumps({"cells": [{"source": ["x\n", text]}]}) if file.endswith("ipynb") else text
                (place / file).write_text(written)
                found = [leak for path, leak in scan.scan(course, root, Parsers()) if path.name == file]
                own = step == "submitted" and what.split("/")[-1] in (
                    "matmul_reduce_scatter",
                    "the answer to scatter_time",
                )
                assert any(leak.startswith(what) for leak in found) is not own, (step, what, file)
                (place / file).unlink()


@pytest.mark.slow
@pytest.mark.parametrize("kills", [2])
def test_a_killed_batch_resumes_with_equal_results(kills: int, course: Course, root: Path) -> None:
    import signal

    classroom.make_class(course, root, MODULE, 5)
    calm = Path(shutil.copytree(root, root.parent / "calm"))
    grade(calm)
    rng = random.Random(1)
    for _ in range(kills):
        batch = subprocess.Popen(
            [sys.executable, "-m", "grader", "nbgrader", "grade", str(root), MODULE, "-j", "2"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            batch.wait(rng.uniform(3, 7))
        except subprocess.TimeoutExpired:
            os.killpg(batch.pid, signal.SIGKILL)
            batch.wait()
    grade(root)
    assert rows(root) == rows(calm)
    books = {str(p.relative_to(calm)): p.read_bytes() for p in (calm / "autograded").rglob("*.ipynb")}
    assert {str(p.relative_to(root)): p.read_bytes() for p in (root / "autograded").rglob("*.ipynb")} == books


@pytest.mark.slow
@pytest.mark.skipif(not can_mount(), reason="a small disk can only be mounted by the superuser")
@pytest.mark.parametrize("room", [pytest.param(0, marks=pytest.mark.by_hand), 16])
def test_a_full_disk_is_reported_in_one_line_and_the_batch_goes_on(
    room: int, course: Course, root: Path, tmp_path: Path
) -> None:
    """Grade on a disk with only ``room`` KiB left, and again with enough space. The second run completes the batch."""
    a_class(course, root)
    calm, disk, then = tmp_path / "calm", tmp_path / "disk", tmp_path / "then"
    shutil.copytree(root, calm)
    grade(calm, isolation="none")
    disk.mkdir()
    script = """
mount -t tmpfs -o size=32m tmpfs "$1" && cp -a "$2" "$1/c" || exit 98
dd if=/dev/zero of="$1/fill" bs=4k 2>/dev/null
truncate -s "-$3K" "$1/fill"
disk="$1" then="$4"; shift 4
"$@"; code=$?
rm "$disk/fill"
"$@" >"$then.told" 2>&1 || { cat "$then.told"; exit 99; }
cp -a "$disk/c" "$then"
exit $code
"""
    again = [sys.executable, "-m", "grader", "nbgrader", "grade", str(disk / "c"), MODULE, "--isolation", "none"]
    run = ["unshare", "-m", "bash", "-c", script, "bash", str(disk), str(root), str(room), str(then), *again]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300)
    line = one_line(done)
    assert (
        line.startswith(f"shardlings: cannot use {disk}/c/")
        and "; mend the cause and run the same command again" in line
    )
    assert rows(then) == rows(calm)


@pytest.mark.slow
def test_a_submission_reaches_no_file_and_no_kernel(course: Course, root: Path, tmp_path: Path) -> None:
    from grader.sandbox.tiers import NoIsolation, best_tier

    try:
        best_tier("auto")
    except NoIsolation:
        pytest.skip("no sandbox works here")
    mark = tmp_path / "was-here"
    book = classroom.fill(book_of(root), course, MODULE, ALL_DONE)
    evil = (
        f"import os, pathlib\nfor p in ({str(mark)!r}, {str(root / 'gradebook.db')!r}):\n"
        "    try:\n        open(p, 'ab').write(b'x')\n    except OSError:\n        pass\n"
        f"try:\n    found = len(pathlib.Path({str(course.root / 'course.yaml')!r}).read_text())\n"
        "except OSError:\n    found = None\nflops_per_device = found\n"
    )
    where = [c.get("metadata", {}).get("nbgrader", {}).get("grade_id") for c in book["cells"]]
    book["cells"].insert(where.index(folder.check_cell(C1)), nbformat.v4.new_code_cell(evil))
    classroom.hand_in(root, "eve", MODULE, book)
    before = (root / "gradebook.db").read_bytes()
    nbgrader(root, "autograde", MODULE)
    assert not mark.exists() and before[:16] == (root / "gradebook.db").read_bytes()[:16]
    assert "not answered yet" in comments(root, "eve")[folder.cell_name(C1, "flops_per_device")]


# -- needs review ------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_command_parses_a_submission(course: Course, root: Path) -> None:
    book = classroom.fill(book_of(root), course, MODULE, {C1: "done"})
    book["cells"].append({"cell_type": "code", "source": "# MARKED\n!ls", "metadata": {}, "outputs": []})
    classroom.hand_in(root, "bob", MODULE, book)
    seen, done = parsed_by("nbgrader", "grade", str(root), MODULE, cwd=root.parent)
    assert seen == set() and "1 graded" in done.stdout, done.stdout + done.stderr
    seen, done = parsed_by("nbgrader", "scan", str(root), cwd=root.parent)
    assert seen == set() and "nothing leaks" in done.stdout, done.stdout + done.stderr
    seen, done = parsed_by(
        "autograde", MODULE, "--force", cwd=root, run="from nbgrader.apps.nbgraderapp import main; main()"
    )
    assert seen == {"json"}, done.stdout + done.stderr  # nbgrader itself reads the notebook that the grader rebuilt
    assert scores(root, "bob")[C1] == course.exercise(C1).points


@pytest.mark.slow
def test_nbgrader_reads_only_the_rebuilt_notebook(course: Course, root: Path) -> None:
    """The rebuilt notebook lacks the submitted cells' own metadata, so no process of nbgrader parses this mark."""
    book = classroom.fill(book_of(root), course, MODULE, {C1: "done"})
    book["cells"][0]["metadata"]["note"] = "MARKED"
    classroom.hand_in(root, "bob", MODULE, book)
    for words in (("autograde", MODULE, "--force"), ("generate_feedback", MODULE)):
        seen, done = parsed_by(*words, cwd=root, run="from nbgrader.apps.nbgraderapp import main; main()")
        assert seen == set(), (words, done.stdout + done.stderr)
    assert scores(root, "bob")[C1] == course.exercise(C1).points


@pytest.mark.slow
def test_all_cases_that_need_review_are_listed_with_their_reason(course: Course, root: Path) -> None:
    a_class(course, root)
    grade(root)
    with classroom.gradebook_of(root) as gradebook:
        one = gradebook.find_grade(folder.check_cell(C1), MODULE, MODULE, "bob")
        one.manual_score = 2.5
    classroom.hand_in(root, "bob", MODULE, classroom.fill(book_of(root), course, MODULE, {C1: "done"}))
    classroom.hand_in(root, "dan", MODULE, b"{")
    foreign = book_of(root) | {"cells": [nbformat.v4.new_code_cell("def local_shape():\n    return 1")]}
    classroom.hand_in(root, "eve", MODULE, foreign)
    classroom.hand_in(root, "jo", MODULE, book_of(root))
    (root / "submitted" / "jo" / MODULE / f"{MODULE}-Copy1.ipynb").write_text(json.dumps(book_of(root)))
    for who, name in {
        "fay": "my work.ipynb",
        "gus": "01_layout.ipynb",
        "hal": "notes.txt",
        "ivy": f"a/{MODULE}.ipynb",
    }.items():
        path = root / "submitted" / who / MODULE / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(book_of(root)))
    done = shardlings(root, "nbgrader", "grade", ".", MODULE, "--json", fails=True)
    found = json.loads(done[done.index("{\n") : done.rindex("}") + 1])["attention"]
    assert found == {
        "bob": [f"this submission was graded again, but a person had set the score of {C1}: check that score"],
        "dan": [f"{MODULE}.ipynb is not a notebook: line 1 is not JSON; export it again from Jupyter"],
        "eve": [f"nothing of this assignment is in {MODULE}.ipynb: is it another assignment's notebook?"],
        "fay": [f"not graded: no {MODULE}.ipynb was submitted, only my work.ipynb; if that is the notebook, rename it"],
        "gus": [
            f"not graded: no {MODULE}.ipynb was submitted, only 01_layout.ipynb; if that is the notebook, rename it"
        ],
        "hal": ["not graded: handed in without a notebook"],
        "ivy": [f"not graded: no {MODULE}.ipynb was handed in: a/{MODULE}.ipynb is in a subfolder; move it out"],
        "jo": [
            f"the grader found no work in the graded notebook, and did not read these notebooks: {MODULE}-Copy1.ipynb"
        ],
    }
    printed = shardlings(
        root, "nbgrader", "grade", ".", MODULE, fails=True
    )  # a second run has the same result and output as the first
    assert "class page, for the staff: " in printed
    page = (root / ".shardlings" / "pages" / MODULE / "index.html").read_text()
    for who, reasons in found.items():
        assert who in page and html.escape(reasons[0], quote=False) in page.replace("&#39;", "'")
    assert "Needs review" in printed and "graded again, but a person had set" in printed
    assert "hal was not graded: handed in without a notebook" in printed


@pytest.mark.slow
def test_a_changed_late_policy_changes_the_score(course: Course, root: Path) -> None:
    """The grader makes all reports again under the new policy. ``autograde`` and ``grade`` make equal reports."""
    a_class(course, root)
    with classroom.gradebook_of(root) as gradebook:
        gradebook.update_or_create_assignment(MODULE, duedate="2026-10-31 10:00:00 UTC")
    grade(root)
    assert not next(r[2] for r in rows(root) if r[:2] == ("ada", MODULE))
    with open(root / "nbgrader_config.py", "a") as settings:
        settings.write("c.LateSubmissionPlugin.penalty_method = 'zero'\n")
    again = shardlings(root, "nbgrader", "grade", ".", MODULE)
    assert "3 graded, 0 unchanged" in again
    assert next(r[2] for r in rows(root) if r[:2] == ("ada", MODULE)) > 0
    nbgrader(root, "autograde", MODULE, "--force")
    assert "0 graded, 3 unchanged" in shardlings(root, "nbgrader", "grade", ".", MODULE)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root, to do without its powers")
def test_a_notebook_the_grader_may_not_read_is_not_graded(course: Course, root: Path) -> None:
    a_class(course, root)
    path = root / "submitted" / "bob" / MODULE / f"{MODULE}.ipynb"
    path.chmod(0)
    mere = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", sys.executable, "-m", "grader"]
    done = subprocess.run([*mere, "nbgrader", "grade", str(root), MODULE], capture_output=True, text=True, check=False)
    assert done.returncode == 3 and "2 graded, 0 unchanged" in done.stdout, done.stdout + done.stderr
    assert "bob was not graded: " in done.stderr and "Permission denied; mend the cause and grade again" in done.stderr
    assert rows(root, "bob") == []


@pytest.mark.slow
def test_the_grade_command_grades_a_released_notebook_without_notes(course: Course, root: Path) -> None:
    """The notebook imports nbgrader's ``check``, and a notebook of a different module is beside it."""
    place = root / "hw" / "ada"
    place.mkdir(parents=True)
    (place / f"{MODULE}.ipynb").write_text(json.dumps(classroom.fill(book_of(root), course, MODULE, ALL_DONE)))
    (place / "01_layout.ipynb").write_text(json.dumps(book_of(root)))
    shardlings(root, "grade", "hw", "--out", "out", "--isolation", "none", "--course", str(course.root))
    report = json.loads((root / "out" / "reports" / "ada.json").read_text())
    assert report["earned"] >= report["points"]
    assert report["notes"] == [] and [e["notes"] for e in report["exercises"]] == [[]] * 3


@pytest.mark.slow
def test_folders_that_cannot_be_graded_stop_no_other(course: Course, root: Path) -> None:
    """The grader skips links in place of folders, and folders with names that nbgrader cannot handle."""
    submitted = root / "submitted"
    book = classroom.fill(book_of(root), course, MODULE, ALL_DONE)
    for student in ("ada", "zoe", os.fsdecode(b"jos\xe9"), "new\nline", "o[x]"):
        classroom.hand_in(root, student, MODULE, book)
    (submitted / "mallory").mkdir()
    (submitted / "mallory" / MODULE).symlink_to(submitted / "ada" / MODULE)
    (submitted / "trudy").symlink_to("ada")
    link = "is a link and was not followed; put the folder itself there"
    expected = {
        r"jos\udce9": "the folder's name is not UTF-8; rename the folder",
        "mallory": f"submitted/mallory/{MODULE} {link}",
        r"new\nline": "the folder's name has a line break; rename the folder",
        "o[x]": "nbgrader takes *, ? and [ in a folder's name as a pattern; rename the folder",
        "trudy": f"submitted/trudy {link}",
    }
    done = CliRunner().invoke(app, ["nbgrader", "grade", str(root), MODULE])
    assert done.exit_code == BROKEN and "2 graded" in done.output, done.output
    page = html.unescape((root / ".shardlings" / "pages" / MODULE / "index.html").read_text())
    for student, reason in expected.items():
        assert f"{student} was not graded: {reason}" in " ".join(done.output.split())
        assert reason in page
    assert {row[0] for row in rows(root)} == {"ada", "zoe"}
    shutil.rmtree(submitted / "new\nline")  # nbgrader itself stops at this name
    shutil.rmtree(submitted / os.fsdecode(b"jos\xe9"))
    assert f"submitted/mallory/{MODULE} {link}" in nbgrader(root, "autograde", MODULE, "--force", fails=True)
    assert not any(scores(root, "mallory").values()) and scores(root, "zoe")[C1] > 0


# -- links, and files of other students --------------------------------------------------------


def with_links(root: Path) -> Path:
    """Put links into bob's submission, to the gradebook and to ada's notebook. Return the submission's folder."""
    place = root / "submitted" / "bob" / MODULE
    (place / "book.db").symlink_to(root / "gradebook.db")
    (place / "data").mkdir()
    (place / "data" / "help.txt").symlink_to(root / "submitted" / "ada" / MODULE / f"{MODULE}.ipynb")
    (place / "all").symlink_to(root / "submitted")
    (place / "mine.txt").write_text("my own")
    return place


@pytest.mark.slow
@pytest.mark.parametrize("way", ["autograde", "batch"])
def test_links_are_reported_and_never_followed(way: str, course: Course, root: Path) -> None:
    a_class(course, root)
    with_links(root)
    if way == "batch":
        found = grade(root).attention["bob"]
        assert found == [f"{name} is a link and was not followed" for name in ("all", "book.db", "data/help.txt")]
    else:
        assert "book.db is a link and was not followed" in nbgrader(root, "autograde", MODULE)
    nbgrader(root, "generate_feedback", MODULE)
    for step in ("autograded", "feedback"):
        names = {str(p.relative_to(root / step / "bob" / MODULE)) for p in (root / step / "bob").rglob("*")}
        assert "mine.txt" in names and not names & {"book.db", "data/help.txt", "all"}
    printed = shardlings(root, "nbgrader", "scan", ".", fails=True)  # scan finds the course in nbgrader_config.py
    assert f"submitted/bob/{MODULE}/book.db: a link, to {root}/gradebook.db" in printed and "3 leaks" in printed


@pytest.mark.slow
def test_a_fifo_or_a_socket_is_the_note_of_its_student(
    course: Course, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grader opens no FIFO, because it would wait forever for a writer. The output names slow submissions."""
    a_class(course, root)
    for student in ("bob", "cy"):
        book = root / "submitted" / student / MODULE / f"{MODULE}.ipynb"
        book.unlink()
        if student == "bob":
            os.mkfifo(book)
            os.mkfifo(book.with_name("more.ipynb"))
        else:
            monkeypatch.chdir(book.parent)
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(book.name)
    monkeypatch.setattr("grader.batch.workers.SLOW", 0.01)
    done = CliRunner().invoke(app, ["nbgrader", "grade", str(root), MODULE])
    assert done.exit_code == 0, done.output
    assert scores(root, "ada")[C1] == course.exercise(C1).points
    assert set(scores(root, "bob").values()) == set(scores(root, "cy").values()) == {0.0}
    assert re.search(r"bob: \d+ s so far", done.output) and "3 graded" in done.output, done.output
    output = done.output.split("Needs review")[1]
    assert output.count("is neither a file nor a folder and was not read") == 3 and "ada" not in output


@pytest.mark.slow
def test_a_notebook_that_is_a_link_is_not_graded(course: Course, root: Path) -> None:
    a_class(course, root)
    path = root / "submitted" / "cy" / MODULE / f"{MODULE}.ipynb"
    path.unlink()
    path.symlink_to(root / "submitted" / "ada" / MODULE / f"{MODULE}.ipynb")
    done = grade(root)
    assert f"{MODULE}.ipynb is a link and was not followed" in done.attention["cy"]
    assert set(scores(root, "cy").values()) == {0.0}
    nbgrader(root, "autograde", MODULE, "--force")
    assert set(scores(root, "cy").values()) == {0.0}
    book = (root / "autograded" / "cy" / MODULE / f"{MODULE}.ipynb").read_text()
    assert "This cell was missing in the submission" in book


@pytest.mark.slow
def test_collecting_follows_no_link(course: Course, root: Path, tmp_path: Path) -> None:
    student = with_exchange(root, tmp_path)
    nbgrader(root, "release_assignment", MODULE, env=student)
    (tmp_path / "exchange" / "shardlings" / "inbound" / f"al+{MODULE}+no time+x").mkdir()
    place = tmp_path / "exchange" / "shardlings" / "inbound" / f"bob+{MODULE}+2026-11-01 10:00:00.000000 UTC+x"
    place.mkdir()
    (place / "timestamp.txt").write_text("2026-11-01 10:00:00.000000 UTC")
    (place / f"{MODULE}.ipynb").write_text(json.dumps(book_of(root)))
    (place / "book.db").symlink_to(root / "gradebook.db")
    said = nbgrader(root, "collect", MODULE, env=student)
    assert f"al+{MODULE}+no time+x was not collected, because its name has no student or no time" in said
    got = root / "submitted" / "bob" / MODULE
    assert (got / f"{MODULE}.ipynb").is_file() and (got / "book.db").is_symlink()


def test_many_files_of_a_student_do_not_hold_up_scan(course: Course, root: Path) -> None:
    """``scan`` reads each file only a few times. One time limit covers the reading of all files of a submission."""
    asked: list[str] = []

    class Counted(Parsers):
        def for_submission(self, place: Place) -> Parsers:
            asked.append(str(place))
            return self

    for step in ("submitted", "autograded"):
        (root / step / "eve" / MODULE).mkdir(parents=True)
        for n in range(100):
            (root / step / "eve" / MODULE / f"n{n}.txt").write_text(f"note {n}\n")
    assert list(scan.scan(course, root, Counted())) == []
    own = [place for place in asked if "eve" in place]
    assert len(own) < 10 * 100 and set(own) == {str(root / "submitted" / "eve" / MODULE)}


def test_scan_reports_what_it_cannot_read(course: Course, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder may be deeper than the system allows in a path, and a sparse file may have any size."""
    place = root / "submitted" / "eve" / MODULE
    place.mkdir(parents=True)
    os.truncate(os.open(place / "big.bin", os.O_CREAT | os.O_WRONLY), 1 << 40)
    monkeypatch.chdir(place)
    for _ in range(25):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    monkeypatch.chdir(root)
    found = dict(scan.scan(course, root, Parsers()))
    assert "larger than 128 MiB" in found.pop(place / "big.bin")
    assert [("too long" in why, "ddd" in str(path)) for path, why in found.items()] == [(True, True)]
    shutil.rmtree(place / ("d" * 200))


@pytest.mark.slow
def test_scan_finds_copies_of_the_gradebook_and_of_other_submissions(course: Course, root: Path) -> None:
    a_class(course, root)
    own = "# the way my grandmother multiplied, block by block"
    (root / "submitted" / "ada" / MODULE / "diary.txt").write_text(f"{own}\nx = 1\n")
    (root / "submitted" / "cy" / MODULE / "shared.txt").write_text("x = 1\n")
    grade(root)
    with sqlite3.connect(root / "gradebook.db") as database:
        database.execute("update comment set manual_comment = 'Ada, come and see me about the second task' where id in "
                         "(select c.id from comment c join submitted_notebook n on n.id = c.notebook_id join "
                         "submitted_assignment s on s.id = n.assignment_id where s.student_id = 'ada' limit 1)")  # fmt: skip
    nbgrader(root, "generate_feedback", MODULE)
    assert list(scan.scan(course, root, Parsers())) == []
    ada = (root / "submitted" / "ada" / MODULE / "diary.txt").read_text()
    planted = {
        "book.db": ((root / "gradebook.db").read_bytes(), "a database, such as the gradebook"),
        "copy.txt": (ada.encode(), "a copy of a file that ada handed in"),
        "more.html": (f"<p>{own}</p>".encode(), f"a line of ada: {own}"),
        "told.txt": (b"Ada, come and see me about the second task", "a line of ada: Ada, come and see me"),
    }
    for step in ("autograded", "feedback"):
        for name, (data, what) in planted.items():
            for who in ("bob", "ada"):
                path = root / step / who / MODULE / name
                path.write_bytes(data)
                leaks = [t for p, t in scan.scan(course, root, Parsers()) if p == path]
                assert any(t.startswith(what) for t in leaks) is (who == "bob" or name == "book.db"), (step, name, who)
                path.unlink()


# -- formgrader --------------------------------------------------------------------------------

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def browse(url: str) -> str:
    """Return a page as a browser shows it, after its scripts have run.

    On a busy machine Chromium sometimes ends without an error before it prints the page, so it starts again.
    """
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    for _ in range(5):
        done = subprocess.run(
            [str(CHROMIUM), *flags, "--virtual-time-budget=15000", "--dump-dom", url],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        if done.stdout:
            return done.stdout
    raise AssertionError("Chromium printed no page")


@contextmanager
def formgrader(root: Path, home: Path):
    """Yield the address of a Jupyter server with nbgrader's pages."""
    import socket
    import time
    from urllib.error import URLError
    from urllib.request import urlopen

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    extension = "nbgrader.server_extensions.formgrader=True"
    options = ["--ServerApp.token=", "--ServerApp.password=", f"--ServerApp.port={port}", "--ServerApp.ip=127.0.0.1"]
    options.append("--ServerApp.port_retries=0")  # the test does not know another port
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyter", "server", "--allow-root", "--no-browser", *options,
         f"--ServerApp.jpserver_extensions={extension}"],
        cwd=root, env=os.environ | {"HOME": str(home)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(400):
            assert server.poll() is None, "the server has ended"
            try:
                urlopen(f"{address}/api", timeout=5).close()
                break
            except (URLError, OSError):
                time.sleep(0.3)
        else:
            raise AssertionError("the server does not answer")
        yield address
    finally:
        server.terminate()
        server.wait(120)


@pytest.mark.slow
def test_a_folder_in_the_way_of_the_assignments_files_stops_no_batch(course: Course, root: Path) -> None:
    for name in ("ada", "eve", "zoe"):
        classroom.hand_in(root, name, MODULE, classroom.fill(book_of(root), course, MODULE, {}))
    (root / "submitted" / "eve" / MODULE / "course.yaml").mkdir()
    (root / "submitted" / "eve" / MODULE / "course.yaml" / "x.txt").write_text("x")
    outcome = grade(root)
    assert outcome.graded == ["ada", "eve", "zoe"] and not outcome.failures
    assert "course.yaml is a folder" in outcome.attention["eve"][0]
    for name in ("ada", "eve", "zoe"):
        assert (root / "autograded" / name / MODULE / f"{MODULE}.ipynb").is_file()
        assert (root / "autograded" / name / MODULE / "course.yaml").is_file()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_nbgraders_pages_show_scores_and_comments(course: Course, root: Path, tmp_path: Path) -> None:
    a_class(course, root)
    grade(root)
    with classroom.gradebook_of(root) as gradebook:
        found = gradebook.find_submission_notebook(MODULE, MODULE, "bob")
        ident, score = found.id, found.score
    with formgrader(root, tmp_path) as address:
        table = browse(f"{address}/formgrader/gradebook/{MODULE}/{MODULE}")
        page = browse(f"{address}/formgrader/submissions/{ident}/?index=0")
    assert f"{score:g} / " in table
    assert "Hint:" in page and "hidden data" in page
    placeholders = re.findall(r'placeholder="([^"]*)"', page)
    assert f"{scores(root, 'bob')[C1]:g}" in placeholders
    assert any("Hint:" in p for p in placeholders)


SCRIPTS = """# Mine
<script>document.title = "owned"</script>
<img src="nowhere" onerror="document.title = 'owned'">
<div id="raw">raw</div>
[click](javascript:document.title='owned') `<b>` and $x < y$

```mermaid
</pre><img src="nowhere" onerror="document.title = 'owned'">
```

[old](/files/javascript:document.title='owned') ![image.png](attachment:image.png)
"""


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
@pytest.mark.parametrize("plugged", [True, False])
def test_html_of_a_student_does_not_run_in_nbgraders_pages(
    plugged: bool, course: Course, root: Path, tmp_path: Path
) -> None:
    """Test a page for staff and a page for the student. Without the course's setting, both pages run the script."""
    book = classroom.fill(book_of(root), course, MODULE, ALL_DONE)
    scripts = SCRIPTS if plugged else SCRIPTS.replace("![image.png](attachment:image.png)", "")  # nbconvert fails on it
    book["cells"] += [
        nbformat.v4.new_markdown_cell(scripts),
        nbformat.v4.new_raw_cell("<script>document.title='raw'</script>"),
    ]
    shown = nbformat.v4.new_output("display_data", {"text/html": SCRIPTS.replace("owned", "output")})
    book["cells"].append(nbformat.v4.new_code_cell("1", outputs=[shown]))
    classroom.hand_in(root, "eve", MODULE, book)
    if not plugged:
        with open(root / "nbgrader_config.py", "a") as settings:
            settings.write("c.HTMLExporter.filters = {}\n")
    grade(root)
    nbgrader(root, "generate_feedback", MODULE)
    with classroom.gradebook_of(root) as gradebook:
        found = gradebook.find_submission_notebook(MODULE, MODULE, "eve")
        ident = found.id
    with formgrader(root, tmp_path) as address:
        pages = [browse(f"{address}/formgrader/submissions/{ident}/?index=0")]
    pages.append(browse((root / "feedback" / "eve" / MODULE / f"{MODULE}.html").as_uri()))
    for page in pages:
        assert ("<title>owned</title>" in page) is not plugged
        assert ('<div id="raw">' in page) is not plugged
        assert ('href="javascript:' in page) is not plugged
        assert "<title>output</title>" not in page and "<title>raw</title>" not in page
        assert not plugged or "&lt;script&gt;document.title" in page
