"""How fast the cores of a chip tick, and how libtpu names the chip: what turns the compiler's cycles into seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grader.hardware.chips import Chip, lookup, tpu, unknown


@dataclass(frozen=True)
class Core:
    """The matrix units of one chip, all its cores together.

    Attributes:
        hz: cycles per second.
        units: matrix units. side: each multiplies side x side numbers in a cycle.
        libtpu: what libtpu calls the chip. options: what it must be told, so that a chip is one device.
        source: of ``hz``.
    """

    hz: float
    units: int
    side: int
    libtpu: str
    options: tuple[tuple[str, Any], ...]
    source: str

    @property
    def flops(self) -> float:
        """FLOP/s of all units: two for each of their multiplications. ``Chip.bf16`` is the same, to a hundredth."""
        return 2.0 * self.units * self.side**2 * self.hz


SCALING_BOOK = "How To Scale Your Model, chapters 'How to Think About TPUs' and 'Rooflines' (1.5 and 1.75 GHz)"
DERIVED = "from the peak rate of the table: FLOP/s = 2 * units * side^2 * cycles/s"
CORES: dict[str, Core] = {
    "v4p": Core(
        1.05e9, 8, 128, "v4", (("chip_config_name", "megacore"),),
        "Jouppi et al., 'TPU v4: An Optically Reconfigurable Supercomputer', ISCA 2023, table 4",
    ),
    "v5p": Core(1.75e9, 8, 128, "v5p", (), SCALING_BOOK),
    "v5e": Core(1.5e9, 4, 128, "v5e", (), SCALING_BOOK),
    "v6e": Core(1.75e9, 4, 256, "v6e", (), DERIVED),
}  # fmt: skip
"""By ``Chip.name``. v3 and 7x are left out: libtpu takes a chip of theirs for two devices, and so the clock's slices are not its."""

OTHER_NAMES = {"v4": "v4p", "tpu7x": "7x", "v7x": "7x"}


def core_of(chip: str | Chip) -> Core:
    """The cores of a chip. Raises ValueError for one whose programs the compiler makes for other devices than chips."""
    row = tpu(chip)
    if row.name not in CORES:
        raise ValueError(
            f"{row.name}: its compiler takes a chip for two devices, and the clock's slices are of chips; "
            f"there are {', '.join(CORES)}"
        )
    return CORES[row.name]


def slice_name(text: str) -> str:
    """``TPU v4:2x2x2`` as ``v4p:2x2x2``: a slice by the names of the table. Raises ValueError for a chip that nobody knows."""
    name, colon, sizes = text.strip().partition(":")
    plain = name.strip().lower().removeprefix("tpu ").strip()
    plain = OTHER_NAMES.get(plain, plain)
    try:
        row = lookup(plain)
    except ValueError:
        raise ValueError(unknown("chip", name, [*CORES, "v4"])) from None
    return f"{row.name}{colon}{sizes.strip().lower()}"
