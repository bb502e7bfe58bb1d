"""Compile programs with the TPU compiler, which needs no TPU, and show the compiler's schedules.

The code in the folder ``inside`` runs in a sandboxed process.
"""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(
    commands={"chip": "command.chip"},
    notebook={"chip": "notebook.chip"},
    chip="options.compiler_at",
    doctor="options.doctor",
)
