"""Hardware for authors: the frozen table of chips, the time formulas of communication, and rooflines.

All values are in bytes, seconds, bytes per second and FLOP per second.
"""

from grader.hardware.chips import (
    CHIPS,
    GPUS,
    HOP_TIME,
    TABLE_VERSION,
    VMEM_FACTOR,
    Chip,
    Gpu,
    describe,
    is_known,
    lookup,
)
from grader.hardware.rooflines import hbm_intensity, hbm_time, link_intensity, matmul_time, peak_flops
from grader.hardware.times import (
    Model,
    all_gather_time,
    all_reduce_time,
    all_to_all_time,
    hop_time,
    latency,
    latency_bound_bytes,
    reduce_scatter_time,
    tree_time,
)
from grader.hardware.topology import (
    FLAT_SLICES,
    RING_SLICES,
    SMALL_SLICES,
    Topology,
    axis_topology,
    hops,
    is_physical_ring,
    slice_problem,
    slices,
    wraps,
)

__all__ = [
    "CHIPS",
    "FLAT_SLICES",
    "GPUS",
    "HOP_TIME",
    "RING_SLICES",
    "SMALL_SLICES",
    "TABLE_VERSION",
    "VMEM_FACTOR",
    "Chip",
    "Gpu",
    "Model",
    "Topology",
    "all_gather_time",
    "all_reduce_time",
    "all_to_all_time",
    "axis_topology",
    "describe",
    "hbm_intensity",
    "hbm_time",
    "hop_time",
    "hops",
    "is_known",
    "is_physical_ring",
    "latency",
    "latency_bound_bytes",
    "link_intensity",
    "lookup",
    "matmul_time",
    "peak_flops",
    "reduce_scatter_time",
    "slice_problem",
    "slices",
    "tree_time",
    "wraps",
]
