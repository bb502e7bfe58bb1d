"""Output, files and exit codes of ``grade``: bad input, unreadable submissions, appeals, earlier grades."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader.cli import app
from grader.common.text import SET_ASIDE
from tests.batch.test_grade import RIGHT
from tests.commands import GOOD, ROOT, bad_line, one_line, shardlings
from tests.handed_in import write
from tests.made_up import COURSE, made_up
from tests.sampled import sampled

ALONE = ("--isolation", "none", "-j", "1")  # one job starts fewer processes


def test_grade_suggests_the_nearest_path_for_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / "submissions").mkdir()
    done = shardlings("grade", str(tmp_path / "submisions"), "--out", str(tmp_path / "out"))
    assert "no such file or folder" in one_line(done) and "submissions" in one_line(done)
    assert not (tmp_path / "out").exists()


def test_grade_refuses_a_folder_with_nothing_to_grade(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "notes.txt").write_text("nothing")
    assert "nothing to grade" in one_line(shardlings("grade", str(tmp_path / "work"), "--out", str(tmp_path / "out")))


@pytest.mark.parametrize("out", ["in", "in/../in", "in/graded"])
def test_grade_refuses_an_output_folder_among_the_submissions(out: str, small: Path) -> None:
    """Otherwise the next run would grade the folders of reports as students."""
    (small / "in" / "ada").mkdir(parents=True)
    shutil.copy(small / "solutions" / "03_matmuls" / "c1_no_communication.py", small / "in" / "ada")
    done = shardlings("grade", "in", "--out", out, cwd=small)
    assert f"--out {out} is in the folder of the submissions; choose a folder outside" in one_line(done)
    assert [path.name for path in (small / "in").iterdir()] == ["ada"]


def test_a_notebook_that_is_not_json_affects_only_its_author(small: Path, tmp_path: Path) -> None:
    work = tmp_path / "class" / "ada"
    work.mkdir(parents=True)
    (work / "03_matmuls.ipynb").write_text("not json")
    shutil.copy(ROOT / GOOD, made(tmp_path / "class" / "eve"))
    done = shardlings("grade", str(work.parent), "--out", str(tmp_path / "out"), *ALONE, cwd=small)
    report = json.loads((tmp_path / "out" / "reports" / "ada.json").read_text())
    assert done.returncode == 0, done.stderr
    assert report["earned"] == 0
    assert any("03_matmuls.ipynb" in note and "JSON" in note for note in report["unread"])
    assert {*report["unread"]} <= {*report["notes"]}
    (review, lacking) = json.loads((tmp_path / "out" / "summary.json").read_text())["attention"]
    assert review["student"] == "ada" and review["reason"].startswith("no file can be graded; 03_matmuls.ipynb is not")
    assert lacking["reason"] == "1 of 2 students has not handed in 03_matmuls: ada"


def test_an_unknown_isolation_is_refused(small: Path, tmp_path: Path) -> None:
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "c1_no_communication.py").write_text("")
    done = shardlings("grade", str(tmp_path / "ada"), "--out", str(tmp_path / "o"), "--isolation", "docker", cwd=small)
    assert "unknown isolation 'docker'; choose one of sandlock, bwrap, none" in one_line(done)


def test_too_few_devices_are_the_graders_fault_not_the_learners(small: Path, tmp_path: Path) -> None:
    """With four devices and a mesh of eight, no student loses points, and the case needs review."""
    (small / "course.yaml").write_text((small / "course.yaml").read_text() + "devices: 4\n")
    work = tmp_path / "class" / "ada"
    work.mkdir(parents=True)
    shutil.copy(small / "solutions" / "03_matmuls" / "c1_no_communication.py", work)
    done = shardlings("grade", str(work.parent), "--out", str(tmp_path / "out"), *ALONE, cwd=small)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    line = done.stderr.strip().splitlines()[-1]
    assert "needs 8 devices" in line and "devices: 4" in line


def test_a_slow_submission_is_named_on_the_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grader.batch.workers.SLOW", 0.01)
    made_up(tmp_path / "course")
    write(tmp_path / "class" / "ada" / "x1_gather.py", RIGHT)
    words = ["class", "--course", "course/course.yaml", "--out", "out", "--isolation", "none", "--no-store"]
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["grade", *words])
    assert done.exit_code == 0 and re.search(r"ada: \d+ s so far", done.output), done.output


@pytest.mark.slow
def test_appeal_exits_with_3_if_the_verdict_differs_from_the_report(small: Path) -> None:
    (small / "class" / "ada").mkdir(parents=True)
    shutil.copy(ROOT / GOOD, small / "class" / "ada")
    words = ("class", "--out", "out", "--isolation", "none")
    assert shardlings("grade", *words, cwd=small).returncode == 0
    appeal = ("appeal", "ada", "c1_no_communication/local_value", *words)
    again = shardlings(*appeal, cwd=small)
    assert again.returncode == 0 and "as in the report on file" in again.stdout
    (small / "class" / "ada" / Path(GOOD).name).write_text("def matmul_local(a, b, *, mesh):\n    return a\n")
    other = shardlings(*appeal, cwd=small)
    assert other.returncode == 3 and "status: 'passed' on file, 'failed' now" in other.stdout
    assert "shardlings: the verdict differs from the report on file: " in other.stderr


def test_an_ambiguous_name_or_a_link_stops_no_other_student(small: Path) -> None:
    work = small / "class"
    for name in ("alice", "bob"):
        (work / name).mkdir(parents=True)
        shutil.copy(ROOT / GOOD, work / name)
    shutil.copy(ROOT / GOOD, work / "alice_c1_no_communication.py")
    (work / "carol").symlink_to("carol")
    done = shardlings("grade", "class", "--out", "out", *ALONE, "--json", cwd=small)
    assert done.returncode == 3
    assert [p.stem for p in (small / "out" / "reports").iterdir()] == ["bob"]
    assert "shardlings: alice was not graded: alice has several submissions: class/alice and " in done.stderr
    assert "shardlings: carol was not graded: class/carol is a link and was not followed" in done.stderr
    assert [a["student"] for a in json.loads(done.stdout)["attention"]] == ["alice", "carol"]
    page = (small / "out" / "index.html").read_text()
    assert page.index("alice has several submissions") < page.index("<h2>Students")
    appeal = shardlings("appeal", "alice", "c1/value", "class", "--isolation", "none", cwd=small)
    assert appeal.returncode == 2 and "shardlings: alice has several submissions: class/alice and " in appeal.stderr


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root's powers, to drop them"
)
@pytest.mark.parametrize("what", sampled(1, ["file", "folder"]))
def test_a_submission_without_read_permission_is_reported_and_not_graded(what: str, small: Path) -> None:
    for name in ("ada", "bob"):
        (small / "class" / name / "work").mkdir(parents=True)
        shutil.copy(ROOT / GOOD, small / "class" / name / "work")
    hidden = small / "class" / "bob" / "work"
    (hidden if what == "folder" else hidden / "c1_no_communication.py").chmod(0)
    mere = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", sys.executable, "-m", "grader"]
    words = [*mere, "grade", "class", "--out", "out", "--isolation", "none"]
    done = subprocess.run(words, cwd=small, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stdout + done.stderr
    assert (
        "shardlings: bob was not graded: " in done.stderr
        and "Permission denied; mend the cause and grade again" in done.stderr
    )
    assert [p.stem for p in (small / "out" / "reports").iterdir()] == ["ada"]


@pytest.mark.slow
def test_the_published_seed_is_reported(small: Path) -> None:
    (small / "course.yaml").write_text(
        (small / "course.yaml").read_text().replace("a-secret-seed", "change-me-before-term")
    )
    (small / "ada").mkdir()
    shutil.copy(ROOT / GOOD, small / "ada")
    warning = (
        "is the published seed, change-me-before-term. Set your own seed: the grader draws hidden inputs from the seed"
    )
    done = shardlings("grade", "ada", "--out", "out", *ALONE, "--json", cwd=small)
    assert f"warning: the seed in course.yaml {warning}" in done.stderr
    assert warning in json.loads(done.stdout)["warnings"][0] and warning in (small / "out" / "index.html").read_text()
    lines = {line["name"]: line for line in json.loads(shardlings("doctor", "--json", cwd=small).stdout)}
    assert warning in lines["seed"]["detail"] and not lines["seed"]["ok"] and not lines["seed"]["needed"]
    shardlings("build", cwd=small)
    assert warning in shardlings("verify", cwd=small).stderr


@pytest.mark.slow
def test_grades_of_two_modules_add_up_in_one_folder(tmp_path: Path) -> None:
    for module, name in (("03_matmuls", "c1_no_communication"), ("01_layout", "a1_local_shape")):
        (tmp_path / module / "ada").mkdir(parents=True)
        source = "ada" if module == "03_matmuls" else "../other_modules/noor"
        shutil.copy(ROOT / "examples" / "submissions" / source / f"{name}.py", tmp_path / module / "ada")
    out = tmp_path / "g"
    earned = []
    for module in ("03_matmuls", "01_layout"):
        done = shardlings("grade", str(tmp_path / module), "--only", module, "--out", str(out), *ALONE)
        assert done.returncode == 0, done.stderr
        earned.append(json.loads((out / "reports" / "ada.json").read_text())["earned"])
    whole = json.loads((out / "reports" / "ada.json").read_text())
    assert {e["module"] for e in whole["exercises"]} == {"01_layout", "03_matmuls"}
    assert whole["earned"] == sum(e["earned"] for e in whole["exercises"]) >= earned[0] > 0
    assert "c1_no_communication" in (out / "grades.csv").read_text()
    assert "01_layout" in (out / "index.html").read_text() and "03_matmuls" in (out / "index.html").read_text()


def test_an_early_submission_makes_no_module_count_before_its_deadline(tmp_path: Path) -> None:
    """Otherwise the first submission of a module would give all other students zero points for this module."""
    made_up(tmp_path)
    shutil.copytree(tmp_path / "solutions" / "01_gather", tmp_path / "solutions" / "02_more")
    old, new = (tmp_path / "solutions" / "02_more" / f"{name}.py" for name in ("x1_gather", "y1_more"))
    old.rename(new)
    later = "  - {id: 02_more, title: More, exercises: [y1_more], deadline: 2100-01-01}\n"
    (tmp_path / "course.yaml").write_text(f"{COURSE}{later}")
    for student, name in (("ada", "x1_gather"), ("bob", "x1_gather"), ("bob", "y1_more")):
        (tmp_path / "class" / student).mkdir(parents=True, exist_ok=True)
        (tmp_path / "class" / student / f"{name}.py").write_text("gather_time = 3\n")
    words = ("grade", "class", "--out", "graded", *ALONE)
    done = shardlings(*words, cwd=tmp_path)
    assert done.returncode == 0 and (
        "graded modules: 01_gather (handed in by 2 of 2 students); not yet due: 02_more (handed in by 1 of 2 students); "
        "to grade other modules, use --only MODULE" in done.stderr
    ), done.stderr
    for student in ("ada", "bob"):
        report = json.loads((tmp_path / "graded" / "reports" / f"{student}.json").read_text())
        assert {e["module"] for e in report["exercises"]} == {"01_gather"}
    (tmp_path / "course.yaml").write_text(f"{COURSE}    deadline: 2100-01-01\n{later}")
    assert one_line(shardlings(*words, cwd=tmp_path)) == (
        "shardlings: the deadlines of 01_gather (handed in by 2 of 2 students), 02_more (handed in by 1 of 2 students) are in the future; "
        "to grade now, use --only 01_gather"
    )


def test_an_unusable_exercise_does_not_stop_other_modules(with_bad: Path) -> None:
    (with_bad / "class" / "alice").mkdir(parents=True)
    (with_bad / "class" / "alice" / "x1_gather.py").write_text("gather_time = 3\n")
    words = ("grade", "class", "--out", "graded", *ALONE, "--only")
    done = shardlings(*words, "01_gather", cwd=with_bad)
    assert (done.returncode, done.stderr) == (0, "")
    assert (with_bad / "graded" / "grades.csv").is_file()
    assert one_line(shardlings(*words, "02_bad", cwd=with_bad)) == f"shardlings: {bad_line(with_bad)}"


def test_grade_refuses_a_folder_with_grades_of_an_unusable_exercise(with_bad: Path) -> None:
    path = with_bad / "solutions" / "02_bad" / "x2_bad.py"
    bad = path.read_text()
    (with_bad / "class" / "alice").mkdir(parents=True)
    for name in ("x1_gather", "x2_bad"):
        (with_bad / "class" / "alice" / f"{name}.py").write_text("gather_time = 3\n")
    path.write_text(bad.replace("furlong", "us"))
    words = ("grade", "class", *ALONE, "--only")
    assert shardlings(*words, "02_bad", "--out", "graded", cwd=with_bad).returncode == 0
    path.write_text(bad)
    before = {p: p.read_bytes() for p in (with_bad / "graded").rglob("*") if p.is_file()}
    refused = shardlings(*words, "01_gather", "--out", "graded", cwd=with_bad)
    assert refused.returncode == 2 and refused.stdout == ""
    assert refused.stderr.splitlines() == [
        f"note: {bad_line(with_bad)}",
        "shardlings: graded holds grades of x2_bad, an exercise that cannot be loaded; mend the exercise or choose another --out",
    ]
    assert before == {p: p.read_bytes() for p in (with_bad / "graded").rglob("*") if p.is_file()}


def test_swapped_submissions_are_reported_and_cost_no_points(small: Path) -> None:
    for student, other in (("ada", "bob"), ("bob", "ada")):
        with zipfile.ZipFile(made(small / "class" / student) / f"{other}_03_matmuls.zip", "w") as archive:
            archive.write(ROOT / GOOD, "c1_no_communication.py")
            archive.writestr("manifest.json", json.dumps({"student": other}))
    shutil.copy(ROOT / GOOD, made(small / "class" / "eve"))
    done = shardlings("grade", "class", "--out", "out", *ALONE, cwd=small)
    assert (
        "files of these students name another student" in done.stderr
        and "ada (bob_03_matmuls.zip names bob)" in done.stderr
    )
    summary = json.loads((small / "out" / "summary.json").read_text())
    assert [(one["student"], one["reason"]) for one in summary["attention"]] == [
        ("ada", "check whose submission this is: bob_03_matmuls.zip names bob"),
        ("bob", "check whose submission this is: ada_03_matmuls.zip names ada"),
    ]
    assert "bob_03_matmuls.zip names bob" in (small / "out" / "index.html").read_text()
    earned = {s: json.loads((small / "out" / "reports" / f"{s}.json").read_text())["earned"] for s in ("ada", "eve")}
    assert earned["ada"] == earned["eve"] > 0


def with_two_zips(small: Path) -> subprocess.CompletedProcess[str]:
    """Grade a class in which ada hands in two zips with different files."""
    for name, text in (("a.zip", (ROOT / GOOD).read_text()), ("a-1.zip", "x = 1\n")):
        with zipfile.ZipFile(made(small / "class" / "ada") / name, "w") as archive:
            archive.writestr("c1_no_communication.py", text)
    shutil.copy(ROOT / GOOD, made(small / "class" / "eve"))
    return shardlings("grade", "class", "--out", "out", *ALONE, cwd=small)


def pending(small: Path) -> list[str]:
    grades = (small / "out" / "grades.csv").read_text()
    return [line.split(",")[0] for line in grades.splitlines()[1:] if "see Needs review" in line]


def test_a_student_with_two_different_zips_is_set_aside_with_both_named(small: Path) -> None:
    assert with_two_zips(small).returncode == 3
    page = (small / "out" / "index.html").read_text()
    assert "a.zip and a-1.zip have different answers to c1_no_communication" in page
    assert pending(small) == ["ada"]
    (small / "out" / "index.html").unlink()
    assert shardlings("pages", "out", cwd=small).returncode == 0
    assert "a.zip and a-1.zip have different answers" in (small / "out" / "index.html").read_text()
    exported = shardlings("export", "out", "--to", "csv", cwd=small)
    assert "these submissions were not graded, see Needs review on the class page: ada" in exported.stderr


@pytest.mark.slow
def test_a_student_is_set_aside_until_one_of_two_zips_is_removed(small: Path) -> None:
    with_two_zips(small)
    # A run that reads only other folders must not forget the student.
    for student in ("eve", "fay"):
        shutil.copytree(small / "class" / "eve", small / "later" / student)
    later = shardlings("grade", "later", "--out", "out", *ALONE, cwd=small)
    assert later.returncode == 0 and " 0 not graded, 1 needs review" in later.stdout
    assert pending(small) == ["ada"]
    # If a later run grades the student, the student's page notes that a submission is set aside.
    shutil.copytree(small / "class" / "eve", small / "later" / "ada")
    assert shardlings("grade", "later", "--out", "out", *ALONE, cwd=small).returncode == 0
    assert pending(small) == ["ada"] and SET_ASIDE in (small / "out" / "students" / "ada.html").read_text()
    (small / "class" / "ada" / "a-1.zip").unlink()
    done = shardlings("grade", "class", "--out", "out", *ALONE, cwd=small)
    assert done.returncode == 0 and pending(small) == []
    assert SET_ASIDE not in (small / "out" / "students" / "ada.html").read_text()
    assert "different answers" not in (small / "out" / "index.html").read_text()
    assert "not graded" not in shardlings("export", "out", "--to", "csv", cwd=small).stderr


def made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


WRONG_RING = """
import jax, jax.numpy as jnp

def ring_all_gather(a):
    parts = [a]
    for _ in range(jax.lax.axis_size("x") - 1):
        a = jax.lax.ppermute(a, "x", [(d, (d + 1) % jax.lax.axis_size("x")) for d in range(jax.lax.axis_size("x"))])
        parts.append(a)
    return jnp.concatenate(parts)
"""
LEFT_OUT = "a picture is left out: RuntimeError in <string>"
BROKEN = """
import sys
from grader import cli
from grader.judging import judge
from grader.reports import pages

def broken(*about):
    raise RuntimeError("a picture")

for place in sys.argv.pop().split():
    setattr(judge if hasattr(judge, place) else pages, place, broken)
cli.main()
"""


def graded_with(broken: str, folder: Path) -> tuple[list[dict], list[str]]:
    """Grade a wrong solution of E1. Return its results, and the lines about pictures in the command's output.

    The functions named in ``broken`` draw pictures. They raise errors.
    """
    words = ["grade", str(folder / "class"), "--out", str(folder / f"out {broken}"), *ALONE, broken]
    clean = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS")}
    clean["XDG_CACHE_HOME"] = str(folder / f"cache {broken}")
    done = subprocess.run(
        [sys.executable, "-c", BROKEN, *words], cwd=ROOT, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / f"out {broken}" / "reports" / "ada.json").read_text())
    (exercise,) = (e for e in report["exercises"] if e["exercise"] == "e1_ring_all_gather")
    return exercise["results"], [line.partition(", line")[0] for line in done.stderr.splitlines() if "picture" in line]


@pytest.mark.slow
def test_an_error_in_the_code_of_pictures_changes_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "class" / "ada").mkdir(parents=True)
    (tmp_path / "class" / "ada" / "e1_ring_all_gather.py").write_text(WRONG_RING)
    results, lines = graded_with("", tmp_path)
    assert "failed" in {r["status"] for r in results} and any(r["pictures"] for r in results) and lines == []
    assert graded_with("draw_rounds", tmp_path) == (results, [LEFT_OUT])
    assert graded_with("routes pipelines", tmp_path) == ([r | {"pictures": []} for r in results], [LEFT_OUT])
