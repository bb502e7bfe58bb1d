"""The wing of ``export --to gradescope``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(exports={"gradescope": "autograder.export"})
