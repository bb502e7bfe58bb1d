"""What this wing offers: ``chip``, in notebooks too, ``--backend tpu:SLICE``, and a line for ``doctor``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(
    commands={"chip": "command.chip"},
    notebook={"chip": "notebook.chip"},
    chip="options.compiler_at",
    doctor="options.doctor",
)
