"""Find the students that a submission names, in stamps of ``shardlings submit`` and in names of files and folders.

Students can write any stamp and name. So a file that names a different student costs no points, and the staff only gets
a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from grader.intake.archives import MANIFEST
from grader.intake.names import Quality, best_match, owner
from grader.intake.parsers import Parsers
from grader.intake.submission import Place, paths_of
from grader.intake.times import student_in


def names_in(
    place: Place, sources: Sequence[str], exercises: Mapping[str, str], parsers: Parsers
) -> Iterator[tuple[str, str]]:
    """Yield (file, student's name) for the parts of a submission that may name a student.

    In a folder, these are the graded files, the folders and zips that contain these files, and all stamps. In a
    ``.zip``, it is the stamp. A single file has none. The name is '' for a part that names no student.

    Args:
        place: the student's submission.
        sources: the sources' names, relative to the place, as ``reading.read`` gives them.
        exercises: exercise id -> module id.
        parsers: the submission's parsers of archives and stamps.
    """
    for path in paths_of(place):
        if path.is_dir():
            yield MANIFEST, student_in(path, parsers)
            for part in dict.fromkeys(part for name in sources for part in _parts(name)):
                yield part, _owner(PurePosixPath(part).stem, exercises)
                if part.lower().endswith(".zip"):
                    yield part, student_in(path / part, parsers)
        elif path.suffix.lower() == ".zip":
            yield path.name, student_in(path, parsers)


def _parts(name: str) -> list[str]:
    """Return the paths of all folders and zips that contain a source, and the source's path."""
    parts = PurePosixPath(name).parts
    return ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def _owner(stem: str, exercises: Mapping[str, str]) -> str:
    """Return the student's name in a file's name; '' unless the file's name has a student and an exercise or module."""
    return owner(stem, exercises) if best_match(stem, exercises).quality == Quality.CONTAINS else ""


def others_named(
    student: str,
    place: Place,
    sources: Sequence[str],
    exercises: Mapping[str, str],
    student_of: Callable[[str], str],
    parsers: Parsers,
) -> list[tuple[str, str]]:
    """Return (file, other student) for each file of a submission that names another student of the class.

    Args:
        student_of: a function that takes a name and returns the student in the class who has this name; '' if there is
            none.
    """
    found = ((file, student_of(name)) for file, name in names_in(place, sources, exercises, parsers) if name)
    return list(dict.fromkeys((file, other) for file, other in found if other not in ("", student)))
