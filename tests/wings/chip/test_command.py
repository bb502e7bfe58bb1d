"""``chip`` and ``--backend tpu:SLICE``: errors are one line, and the course's own programs need no compiler."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.course.loading import load_course
from grader.course.reference import reference_source
from grader.wings.chip import compiling
from grader.wings.chip.compiling import shipped_in
from tests.cli.test_explain import run
from tests.commands import ROOT

MISSING = f"the TPU's compiler is not installed; {compiling.INSTALL}"


@pytest.fixture(autouse=True)
def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "compiler_version", lambda: "")


BAD = {
    "chip zz --on v5e:2x4": "no exercise 'zz'; there are 01_layout",
    "chip d1 --on v5e:2x4": "d1_ring_and_line has no program to explain",
    "chip f1 --on v5e:2x5": "v5e has no slice of 2x5; did you mean v5e:2x4? shardlings doctor lists the slices",
    "chip f1 --on v5g:2x4": "unknown chip 'v5g'; did you mean",
    "chip f1 --on v3:2x2": "nothing is compiled for v3: the published clock rate of 940 MHz gives 1.23e14 FLOP/s",
    "chip f1 --on tpu7x:2x2x1 --mesh x=1,y=4": "the mesh (x=1, y=4) has 4 devices, but 7x:2x2x1 has 8",
    "chip c3 --on v5e:2x4 --shape J=0": "--shape J=0: J=0 is not a name and a size; write x=4,y=2",
    "chip c3 --on v5e:2x4 --mesh x=-2,y=-4": "--mesh x=-2,y=-4: x=-2 is not a name and a size; write x=4,y=2",
    "watch c1 --backend tpu:v5e:2x4": f"--backend tpu:v5e:2x4: {MISSING}",
    "watch c1 --backend tpux": "no backend 'tpux'; there are cpu, gpu, tpu, and tpu:SLICE",
    "chip f1 --on v5e:4x4": "no mesh of the exercise's calls has the 16 devices of v5e:4x4; the meshes are x=1, y=8 (8 devices); choose another mesh with --mesh",
    "chip f1 --on v5e:2x4 --mesh x=1,y=4": "the mesh (x=1, y=4) has 4 devices, but v5e:2x4 has 8",
    "chip f1 --on v5e:2x4 --mesh x=8": "the mesh {'x': 8} does not have",
    "chip c3 --on v5e:2x4 --shape Q=4": "no dimension 'Q' in c3_contracting; there are I, J, K",
    "chip c3 --on v5e:2x4 --shape J=8191": "dimension J = 8191 in dims cannot be cut into",
    "chip c3 --on v5e:2x4 --shape J": "--shape J: J is not a name and a size; write x=4,y=2",
    "chip c3 --on v5e:2x4 --shape I=4096 --solution": MISSING,
    "chip f1 --on v5e:2x4 --html /nowhere/page.html": "there is no folder /nowhere for page.html; make the folder first",
    "chip f1 --on v5e:2x4 --html README.md": "README.md already exists; name a new file",
    "check c1 --backend tpu:v5e:2x4": f"--backend tpu:v5e:2x4: {MISSING}",
    "check c1 --backend tpu:v5e:2x5": "v5e has no slice of 2x5",
    "check c1 --backend cpu:2": "no backend 'cpu:2'; there are cpu, gpu, tpu, and tpu:SLICE, such as tpu:v5e:2x4",
    "grade examples/submissions --out OUT --backend tpu:v5e:2x4": f"--backend tpu:v5e:2x4: {MISSING}",
    "appeal ada local_value examples/submissions --backend tpu:v5e:2x5": "v5e has no slice of 2x5",
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_one_line(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, err = run(words.replace("OUT", str(tmp_path / "out")).split(), monkeypatch, capsys)
    told = [line for line in err.splitlines() if line.startswith("shardlings: ")]
    assert (code, out) == (2, ""), err
    assert len(told) == 1 and BAD[words].replace("OUT", str(tmp_path / "out")) in told[0], err
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").iterdir())


def test_the_courses_own_programs_are_shown_without_the_compiler(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    words = ["chip", "f1", "--on", "v5e:2x4", "--solution", "--html", str(page)]
    code, out, err = run(words, monkeypatch, capsys)
    assert code == 0, err
    assert f"note: {MISSING}; this command shows an earlier compilation of the unchanged solution" in err
    told = "5.2196 ms (100%) of the 5.2196 ms of 7 permutes overlap with compute; 7 of these 7 collectives overlap for at least 90% of their time"
    assert told in " ".join(out.split())
    assert (
        out.index("the compiler's schedule")
        < out.index("the clock's")
        < out.index("agrees" if "agrees" in out else "differs")
    )
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 2 and "7 of these 7 collectives overlap" in text


def test_chip_as_json_has_times_and_bytes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(["chip", "f1", "--on", "v5e:2x4", "--solution", "--json"], monkeypatch, capsys)
    wide, narrow = json.loads(out)
    assert code == 0
    assert wide["compiler"]["collectives"]["permute"]["runs"] == 7
    assert wide["compiler"]["step"] == pytest.approx(wide["clock"]["step"], rel=0.15)
    assert narrow["memory"]["held"] > narrow["memory"]["arguments"] > 0


def test_a_learners_program_is_not_taken_for_the_solution(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "f1_ag_matmul.py").write_text("def ag_matmul(a, w):\n    return a\n")
    code, out, err = run(["chip", "f1", "--on", "v5e:2x4", "--work", str(work)], monkeypatch, capsys)
    assert (code, out) == (2, "") and err.splitlines()[-1].startswith(f"shardlings: {MISSING}")


def test_the_shipped_data_are_loaded() -> None:
    assert len(shipped_in(load_course(ROOT / "course.yaml"))) > 100


@pytest.mark.parametrize(
    ("words", "option"),
    [("chip f1 --on v5e:2x4 --on v6e:2x4", "--on"), ("check c1 --backend cpu --backend gpu", "--backend")],
)
def test_an_option_that_is_given_twice_is_refused(
    words: str, option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(words.split(), monkeypatch, capsys)
    assert code == 2 and f"'{option}': appears twice; write it once" in err


def test_the_compilers_time_of_a_program_is_shown_beside_the_clocks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """``explain`` finds the shipped time by the program's content, without a compiler. Other programs have no time."""
    paper = ["--dims", "B=8192,D=16384,F=53248", "--mesh", "x=1,y=8"]
    code, out, err = run(["explain", "f1", "--on", "v5e:2x4", "--solution", *paper], monkeypatch, capsys)
    assert code == 0, err
    out = " ".join(out.split())
    assert "by the compiler of v5e:2x4" in out and "100% of the permute time is overlapped" in out
    other = reference_source(
        (course := load_course(ROOT / "course.yaml")).exercise("f1_ag_matmul"),
        {},
        course.exercise("f1_ag_matmul").misconceptions["ag_sends_after_the_matmul"],
    )
    (tmp_path / "f1_ag_matmul.py").write_text(other)
    code, out, err = run(["explain", "f1", "--on", "v5e:2x4", "--work", str(tmp_path), *paper], monkeypatch, capsys)
    assert code == 0 and "by the compiler" not in out, err
