"""The wing of ``chip``, also for notebooks, with ``--backend tpu:SLICE`` and a line for ``doctor``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(
    commands={"chip": "command.chip"},
    notebook={"chip": "notebook.chip"},
    chip="options.compiler_at",
    doctor="options.doctor",
)
