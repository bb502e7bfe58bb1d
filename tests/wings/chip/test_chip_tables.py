"""The tables of docs/wings/chip.md agree with the shipped data, and the data with the course's programs."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from grader.common.observation import Fault
from grader.course.loading import Course, load_course
from grader.judging.units import parse
from grader.wings.chip.compiling import Compilations, shipped_in
from tests.commands import ROOT

PAGE = (ROOT / "docs" / "wings" / "chip.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_chip_tables", ROOT / "docs" / "make_chip_tables.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def course() -> Course:
    return load_course(ROOT / "course.yaml")


@pytest.fixture(scope="module")
def shipped(course: Course) -> Compilations:
    return shipped_in(course)


def rows(name: str) -> list[list[str]]:
    """Return the cells of a table of the page, without its head."""
    (text,) = re.findall(rf"<!-- made by docs/make_chip_tables.py: {name} -->\n(.*?)<!-- end -->", PAGE, re.DOTALL)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:] if "|" in line]


@pytest.mark.slow
def test_the_table_of_the_matmul_is_as_the_command_would_write_it(
    tables: ModuleType, course: Course, shipped: Compilations
) -> None:
    with tables.Compiled(course, shipped) as compiled:
        assert tables.overlap_table(course, compiled) in PAGE, "run python docs/make_chip_tables.py"


def test_every_program_is_shipped_and_nothing_else(tables: ModuleType, course: Course, shipped: Compilations) -> None:
    due = [one.name for one in (*tables.references(course), *tables.timed(course), *tables.held(course))]
    due += [one.name for _, _, asked in tables.variants(course) for one in asked]
    due += [one.name for _, _, one in tables.matmuls(course)]
    due += [one.name for _, asked, _ in tables.small(course) for one in asked]
    assert sorted(set(due)) == sorted(shipped), "run python docs/make_chip_tables.py"
    assert (ROOT / "solutions" / "compiled.json.xz").stat().st_size < 200_000


def test_every_reference_of_four_modules_has_its_rows(tables: ModuleType, course: Course) -> None:
    titles = {row[0] for row in rows("clock")}
    for module in course.config.modules:
        if module.id[:2] not in ("03", "05", "06", "08"):
            continue
        for name in module.exercises:
            traced = [
                t for t in course.exercise(name).tasks.values() if t.kind != "function"
            ]  # tasks of the kind "function" are plain Python, and are not compiled
            for task in (t.name for t in traced):
                left_out = name in tables.WITHOUT or f"{name}.{task}" in tables.WITHOUT
                there = any(title.split(" (")[0] == f"{name.split('_')[0].upper()} {task}" for title in titles)
                assert there != left_out, f"{name}.{task}"
    assert {row[1] for row in rows("clock")} == {*tables.SLICES, tables.TWO_DEVICES}


def test_every_reference_of_modules_05_to_13_has_a_row_of_memory(tables: ModuleType, course: Course) -> None:
    titles = {row[0].split(" (")[0] for row in rows("memory")}
    for name in (name for module in course.config.modules if module.id[:2] >= "05" for name in module.exercises):
        for task in (t.name for t in course.exercise(name).tasks.values() if t.kind != "function"):
            left_out = f"{name}.{task}" in tables.WITHOUT
            assert (f"{name.split('_')[0].upper()} {task}" in titles) != left_out, f"{name}.{task}"


def test_the_page_of_the_clock_has_the_errors_of_these_tables() -> None:
    clock = (ROOT / "docs" / "clock.md").read_text(encoding="utf-8")
    (steps,) = re.findall(r"^\d+ rows of bfloat16.*$", PAGE, re.MULTILINE)
    for least, most, median in re.findall(r"(\S+)% to (\S+)%, and the median difference is (\d+)%", steps):
        assert f"{least} to {most} %, median {median} %" in clock
    (every, *chips) = re.findall(r"^\| 05.* \| (v\w+):\S+ \| (\d+) \| (\d+)% \| (\d+)% \|", PAGE, re.MULTILINE)
    (ours,) = re.findall(r"In the clock's order the median error is (\d+)% on v5e", PAGE)
    assert f"memory, {every[1]} programs" in clock and f"memory, {chips[0][1]} programs" in clock
    orders = f"{every[2]} % with operations in the program's order, {ours} % in the clock's order"
    assert f"the median error is {orders}, and {every[3]} % by the TPU's rules" in clock
    assert [chip for chip, _, _, _ in chips] == ["v5e", "v5p", "v6e"]
    program, stored = (", ".join(f"{row[at]} % ({row[0]})" for row in chips) for at in (2, 3))
    assert f"median errors are {program} in the program's order, and {stored} by the TPU's rules" in clock
    assert max(int(row[3]) for row in (every, *chips)) < 10


def test_the_page_of_the_clock_has_the_factors_of_matmuls(tables: ModuleType) -> None:
    longer: dict[str, list[float]] = {}
    for row in rows("clock"):
        if row[0].startswith(("F1", "F2", "H2")) and "/" in row[5]:
            ours, theirs = (parse(text, "s").value for text in row[5].split(" / "))
            longer.setdefault(row[1].partition(":")[0], []).append(theirs / ours)
    assert tables.longer_text(longer) in PAGE
    clock = (ROOT / "docs" / "clock.md").read_text(encoding="utf-8")
    for chip, found in longer.items():
        assert re.search(rf"{min(found):.2f} to {max(found):.2f} (times the clock )?on {chip}", clock)


def test_compiler_and_clock_judge_overlapped_time_alike(course: Course) -> None:
    """Compare all timed references, alternatives and misconceptions. The page must explain each difference."""
    found = rows("verdicts")
    assert len(found) > 30
    apart = [row[1] for row in found if row[4] != row[5]]
    explained = PAGE.split("<!-- made by docs/make_chip_tables.py: verdicts -->")[0]
    assert [name for name in apart if f"`{name}`" not in explained] == []
    for name, program, _, _, _, compiler, _ in found:
        if program == "the solution" or program.endswith("(right)"):
            assert compiler == "passed", (name, program)


def test_cpu_and_tpu_compilers_add_the_same_collectives(course: Course) -> None:
    """The CPU's compiler determines the budgets. The page must explain each difference of the TPU's compiler."""
    found = [row for row in rows("added") if len(row) == 6]
    assert {row[0] for row in found} >= {"A6", "G4"}, "what is left to the compiler"
    before = PAGE.split("<!-- made by docs/make_chip_tables.py: added -->")[0]
    assert [row[1] for row in found if (row[3] == row[4]) != (row[5] == "")] == []
    assert [row[1] for row in found if row[5] and f"`{row[1]}`" not in before] == []


def test_added_collectives_are_recorded_for_every_small_program(
    tables: ModuleType, course: Course, shipped: Compilations
) -> None:
    for _, asked, _ in tables.small(course):
        for one in asked:
            made = shipped[one.name]
            assert isinstance(made, Fault) or made.added is not None, one.name


@pytest.fixture(scope="module")
def measuring(tables: ModuleType) -> ModuleType:
    spec = importlib.util.spec_from_file_location("measure_chips", ROOT / "docs" / "measure_chips.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_times_are_measured_by_one_command_on_the_devices_of_the_machine(measuring: ModuleType, tmp_path: Path) -> None:
    """Two CPU processes share a mesh of eight devices, as the hosts of a pod do."""
    out = tmp_path / "measured.json"
    out.write_text(
        '{"before": {"seconds": 1.0, "low": 1.0, "high": 1.0, "devices": "tpu: 8 x TPU v5 lite", "jax": "0.10.2"}}'
    )
    tried = ("--backend", "cpu", "--processes", "2", "--smaller", "64", "--out", str(out))
    measuring.main(["v5e:2x4", "--only", "c3_contracting.matmul_all_reduce", *tried])
    found = json.loads(out.read_text())
    name = "c3_contracting.matmul_all_reduce x=2,y=4 I=128,J=128,K=128 on v5e:2x4"
    assert list(found) == ["before", name], "what was measured before is kept"
    one = found[name]
    assert 0 < one["low"] <= one["seconds"] <= one["high"]
    assert one["devices"] == "cpu: 8 devices of 2 processes" and one["jax"]
    assert not list(tmp_path.glob("*.tmp*"))


def test_the_measured_column_has_only_times_of_tpus(
    tables: ModuleType, course: Course, shipped: Compilations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = list(tables.references(course))[:2]
    about = {"seconds": 0.0125, "low": 0.012, "high": 0.013, "jax": "0.10.2"}
    times = {
        first.name: about | {"devices": "tpu: 8 x TPU v5 lite"},
        second.name: about | {"devices": "cpu: 8 devices"},
    }
    (tmp_path / "measured.json").write_text(json.dumps(times))
    monkeypatch.setattr(tables, "MEASURED", tmp_path / "measured.json")
    monkeypatch.setattr(tables, "references", lambda course: [first, second])
    with tables.Compiled(course, shipped) as compiled:
        *_, measured, not_measured = [
            line for line in tables.clock_table(course, compiled).splitlines() if line.startswith("|")
        ]
    assert measured.endswith("| 12.5 ms |") and not_measured.endswith("| - |")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["v5e:2x5"], "invalid choice: 'v5e:2x5'"),
        (["v5e:2x4", "--only", "zz_"], "no name has 'zz_' in it"),
        (["v5e:2x4", "--smaller", "0"], "--smaller and --processes are at least 1"),
        (["v5e:2x4", "--smaller", "64"], "what is tried goes elsewhere than the table's times: name a file with --out"),
        (["v5e:2x4", "--backend", "cpu"], "what is tried goes elsewhere than the table's times"),
        (["v5e:2x4", "--backend", "cpux", "--out", "OUT"], "measure_chips: no backend 'cpux'"),
        (["v5e:2x4", "--backend", "tpu", "--out", "OUT"], "measure_chips: --backend tpu: "),
        (["v5e:2x4", "--backend", "cpu", "--processes", "3", "--out", "OUT"], "cannot be shared evenly by 3 processes"),
    ],
)
def test_a_failed_measurement_is_reported_and_writes_nothing(
    measuring: ModuleType, words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "m.json"
    with pytest.raises(SystemExit) as end:
        measuring.main([str(out) if word == "OUT" else word for word in words])
    said = end.value.code if isinstance(end.value.code, str) else capsys.readouterr().err.splitlines()[-1]
    assert end.value.code and told in said and "\n" not in said
    assert not out.exists() and not (ROOT / "docs" / "measured.json").exists()


def test_shipped_data_contain_no_grader_fault(shipped: Compilations) -> None:
    faults = {name: one.message for name, one in shipped.items() if isinstance(one, Fault) and one.kind == "broken"}
    assert faults == {}
