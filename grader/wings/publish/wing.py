"""An optional part of the grader: the command ``publish``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(commands={"publish": "command.publish"})
