"""The clock rates of TPU cores, to convert the TPU compiler's cycles to seconds; also libtpu's names of the chips."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from grader.hardware.chips import CHIPS, Chip, lookup, tpu, unknown


@dataclass(frozen=True)
class Core:
    """The cores of one chip: their clock rate, their matrix units, and the number of JAX devices.

    Attributes:
        hz: clock rate, cycles per second.
        units: number of matrix units in all cores of the chip.
        side: a matrix unit makes ``side`` x ``side`` multiplications in a cycle.
        libtpu: libtpu's name of the chip.
        options: options that make libtpu (the TPU compiler) treat a chip as one device.
        source: the publication that gives ``hz``, or how ``hz`` was computed.
        devices: number of JAX devices in one chip: 2 if each of the chip's two cores is a device with half of the
            chip's rates, else 1.
        between: bytes/s from one device of a chip to the other device; 0 if a chip is one device.
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
        """FLOP/s of all matrix units, with two FLOPs per multiplication. Differs from ``Chip.bf16`` by at most 1 %."""
        return 2.0 * self.units * self.side**2 * self.hz


SCALING_BOOK = "How To Scale Your Model, chapters 'How to Think About TPUs' and 'Rooflines' (1.5 and 1.75 GHz)"
DERIVED = "computed from the peak rate in the hardware table: FLOP/s = 2 * units * side^2 * cycles/s"
CORES: dict[str, Core] = {
    "v4p": Core(
        1.05e9, 8, 128, "v4", (("chip_config_name", "megacore"),),
        "Jouppi et al., 'TPU v4: An Optically Reconfigurable Supercomputer', ISCA 2023, table 4",
    ),
    "v5p": Core(1.75e9, 8, 128, "v5p", (), SCALING_BOOK),
    "v5e": Core(1.5e9, 4, 128, "v5e", (), SCALING_BOOK),
    # Google's page on v6e says two matrix units. But the compiler estimates 2,977,840 cycles for a matmul of 8192^3,
    # which needs at least 2.8 units, and the peak rate in the hardware table needs four units.
    "v6e": Core(1.75e9, 4, 256, "v6e", (), DERIVED),
    # The compiler estimates a matmul of 8192^3 at 3.2 * 2 * 256^2 FLOPs per cycle of a core. One matrix unit does
    # 2 * 256^2 FLOPs per cycle, so a core needs at least four units. The bandwidth between the two cores of a chip is
    # six times the bandwidth of a link (Google Cloud documentation, 'TPU7x').
    "7x": Core(2.2e9, 8, 256, "tpu7x", (), DERIVED, devices=2, between=6 * CHIPS["7x"].ici),
}  # fmt: skip
"""The cores of each chip, by ``Chip.name``."""

WITHOUT_CLOCK = {
    "v3": "the published clock rate of 940 MHz gives 1.23e14 FLOP/s with 4 matrix units of 128x128, "
    "but the course's table has 1.4e14, so the compiler's cycles cannot be converted to seconds"
}

OTHER_NAMES = {"v4": "v4p", "tpu7x": "7x", "v7x": "7x"}


def core_of(chip: str | Chip) -> Core:
    """Return the cores of a chip. Raises ValueError if the chip's clock rate is unknown."""
    row = tpu(chip)
    if row.name not in CORES:
        why = WITHOUT_CLOCK.get(row.name, "the clock rate of this chip is not known")
        raise ValueError(f"nothing is compiled for {row.name}: {why}; programs can be compiled for {', '.join(CORES)}")
    return CORES[row.name]


def core_row(chip: Chip) -> Chip:
    """Return a row of the hardware table for one JAX device of a chip.

    Memory, rates and bandwidths are the chip's numbers, divided by the chip's number of devices.
    """
    parts = core_of(chip).devices
    rates = ("hbm", "hbm_bw", "bf16", "int8", "ici", "pcie", "dcn")
    return replace(chip, **{name: getattr(chip, name) / parts for name in rates})


def slice_name(text: str) -> str:
    """Replace a slice's chip by its name in the hardware table: return ``v4p:2x2x2`` for ``TPU v4:2x2x2``.

    Raises ValueError for unknown chips.
    """
    name, colon, sizes = text.strip().partition(":")
    plain = name.strip().lower().removeprefix("tpu ").strip()
    plain = OTHER_NAMES.get(plain, plain)
    try:
        row = lookup(plain)
    except ValueError:
        raise ValueError(unknown("chip", name, [*CORES, "v4"])) from None
    return f"{row.name}{colon}{sizes.strip().lower()}"
