"""A class's leaderboard: step times that ``grader.clock`` computes, under names that the learners chose."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(commands={"leaderboard": "command.leaderboard"})
