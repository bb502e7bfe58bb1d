"""Find unusually similar submissions in a class, for a person to review. Similarity affects no score.

The wing reads each student's source code, and finds pairs of students with similar code and the passages that each pair
shares. The wing does not execute this code.
"""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(commands={"similar": "command.similar"})
