"""Find the students that a submission names, in stamps of ``shardlings submit`` and in names of files and folders.

Students can write any stamp and name. So the name of another student costs no points, and only gives the staff a
warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath

from grader.intake.archives import MANIFEST
from grader.intake.names import Quality, Signatures, best_match
from grader.intake.parsers import Parsers
from grader.intake.students import stem_of
from grader.intake.submission import Place, paths_of
from grader.intake.times import student_in


def names_in(place: Place, sources: Sequence[str], names: Signatures, parsers: Parsers) -> Iterator[tuple[str, str]]:
    """Yield (file, student's name) for the parts of a submission that may name a student.

    In a folder, the parts are the graded files, the folders and zips that contain them, and all stamps (written by
    ``shardlings submit``). In a ``.zip``, the stamp is the only part. A single file has no parts. The name is '' for a
    part that names no student.

    Args:
        sources: names of the graded files, relative to ``place``.
    """
    for path in paths_of(place):
        if path.is_dir():
            yield MANIFEST, student_in(path, parsers)
            for part in dict.fromkeys(part for name in sources for part in _parts(name)):
                yield part, _owner(stem_of(PurePosixPath(part).name), names)
                if part.lower().endswith(".zip"):
                    yield part, student_in(path / part, parsers)
        elif path.suffix.lower() == ".zip":
            yield path.name, student_in(path, parsers)


def _parts(name: str) -> list[str]:
    """Return a source's path, and the paths of all folders and zips that contain it."""
    parts = PurePosixPath(name).parts
    return ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def _owner(stem: str, names: Signatures) -> str:
    """Return the student's name in the name of a file, folder or zip; '' for the name of an exercise or module."""
    quality = best_match(stem, names.exercises).quality
    return names.owner(stem) if quality in (Quality.CONTAINS, Quality.NONE) else ""


def others_named(
    student: str,
    place: Place,
    sources: Sequence[str],
    names: Signatures,
    student_of: Callable[[str], str],
    parsers: Parsers,
) -> list[tuple[str, str]]:
    """Return (file, other student) for each file of a submission that names another student of the class.

    ``student_of`` returns the student of the class who has a given name, or '' for an unknown name.
    """
    found = ((file, student_of(name)) for file, name in names_in(place, sources, names, parsers) if name)
    return list(dict.fromkeys((file, other) for file, other in found if other not in ("", student)))
