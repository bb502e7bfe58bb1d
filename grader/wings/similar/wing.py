"""An optional part of the grader: the command ``similar``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(commands={"similar": "command.similar"})
