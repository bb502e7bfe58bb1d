"""The wing of ``chip`` (command and notebooks), of ``--backend tpu:SLICE`` and of a line for ``doctor``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(
    commands={"chip": "command.chip"},
    notebook={"chip": "notebook.chip"},
    chip="options.compiler_at",
    doctor="options.doctor",
)
