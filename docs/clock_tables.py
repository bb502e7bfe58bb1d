"""Make the tables and the picture of docs/clock-tables.md: python docs/clock_tables.py

One table compares the clock with closed formulas, and one with published times. One table has the times of collectives
over one to three axes: by the course's formulas, by the clock, and in a simulated network in which links send chunks.
``tests/clock/test_clock_tables.py`` proves that the page is current.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from grader.clock import timeline  # noqa: E402
from grader.clock.collectives import all_to_all_seconds, gather_seconds  # noqa: E402
from grader.clock.placement import Side  # noqa: E402
from grader.common.files import write_atomic  # noqa: E402
from grader.hardware import all_gather_time, all_to_all_time, lookup  # noqa: E402
from grader.hardware.chips import Chip  # noqa: E402
from grader.reports.loglog import MeasuredPoint  # noqa: E402
from grader.reports.pages import loglog_svg  # noqa: E402
from tests import network  # noqa: E402
from tests.clock import test_closed_forms as forms  # noqa: E402
from tests.clock.measured import MEASURED  # noqa: E402

PAGE, PICTURE = ROOT / "docs" / "clock-tables.md", ROOT / "docs" / "clock-measured.svg"
V = 67_108_864
# Number of pieces of a shard: 24 if the network has at most 64 nodes, and 8 if it has more.
PIECES = {True: 24, False: 8}
MOST_ROUTED = 32  # largest network on which an all-to-all is simulated chunk by chunk
GRIDS = (
    "r8",
    "l8",
    "r4 r4",
    "l4 l4",
    "r4 r8",
    "l2 l4",
    "l8 r16",
    "r4 r4 r4",
    "l2 l2 l2",
    "r4 r4 r8",
    "l2 l2 l4",
    "l2 l2 c2",
)
# The connection between the two cores of a 7x chip is as fast as six links. A core has one half of each link of its
# chip, so six links are 12 half links.
WIRES = {"c": 12}


def axes_of(grid: str) -> list[network.Axis]:
    return [network.Axis(int(axis[1:]), axis[0] == "r", WIRES.get(axis[0], 1)) for axis in grid.split()]


def collectives_table() -> str:
    rows = ["| axes | collective | course | clock | network |", "|---|---|---|---|---|"]
    for grid in GRIDS:
        axes = axes_of(grid)
        name = " · ".join(_named(a) for a in axes)
        for kind, times in _times(axes).items():
            rows.append(f"| {name} | {kind} | {' | '.join('-' if t is None else f'{t * 1e6:.2f}' for t in times)} |")
    return "\n".join([*rows, ""])


def _named(axis: network.Axis) -> str:
    return "cores" if axis.wires > 1 else f"{'ring' if axis.ring else 'line'} of {axis.size}"


def _times(axes: Sequence[network.Axis]) -> dict[str, tuple[float | None, float, float | None]]:
    """Return, for each collective, its seconds by the course's formula, by the clock, and in the simulated network."""
    row = _row()
    torus = [Side(a.size, a.ring, replace(row, ici=a.wires * row.ici)) for a in axes]
    course, clock, moved = _course_gather(axes), gather_seconds(V, torus), _moved_gather(axes)
    exchange = _course_exchange(axes), all_to_all_seconds(V, torus), _moved_exchange(axes)
    return {
        "all-gather": (course, clock, moved),
        "reduce-scatter": (course, clock, moved),
        "all-reduce": (2 * course if course else None, 2 * clock, 2 * moved),
        "all-to-all": exchange,
    }


def _row() -> Chip:
    row = lookup("v5p")
    assert isinstance(row, Chip)
    return row


def _alike(axes: Sequence[network.Axis]) -> str:
    """Return the topology of the axes; '' if the axes have different topologies."""
    kinds = {(a.ring, a.wires) for a in axes}
    return "" if len(kinds) > 1 else "ring" if kinds.pop()[0] else "line"


def _course_gather(axes: Sequence[network.Axis]) -> float | None:
    """Return an all-gather's time by the course's "exact" formula (D1 to D3); None if the axes' topologies differ."""
    size, topology = math.prod(a.size for a in axes), _alike(axes)
    return all_gather_time(V, size, "v5p", topology=topology, model="exact", axes=len(axes)) if topology else None


def _course_exchange(axes: Sequence[network.Axis]) -> float | None:
    """Return the time of an all-to-all by the course's formula; None if one of several axes is not a ring."""
    topology = _alike(axes)
    if len(axes) == 1:
        return all_to_all_time(V, axes[0].size, "v5p", topology=topology, model="exact")
    return all_to_all_time(V, [a.size for a in axes], "v5p") if topology == "ring" else None


def _moved_gather(axes: Sequence[network.Axis]) -> float:
    nodes = math.prod(a.size for a in axes)
    pieces = PIECES[nodes <= 64]
    orders, parts, _ = network.even(axes)
    steps = network.torus_all_gather(axes, network.mixed(orders, parts, pieces))
    return len(steps) * V / (nodes * pieces) / _row().ici


def _moved_exchange(axes: Sequence[network.Axis]) -> float | None:
    sizes = [a.size for a in axes]
    if math.prod(sizes) > MOST_ROUTED or any(a.wires > 1 for a in axes):
        return None
    wires = network.Network(_row().ici)
    network.torus_all_to_all(wires, sizes, V, ["ring" if a.ring else "line" for a in axes])
    return wires.clock


def forms_table() -> str:
    rows = ["| program | formula | formula, us | clock, us |", "|---|---|---|---|"]
    rows += [forms.row(name, formula, due, timeline(made(), place)) for name, formula, due, made, place in forms.FORMS]
    return "\n".join([*rows, ""])


def measured_table() -> str:
    rows = [
        "| source | slice | collective | a device's input | measured | clock | ratio | difference |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for m in MEASURED:
        what = f"{m.kind} over {m.mesh[m.over]}"
        numbers = f"{m.us:,.2f} us | {m.clock:,.2f} us | {m.us / m.clock:.2f} | {m.us - m.clock:.1f} us"
        rows.append(f"| {m.source} | {m.on} | {what} | {m.bytes:,} B | {numbers} |")
    return "\n".join([*rows, ""])


def picture() -> str:
    points = [
        MeasuredPoint(f"{m.on.partition(':')[0]} {m.kind}", f"{m.bytes:,} B", m.clock / 1e6, m.us / 1e6)
        for m in MEASURED
    ]
    return loglog_svg(points, "Collectives: the clock, and published times")


TABLES = {"forms": forms_table, "collectives": collectives_table, "measured": measured_table}


def made() -> dict[Path, str]:
    """Return the current text of every file that this script writes."""
    page = PAGE.read_text(encoding="utf-8")
    for name, table in TABLES.items():
        between = re.compile(rf"(?<=<!-- made by docs/clock_tables.py: {name} -->\n).*?(?=<!-- end -->)", re.DOTALL)
        text = table()
        page = between.sub(lambda _, text=text: text, page, count=1)
    return {PAGE: page, PICTURE: picture()}


if __name__ == "__main__":
    for path, text in made().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_atomic(path, text)
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")
