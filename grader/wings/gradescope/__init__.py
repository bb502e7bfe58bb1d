"""Gradescope: an autograder to upload, and the program that Gradescope runs."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(exports={"gradescope": "autograder.export"})
