"""The wing of ``leaderboard``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(commands={"leaderboard": "command.leaderboard"})
