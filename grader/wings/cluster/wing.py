"""The wing of the option ``--cluster``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(options={"--cluster": "options.CLUSTER"})
