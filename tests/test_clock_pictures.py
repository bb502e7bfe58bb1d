"""Each timeline in a document or statement is equal to the timeline that the clock draws for the program."""

from __future__ import annotations

import importlib.util
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest

from grader.authoring.declarations import wide_lines
from tests.commands import ROOT

pytestmark = pytest.mark.slow  # to draw everything again takes long


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("clock_pictures", ROOT / "docs" / "clock_pictures.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(
        spec
    )  # dataclasses look up their module in sys.modules
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(pictures: ModuleType) -> dict[Path, str]:
    return pictures.made()


def test_every_picture_is_as_the_command_would_write_it(pictures: ModuleType, made: dict[Path, str]) -> None:
    assert len(made) == 2 + len(pictures.STATEMENTS)
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, (
            f"{path}: run python docs/clock_pictures.py, then shardlings build"
        )


def drawn_in(pictures: ModuleType, made: dict[Path, str], name: str) -> str:
    """Return the part "In time" of the statement of exercise ``name``."""
    (path,) = (path for path in made if path.stem == name)
    (drawn,) = re.findall(pictures.IN_TIME, made[path])
    return drawn


def test_each_statement_has_its_timelines(pictures: ModuleType, made: dict[Path, str]) -> None:
    for name, picture in pictures.STATEMENTS.items():
        drawn = drawn_in(pictures, made, name)
        assert all(f"{heading}: " in drawn for heading in picture.shown)
        assert "compute " in drawn and "+ " in drawn and not wide_lines(drawn)
        assert not re.search(r"(permute|gather|scatter|reduce|matmul|kernel) \d|[DPGSRk]\d", drawn), (
            "no lines of the solution"
        )


def test_buckets_overlap_matmuls(pictures: ModuleType, made: dict[Path, str]) -> None:
    assert "80% of their time overlapped" in drawn_in(pictures, made, "h2_buckets")


def test_both_ways_is_shorter_and_uses_both_links(pictures: ModuleType, made: dict[Path, str]) -> None:
    (drawn,) = re.findall(pictures.IN_TIME, made[ROOT / "solutions" / "05_rings" / "e4_bidirectional.py"])
    steps = [float(n) for n in re.findall(r": ([\d.]+) us, 7 permutes", drawn)]
    assert len(steps) == 2 and steps[1] < 0.6 * steps[0]
    assert drawn.count("link x-") == 1


def test_module_06_shows_right_and_wrong(pictures: ModuleType, made: dict[Path, str]) -> None:
    for name in ("f1_ag_matmul", "f2_matmul_rs", "f3_both_ways"):
        drawn, shown = drawn_in(pictures, made, name), pictures.STATEMENTS[name].shown
        said = {heading: re.search(rf"^{re.escape(heading)}: ([\d,.]+) us", drawn, re.M) for heading in shown}
        steps = {heading: float(found[1].replace(",", "")) for heading, found in said.items() if found}
        (right,) = (steps[heading] for heading, one in shown.items() if not one.misconception)
        assert all(1.3 * right < steps[heading] for heading, one in shown.items() if one.misconception)


def test_only_the_first_forward_pass_of_each_h4_and_h9_picture_overlaps(
    pictures: ModuleType, made: dict[Path, str]
) -> None:
    for name in ("h4_fsdp", "h9_seven_layouts"):
        first, second = re.findall(r"s, (\d+)% of their time overlapped", drawn_in(pictures, made, name))
        assert int(first) > 30 and int(second) < 5


def test_the_collective_matmuls_differ_as_the_page_says(made: dict[Path, str]) -> None:
    page = made[ROOT / "docs" / "clock-pictures.md"]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")][1:]
    step = {row[0].split(":")[0].split(",")[0]: float(row[1].removesuffix(" us").replace(",", "")) for row in rows[:4]}
    assert step["right"] < step["wrong"] <= step["late"]
    hidden = [int(row[3].split("%")[0]) for row in rows]
    gather, right, wrong, late, both = hidden
    assert gather == late == 0 and wrong < 10 < 50 < right < both
    root = ET.fromstring(made[ROOT / "docs" / "collective-matmul.svg"])
    assert len([t for t in root.iter("{http://www.w3.org/2000/svg}text") if t.get("font-weight") == "bold"]) == 5
