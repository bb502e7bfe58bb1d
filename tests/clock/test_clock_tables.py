"""The page of the clock's tables and its picture have the clock's current times."""

from __future__ import annotations

import importlib.util
import math
import sys
from types import ModuleType

import pytest

from tests.clock.measured import MEASURED
from tests.clock.test_closed_forms import FORMS
from tests.commands import ROOT

pytestmark = pytest.mark.slow  # to draw everything again takes long


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("clock_tables", ROOT / "docs" / "clock_tables.py")
    assert spec is not None and spec.loader is not None
    found = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_clock_page_quotes_the_figures_of_its_tables(tables: ModuleType) -> None:
    page = (ROOT / "docs" / "clock.md").read_text(encoding="utf-8")
    assert f"| {len(FORMS)} programs with closed forms |" in page
    ratios = [m.us / m.clock - 1 for m in MEASURED if m.us >= 500]
    assert (
        f"a chip takes {min(ratios):.0%} to {max(ratios):.0%} longer".replace("% to", " to").replace("%", " %") in page
    )
    starts = {m.on[:2]: [n.us - n.clock for n in MEASURED if n.on[:2] == m.on[:2] and n.us < 500] for m in MEASURED}
    assert {round(us) for chip, found in starts.items() for us in found if chip != "7x"} <= {4, 5, 6}
    assert f"{min(starts['7x']):.0f} to" in page and max(starts["7x"]) < 17
    longer: dict[int, list[float]] = {}  # the key is the number of pieces into which a shard is cut
    for axes in map(tables.axes_of, tables.GRIDS):
        _, clock, network = tables._times(axes)["all-gather"]
        pieces = tables.PIECES[math.prod(a.size for a in axes) <= 64]
        longer.setdefault(pieces, []).append(network / clock - 1)
    few, many = (f"{max(longer[pieces]):.0%}".replace("%", " %") for pieces in (24, 8))
    many_pieces = f"On 128 chips, with 8 pieces in each shard, the network takes {many} longer"
    assert f"the network takes up to {few} longer than the clock computes. {many_pieces}" in page


def test_the_generated_clock_tables_and_picture_are_current(tables: ModuleType) -> None:
    for path, text in tables.made().items():
        assert path.read_text(encoding="utf-8") == text, "run python docs/clock_tables.py"
