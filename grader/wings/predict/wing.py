"""An optional part of the grader: ``predict`` and ``profile``, and the predicted step time in ``explain --on``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(
    commands={"predict": "command.predict", "profile": "command.profile"},
    predicted="command.predicted",
)
