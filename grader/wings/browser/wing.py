"""The wing of ``watch --browser``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(browser="command.page")
