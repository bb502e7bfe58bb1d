"""The limit of each part of a message is below the limit of the whole message."""

from __future__ import annotations

from grader.sandbox.limits import Limits
from grader.wire import limits


def test_limits_of_parts_are_below_those_of_the_whole() -> None:
    assert limits.MAX_PROGRAM < limits.MAX_ANSWER < limits.MAX_BLOBS and limits.MAX_OUTPUT < limits.MAX_BLOBS
    assert limits.MAX_ANSWER_HEADER < limits.MAX_HEADER < limits.MAX_ANSWER
    assert limits.MAX_FILE < limits.MAX_TOTAL < limits.MAX_READ and limits.MAX_NOTEBOOK < limits.MAX_READ


def test_a_program_has_room_in_the_smallest_memory_that_a_course_may_give() -> None:
    (least,) = (bound.ge for bound in Limits.model_fields["memory_mib"].metadata)
    assert least * limits.MIB >= 2 * limits.MAX_MEMORY
