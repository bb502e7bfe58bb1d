"""Results and the autograder zip as Gradescope documents them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from grader.cli import app
from grader.course.loading import Course, load_course
from grader.course.reference import reference_source
from grader.exercise import Task
from grader.sandbox.tiers import NoIsolation, best_tier
from grader.wings.gradescope import autograder as gradescope
from tests import classroom
from tests.batch.test_canary import WRONG_REFERENCE
from tests.batch.test_grade import NAME, RIGHT
from tests.handed_in import code, notebook, write
from tests.integrations.test_export import report, result
from tests.made_up import made_up
from tests.watched import parsed_by

MODULE, C1 = "03_matmuls", "c1_no_communication"


def test_hidden_checks_show_after_publishing_and_without_what_was_expected() -> None:
    hidden = result(public=False, status="failed", earned=0, expected="42-secret", reason="no\x1b[31m")
    made = gradescope.results_of(report("ada", result(), hidden))
    assert [t["visibility"] for t in made["tests"]] == ["visible", "after_published"]
    assert made["score"] == 2
    assert "42-secret" not in json.dumps(made) and "\x1b" not in json.dumps(made)


def test_a_broken_check_is_pending_not_failed_silently() -> None:
    made = gradescope.results_of(report("ada", result(status="broken", earned=0)))
    assert "pending" in made["output"] and made["tests"][0]["output"].startswith("pending")


def test_a_grader_failure_gives_no_score_and_a_reason_for_the_staff(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gradescope.main(tmp_path)
    made = json.loads((tmp_path / "results" / "results.json").read_text())
    assert not {"score", "tests"} & set(made)  # each of these fields would give zero points
    assert made["stdout_visibility"] == "hidden" and "gradescope.json" in capsys.readouterr().out
    assert "gradescope.json" not in json.dumps(made)


@pytest.mark.parametrize("kind", ["number", "spec", "choice", "table", "written"])
def test_questions_are_tests_by_their_label(kind: str) -> None:
    (made,) = gradescope.results_of(report("ada", result(kind=kind, name="time", label="time: How long?")))["tests"]
    assert made["name"] == "e: time: How long?"


def test_an_answer_that_a_person_reads_is_pending() -> None:
    reason = "the staff reads this answer and gives its points"
    (made,) = gradescope.results_of(report("ada", result(kind="written", status="waiting", earned=0, reason=reason)))[
        "tests"
    ]
    assert made["output"].splitlines() == ["pending", reason]


@pytest.mark.parametrize(
    ("text", "name"),
    [('{"users": [{"email": "ada@x.edu", "id": 1}]}', "ada"), ("{", "me"), ('{"users": []}', "me"), ("[]", "me")],
)
def test_the_student_is_the_one_who_submitted(text: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(text)
    assert gradescope.student_in(tmp_path / "m.json") == name


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return classroom.copied(tmp_path_factory.mktemp("course") / "c", **{MODULE: [C1]})


TOP = {"score", "execution_time", "output", "output_format", "test_output_format", "test_name_format", "visibility",
       "stdout_visibility", "extra_data", "tests", "leaderboard"}  # fmt: skip
OF_TEST = {"score", "max_score", "status", "name", "name_format", "number", "output", "output_format", "tags",
           "visibility", "extra_data"}  # fmt: skip
VISIBILITIES = {"hidden", "after_due_date", "after_published", "visible"}
FORMATS = {"text", "html", "simple_format", "md", "ansi"}


def as_documented(made: dict[str, Any]) -> None:
    """Check results.json against Gradescope's "Autograder Specifications"."""
    assert set(made) <= TOP and {"score", "tests"} <= set(made)
    assert {made["visibility"], made["stdout_visibility"]} <= VISIBILITIES and made["output_format"] in FORMATS
    for test in made["tests"]:
        assert set(test) <= OF_TEST
        assert 0 <= test["score"] <= test["max_score"]
        assert test["visibility"] in VISIBILITIES and test["status"] in ("passed", "failed")
        assert {test["name_format"], test["output_format"]} <= FORMATS
        assert all(isinstance(test[key], str) for key in ("name", "output")) and test["name"]
        assert all(isinstance(tag, str) for tag in test["tags"])


def tier() -> str:
    try:
        return best_tier("auto")
    except NoIsolation:
        return "none"


def test_notes_mention_only_the_modules_of_the_zip(tmp_path: Path) -> None:
    """The course has a second module. The grader's notes do not report it as missing, and its files are not graded."""
    made_up(tmp_path)
    config = (tmp_path / "course.yaml").read_text()
    other = "  - {id: 02_other, title: Other, exercises: [x2_scatter]}\n"
    (tmp_path / "course.yaml").write_text(config + other)
    (tmp_path / "submission").mkdir()
    (tmp_path / "submission" / "x2_scatter.py").write_text("x = 1\n")
    found = gradescope.submission_in(tmp_path, load_course(tmp_path / "course.yaml"), ["x1_gather"])
    notes = "\n".join(found.notes)
    assert "nothing to grade: the grader looked for x1_gather.py, or 01_gather.ipynb" in notes
    assert "02_other" not in notes and not found.sources


def test_a_failed_canary_is_shown_to_the_staff_and_gives_no_score(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made_up(tmp_path / "source" / "course", *WRONG_REFERENCE)
    settings = {"exercises": [NAME], "isolation": "none"}
    (tmp_path / "source" / gradescope.SETTINGS).write_text(json.dumps(settings))
    (tmp_path / "submission").mkdir()
    (tmp_path / "submission" / f"{NAME}.py").write_text(RIGHT)
    gradescope.main(tmp_path)
    assert capsys.readouterr().out.startswith(
        "the test with the course's solutions failed: the solution of x1_gather gets 2 of 3 points"
    )
    results = json.loads((tmp_path / "results" / "results.json").read_text())
    assert "canary" not in json.dumps(results) and not {"score", "tests"} & set(results)


def test_the_autograder_parses_no_submission(tmp_path: Path) -> None:
    made_up(tmp_path / "source" / "course")
    settings = {"exercises": [NAME], "isolation": tier()}
    (tmp_path / "source" / gradescope.SETTINGS).write_text(json.dumps(settings))
    write(tmp_path / "submission" / f"{NAME}.ipynb", notebook(code(RIGHT + "# MARKED\n"), code("!ls")))
    run = "from pathlib import Path; from grader.wings.gradescope.autograder import main; main(Path(sys.argv[1]))"
    seen, done = parsed_by(str(tmp_path), cwd=tmp_path, run=run, JAX_PLATFORMS="cpu")
    results = json.loads((tmp_path / "results" / "results.json").read_text())
    assert seen == set() and results["score"] > 0, (done.stdout + done.stderr, results)


def test_without_a_sandbox_the_autograder_parses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up(tmp_path / "source" / "course")
    write(tmp_path / "source" / gradescope.SETTINGS, json.dumps({"exercises": [NAME], "isolation": "auto"}))
    write(tmp_path / "submission" / f"{NAME}.py", RIGHT)
    monkeypatch.setattr("grader.sandbox.tiers.available", lambda tier: "not here")
    monkeypatch.setattr("grader.batch.confined.ParsingProcess", None)
    with pytest.raises(NoIsolation):
        gradescope.graded(tmp_path)


@pytest.mark.slow
def test_the_autograder_zip_works_where_it_is_unpacked(course: Course, tmp_path: Path) -> None:
    """Unpack the zip into Gradescope's folders. Use the Python of the tests, not the one that setup.sh installs."""
    place = tmp_path / "autograder.zip"
    options = ["--only", C1, "--isolation", tier(), "--course", str(course.root)]
    made = CliRunner().invoke(app, ["export", str(place), "--to", "gradescope", *options])
    exercise = course.exercise(C1)
    assert made.exit_code == 0 and f"set the assignment to {exercise.points:g} points" in made.output
    root = tmp_path / "autograder"
    with zipfile.ZipFile(place) as archive:
        archive.extractall(root / "source")
        modes = {i.filename: i.external_attr >> 16 & 0o777 for i in archive.infolist()}
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755
    setup = (root / "source" / "setup.sh").read_text()
    assert "jax==" in setup and f"--python {sys.version_info[0]}.{sys.version_info[1]} " in setup
    subprocess.run(["bash", "-n", str(root / "source" / "setup.sh")], check=True)
    shutil.copy(root / "source" / "run_autograder", root)  # as Gradescope does
    whole = reference_source(exercise, classroom.answers(course, exercise, None, None))
    misconception = next(s for s in exercise.misconceptions.values() if isinstance(s.of, Task))
    partly = reference_source(exercise, classroom.answers(course, exercise, None, None), misconception)
    for source in (whole, partly):
        shutil.rmtree(root / "submission", ignore_errors=True)
        (root / "submission").mkdir()
        (root / "submission" / f"{C1}.py").write_text(source)
        (root / "submission_metadata.json").write_text('{"users": [{"email": "ada@x.edu"}]}')
        env = os.environ | {"AUTOGRADER_ROOT": str(root), "PYTHON": sys.executable}
        done = subprocess.run(["bash", "run_autograder"], env=env, cwd=root, capture_output=True, text=True, check=True)
        assert done.stdout + done.stderr == ""
        results = json.loads((root / "results" / "results.json").read_text())
        as_documented(results)
        assert results["score"] == pytest.approx(sum(t["score"] for t in results["tests"]))
        assert sum(t["max_score"] for t in results["tests"]) == exercise.points
        shown = {t["tags"][-1] for t in results["tests"] if t["visibility"] == "visible"}
        assert shown == {c.name for c in exercise.checks.values() if c.public}
        failed = {t["tags"][-1] for t in results["tests"] if t["status"] == "failed"}
        if source == whole:
            assert results["score"] == exercise.points and not failed
        else:
            assert 0 < results["score"] < exercise.points and failed >= set(misconception.fails)
