"""The tables of docs/chips.md are what the shipped data come to; the data are of programs that there are."""

from __future__ import annotations

import importlib.util
import re
import sys
from types import ModuleType

import pytest

from grader.batch.compiling import Shipped
from grader.common.observation import Fault
from grader.course.loading import Course, load_course
from tests.commands import ROOT

PAGE = (ROOT / "docs" / "chips.md").read_text(encoding="utf-8")


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
def shipped(course: Course) -> Shipped:
    return Shipped.of(course)


def rows(name: str) -> list[list[str]]:
    """A table of the page, without its head."""
    (text,) = re.findall(rf"<!-- made by docs/make_chip_tables.py: {name} -->\n(.*?)<!-- end -->", PAGE, re.DOTALL)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]


@pytest.mark.slow
def test_the_table_of_the_matmul_is_as_the_command_would_write_it(
    tables: ModuleType, course: Course, shipped: Shipped
) -> None:
    with tables.Compiled(course, shipped) as compiled:
        assert tables.overlap_table(course, compiled) in PAGE, "run python docs/make_chip_tables.py"


def test_every_program_is_shipped_and_nothing_else(tables: ModuleType, course: Course, shipped: Shipped) -> None:
    due = [one.name for one in (*tables.references(course), *tables.timed(course))]
    due += [one.name for _, _, asked in tables.variants(course) for one in asked]
    due += [one.name for _, _, one in tables.matmuls(course)]
    assert sorted(set(due)) == sorted(shipped.made), "run python docs/make_chip_tables.py"
    assert (ROOT / "solutions" / "compiled.json.xz").stat().st_size < 200_000


def test_every_reference_of_four_modules_has_its_rows(tables: ModuleType, course: Course) -> None:
    titles = {row[0] for row in rows("clock")}
    for module in course.config.modules:
        if module.id[:2] not in ("03", "05", "06", "08"):
            continue
        for name in module.exercises:
            traced = [
                t for t in course.exercise(name).tasks.values() if t.kind != "function"
            ]  # the others are plain Python
            for task in (t.name for t in traced):
                left_out = name in tables.WITHOUT or f"{name}.{task}" in tables.WITHOUT
                there = any(title.split(" (")[0] == f"{name.split('_')[0].upper()} {task}" for title in titles)
                assert there != left_out, f"{name}.{task}"
    assert {row[1] for row in rows("clock")} == set(tables.SLICES)


def test_the_two_judge_hidden_time_alike(course: Course) -> None:
    """On every reference, alternative and misconception that is timed; what differs has its reason on the page."""
    found = rows("hidden")
    assert len(found) > 30
    apart = [row[1] for row in found if row[4] != row[5]]
    explained = PAGE.split("<!-- made by docs/make_chip_tables.py: hidden -->")[0]
    assert [name for name in apart if f"`{name}`" not in explained] == []
    for name, program, _, _, _, compiler, _ in found:
        if program == "the solution" or program.endswith("(right)"):
            assert compiler == "passed", (name, program)


def test_what_is_shipped_is_no_failure_of_ours(shipped: Shipped) -> None:
    faults = {
        name: one.message for name, one in shipped.made.items() if isinstance(one, Fault) and one.kind == "broken"
    }
    assert faults == {}
