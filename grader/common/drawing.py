"""Errors in the code of pictures.

A picture shows facts about a program that was judged already. So an error in the code that makes a picture must change
no verdict and stop no command: the picture is left out, and one line on standard error says so.
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
    """Return ``make(*about)``; return ``absent`` if this code raises an error.

    The line on the error holds no data of the program. A process logs each line once.
    """
    try:
        return make(*about)
    except Exception as error:
        *_, (frame, number) = traceback.walk_tb(error.__traceback__)  # reads no files, which a sandbox may refuse
        line = f"a picture is left out: {type(error).__name__} in {Path(frame.f_code.co_filename).name}, line {number}"
        if line not in _logged:
            _logged.add(line)
            log.warning(line)
        return absent


def each_drawn(make: Callable[[Given], Made | None], parts: Iterable[Given]) -> list[Made]:
    """Return ``make`` of each part, without None, and without the parts for which ``make`` raises an error."""
    found = (drawn(None, make, part) for part in parts)
    return [one for one in found if one is not None]
