"""An optional part of the grader: the option ``--cluster``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(options={"--cluster": "options.CLUSTER"})
