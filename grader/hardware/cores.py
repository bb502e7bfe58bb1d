"""Clock rates of chips' cores, to convert the compiler's cycles to seconds, and libtpu's names of chips."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from grader.hardware.chips import CHIPS, Chip, lookup, tpu, unknown


@dataclass(frozen=True)
class Core:
    """The matrix units of one chip, all its cores together.

    Attributes:
        hz: cycles per second.
        units: number of matrix units. side: each multiplies side x side numbers in a cycle.
        libtpu: libtpu's name of the chip. options: libtpu options that make a chip one device.
        source: source of ``hz``.
        devices: devices per chip in libtpu: 2 if each of its two cores is a device, with half of everything.
        between: bytes/s from one of these devices to the other; 0 if a chip is one device.
    """

    hz: float
    units: int
    side: int
    libtpu: str
    options: tuple[tuple[str, Any], ...]
    source: str
    devices: int = 1
    between: float = 0.0

    @property
    def flops(self) -> float:
        """FLOP/s of all units, two per multiplication. Equals ``Chip.bf16`` to within one percent."""
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
    # Units: Google's page gives a TensorCore two. A matmul of 8192^3 takes 2,977,840 of the compiler's cycles, so there
    # are at least 2.8. The table's peak rate gives four.
    "v6e": Core(1.75e9, 4, 256, "v6e", (), DERIVED),
    # Units: a matmul of 8192^3 does 3.2 times 2 * 256^2 FLOPs in each cycle of one core, so a core has more than two.
    # Bandwidth between its cores: six times a link (Google Cloud documentation, 'TPU7x').
    "7x": Core(2.2e9, 8, 256, "tpu7x", (), DERIVED, devices=2, between=6 * CHIPS["7x"].ici),
}  # fmt: skip
"""By ``Chip.name``."""

WITHOUT_CLOCK = {
    "v3": "its published 940 MHz make 1.23e14 FLOP/s of 4 units of 128x128, the table has 1.4e14, "
    "so the compiler's cycles do not give a time"
}

OTHER_NAMES = {"v4": "v4p", "tpu7x": "7x", "v7x": "7x"}


def core_of(chip: str | Chip) -> Core:
    """Return the cores of a chip. Raises ValueError if its clock rate is unknown."""
    row = tpu(chip)
    if row.name not in CORES:
        why = WITHOUT_CLOCK.get(row.name, "its clock is not known")
        raise ValueError(f"nothing is compiled for {row.name}: {why}; there are {', '.join(CORES)}")
    return CORES[row.name]


def core_row(chip: Chip) -> Chip:
    """Return the row of one of a chip's devices: its part of memory and rates, also of shared links."""
    parts = core_of(chip).devices
    rates = ("hbm", "hbm_bw", "bf16", "int8", "ici", "pcie", "dcn")
    return replace(chip, **{name: getattr(chip, name) / parts for name in rates})


def slice_name(text: str) -> str:
    """Return a slice by the table's names: ``TPU v4:2x2x2`` as ``v4p:2x2x2``. Raises ValueError for unknown chips."""
    name, colon, sizes = text.strip().partition(":")
    plain = name.strip().lower().removeprefix("tpu ").strip()
    plain = OTHER_NAMES.get(plain, plain)
    try:
        row = lookup(plain)
    except ValueError:
        raise ValueError(unknown("chip", name, [*CORES, "v4"])) from None
    return f"{row.name}{colon}{sizes.strip().lower()}"
