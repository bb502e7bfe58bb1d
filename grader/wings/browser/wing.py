"""An optional part of the grader: the option ``watch --browser``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(browser="command.page")
