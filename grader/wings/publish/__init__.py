"""Publish the course on a branch or in a folder: the students' release, or the solutions."""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(commands={"publish": "command.publish"})
