"""An accelerator's arithmetic on a CPU: factors of matrix products are rounded first, as ``jax.lax.Precision.DEFAULT`` has it.

A stand-in for ``Devices``, in this process: programs run on its simulated devices after ``reduce_precision`` was written before
both factors of each float32 product, 8 bits of exponent and so many of mantissa: 7 for bfloat16 (TPU), 10 for TF32 (GPU). What is
summed stays float32, as there.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

from grader.batch.devices import gathered
from grader.batch.findings import outputs_of
from grader.common.observation import Observation, Sharded
from grader.judging.plan import Ask
from grader.runner import execution
from grader.runner.admission import walk
from grader.wire.backends import Backend

PRODUCTS = {"stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution"}


class Emulated:
    """In the place of ``grader.batch.devices.Devices``."""

    def __init__(self, backend: Backend) -> None:
        self.backend, self.text = backend, f"{backend.name}: emulated"
        self.rounded = 0  # products

    def close(self) -> None:
        pass

    def outputs(
        self, ask: Ask, request: dict[str, Any], program: bytes, seen: Observation
    ) -> list[list[list[Sharded]]]:
        with self.rounding():
            usual = self.values(ask, request, program, exact=False)
        found = [[[replace(array, factors=self.backend.factors) for array in run] for run in usual]]
        return [*found, self.values(ask, request, program, exact=True)]

    def values(self, ask: Ask, request: dict[str, Any], program: bytes, *, exact: bool) -> list[list[Sharded]]:
        header, blobs = execution.values(request, program, ask.arrays(), exact)
        assert "fault" not in header, header
        return outputs_of(ask, *gathered([(header, blobs)], math.prod(ask.mesh.values())))

    @contextlib.contextmanager
    def rounding(self) -> Iterator[None]:
        """While this lasts, what is compiled has its factors rounded."""
        plain = execution.compiled_for

        def compiled_for(program: Any, module: Any, *rest: Any) -> Any:
            self.round(module, -round(math.log2(self.backend.factors)))
            return plain(program, module, *rest)

        with (
            mock.patch.object(execution, "compiled_for", compiled_for),
            mock.patch.object(execution, "_compiled", execution.Remembered(8, lambda _: 1)),
        ):
            yield

    def round(self, module: Any, mantissa: int) -> None:
        from jaxlib.mlir import ir
        from jaxlib.mlir.dialects import stablehlo

        with module.context, ir.Location.unknown(module.context):
            i32 = ir.IntegerType.get_signless(32)
            for op in [op for op in walk(module.operation) if op.name in PRODUCTS]:
                if "HIGH" in str(op.attributes.get("precision_config", "")):
                    continue
                for at, factor in enumerate(list(op.operands)[:2]):
                    if str(ir.RankedTensorType(factor.type).element_type) == "f32":
                        with ir.InsertionPoint(op):
                            bits = (ir.IntegerAttr.get(i32, 8), ir.IntegerAttr.get(i32, mantissa))
                            op.operands[at] = stablehlo.reduce_precision(factor, *bits)
                self.rounded += 1
