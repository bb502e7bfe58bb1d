"""The pictures of timelines in the documents and in module 05 are what the clock makes of the programs."""

from __future__ import annotations

import importlib.util
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest

from grader.authoring.verify import wide_lines
from tests.commands import ROOT


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("clock_pictures", ROOT / "docs" / "clock_pictures.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(pictures: ModuleType) -> dict[Path, str]:
    return pictures.made()


def test_every_picture_is_as_the_command_would_write_it(made: dict[Path, str]) -> None:
    assert len(made) == 7
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, (
            f"{path}: run python docs/clock_pictures.py, then shardlings build"
        )


def test_each_ring_has_its_timeline_in_its_statement(pictures: ModuleType, made: dict[Path, str]) -> None:
    for name, (tasks, _, _) in pictures.RINGS.items():
        text = made[ROOT / "solutions" / "05_rings" / f"{name}.py"]
        (drawn,) = re.findall(pictures.IN_TIME, text)
        assert all(f"{heading}: " in drawn for heading in tasks)
        assert "link x+" in drawn and not wide_lines(drawn)
        assert not re.search(r"permute \d|[DPk]\d", drawn), "no lines of the solution"


def test_both_ways_is_shorter_and_uses_both_links(pictures: ModuleType, made: dict[Path, str]) -> None:
    (drawn,) = re.findall(pictures.IN_TIME, made[ROOT / "solutions" / "05_rings" / "e4_bidirectional.py"])
    steps = [float(n) for n in re.findall(r": ([\d.]+) us, 7 permutes", drawn)]
    assert len(steps) == 2 and steps[1] < 0.6 * steps[0]
    assert drawn.count("link x-") == 1


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
