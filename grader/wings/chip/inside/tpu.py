"""Compile programs with the TPU's own compiler (libtpu), for chips that need not be present. Programs do not run.

``compiled`` takes a program that was traced in the process with learner code, and a description of the slice. It
returns the compiler's ``Schedule``, or the reason why there is none.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from grader.runner import facts
from grader.runner.admission import ProgramRefused, walk
from grader.runner.compiling import lowered_stand_in
from grader.runner.hlo_text import MARK
from grader.runner.program import Program, canonical
from grader.wings.chip.inside import scheduled
from grader.wire.frames import decode
from grader.wire.limits import MAX_PAPER_ARRAY
from grader.wire.messages import Argument
from grader.wire.schedule import Schedule, to_json
from grader.wire.text import one_line, without_marks

# libtpu's messages about memory vary, but all give first the needed size, then the available size: "Used 18.38G of
# 15.75G hbm", "the total memory required for HLO temporaries (18.38G) exceeds available HBM (15.75G)".
TOO_LARGE = re.compile(r"(?i)(?=.*\bhbm\b).*?([\d.]+)([KMGT])i?B?\b.*?([\d.]+)([KMGT])i?B?\b")
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def compiled(ask: dict[str, Any], code: bytes, on: dict[str, Any]) -> dict[str, Any]:
    """Return the compiler's answer for a program. If this function raises an exception, the grader is at fault.

    Args:
        ask: the request for which the program was traced, with the mesh and the arguments that the program must have.
        code: the program as MLIR bytecode.
        on: the slice's name and options for libtpu, and its devices' coordinates (see ``compiling.topology_of``).

    Returns:
        A dict with one of these keys:
        - ``schedule``: the compiler's schedule as JSON data.
        - ``fault``: an error that the learner caused.
        - ``too_large``: [needed, available] in bytes, for a program that does not fit into a chip's memory.
    """
    arguments = ask["args"] + ask["cotangents"]
    try:
        program = canonical(code, ask["mesh"], arguments, set(ask["files"]), MAX_PAPER_ARRAY)
        return _compiled(program, ask, arguments, on)
    except ProgramRefused as error:
        return {"fault": {"kind": "refused", "message": str(error), "line": error.line, "file": error.file, "type": ""}}
    except scheduled.TooLarge as error:
        return _fault(f"the compiled program cannot be read: {error}")


def _compiled(
    program: Program, ask: dict[str, Any], arguments: Sequence[Argument], on: dict[str, Any]
) -> dict[str, Any]:
    devices: dict[tuple[int, ...], Any] = {
        (*d.coords, d.core_on_chip): d for d in topology(on["name"], json.dumps(on["options"]))
    }
    chosen = np.array([devices[(*at, 0)[:4]] for at in on["chips"]], dtype=object)
    mesh = Mesh(chosen.reshape(list(ask["mesh"].values())), tuple(ask["mesh"]))
    shardings = [NamedSharding(mesh, decode(a["spec"])) for a in arguments]
    with jax.enable_x64(True), jax.set_mesh(None):  # type: ignore[arg-type]
        lowered = lowered_stand_in(program, arguments, shardings)
        module = program.parse()
        found = facts.read(
            module, ask["mesh"], set(ask["files"])
        )  # ``facts.read`` raises ProgramRefused if the program becomes too large when all calls are inlined
        own = facts.collective_places(module)
        marked = {own[number]: collectives for number, collectives in found.marked.items()}
        places, names = number(module, program)
        lowered._lowering._hlo = module
        try:
            made = lowered.compile()
        except jax.errors.JaxRuntimeError as error:
            return _refusal(str(error))
    memory = made.memory_analysis()
    text = scheduled.Scheduled.of(made.as_text() or "", ask["mesh"], places, names)
    schedule = Schedule(
        dict(ask["mesh"]),
        text.instructions,
        arguments=int(memory.argument_size_in_bytes),
        results=int(memory.output_size_in_bytes),
        temporaries=_temporaries(memory),
        aliased=int(memory.alias_size_in_bytes),
        by=f"jax {jax.__version__}, libtpu {import_module('libtpu').__version__}",
        program=hashlib.sha256(program.text.encode()).hexdigest(),
        layouts=layouts(made, program, mesh),
        added=tuple(dataclasses.asdict(c) for c in text.added(ask["mesh"], marked)),
    )
    return {"schedule": to_json(schedule)}


def _temporaries(memory: Any) -> int:
    """Return the bytes of temporary buffers: the smaller of two upper bounds from the compiler.

    ``temp_size_in_bytes`` counts some loop-carried arrays twice (177 MiB of 674 MiB in exercise I5). The bound from
    ``peak_memory_in_bytes`` includes buffers in VMEM.
    """
    others = memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes
    return max(0, int(min(memory.temp_size_in_bytes, memory.peak_memory_in_bytes - others)))


@lru_cache(8)  # cached, because creating a topology takes as long as compiling a small program
def topology(name: str, options: str) -> tuple[Any, ...]:
    """Return libtpu's descriptions of the devices of a slice. ``options``: libtpu's options for the slice, as JSON."""
    from jax.experimental import topologies

    return tuple(topologies.get_topology_desc(platform="tpu", topology_name=name, **json.loads(options)).devices)


def number(module: Any, program: Program) -> tuple[list[tuple[str, int] | None], list[str]]:
    """Replace each operation's location (debug information) by the operation's number.

    The compiler keeps locations, so its text shows from which operations an instruction comes.

    Returns:
        Two lists, by number: the operations' places in the learner's source, and the operations' names.
    """
    from jaxlib.mlir import ir

    names = []
    with module.context:
        for i, op in enumerate(walk(module.operation)):
            op.location = ir.Location.name(f"{MARK}_{i}_")
            names.append(op.name.rpartition(".")[2])
    return list(program.places), names


def layouts(made: Any, program: Program, mesh: Mesh) -> tuple[tuple[tuple[tuple[int, int], ...], ...], ...]:
    """Return the part of each result on each device, with devices in mesh order; () if unknown.

    A part is a pair (start, stop) for each dimension.
    """
    found = []
    for sharding, (shape, _) in zip(made.output_shardings, program.results, strict=True):
        try:
            cuts = sharding.devices_indices_map(tuple(shape))
        except (NotImplementedError, ValueError):
            return ()
        held = (cuts[device] for device in mesh.devices.flat)
        found.append(tuple(tuple(s.indices(n)[:2] for s, n in zip(cut, shape, strict=True)) for cut in held))
    return tuple(found)


def _refusal(message: str) -> dict[str, Any]:
    text = " ".join(message.split())
    if "RESOURCE_EXHAUSTED" in text and (sizes := TOO_LARGE.search(text)):
        needed, there = (round(float(sizes[i]) * UNITS[sizes[i + 1]]) for i in (1, 3))
        return {"too_large": [needed, there]}
    return _fault(f"the TPU compiler cannot compile the program: {one_line(Exception(without_marks(message)))[:300]}")


def _fault(message: str) -> dict[str, Any]:
    return {"fault": {"kind": "compile", "message": message, "line": None, "file": "", "type": ""}}
