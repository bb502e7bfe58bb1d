"""The program that times calls. ``process.py`` starts it in a separate process.

The program prints one JSON object and runs no learner code.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax

from grader.wings.predict.cases import SizedProgram, cases_on
from grader.wings.predict.programs import on_devices

LEAST, MOST, SECONDS = 5, 30, 0.5
"""Calls of a program after the first call: smallest number, largest number, and the seconds after which calls stop."""


def main() -> None:
    """Print facts about the devices and, if the first argument is ``time``, the times of programs.

    A second argument names a folder to which JAX's profiler writes a trace. With this argument, also print the times
    from the trace.
    """
    what, *folder = sys.argv[1:]
    found = devices()
    if what == "time":
        mesh = jax.make_mesh(
            (found["count"],), ("x",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[: found["count"]]
        )
        cases = cases_on(found["count"])
        found["calls"] = [one for case in cases for one in calls(case, mesh)]
        found["trace"] = traced(folder[0], cases, mesh) if folder else []
    print(json.dumps(found))


def devices() -> dict[str, Any]:
    """Return facts about the devices. ``count``: how many to use, a power of two so that arrays divide evenly."""
    one, there = jax.devices()[0], jax.device_count()
    return {
        "count": 1 << (there.bit_length() - 1),
        "there": there,
        "kind": one.device_kind,
        "simulated": one.platform == "cpu",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "jax": jax.__version__,
        "flags": {name: os.environ[name] for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS") if os.environ.get(name)},
    }


def calls(case: SizedProgram, mesh: jax.sharding.Mesh) -> list[dict[str, Any]]:
    """Return the times of all calls of a program, one after another. The first call also compiles the program."""
    program, arguments, cut = on_devices(case.program, case.size, mesh)
    jax.block_until_ready(arguments)
    made: list[dict[str, Any]] = []
    begun = None
    while begun is None or len(made) <= LEAST or (len(made) <= MOST and time.perf_counter() - begun < SECONDS):
        called = time.perf_counter()
        result = program(*arguments)
        returned = time.perf_counter()
        result.block_until_ready()
        ready = time.perf_counter()
        begun = begun or ready
        times = {"called": called, "returned": returned, "ready": ready}
        made.append({"program": case.program, "size": case.size, "cut": cut, **times})
    return made


# -- the profiler's trace ----------------------------------------------------------------------

CALLS = 3


def traced(folder: str, cases: list[SizedProgram], mesh: jax.sharding.Mesh) -> list[dict[str, Any]]:
    """Run the largest case of each program under JAX's profiler, and return the seconds by program and opcode.

    ``folder``: where the profiler writes its trace.
    """
    programs, opcodes = [], {}
    for case in {case.program: case for case in cases}.values():
        program, arguments, _ = on_devices(case.program, case.size, mesh)
        compiled = program.lower(*arguments).compile()
        jax.block_until_ready(compiled(*arguments))
        programs.append((compiled, arguments))
        module, found = opcodes_of(compiled.as_text() or "")
        opcodes |= {(module, op): (case.program, opcode) for op, opcode in found.items()}
    with jax.profiler.trace(folder):
        for compiled, arguments in programs:
            for _ in range(CALLS):
                jax.block_until_ready(compiled(*arguments))
    events = []
    for path in sorted(Path(folder).rglob("*.trace.json.gz")):
        events += json.loads(gzip.decompress(path.read_bytes())).get("traceEvents", [])
    return by_opcode(events, opcodes, mesh.size)


def opcodes_of(hlo: str) -> tuple[str, dict[str, str]]:
    """Return the name of an HLO module, and the opcode of each instruction by the instruction's name."""
    module = re.match(r"HloModule ([^\s,]+)", hlo)
    return module[1] if module else "", dict(re.findall(r"%(\S+) = .*? ([a-z][a-z-]*)\(", hlo))


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
