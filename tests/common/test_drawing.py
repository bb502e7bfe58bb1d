"""An error in the code of a picture leaves out only this picture."""

from __future__ import annotations

import pytest

from grader.common.drawing import drawn, each_drawn


def fails(number: int) -> int | None:
    return 12 // (number - 3) if number else None


def test_a_picture_that_fails_is_left_out_and_reported_in_one_line(left_out: pytest.LogCaptureFixture) -> None:
    assert drawn(None, fails, 5) == 6 and left_out.messages == []
    assert drawn(-1, fails, 3) == -1 == drawn(-1, fails, 3)
    (line,) = left_out.messages
    assert line.startswith("a picture is left out: ZeroDivisionError in test_drawing.py, line ")


def test_an_error_in_one_picture_leaves_the_other_pictures(left_out: pytest.LogCaptureFixture) -> None:
    assert each_drawn(fails, [4, 3, 0, 5]) == [12, 6] and len(left_out.messages) == 1


def test_the_line_holds_no_data_of_the_program(left_out: pytest.LogCaptureFixture) -> None:
    drawn(None, {}.__getitem__, "a name")
    assert len(left_out.messages) == 1 and "a name" not in left_out.text


def test_a_request_to_stop_is_no_error_of_a_picture() -> None:
    def stops() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drawn(None, stops)
