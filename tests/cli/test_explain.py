"""``explain`` describes a function of the solution or of the learner. Bad input gives one line."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from grader.cli import main
from tests.cli.test_learner import available_tier
from tests.commands import ROOT, one_line, shardlings
from tests.made_up import made_up

RIGHT = """
import jax
from jax.sharding import PartitionSpec as P


def matmul_all_reduce(a, b, *, mesh):
    def local(a, b):
        return jax.lax.psum(a @ b, "x")

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)


def matmul_reduce_scatter(a, b, *, mesh):
    raise TypeError("not this one")
"""
LINES = "lines to copy into checks"


def run(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cwd: Path = ROOT
) -> tuple[int, str, str]:
    """Run a command in this process, and return its exit code, output and errors."""
    monkeypatch.chdir(cwd)
    monkeypatch.setattr(sys, "argv", ["shardlings", *words])
    with pytest.raises(SystemExit) as done:
        main()
    told = capsys.readouterr()
    return int(done.value.code or 0), told.out, told.err


BAD = {
    "explain zz": "no exercise 'zz'; there are 01_layout",
    "explain e1_ring_al_gather": "did you mean 'e1_ring_all_gather'?",
    "explain 03": "03 has several exercises: explain one of c1_no_communication, c2_one_operand",
    "explain d1": "d1_ring_and_line has no program to explain: only functions of arrays on a mesh have programs",
    "explain axis_collective_time": "axis_collective_time has no program to explain",
    "explain c3 --mesh x=5": "matmul_all_reduce on x=5: a: dimension J = 32 in dims cannot be cut into 5 equal parts",
    "explain c3 --mesh y=8": "the spec of a names axis 'x', which the mesh {'y': 8} does not have",
    "explain c3 --mesh x=16": "a mesh of x=16 needs 16 devices, but course.yaml says devices: 8; choose a smaller mesh",
    "explain c3 --mesh x": "--mesh x: x is not a name and a size; write x=4,y=2",
    "explain c3 --mesh x=4,": "--mesh x=4,: nothing is not a name and a size",
    "explain c3 --mesh x=-4": "x=-4 is not a name and a size",
    "explain c3 --mesh x=2,x=4": "--mesh x=2,x=4: x appears twice",
    "explain c3 --dims Q=4": "no dimension 'Q' in c3_contracting; there are I, J, K",
    "explain c3 --dims J=33": "dimension J = 33 in dims cannot be cut into 4 equal parts",
    "explain c3 --dims I=100000,J=80000": "the arguments take 29.8 GiB, but the limit for a run is 64 MiB (with --on",
    "explain c3 --on v5x:2x4": "unknown chip 'v5x'; did you mean 'v5p'?",
    "explain c3 --on v5e": "'v5e' is not a slice; write a chip and the sizes of its axes, such as \"v5e:2x4\"",
    "explain c3 --on v5e:3x3": "v5e has no slice of 3x3",
    "explain c3 --on H100:2x4": "H100 is a GPU: it has a switch, not a torus",
    "explain c3 --on v5e:4x4": "matmul_all_reduce on x=4, y=2: the mesh (x=4, y=2) has 8 devices, but v5e:4x4 has 16",
    "explain c3 --on v5e:2x4 --profile v5x": "no profile 'v5x'; did you mean",
    "explain c3 --trace t.json": "--trace writes a timeline and needs a slice, such as --on v5e:2x4",
    "explain c3 --on v5e:2x4 --trace README.md": "README.md already exists; name a new file",
    "explain c3 --on v5e:2x4 --trace no/t.json": "there is no folder no for t.json",
    "explain c3 --work nowhere": "no such file or folder: nowhere",
    "explain c3 --isolation strong": "unknown isolation 'strong'; choose one of",
}


@pytest.mark.parametrize("command", BAD)
def test_bad_input_to_explain_gives_a_one_line_error(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, printed, told = run(command.split(), monkeypatch, capsys)
    assert (code, printed, len(told.splitlines())) == (2, "", 1), told
    assert told.startswith("shardlings: ") and BAD[command] in told


def test_explain_shows_the_solutions_lines_costs_and_suggested_checks() -> None:
    data = json.loads(shardlings("explain", "c3", "--json").stdout)
    first = data["programs"][0]
    assert (first["task"], first["mesh"]) == ("matmul_all_reduce", {"x": 4, "y": 2})
    assert first["arguments"][0] == {
        "name": "a", "shape": [24, 32], "dtype": "float32", "spec": "P(None, 'x')", "local": [[24, 8]],
    }  # fmt: skip
    assert first["results"][0]["spec"] == "P()" and first["flops"] == {"matmuls": 15360, "others": 0}
    (reduce,) = first["collectives"]
    source = (ROOT / "solutions" / "03_matmuls" / reduce["file"]).read_text().splitlines()
    assert reduce["kind"] == "all_reduce" and "jax.lax.psum(" in source[reduce["line"] - 1]
    assert (reduce["bytes"], reduce["sent"], first["memory"]["xla"]) == (3840, 5760, 3840)
    assert first["memory"]["live"]["arguments"] == 4 * (24 * 8 + 8 * 40) and first["timeline"] is None
    assert len(data["programs"]) == 6, "hidden sizes are tried, and not shown"
    assert 'expect_collectives(seen, reduce_scatter={"x": 1})' in data["checks"]["matmul_reduce_scatter"]


@pytest.mark.slow
def test_explain_shows_one_task_on_another_mesh() -> None:
    done = shardlings("explain", "ring_all_gather", "--mesh", "x=6", COLUMNS="40")
    assert done.returncode == 0
    assert done.stderr == "note: this is the solution's function, solutions/05_rings/e1_ring_all_gather.py\n"
    assert "ring_all_gather on x=6 with I=120, J=5" in done.stdout
    assert "5 × permute over x to the next device" in " ".join(done.stdout.split())
    assert LINES not in done.stdout, "one mesh says little about others"
    assert all(len(line.rstrip()) <= 40 for line in done.stdout.splitlines())
    assert "\x1b" not in done.stdout


@pytest.mark.slow
def test_explain_shows_a_timeline_at_large_sizes_and_writes_its_trace(tmp_path: Path) -> None:
    trace = tmp_path / "e1.json"
    words = ["--mesh", "x=8", "--on", "v5e:2x4", "--dims", "I=65536,J=4096", "--trace", str(trace)]
    done = shardlings("explain", "e1", *words, NO_COLOR="1")
    assert done.returncode == 0 and done.stderr.endswith(f"\nnote: wrote {trace}; open it at https://ui.perfetto.dev\n")
    told = " ".join(done.stdout.split())
    assert "in time on v5e 2x4, x on slice axes 0 and 1, profile ideal" in told
    assert "not run at these sizes" in told and "link x+ " in told and "permute: " in told
    found = json.loads(trace.read_text())["traceEvents"]
    hops = [e for e in found if e.get("cat") == "permute"]
    assert len(hops) == 7 and {e["args"]["bytes"] for e in hops} == {4 * 65536 * 4096 // 8}
    assert {e["args"]["file"] for e in hops} == {"e1_ring_all_gather.py"}
    assert list(tmp_path.iterdir()) == [trace], "nothing else is left there"
    data = json.loads(shardlings("explain", "e1", *words[:6], "--json").stdout)
    assert data["programs"][0]["timeline"]["step"] > 0 and data["checks"] == {}


def test_explain_shows_the_learners_work_and_reports_its_fault_once(tmp_path: Path) -> None:
    (tmp_path / "c3_contracting.py").write_text(RIGHT)
    done = shardlings("explain", "c3", "--work", str(tmp_path), "--on", "v5e:2x4")
    assert done.returncode == 1
    assert "runs without a sandbox" in done.stderr
    assert "c3_contracting.py:8" in "".join(done.stdout.split()), "the line is the learner's"
    assert done.stdout.count("not this one") == 1 and LINES not in done.stdout


def test_in_a_release_explain_shows_the_learners_work_and_no_solution(tmp_path: Path) -> None:
    """A release has no solutions and no hidden sizes, so the output has no hidden dimension."""
    shutil.copytree(ROOT / "exercises", tmp_path / "exercises")
    empty = shardlings("explain", "c3", cwd=tmp_path / "exercises")
    assert empty.returncode == 1 and "not written yet" in empty.stdout and "all_reduce over" not in empty.stdout
    (tmp_path / "exercises" / "03_matmuls" / "c3_contracting.py").write_text(RIGHT)
    done = shardlings("explain", "matmul_all_reduce", "--json", cwd=tmp_path / "exercises")
    assert done.returncode == 0
    data = json.loads(done.stdout)
    assert {tuple(p["dims"].values()) for p in data["programs"]} == {(24, 32, 40)}
    assert data["checks"] == {}


def test_explain_runs_work_confined_when_isolation_is_given(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    (tmp_path / "c3_contracting.py").write_text(f"open({str(mark)!r}, 'w').close()\n{RIGHT}")
    done = shardlings("explain", "c3", "--work", str(tmp_path), "--isolation", available_tier())
    assert done.returncode == 1 and not mark.exists() and "without a sandbox" not in done.stderr


def test_explain_without_a_file_for_the_exercise_gives_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("x = 1\n")
    done = shardlings("explain", "c3", "--work", str(tmp_path), "--isolation", available_tier())
    assert "no file for c3_contracting in" in one_line(done)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "columns"), [(0, "200"), (1, "77")])
def test_the_explain_page_shows_the_printed_output(number: int, columns: str) -> None:
    """Line numbers may differ, because they change with each edit of a solution."""
    page = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")
    command, shown = re.findall(r"```\n\$ shardlings (.*)\n((?:.*\n)*?)```", page)[number]
    done = shardlings(*command.split(), COLUMNS=columns)
    told = "\n".join(line.rstrip() for line in done.stdout.splitlines())

    def unnumbered(text: str) -> str:
        return re.sub(r"(?<=[:k ])\d\d\b", "NN", text)

    assert unnumbered(shown.rstrip()) in unnumbered(told)


TIMED = '''
narrow = exercise.call(gather, a=A, meshes=[{"x": 4}], dims={"I": 44, "J": 13})
timed = exercise.timing(narrow, dims={"I": 65536, "J": 512}, on="v5e:2x2")


@exercise.check(timed, points=1)
def fast(seen):
    """it is fast"""
    expect_step_time(seen, at_most=1)


@exercise.misconception(fails=value)
'''


@pytest.mark.slow
def test_explain_lays_timing_calls_on_their_slice_and_suggests_time_budgets(tmp_path: Path) -> None:
    made_up(tmp_path, "\n@exercise.misconception(fails=value)\n", TIMED)
    path = next(tmp_path.glob("solutions/*/x1_gather.py"))
    path.write_text(path.read_text().replace("import expect_close", "import expect_step_time, expect_close"))
    done = shardlings("explain", "x1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert "in time on v5e 2x2, x on slice axes 0 and 1, profile ideal" in told
    assert "gather on x=2 with I=8, J=3" in told and "I=1012" not in told and f" {LINES}; " in told
    assert 'expect_collectives(seen, all_gather={"x": 1})' in told and "expect_step_time(seen, at_most=" in told
    line = next(line.strip() for line in done.stdout.splitlines() if "expect_step_time" in line)
    path.write_text(path.read_text().replace("expect_step_time(seen, at_most=1)", line))
    (checked,) = json.loads(shardlings("explain", "x1", "--json", cwd=tmp_path).stdout)["checks"].values()
    assert line in checked


@pytest.mark.slow
def test_suggested_checks_hold_for_hidden_sizes(tmp_path: Path) -> None:
    """With I = 8, the learners' size, the function gathers once. With I = 1012 it gathers twice."""
    once = 'return jax.lax.all_gather(a, "x", axis=0, tiled=True)'
    made_up(tmp_path, once, f'if len(a) > 8:\n        a += 0 * jax.lax.all_gather(a, "x")[0]\n    {once}')
    (checks,) = json.loads(shardlings("explain", "x1", "--json", cwd=tmp_path).stdout)["checks"].values()
    assert not [line for line in checks if "all_gather=" in line]


@pytest.mark.slow
def test_explain_prefers_the_learners_function_to_the_solution(tmp_path: Path) -> None:
    """``explain`` shows the solution's function until the learner writes one, and later only with ``--solution``."""
    made_up(tmp_path)
    shardlings("build", cwd=tmp_path)
    theirs = "note: this is the solution's function, solutions/01_gather/x1_gather.py\n"
    assert shardlings("explain", "x1", cwd=tmp_path).stderr == theirs
    stub = tmp_path / "exercises" / "01_gather" / "x1_gather.py"
    stub.write_text(stub.read_text().replace('raise NotImplementedError("gather")', "return a"))
    mine = shardlings("explain", "gath", cwd=tmp_path)
    assert (
        mine.stderr
        == "note: this is your function, 01_gather/x1_gather.py; --solution explains the solution's function\n"
    )
    assert "devices do not communicate" in mine.stdout
    assert shardlings("explain", "x1", "--solution", cwd=tmp_path).stderr == theirs
    wrong = shardlings("explain", "x1", "--solution", cwd=tmp_path / "exercises")
    assert one_line(wrong) == "shardlings: --solution cannot be used: there are no solutions here"
