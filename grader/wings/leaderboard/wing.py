"""An optional part of the grader: the command ``leaderboard``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(commands={"leaderboard": "command.leaderboard"})
