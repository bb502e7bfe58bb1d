"""The commands as a person types them: what they print, what they write, how they exit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.course.finding import find_course
from grader.course.loading import Course
from tests.made_up import COURSE, EXERCISE, made_up

ROOT = Path(__file__).resolve().parents[2]


def shardlings(*words: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "grader.cli", *words]
    clean = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS", "SHARDLINGS_STUDENT")}
    return subprocess.run(command, cwd=cwd, env=clean | env, capture_output=True, text=True, timeout=300, check=False)


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """The complaint of a command that could not be carried out: one line, exit code 2, no traceback."""
    assert done.returncode == 2, done.stdout + done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return lines[0]


@pytest.fixture(scope="session")
def course() -> Course:
    return find_course(ROOT)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkout with one module of one exercise, solved."""
    (tmp_path / "solutions" / "03_matmuls").mkdir(parents=True)
    for part in ("", "grading"):
        (tmp_path / "solutions" / "03_matmuls" / part).mkdir(exist_ok=True)
        name = Path("solutions", "03_matmuls", part, "c1_no_communication.py")
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "course.yaml").write_text(
        "name: small\nseed: a-secret-seed\nmodules:\n"
        "  - id: 03_matmuls\n    title: Matmuls\n    exercises: [c1_no_communication]\n"
    )
    return tmp_path


# -- bad input ---------------------------------------------------------------------------------


def test_a_path_that_does_not_exist_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "submissions").mkdir()
    done = shardlings("grade", str(tmp_path / "submisions"), "--out", str(tmp_path / "out"))
    assert "no such file or folder" in one_line(done) and "submissions" in one_line(done)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_nothing_to_grade_says_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "notes.txt").write_text("nothing")
    assert "nothing to grade" in one_line(shardlings("grade", str(tmp_path / "work"), "--out", str(tmp_path / "out")))


def test_a_misspelt_exercise_gets_the_near_one() -> None:
    line = one_line(shardlings("check", "c3_contracing"))
    assert line == "shardlings: no exercise 'c3_contracing'; did you mean 'c3_contracting'?"


def test_a_wrong_field_in_course_yaml_is_named_with_its_line(small: Path) -> None:
    text = (small / "course.yaml").read_text().replace("name: small\n", "name: small\ndevcies: 8\n")
    (small / "course.yaml").write_text(text)
    line = one_line(shardlings("list", cwd=small))
    assert line.endswith("course.yaml:2: devcies: no such field; did you mean 'devices'?")


def test_a_value_of_the_wrong_kind_in_course_yaml_is_named_with_its_line(small: Path) -> None:
    (small / "course.yaml").write_text((small / "course.yaml").read_text() + "limits:\n  run_seconds: -3\n")
    assert ":8: limits.run_seconds: Input should be greater than 0" in one_line(shardlings("list", cwd=small))


def test_an_exercise_that_does_not_load_is_named_with_its_line(small: Path) -> None:
    path = small / "solutions" / "03_matmuls" / "c1_no_communication.py"
    path.write_text(path.read_text().replace("import jax\n", "import jaxx\n"))
    line = one_line(shardlings("list", cwd=small))
    assert "c1_no_communication.py:" in line and "No module named 'jaxx'" in line


def test_a_notebook_that_is_not_json_costs_its_author_only(small: Path, tmp_path: Path) -> None:
    work = tmp_path / "class" / "ada"
    work.mkdir(parents=True)
    (work / "03_matmuls.ipynb").write_text("not json")
    done = shardlings("grade", str(work.parent), "--out", str(tmp_path / "out"), "--isolation", "none", cwd=small)
    report = json.loads((tmp_path / "out" / "reports" / "ada.json").read_text())
    assert done.returncode == 0, done.stderr
    assert report["earned"] == 0
    assert any("03_matmuls.ipynb" in note and "JSON" in note for note in report["notes"])


def test_isolation_that_is_not_to_be_had_is_refused(small: Path, tmp_path: Path) -> None:
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "c1_no_communication.py").write_text("")
    done = shardlings("grade", str(tmp_path / "ada"), "--out", str(tmp_path / "o"), "--isolation", "docker", cwd=small)
    assert "unknown isolation 'docker'; choose one of sandlock, bwrap, none" in one_line(done)


def test_too_few_devices_are_the_graders_fault_not_the_learners(small: Path, tmp_path: Path) -> None:
    """Four devices for a mesh of eight: no point is lost, a person is called."""
    (small / "course.yaml").write_text((small / "course.yaml").read_text() + "devices: 4\n")
    work = tmp_path / "class" / "ada"
    work.mkdir(parents=True)
    shutil.copy(small / "solutions" / "03_matmuls" / "c1_no_communication.py", work)
    done = shardlings("grade", str(work.parent), "--out", str(tmp_path / "out"), "--isolation", "none", cwd=small)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    line = done.stderr.strip().splitlines()[-1]
    assert "needs 8 devices" in line and "devices: 4" in line


# -- what a student does -----------------------------------------------------------------------


def test_list_shows_every_exercise(course: Course) -> None:
    rows = json.loads(shardlings("list", "--json").stdout)
    assert [r["exercise"] for r in rows] == list(course.module_of)


def test_show_prints_statement_numbers_and_hints_on_request() -> None:
    told = shardlings("show", "c1", "--hint", "1").stdout
    assert "Hint 1 for matmul_local" in told and "Question" in told
    assert "Hint 2" not in told


def test_check_exits_with_1_while_work_is_unfinished(tmp_path: Path) -> None:
    shutil.copy(ROOT / "exercises" / "03_matmuls" / "c1_no_communication.py", tmp_path)
    done = shardlings("check", "--work", str(tmp_path))
    assert done.returncode == 1
    assert "not written yet" in done.stdout


def test_check_works_where_there_is_no_fork(tmp_path: Path) -> None:
    """As on Windows: in the command's own process, with its simulated devices."""
    shutil.copy(ROOT / "solutions" / "03_matmuls" / "c1_no_communication.py", tmp_path / "c1_no_communication.py")
    code = f"import os, sys; del os.fork; from grader import cli; sys.argv = ['s', 'check', '--json', '--work', {str(tmp_path)!r}]; cli.main()"
    clean = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=clean, capture_output=True, text=True, check=False
    )
    results = json.loads(done.stdout)["exercises"][0]["results"]
    assert {r["status"] for r in results if r["kind"] == "check"} == {"passed"}, done.stdout


def test_what_learners_are_given_can_be_checked_by_itself(tmp_path: Path) -> None:
    """A release has no solutions: values are still judged, answers are read back."""
    shutil.copytree(ROOT / "exercises", tmp_path / "exercises")
    stub = tmp_path / "exercises" / "03_matmuls" / "c1_no_communication.py"
    body = (
        "return jax.shard_map(lambda a, b: a @ b, mesh=mesh, in_specs=(P('x', None), P(None, 'y')),"
        " out_specs=P('x', 'y'))(a, b)"
    )
    text = stub.read_text().replace('raise NotImplementedError("matmul_local")', body)
    stub.write_text(text.replace("= None  # TODO: your answer", '= "12 MB"'))
    done = shardlings("check", "c1", "--json", cwd=tmp_path / "exercises")
    results = json.loads(done.stdout)["exercises"][0]["results"]
    assert {r["status"] for r in results if r["kind"] == "check"} == {"passed"}
    assert any("judged after you submit" in r["reason"] for r in results if r["kind"] == "number")
    told = shardlings("check", "c1", cwd=tmp_path / "exercises").stdout
    assert told.endswith("Hidden checks decide on 1 point more when your work is graded.\n")


def test_per_student_numbers_need_a_name_and_differ(small: Path) -> None:
    (small / "course.yaml").write_text((small / "course.yaml").read_text() + "variants: {mode: per_student, seed: s}\n")
    assert "--student NAME" in one_line(shardlings("show", "c1", cwd=small))
    texts = {shardlings("show", "c1", "--json", "--student", f"s{i}", cwd=small).stdout for i in range(4)}
    assert len(texts) > 1


def test_the_packaged_course_is_nobodys_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stubs are not handed in, and not scored: where no work is, both say where it was looked for."""
    from typer.testing import CliRunner

    from grader import cli
    from grader.course import finding
    from grader.course.config import CourseError

    monkeypatch.chdir(tmp_path)
    for module in (cli, finding):
        monkeypatch.setattr(module, "PACKAGED", ROOT / "exercises")
    for words in (["submit", "03_matmuls", "--student", "ada"], ["check", "c3"], ["check"]):
        done = CliRunner().invoke(cli.app, words)
        assert isinstance(done.exception, CourseError), done.output
        assert f" in {tmp_path}: looked for files such as " in str(done.exception)
        assert "go to your work or pass --work FOLDER" in str(done.exception)
    assert list(tmp_path.iterdir()) == []
    for words in (["list"], ["show", "c3"]):
        done = CliRunner().invoke(cli.app, words)
        assert done.exit_code == 0
        assert done.stderr == (
            f"note: no course.yaml in {tmp_path} or above, so this is the course that was installed with shardlings; "
            "for another go to its folder or pass --course\n"
        )
    shutil.copy(ROOT / "exercises" / "03_matmuls" / "c3_contracting.py", tmp_path)
    assert "not written yet" in CliRunner().invoke(cli.app, ["check"]).output


@pytest.mark.parametrize(
    "words",
    [
        ["build"],
        ["verify"],
        ["mutants"],
        ["new", "01_a/x1"],
        ["grade", ".", "--out", "out"],
        ["export", "out", "--to", "canvas"],
        ["nbgrader", "init", "folder"],
    ],
    ids=" ".join,
)
def test_staff_and_authors_get_no_course_that_they_did_not_choose(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from grader import cli
    from grader.course import finding

    monkeypatch.chdir(tmp_path)
    for module in (cli, finding):
        monkeypatch.setattr(module, "PACKAGED", ROOT / "exercises")
    done = CliRunner().invoke(cli.app, words)
    assert str(done.exception) == (
        f"no course.yaml in {tmp_path} or above; go to the course's folder, pass --course, "
        "or start one: shardlings new course FOLDER"
    )
    assert list(tmp_path.iterdir()) == []


# -- other people's files ----------------------------------------------------------------------

GOOD = "examples/submissions/ada/c1_no_communication.py"


def evil_course(folder: Path, mark: Path) -> Path:
    """What a student hands in: their work, and a course that leaves a mark when its files are executed."""
    for place in ("solutions/03_matmuls", "03_matmuls/_public"):
        (folder / place).mkdir(parents=True)
        (folder / place / "c1_no_communication.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    (folder / "course.yaml").write_text(
        "name: evil\nmodules:\n  - id: 03_matmuls\n    title: M\n    exercises: [c1_no_communication]\n"
    )
    shutil.copy(ROOT / GOOD, folder)
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("check", "--work", "."),
        ("check", "--isolation", "auto"),
        ("submit", "03_matmuls", "--work", "."),
        ("grade", ".", "--out", "../../out"),
        ("grade", "..", "--out", "../../out"),
    ],
    ids=" ".join,
)
def test_a_course_among_handed_in_files_is_executed_by_no_command(words: tuple[str, ...], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    folder = evil_course(tmp_path / "class" / "alice", mark)
    if "--isolation" in words:
        shutil.rmtree(folder / "solutions")
    line = one_line(shardlings(*words, cwd=folder))
    assert "course.yaml lies " in line and line.endswith("pass the one to trust, --course FOLDER")
    assert not mark.exists()
    done = shardlings("check", "--work", str(folder), "--json")  # from one's own checkout, its course is used
    assert json.loads(done.stdout)["course"] == "shardlings" and not mark.exists()


def test_check_says_that_it_runs_a_file_as_it_is_and_offers_isolation(tmp_path: Path) -> None:
    shutil.copy(ROOT / GOOD, tmp_path)
    told = shardlings("check", "--work", str(tmp_path))
    assert told.stderr.startswith(
        f"note: {tmp_path} is run as it is, without a sandbox; for work that is not yours pass"
    )
    (tmp_path / "c1_no_communication.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w').close()\n")
    tier = available_tier()
    done = shardlings("check", "--work", str(tmp_path), "--isolation", tier, "--json")
    assert "without a sandbox" not in done.stderr and not (tmp_path / "mark").exists()
    assert json.loads(done.stdout)["isolation"] == tier
    assert shardlings("check", "--work", str(tmp_path)).returncode == 1 and (tmp_path / "mark").exists()


def available_tier() -> str:
    from grader.sandbox.tiers import NoIsolation, best_tier

    try:
        return best_tier("auto")
    except NoIsolation:
        pytest.skip("no sandbox works here")


def test_an_appeal_ends_with_3_where_the_report_on_file_does_not_hold(small: Path) -> None:
    (small / "class" / "ada").mkdir(parents=True)
    shutil.copy(ROOT / GOOD, small / "class" / "ada")
    words = ("grade", "class", "--out", "out", "--isolation", "none")
    assert shardlings(*words, cwd=small).returncode == 0
    why = (*words, "--why", "ada", "c1_no_communication/local_value")
    again = shardlings(*why, cwd=small)
    assert again.returncode == 0 and "as in the report on file" in again.stdout
    (small / "class" / "ada" / Path(GOOD).name).write_text("def matmul_local(a, b, *, mesh):\n    return a\n")
    other = shardlings(*why, cwd=small)
    assert other.returncode == 3 and "status: 'passed' on file, 'failed' now" in other.stdout
    assert "shardlings: the report on file does not hold: " in other.stderr


def test_one_odd_name_stops_nobody(small: Path) -> None:
    work = small / "class"
    for name in ("alice", "bob"):
        (work / name).mkdir(parents=True)
        shutil.copy(ROOT / GOOD, work / name)
    shutil.copy(ROOT / GOOD, work / "alice_c1_no_communication.py")
    (work / "carol").symlink_to("carol")
    done = shardlings("grade", "class", "--out", "out", "--isolation", "none", "--json", cwd=small)
    assert done.returncode == 3
    assert [p.stem for p in (small / "out" / "reports").iterdir()] == ["bob"]
    assert "shardlings: alice was not graded: alice is there twice: class/alice and " in done.stderr
    assert "shardlings: carol was not graded: class/carol is a link and was not followed" in done.stderr
    assert [a["student"] for a in json.loads(done.stdout)["attention"]] == ["alice", "carol"]
    page = (small / "out" / "index.html").read_text()
    assert page.index("alice is there twice") < page.index("<h2>Students")


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root's powers, to drop them"
)
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_the_grader_may_not_read_is_not_graded(what: str, small: Path) -> None:
    for name in ("ada", "bob"):
        (small / "class" / name / "work").mkdir(parents=True)
        shutil.copy(ROOT / GOOD, small / "class" / name / "work")
    hidden = small / "class" / "bob" / "work"
    (hidden if what == "folder" else hidden / "c1_no_communication.py").chmod(0)
    mere = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", sys.executable, "-m", "grader.cli"]
    words = [*mere, "grade", "class", "--out", "out", "--isolation", "none"]
    done = subprocess.run(words, cwd=small, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stdout + done.stderr
    assert (
        "shardlings: bob was not graded: " in done.stderr
        and "Permission denied; mend that and grade again" in done.stderr
    )
    assert [p.stem for p in (small / "out" / "reports").iterdir()] == ["ada"]


def test_the_published_seed_is_told(small: Path) -> None:
    (small / "course.yaml").write_text(
        (small / "course.yaml").read_text().replace("a-secret-seed", "change-me-before-term")
    )
    (small / "ada").mkdir()
    shutil.copy(ROOT / GOOD, small / "ada")
    told = "is change-me-before-term, which everybody knows: hidden inputs are drawn from it; set one of your own"
    done = shardlings("grade", "ada", "--out", "out", "--isolation", "none", "--json", cwd=small)
    assert f"warning: the seed in course.yaml {told}" in done.stderr
    assert told in json.loads(done.stdout)["warnings"][0] and told in (small / "out" / "index.html").read_text()
    lines = {line["name"]: line for line in json.loads(shardlings("doctor", "--json", cwd=small).stdout)}
    assert told in lines["seed"]["told"] and not lines["seed"]["ok"] and not lines["seed"]["needed"]
    shardlings("build", cwd=small)
    assert told in shardlings("verify", cwd=small).stderr


def test_grades_of_two_modules_add_up_in_one_folder(tmp_path: Path) -> None:
    for module, name in (("03_matmuls", "c1_no_communication"), ("01_layout", "a1_local_shape")):
        (tmp_path / module / "ada").mkdir(parents=True)
        source = "ada" if module == "03_matmuls" else "../other_modules/noor"
        shutil.copy(ROOT / "examples" / "submissions" / source / f"{name}.py", tmp_path / module / "ada")
    out = tmp_path / "g"
    earned = []
    for module in ("03_matmuls", "01_layout"):
        done = shardlings("grade", str(tmp_path / module), "--only", module, "--out", str(out), "--isolation", "none")
        assert done.returncode == 0, done.stderr
        earned.append(json.loads((out / "reports" / "ada.json").read_text())["earned"])
    whole = json.loads((out / "reports" / "ada.json").read_text())
    assert {e["module"] for e in whole["exercises"]} == {"01_layout", "03_matmuls"}
    assert whole["earned"] == sum(e["earned"] for e in whole["exercises"]) >= earned[0] > 0
    assert "c1_no_communication" in (out / "grades.csv").read_text()
    assert "01_layout" in (out / "index.html").read_text() and "03_matmuls" in (out / "index.html").read_text()


# -- what an author does -----------------------------------------------------------------------


def test_a_new_exercise_passes_verify_as_it_stands(small: Path) -> None:
    assert shardlings("new", "03_matmuls/c9_extra", cwd=small).returncode == 0
    assert shardlings("build", cwd=small).returncode == 0
    done = shardlings("verify", cwd=small)
    assert done.returncode == 0, done.stdout
    assert "c9_extra" in done.stdout


def test_new_says_what_it_did_and_what_comes_next(small: Path) -> None:
    done = shardlings("new", "04_more/d1_first", cwd=small)
    path = small / "solutions" / "04_more" / "d1_first.py"
    assert done.stdout == f"wrote {path}; edit it, then: shardlings build && shardlings verify d1_first\n"
    assert done.stderr == "note: 04_more is a new module, the last in course.yaml; its title is yours to choose\n"
    assert path.is_file()


def test_new_course_says_what_comes_next(tmp_path: Path) -> None:
    done = shardlings("new", "course", "own", cwd=tmp_path)
    assert done.stdout == "wrote a course to own; next: cd own && shardlings build && shardlings verify\n"
    (tmp_path / "empty").mkdir()
    done = shardlings("new", "course", ".", cwd=tmp_path / "empty")
    assert done.stdout == "wrote a course to .; next: shardlings build && shardlings verify\n"
    line = one_line(shardlings("new", "course", "own", cwd=tmp_path))
    assert line == "shardlings: own is there and is not an empty folder; name a new one"
    line = one_line(shardlings("new", "course", cwd=tmp_path))
    assert line == "shardlings: say where the course goes: shardlings new course FOLDER"
    line = one_line(shardlings("new", "01_a/b", "own", cwd=tmp_path))
    assert line == "shardlings: a new exercise goes into its course; for a new course: shardlings new course own"


def test_new_refuses_what_is_there(small: Path) -> None:
    assert "is there already" in one_line(shardlings("new", "03_matmuls/c1_no_communication", cwd=small))
    assert "is not MODULE/EXERCISE" in one_line(shardlings("new", "C9", cwd=small))


def test_doctor_tells_devices_and_isolation() -> None:
    lines = {line["name"]: line for line in json.loads(shardlings("doctor", "--json").stdout)}
    assert lines["devices"]["told"] == "8 simulated devices"
    assert {"isolation sandlock", "isolation bwrap", "JAX"} <= set(lines)


def test_without_j_an_nbgrader_folder_says_how_many_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from grader import cli

    asked: list[int] = []
    monkeypatch.setattr(cli, "grade_nbgrader", lambda folder, names, jobs, *rest: asked.append(jobs) or 0)
    for more in ([], ["-j", "3"]):
        CliRunner().invoke(cli.app, ["grade", "--nbgrader", str(tmp_path), "m", *more])
    assert asked == [0, 3]  # 0: as nbgrader_config.py says


# -- an exercise that cannot be used, and modules of one kind only


@pytest.fixture
def with_bad(tmp_path: Path) -> Path:
    """A checkout of a good exercise, and of another that its author declared wrongly."""
    made_up(tmp_path)
    (tmp_path / "solutions" / "02_bad").mkdir()
    bad = EXERCISE.replace('unit="us"', 'unit="furlong"')
    (tmp_path / "solutions" / "02_bad" / "x2_bad.py").write_text(bad)
    (tmp_path / "course.yaml").write_text(f"{COURSE}  - {{id: 02_bad, title: Bad, exercises: [x2_bad]}}\n")
    return tmp_path


def bad_line(folder: Path) -> str:
    return (
        f"{folder}/solutions/02_bad/x2_bad.py:64: gather_time: unknown unit 'furlong': "
        "write for instance us, ms, KiB, GB/s, FLOP or token"
    )


def test_an_exercise_that_cannot_be_used_stops_no_other(with_bad: Path) -> None:
    listed = shardlings("list", cwd=with_bad)
    assert "X1 Gather" in listed.stdout and one_line(listed) == f"shardlings: {bad_line(with_bad)}"
    shown = shardlings("show", "x1", cwd=with_bad)
    assert (shown.returncode, shown.stderr) == (0, f"note: {bad_line(with_bad)}\n") and "X1 Gather" in shown.stdout
    assert one_line(shardlings("show", "x2", cwd=with_bad)) == f"shardlings: {bad_line(with_bad)}"
    work = with_bad / "work"
    work.mkdir()
    for name in ("x1_gather", "x2_bad"):
        (work / f"{name}.py").write_text("gather_time = 3\n")
    checked = shardlings("check", "--work", str(work), cwd=with_bad)
    assert checked.returncode == 2 and "X1 Gather  0/" in checked.stdout
    assert [line for line in checked.stderr.splitlines() if "x2_bad" in line] == [f"shardlings: {bad_line(with_bad)}"]
    assert one_line(shardlings("build", cwd=with_bad)) == f"shardlings: {bad_line(with_bad)}"


def test_verify_names_an_exercise_that_cannot_be_used_and_proves_the_rest(with_bad: Path) -> None:
    done = shardlings("verify", cwd=with_bad)
    assert done.returncode == 1 and done.stderr == ""
    assert done.stdout.splitlines() == [
        "✓ x1_gather",
        "✗ x2_bad",
        f"    {bad_line(with_bad)}",
        "✗ course",
        "    x2_bad cannot be used, so what learners are given was not proved; see: shardlings verify x2_bad",
        "2 exercises, 3 misconceptions: 2 problems",
    ]


def test_other_modules_are_graded(with_bad: Path) -> None:
    (with_bad / "class" / "alice").mkdir(parents=True)
    (with_bad / "class" / "alice" / "x1_gather.py").write_text("gather_time = 3\n")
    words = ("grade", "class", "--out", "graded", "--isolation", "none", "--only")
    done = shardlings(*words, "01_gather", cwd=with_bad)
    assert done.returncode == 0 and done.stderr.strip() == f"note: {bad_line(with_bad)}"
    assert (with_bad / "graded" / "grades.csv").is_file()
    assert one_line(shardlings(*words, "02_bad", cwd=with_bad)) == f"shardlings: {bad_line(with_bad)}"


QUESTION = EXERCISE[EXERCISE.index("@exercise.number") :]
ASKS = f'''\
"""# Q1 Questions

Answer.
"""

from grader.exercise import About, Exercise
from grader.hardware import all_gather_time

exercise = Exercise()


{QUESTION}'''
WRITES = '''\
"""# F1 Functions

Write.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function(hints=["a nudge"])
def half(n):
    """Half of n."""
    return n // 2


cases = exercise.cases(half, public=[{"n": 4}, {"n": 6}], hidden=lambda rng: [{"n": int(rng.integers(2, 99))}])


@exercise.check(cases, points=1, public=True)
def halved(seen):
    """half: it is half"""
    expect_outcomes(seen)


@exercise.misconception(fails=halved)
def doubled(n):
    """You doubled it."""
    return 2 * n
'''


def test_a_module_of_questions_one_of_functions_and_an_empty_one(tmp_path: Path) -> None:
    for module, name, text in (("01_ask", "q1_ask", ASKS), ("02_write", "f1_write", WRITES)):
        (tmp_path / "solutions" / module).mkdir(parents=True)
        (tmp_path / "solutions" / module / f"{name}.py").write_text(text)
    (tmp_path / "course.yaml").write_text(
        "name: kinds\nseed: a-secret-seed\nmodules:\n  - {id: 01_ask, title: Ask, exercises: [q1_ask]}\n"
        "  - {id: 02_write, title: Write, exercises: [f1_write]}\n"
        "  - {id: 03_empty, title: Empty, exercises: [], deadline: 2020-01-01T00:00:00}\n"
    )
    assert shardlings("build", cwd=tmp_path).stdout.endswith("7 files changed\n")
    for module, last in (("01_ask", 'check("q1_ask")'), ("02_write", 'check("f1_write")')):
        book = json.loads((tmp_path / "exercises" / module / f"{module}.ipynb").read_text())
        assert "".join(book["cells"][-1]["source"]) == last
    done = shardlings("verify", cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "2 exercises, 2 misconceptions: nothing to mend", done.stdout
    listed = shardlings("list", cwd=tmp_path)
    assert listed.returncode == 0 and "03_empty  Empty" in listed.stdout
    for words in (("show", "03"), ("check", "03")):
        assert one_line(shardlings(*words, cwd=tmp_path)) == "shardlings: there is no exercise in 03 yet"
    (tmp_path / "class" / "alice").mkdir(parents=True)
    shutil.copy(tmp_path / "exercises" / "02_write" / "f1_write.py", tmp_path / "class" / "alice")
    words = ("grade", "class", "--out", "graded", "--isolation", "none")
    graded = shardlings(*words, cwd=tmp_path)
    assert graded.returncode == 0 and "graded here: everything" in graded.stderr, graded.stderr
    empty = shardlings(*words, "--only", "03", cwd=tmp_path)
    assert one_line(empty) == "shardlings: there is no exercise in 03 yet: nothing to grade"


def test_what_an_authors_function_raises_is_one_line(tmp_path: Path) -> None:
    right = 'return all_gather_time(I, 4, "v5p")\n\n\nexercise.about'
    found = made_up(tmp_path, right, "return 1 / 0\n\n\nexercise.about")
    done = shardlings("verify", cwd=found.root)
    assert done.returncode == 1 and done.stderr == ""
    assert "    gather_time has no answer: ZeroDivisionError: division by zero" in done.stdout.splitlines()
