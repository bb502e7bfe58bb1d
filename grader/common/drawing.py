"""Handle errors in the code that makes pictures.

A picture only illustrates a verdict. So an error in the code that makes a picture must neither change the verdict nor
stop a command. The picture is left out, and the log has one line about the error.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")

log = logging.getLogger(__name__)
_logged: set[str] = set()


def drawn(absent: Made, make: Callable[..., Made], *about: object) -> Made:
    """Return ``make(*about)``; if ``make`` raises an error, log the error and return ``absent``.

    The log line holds no data of the learner's program. A process logs equal lines only once.
    """
    try:
        return make(*about)
    except Exception as error:
        # ``walk_tb`` reads no source files, which a sandbox might not allow.
        *_, (frame, number) = traceback.walk_tb(error.__traceback__)
        line = f"a picture is left out: {type(error).__name__} in {Path(frame.f_code.co_filename).name}, line {number}"
        if line not in _logged:
            _logged.add(line)
            log.warning(line)
        return absent


def each_drawn(make: Callable[[Given], Made | None], parts: Iterable[Given]) -> list[Made]:
    """Return ``make(part)`` for each part. Leave out a part if ``make`` returns None or raises an error."""
    found = (drawn(None, make, part) for part in parts)
    return [one for one in found if one is not None]
