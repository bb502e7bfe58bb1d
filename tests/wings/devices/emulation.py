"""An accelerator's arithmetic on a CPU: round the operands of matmuls, as ``jax.lax.Precision.DEFAULT`` does.

``Emulated`` replaces ``RealDevices``. It adds ``reduce_precision`` to both operands of each float32 matmul, with 8
exponent bits and 7 (bfloat16, TPU) or 10 (TF32, GPU) mantissa bits. Then it runs the program on simulated devices of
this process. Sums stay in float32, as on the accelerator.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest import mock

import numpy as np

from grader.batch.grade import Grader
from grader.batch.replies import outputs_of
from grader.common.observation import Observation, Sharded
from grader.course.finding import find_course
from grader.course.reference import answers, reference_source
from grader.expect import values
from grader.intake.submission import Chunk, Source, Submission
from grader.judging.plan import Ask
from grader.runner import compiling, execution
from grader.runner.admission import walk
from grader.runner.compiling import LRUCache
from grader.wings.devices.backends import BACKENDS, Backend
from grader.wings.devices.devices import gathered
from grader.wire.messages import CallAsk

MATMULS = {"stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution"}


class Emulated:
    """A replacement of ``grader.wings.devices.devices.RealDevices``."""

    def __init__(self, backend: Backend) -> None:
        self.backend, self.text = backend, f"{backend.name}: emulated"
        self.rounded = 0  # number of matmuls with rounded operands
        self.times = False

    def close(self) -> None:
        pass

    def outputs(self, ask: Ask, request: CallAsk, program: bytes, seen: Observation) -> list[list[list[Sharded]]]:
        with self.rounding():
            usual = self.once(ask, request, program, exact=False)
        found = [[[replace(array, factors=self.backend.factors) for array in run] for run in usual]]
        return [*found, self.once(ask, request, program, exact=True)]

    def once(self, ask: Ask, request: CallAsk, program: bytes, *, exact: bool) -> list[list[Sharded]]:
        header, blobs = execution.values(request, program, ask.arrays(), exact)
        assert "fault" not in header, header
        return outputs_of(ask, *gathered([(header, blobs)], math.prod(ask.mesh.values())))

    @contextlib.contextmanager
    def rounding(self) -> Iterator[None]:
        """Round the operands of matmuls in all programs that are compiled in this context."""
        plain = compiling.compiled_for

        def compiled_for(program: Any, module: Any, *rest: Any) -> Any:
            self.round(module, -round(math.log2(self.backend.factors)))
            return plain(program, module, *rest)

        with (
            mock.patch.object(compiling, "compiled_for", compiled_for),
            mock.patch.object(execution, "_compiled", LRUCache(8, lambda _: 1)),
        ):
            yield

    def round(self, module: Any, mantissa: int) -> None:
        from jaxlib.mlir import ir
        from jaxlib.mlir.dialects import stablehlo

        with module.context, ir.Location.unknown(module.context):
            i32 = ir.IntegerType.get_signless(32)
            for op in [op for op in walk(module.operation) if op.name in MATMULS]:
                if "HIGH" in str(op.attributes.get("precision_config", "")):
                    continue
                for at, factor in enumerate(list(op.operands)[:2]):
                    if str(ir.RankedTensorType(factor.type).element_type) == "f32":
                        with ir.InsertionPoint(op):
                            bits = (ir.IntegerAttr.get(i32, 8), ir.IntegerAttr.get(i32, mantissa))
                            op.operands[at] = stablehlo.reduce_precision(factor, *bits)
                self.rounded += 1


def sweep(backend: Backend, asked: list[str]) -> int:
    """Grade these references, and return how many checks do not pass."""
    course, emulated, failing = find_course(Path(__file__).resolve().parents[3]), Emulated(backend), 0
    plain, off = values._close, [0.0]

    def close(got: Sharded, want: Any, terms: int, scale: float | None, dtype: str | None) -> None:
        if got.factors:
            whole = values.wide(np.asarray(want))
            largest = scale if scale is not None else float(np.max(np.abs(whole), initial=0.0))
            pairs = zip(got.shards, got.slices, strict=True)
            error = max(float(np.max(np.abs(values.wide(s) - values._part(whole, at)), initial=0.0)) for s, at in pairs)
            off[0] = max(off[0], error / largest / backend.factors if largest else 0.0)
        plain(got, want, terms, scale, dtype)

    with mock.patch.object(values, "_close", close), Grader(course, "none", devices=cast(Any, emulated)) as grader:
        for name in course.asked(asked):
            off[0], before = 0.0, emulated.rounded
            text = reference_source(course.exercise(name), answers(course, course.exercise(name), "canary"))
            source = Source(f"{name}.py", (Chunk(f"{name}.py", text),))
            report = grader.grade(Submission("canary", {name: source}, (), ""), [name]).exercises[0]
            if count := emulated.rounded - before:
                print(f"{name:24} {off[0]:7.2f} eps, {count} matmuls", flush=True)
            for result in (r for r in report.results if r.status != "passed"):
                failing += 1
                print(f"  {result.name} {result.status}: {result.reason}", flush=True)
    return failing


if __name__ == "__main__":
    sys.exit(min(sweep(BACKENDS[sys.argv[1]], sys.argv[2:]), 1))
