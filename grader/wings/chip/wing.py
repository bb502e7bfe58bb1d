"""An optional part of the grader: the command and notebook function ``chip``, and ``--backend tpu:SLICE``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(
    commands={"chip": "command.chip"},
    notebook={"chip": "notebook.chip"},
    chip="options.compiler_at",
    doctor="options.doctor",
)
