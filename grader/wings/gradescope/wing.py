"""An optional part of the grader: ``export --to gradescope``."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(exports={"gradescope": "autograder.export"})
