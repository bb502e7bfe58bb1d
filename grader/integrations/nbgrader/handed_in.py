"""What was handed in, where nbgrader copies it: a link in it is named and never followed.

nbgrader copies all files beside a notebook from the exchange to ``submitted/``, to ``autograded/`` and on into
``feedback/``, and follows links on the way: one that a student named ``book.db`` and pointed at the gradebook came back
to them. ``guard`` puts our copying in the place of nbgrader's, for work of students alone.
"""

from __future__ import annotations

import functools
import os
import shutil
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grader.common.text import A_LINK, printable
from grader.wire import limits


def odd_files(folder: Path) -> list[str]:
    """What is in a submission and is not copied: links, and what the grader may not read; one line each."""
    if folder.is_symlink():
        return [f"{printable(folder.name)} {A_LINK}"]
    odd: list[str] = []
    for seen, (place, folders, files) in enumerate(os.walk(folder)):
        for name in sorted([*folders, *files]):
            path = Path(place, name)
            shown = printable(str(path.relative_to(folder)))
            if path.is_symlink():
                odd.append(f"{shown} {A_LINK}")
            elif not os.access(path, os.R_OK):
                odd.append(f"{shown} cannot be read by the grader")
        if seen > limits.MAX_ENTRIES:
            break
    return odd


def copy(source: str, target: str, ignore: Sequence[str], log: Any) -> None:
    """Copy the files of a submission that are no notebooks, without those that ``odd_files`` names."""
    from nbgrader.utils import find_all_files

    for problem in odd_files(Path(source)):
        log.warning("%s: %s", source, problem)
    if os.path.islink(source):
        return
    for name in find_all_files(source, [*ignore, "*.ipynb"]):
        if os.path.islink(name) or not os.access(name, os.R_OK):
            continue
        place = Path(target, os.path.relpath(name, source))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        shutil.copy(name, place, follow_symlinks=False)


def guard() -> None:
    """Have nbgrader's converters and ``nbgrader collect`` copy work of students in this way."""
    from nbgrader.converters.base import BaseConverter
    from nbgrader.exchange.default import ExchangeCollect

    if getattr(BaseConverter.init_assignment, "guarded", False):
        return
    ours = functools.partial(_init_assignment, BaseConverter.init_assignment)
    BaseConverter.init_assignment = _method(ours)  # type: ignore[method-assign]
    ExchangeCollect.do_copy = _method(functools.partial(_collect, ExchangeCollect.do_copy))  # type: ignore[method-assign]


def _method(function: Any) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.guarded = True  # type: ignore[attr-defined]
    return method


def _init_assignment(nbgraders: Any, self: Any, assignment: str, student: str) -> None:
    if student == ".":  # from source/, which is the author's
        nbgraders(self, assignment, student)
        return
    source, target = self._format_source(assignment, student), self._format_dest(assignment, student)
    copy(source, target, self.coursedir.ignore, self.log)


def _collect(nbgraders: Any, self: Any, src: str, dest: str, log: Any = None) -> None:
    """As nbgrader, which would read where a link points: here a link stays a link, and grading names it."""
    from nbgrader.exchange.default import exchange

    if os.path.islink(src):
        self.log.error("%s %s", src, A_LINK)
        return
    keeping = types.SimpleNamespace(**vars(shutil) | {"copytree": functools.partial(shutil.copytree, symlinks=True)})
    exchange.shutil = keeping  # type: ignore[attr-defined]
    try:
        nbgraders(self, src, dest, log)
    finally:
        exchange.shutil = shutil  # type: ignore[attr-defined]
