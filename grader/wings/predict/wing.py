"""What this wing offers: ``predict`` and ``profile``, and the prediction of a step beside what ``explain --on`` shows."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(
    commands={"predict": "command.predict", "profile": "command.profile"},
    predicted="command.predicted",
)
