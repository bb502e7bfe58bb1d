"""The wing of ``grade --cluster``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(cluster="spread")
