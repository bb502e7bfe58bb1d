"""The learner's files: report changes, find the file of an exercise, restore a file to its handed-out state."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from watchfiles import watch

from grader.common.files import write_atomic
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.course.stubs import stub_source
from grader.intake.submission import Source

SUFFIXES = (".py", ".ipynb")
STEP = 50  # Milliseconds. Saved files are read when no further file has changed for this time.


@contextlib.contextmanager
def changes(place: Path, saved: Callable[[], None]) -> Iterator[None]:
    """During the block, call ``saved`` from another thread after files at this place change.

    Several changes at once cause only one call. A first call comes when the watch has begun, because files may have
    changed just before.
    """
    done = threading.Event()
    thread = threading.Thread(target=_tell, args=(place, saved, done), daemon=True, name="changes")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(2)


def _tell(place: Path, saved: Callable[[], None], done: threading.Event) -> None:
    """Call ``saved`` when files change. Poll the files if the system reports no changes, as in network folders."""
    # Watch the folder of a file, because an editor may save by renaming a new file to the old name.
    folder = place if place.is_dir() else place.parent
    for polling in (None, True):
        begun = False
        try:
            for changed in watch(folder, watch_filter=_is_work, step=STEP, stop_event=done, force_polling=polling,
                                 rust_timeout=500, yield_on_timeout=True, raise_interrupt=False):  # fmt: skip
                if changed or not begun:
                    saved()
                begun = True
        except (OSError, RuntimeError):
            saved()
        if done.is_set():
            return


def _is_work(_: object, path: str) -> bool:
    return path.endswith(SUFFIXES) and ".ipynb_checkpoints" not in path


def path_of(place: Path, source: Source) -> Path:
    """Return the path of the file with this source code. Raises CourseError if the source is in an archive."""
    path = place if place.is_file() else place / source.name
    if not path.is_file():
        raise CourseError(f"{source.name} is in an archive; unpack it")
    return path


def reset(course: Course, exercise: str, path: Path) -> Path:
    """Restore a .py file to its handed-out state. Return the backup of the learner's file. Raises CourseError."""
    if path.suffix != ".py" or path.stem != exercise:
        raise CourseError(
            f"{path.name} holds more than {exercise}, so it is not reset: make the cell or function empty by hand"
        )
    stub = stub_source(course, course.exercise(exercise))
    kept = _unused(path)
    write_atomic(kept, path.read_bytes())
    write_atomic(path, stub)
    return kept


def _unused(path: Path) -> Path:
    """Return an unused name such as ``c3_contracting.py.1.backup``, which no command reads as a submission."""
    names = (path.with_name(f"{path.name}.{number}.backup") for number in itertools.count(1))
    return next(name for name in names if not name.exists())
