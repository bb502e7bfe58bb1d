"""Predicted and measured times of a few fixed programs on the available devices. Not graded.

A learner first predicts the times of the programs. Then this wing times calls of the programs, and fits a model to the
times. The programs run in a separate process.
"""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(
    commands={"predict": "command.predict", "profile": "command.profile"},
    predicted="command.predicted",
)
