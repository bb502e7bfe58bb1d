"""Output and exit codes of the learner's commands start, list, show and check."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader.cli import app, learner
from grader.course.finding import find_course
from tests.commands import GOOD, ROOT, bad_line, one_line, shardlings
from tests.made_up import made_up
from tests.sampled import sampled


def test_list_shows_every_exercise() -> None:
    rows = json.loads(shardlings("list", "--json").stdout)
    assert [r["exercise"] for r in rows] == list(find_course(ROOT).module_of)


def test_show_prints_statement_numbers_and_hints_on_request() -> None:
    shown = shardlings("show", "c1").stdout
    assert "C1 A matmul" in shown and "Question flops_per_device" in shown and "Hint" not in shown
    assert shown.splitlines()[-4:] == [
        "Write: exercises/03_matmuls/c1_no_communication.py or 03_matmuls.ipynb beside it",
        "Check: shardlings check c1_no_communication",
        "Stuck? shardlings show c1_no_communication --hint 1",
        "More: shardlings show c1_no_communication --more",
    ]


def test_show_with_hint_prints_only_hints() -> None:
    first, more = shardlings("show", "matmul_all_reduce", "--hint", "1").stdout.split("\n", 1)
    assert first.startswith("Hint 1 for matmul_all_reduce: ") and "matmul_reduce_scatter" not in more
    assert more.rstrip().endswith("More? shardlings show matmul_all_reduce --hint 2")
    every = shardlings("show", "c3", "--hint", "3").stdout
    assert "Hint 3 for matmul_reduce_scatter: " in every and "C3" not in every and "More?" not in every
    assert shardlings("show", "c3", "--hint", "-1").returncode == 2
    of_a_question = shardlings("show", "flops_per", "--hint", "1").stdout
    assert "Question" not in of_a_question and of_a_question.count("\n") <= 3


def test_show_of_a_function_shows_its_exercise_with_a_note() -> None:
    done = shardlings("show", "matmul_all_reduce")
    assert done.returncode == 0 and "C3 Both operands cut" in done.stdout
    assert done.stderr.splitlines() == ["note: matmul_all_reduce is a function of c3_contracting"]


def test_check_exits_with_1_while_work_is_unfinished(tmp_path: Path) -> None:
    shutil.copy(ROOT / "exercises" / "03_matmuls" / "c1_no_communication.py", tmp_path)
    done = shardlings("check", "--work", str(tmp_path))
    assert done.returncode == 1
    assert "not written yet" in done.stdout


@pytest.mark.slow
def test_check_works_without_fork(tmp_path: Path) -> None:
    """As on Windows, ``check`` runs in the command's own process, with its simulated devices."""
    shutil.copy(ROOT / "solutions" / "03_matmuls" / "c1_no_communication.py", tmp_path / "c1_no_communication.py")
    code = f"import os, sys; del os.fork; from grader import cli; sys.argv = ['s', 'check', '--json', '--work', {str(tmp_path)!r}]; cli.main()"
    clean = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=clean, capture_output=True, text=True, check=False
    )
    results = json.loads(done.stdout)["exercises"][0]["results"]
    assert {r["status"] for r in results if r["kind"] == "check"} == {"passed"}, done.stdout


def test_check_works_in_the_learners_release_alone(tmp_path: Path) -> None:
    """A release has no solutions. ``check`` still judges values, and reads answers back."""
    shutil.copytree(ROOT / "exercises", tmp_path / "exercises")
    stub = tmp_path / "exercises" / "03_matmuls" / "c1_no_communication.py"
    body = (
        "return jax.shard_map(lambda a, b: a @ b, mesh=mesh, in_specs=(P('x', None), P(None, 'y')),"
        " out_specs=P('x', 'y'))(a, b)"
    )
    text = stub.read_text().replace('raise NotImplementedError("matmul_local")', body)
    stub.write_text(text.replace("= None  # TODO: your answer", '= "12 GFLOP"'))
    done = shardlings("check", "c1", "--json", cwd=tmp_path / "exercises")
    results = json.loads(done.stdout)["exercises"][0]["results"]
    assert {r["status"] for r in results if r["kind"] == "check"} == {"passed"}
    assert any("judged after you submit" in r["reason"] for r in results if r["kind"] == "number")
    shown = shardlings("check", "c1", cwd=tmp_path / "exercises").stdout
    assert shown.endswith("Hidden checks are worth 1 point more; they run when your submission is graded.\n")


def test_check_notes_that_it_runs_without_a_sandbox_and_offers_isolation(tmp_path: Path) -> None:
    shutil.copy(ROOT / GOOD, tmp_path)
    done = shardlings("check", "--work", str(tmp_path))
    assert done.stderr.startswith(f"note: {tmp_path} runs without a sandbox; for code that is not yours pass")
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


@pytest.mark.slow
def test_learners_commands_report_an_unusable_exercise_and_use_the_others(with_bad: Path) -> None:
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


def test_check_without_names_lists_begun_exercises_and_the_first_failure(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "exercises", tmp_path / "exercises")
    place = tmp_path / "exercises" / "03_matmuls"
    stub = place / "c1_no_communication.py"
    stub.write_text(stub.read_text().replace('raise NotImplementedError("matmul_local")', "return a @ b"))
    done = shardlings("check", cwd=tmp_path / "exercises")
    assert done.returncode == 1 and len(done.stdout.splitlines()) < 40
    assert "03_matmuls The four cases of a sharded matmul: 1 of 5 begun\n" in done.stdout
    assert "  ✗ c1_no_communication 2 of 3 checks pass; 1 not answered yet\n" in done.stdout
    assert "01_layout Meshes, shardings and local shapes: not begun, 6 exercises\n" in done.stdout
    assert "the arithmetic is not in the body of jax.shard_map" in done.stdout.replace("\n    ", " ")
    assert (
        "All results: shardlings check c1_no_communication; to check after each save: shardlings watch" in done.stdout
    )


def test_with_the_solutions_check_also_judges_hidden_checks_and_answers(small: Path) -> None:
    shardlings("build", cwd=small)
    stub = small / "exercises" / "03_matmuls" / "c1_no_communication.py"
    text = stub.read_text().replace('raise NotImplementedError("matmul_local")', "return a @ b")
    stub.write_text(text.replace("= None  # TODO: your answer", '= "12 MB"'))
    shown = shardlings("check", "c1", cwd=small).stdout
    assert "judged as well, because this course includes the solutions." in " ".join(shown.split())
    assert shown.endswith("What your functions do, collective by collective: shardlings explain c1_no_communication\n")
    assert "✓ matmul_local: no collective  1/1" in shown and "hint: You multiplied whole arrays" in shown
    assert (
        "the question asks for a number of FLOPs, but you gave an amount of data" in shown
        and "Score: 2.5 / 4 (62.5%)" in shown
    )
    given = shardlings("check", "c1", cwd=small / "exercises").stdout
    assert "2 of 3 checks pass; 1 answer cannot be right" not in given and "no collective " not in given
    assert "the question asks for a number of FLOPs, but you gave an amount of data" in given


@pytest.mark.slow
def test_show_cuts_no_name_on_a_narrow_terminal() -> None:
    shown = shardlings("show", "a6", COLUMNS="40").stdout
    assert all(word in shown for word in ("with_sharding_constraint", "float32[24@x,40]", "matmul_explicit"))
    assert max(map(len, shown.splitlines())) <= 40
    listed = shardlings("list", COLUMNS="30").stdout
    assert all(f"\n  {name}\n" in listed for name in find_course(ROOT).module_of)


def test_show_of_a_module_prints_its_page_and_its_exercises() -> None:
    shown = shardlings("show", "03").stdout
    assert "Traced functions." in shown and "  c1_no_communication" in shown
    found = json.loads(shardlings("show", "03", "--json").stdout)
    assert found["module"] == "03_matmuls" and found["page"].startswith("# ")
    assert [row["exercise"] for row in found["exercises"]] == list(find_course(ROOT).module("03_matmuls").exercises)


def test_show_with_more_prints_the_going_further_section(small: Path) -> None:
    path = small / "solutions" / "03_matmuls" / "c1_no_communication.py"
    text = path.read_text()
    path.write_text(
        re.sub(r'(\n## Going further\n).*?"""\n', r'\1\nOnly a few read this.\n"""\n', text, count=1, flags=re.S)
    )
    shown = shardlings("show", "c1", cwd=small).stdout
    assert "a few read" not in shown and shown.endswith("More: shardlings show c1_no_communication --more\n")
    more = shardlings("show", "c1", "--more", cwd=small).stdout
    assert "Only a few read this." in more and "Write:" not in more and "C1" not in more
    assert json.loads(shardlings("show", "c1", "--json", cwd=small).stdout)["further"] == "Only a few read this."


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "c"), "'c' could be c1_no_communication, c2_one_operand,"),
        (("check", "c"), "'c' could be c1_no_communication, c2_one_operand,"),
        (("show", "03", "--more"), "03_matmuls is a module: name one of its exercises, such as c1_no_communication"),
        (("show", "flops_per_devic"), ""),
        (("show", "flops_per_devize"), "no exercise 'flops_per_devize'; there are "),
        (("submit", "0"), "'0' could be 01_layout, 02_collectives,"),
    ],
)
def test_a_name_may_be_shortened_to_any_unique_beginning(words: tuple[str, ...], message: str) -> None:
    done = shardlings(*words)
    if message:
        assert one_line(done).startswith(f"shardlings: {message}")
    else:
        assert "Question flops_per_device (1 point)" in done.stdout


def test_start_copies_the_packaged_course_and_prints_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner, "PACKAGED", tmp_path / "none")
    assert (
        "this installation of shardlings has no course to copy: go to the folder that you were given, or to your clone"
        in str(CliRunner().invoke(app, ["start", "x"]).exception)
    )
    made_up(tmp_path / "course")
    assert shardlings("build", cwd=tmp_path / "course").returncode == 0
    monkeypatch.setattr(learner, "PACKAGED", tmp_path / "course" / "exercises")
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(app, ["start", "mine"]).output
    assert re.match(
        r"wrote the packaged course, small \d+\.\d+\S*, to mine/exercises\nnext: cd mine && shardlings show x1_g", said
    )
    assert "\nnext: cd 'my own' && shardlings show" in CliRunner().invoke(app, ["start", "my own"]).output
    listed = shardlings("list", cwd=tmp_path / "mine")
    assert "x1_gather" in listed.stdout and listed.stderr == ""


@pytest.mark.parametrize("command", sampled(1, ["show c1", "list", "show c1_no_communication --hint 1"]))
def test_output_is_the_same_from_the_cache_and_without_it(small: Path, command: str) -> None:
    kept = {"SHARDLINGS_CACHE": str(small / "cache")}
    runs = [shardlings(*command.split(), cwd=small, **env) for env in (kept, kept, {"SHARDLINGS_CACHE": "off"})]
    assert len({(run.stdout, run.stderr, run.returncode) for run in runs}) == 1


def test_a_change_of_the_course_changes_the_output_despite_the_cache(small: Path) -> None:
    env = {"SHARDLINGS_CACHE": str(small / "cache")}
    before = shardlings("list", cwd=small, **env)
    path = small / "solutions" / "03_matmuls" / "c1_no_communication.py"
    path.write_text(path.read_text().replace("# C1 A matmul", "# C1 New: a matmul", 1))
    after = shardlings("list", cwd=small, **env)
    assert before.stdout != after.stdout and "New: a matmul" in after.stdout
