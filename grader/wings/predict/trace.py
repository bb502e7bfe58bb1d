"""Run programs under JAX's profiler, and sum the times in the profiler's trace by opcode."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

CALLS = 3


def record(folder: str, programs: Mapping[str, tuple[Any, Any]], devices: int) -> list[dict[str, Any]]:
    """Run programs under the profiler, and return the seconds by program and opcode.

    ``programs``: the compiled program and its arguments, by name. ``folder``: where the profiler writes its trace.
    """
    import jax

    with jax.profiler.trace(folder):
        for program, arguments in programs.values():
            for _ in range(CALLS):
                jax.block_until_ready(program(*arguments))
    opcodes = {}
    for name, (program, _) in programs.items():
        module, found = opcodes_of(program.as_text())
        opcodes |= {(module, op): (name, opcode) for op, opcode in found.items()}
    events = [e for path in sorted(Path(folder).rglob("*.trace.json.gz")) for e in events_in(path)]
    return by_opcode(events, opcodes, devices)


def opcodes_of(hlo: str) -> tuple[str, dict[str, str]]:
    """Return the name of an HLO module, and the opcode of each instruction by the instruction's name."""
    module = re.match(r"HloModule ([^\s,]+)", hlo)
    return module[1] if module else "", dict(re.findall(r"%(\S+) = .*? ([a-z][a-z-]*)\(", hlo))


def events_in(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file).get("traceEvents", [])


def by_opcode(
    events: Iterable[Mapping[str, Any]], opcodes: Mapping[tuple[str, str], tuple[str, str]], devices: int
) -> list[dict[str, Any]]:
    """Return the average seconds of each opcode in one call on one device, for the programs in ``opcodes``.

    ``opcodes``: (module, instruction) -> (program, opcode).
    """
    total: dict[tuple[str, str], float] = {}
    for event in events:
        arguments = event.get("args", {})
        key = opcodes.get((arguments.get("hlo_module", ""), arguments.get("hlo_op", "")))
        if event.get("ph") == "X" and key:
            total[key] = total.get(key, 0.0) + event.get("dur", 0) * 1e-6 / (devices * CALLS)
    return [{"program": program, "opcode": opcode, "seconds": took} for (program, opcode), took in total.items()]
