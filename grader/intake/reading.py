"""Read one submission. This module neither executes nor parses submitted code; see ``parsers``.

``read`` accepts any bytes: it leaves out unusable files and lists them in the submission's notes. It raises an error
only if the machine fails to read existing files (permissions, a damaged disk). Such a failure must cost no points.

A file named after a module may be graded for all exercises of the module. If several files could be graded for an
exercise, these rules decide, in this order:

- A changed file is preferred to an unchanged file (a file as handed out, or with nothing written in it).
- The name with the best match to an id is preferred. From best to worst: the exact id, a name that contains the whole
  id ("c3_contracting (1)", "03_matmuls-alice"), the beginning of only one id ("c3"), a misspelled id ("c3_contracing").
- Any other file is preferred to a file that is called old ("old/c3_contracting.py", "c3_contracting_backup").
- A ``.py`` file is preferred to a notebook.
- A file named after the exercise is preferred to a file named after its whole module.
- A file called final is preferred to any other file.
- The shallowest, then the shortest, then the alphabetically first path is preferred.

Names do not show which of two zips a student handed in last. So ``read`` raises Unreadable if two zips have different
answers to an exercise, unless only one of them is called old, or only one is called final. If a file outside zips is
preferred to both, ``read`` uses this file.

A note names each changed file that was not used, and the file that was used.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from grader.common.text import IS_EMPTY, NOTHING_TO_GRADE, PASSED_OVER, a_few, first_notes
from grader.intake.disk import File, entries_of, listing
from grader.intake.facts import is_untouched
from grader.intake.names import OTHER_MODULE, Match, Quality, best_match, is_called_final, is_called_old, looked_for
from grader.intake.parsers import Parsers
from grader.intake.submission import Place, Refused, Source, Submission, Unreadable, paths_of, source_digest
from grader.wire import limits


def read(
    place: Place, student: str, exercises: Mapping[str, str], handed_out: Collection[str] = frozenset(),
    parsers: Parsers | None = None,
) -> Submission:  # fmt: skip
    """Read ``.py`` files, notebooks, a ``.zip`` or a folder. Raises only Unreadable; other problems become notes.

    Args:
        exercises: exercise id -> module id.
        handed_out: fingerprints of the files that learners got, to recognize unchanged files.
        parsers: parsers of the files; the default parsers run in this process.
    """
    notes: list[str] = []
    candidates, digest = _candidates(place, exercises, notes, (parsers or Parsers()).for_submission(place))
    unchanged = cache(lambda c: is_untouched(c.source, handed_out))
    sources, ignored = _chosen(candidates, exercises, unchanged)
    used, unread = {id(s) for s in sources.values()}, first_notes(notes)
    notes += [note for candidate in candidates if id(candidate.source) in used for note in candidate.notes]
    notes += [_ignored_note(candidate, instead) for candidate, instead in ignored.items()]
    chosen = [f"{exercise}: {source.name}" for exercise, source in sources.items()]
    for text in (*chosen, *notes):
        _add_to_digest(digest, "", text.encode())
    return Submission(student, sources, first_notes(notes), digest.hexdigest(), unread)


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A source that could be graded. The grader prefers the candidate with the lowest ``rank``."""

    source: Source
    serves: tuple[str, ...]
    rank: tuple
    notes: tuple[str, ...]


def _chosen(
    candidates: Sequence[_Candidate], exercises: Iterable[str], unchanged: Callable[[_Candidate], bool]
) -> tuple[dict[str, Source], dict[_Candidate, dict[str, str]]]:
    """Return the source to grade for each exercise, and the changed candidates that were passed over.

    The second dict maps each candidate that was passed over to a dict: exercise -> name of the graded source.
    """
    sources: dict[str, Source] = {}
    ignored: dict[_Candidate, dict[str, str]] = {}
    for exercise in exercises:
        rivals = _best_first([c for c in candidates if exercise in c.serves], unchanged)
        if rivals:
            _expect_one_zip(exercise, rivals, unchanged)
            sources[exercise] = rivals[0].source
        for other in rivals[1:]:
            if not unchanged(other):
                ignored.setdefault(other, {})[exercise] = sources[exercise].name
    return sources, ignored


def _expect_one_zip(exercise: str, rivals: Sequence[_Candidate], unchanged: Callable[[_Candidate], bool]) -> None:
    """Raise Unreadable if only the names of zips decide which of two answers to an exercise is preferred."""
    best, where = rivals[0].source, _zip_of(rivals[0])
    if not where:
        return
    for other in rivals[1:]:
        beside = _zip_of(other)
        alike = all(called(where) == called(beside) for called in (is_called_old, is_called_final))
        rival = beside not in ("", where) and alike and not unchanged(other)
        if rival and source_digest(other.source) != source_digest(best):
            raise Unreadable(
                f"{where} and {beside} have different answers to {exercise}, and nothing shows which .zip was "
                "handed in last; remove one .zip"
            )


def _zip_of(candidate: _Candidate) -> str:
    """Return the path of the ``.zip`` that holds a source; '' if there is none."""
    within = PurePosixPath(candidate.source.name).parents
    return next((str(path) for path in within if path.suffix.lower() == ".zip"), "")


def _best_first(rivals: list[_Candidate], unchanged: Callable[[_Candidate], bool]) -> list[_Candidate]:
    """Return the candidates with the best first: a changed file before unchanged files, then the lowest rank."""
    # If there is only one candidate, which is usual, no digest is computed.
    if len(rivals) < 2:
        return rivals
    best = min(rivals, key=lambda c: (unchanged(c), c.rank))
    return [best, *(c for c in rivals if c is not best)]


def _candidates(
    place: Place, exercises: Mapping[str, str], notes: list[str], parsers: Parsers
) -> tuple[list[_Candidate], Any]:
    """Return all sources that were read, the most preferred first, and a digest object over their files' bytes."""
    found: list[_Candidate] = []
    digest = hashlib.sha256()
    code_left, left = limits.MAX_TOTAL, limits.MAX_READ
    for file, match in sorted(_work_in(place, exercises, notes, parsers), key=lambda m: _rank(*m, exercises)):
        is_guess = match.quality in (Quality.BEGINS, Quality.NEAR)
        remarks = [f"{file.shown} is graded as {match.targets[0]}{file.suffix}"] if is_guess else []
        try:
            data = file.read()
            left -= len(data)
            source = Source(file.shown, ())
            if left >= 0:
                source, more = parsers.source(file.name, data, exercises)
                remarks += more
        except Refused as refusal:
            notes.append(f"{file.shown} {refusal}")
            continue
        code_left -= sum(len(c.text) for c in source.chunks)
        if min(left, code_left) < 0:
            most = (limits.MAX_READ if left < 0 else limits.MAX_TOTAL) // limits.MIB
            notes.append(f"more than {most} MiB were submitted: {file.shown} and later files were not read")
            break
        _add_to_digest(digest, file.name, data)
        found.append(_Candidate(source, _serves(match, exercises), _rank(file, match, exercises), tuple(remarks)))
    return found, digest


def _work_in(
    place: Place, exercises: Mapping[str, str], notes: list[str], parsers: Parsers
) -> list[tuple[File, Match]]:
    """Return the files that are named after exactly one exercise or module. For other files, add lines to ``notes``."""
    matched: list[tuple[File, Match]] = []
    strangers: list[str] = []
    for file in (f for path in paths_of(place) for f in listing(Path(path), notes, parsers)):
        match = best_match(file.stem, exercises)
        if len(match.targets) == 1:
            matched.append((file, match))
        elif match.targets:
            notes.append(f"{file.shown} could be {' or '.join(match.targets)} and is not graded; rename it")
        else:
            strangers.append(file.shown)
    # A file that is named like a module gets no note. Under nbgrader, the grader knows only the module that it grades,
    # and the file may belong to another module.
    if matched:
        strangers = [name for name in strangers if not OTHER_MODULE.fullmatch(name)]
    if strangers:
        notes.append(f"these files are not named after an exercise, so they are not graded: {a_few(strangers)}")
    if not matched:
        # Unlike Path.is_dir, os.path.isdir never raises an exception.
        is_empty = all(os.path.isdir(path) and not entries_of(Path(path), []) for path in paths_of(place))
        notes.append(f"{NOTHING_TO_GRADE}: {looked_for(exercises)}{f'; {IS_EMPTY}' if is_empty else ''}")
    return matched


def _serves(match: Match, exercises: Mapping[str, str]) -> tuple[str, ...]:
    target = match.targets[0]
    return (target,) if target in exercises else tuple(e for e, module in exercises.items() if module == target)


def _rank(file: File, match: Match, exercises: Mapping[str, str]) -> tuple:
    whole_module = match.targets[0] not in exercises
    called_old, called_final = is_called_old(file.name), is_called_final(file.name)
    path = (file.name.count("/"), len(file.name), file.name)
    return (match.quality, called_old, file.suffix != ".py", whole_module, not called_final, *path)


def _add_to_digest(digest: Any, name: str, data: bytes) -> None:
    """Add a file to the digest: the name's length, the name, the content's length and the content."""
    for part in (name.encode("utf-8", "surrogatepass"), data):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)


def _ignored_note(candidate: _Candidate, instead: Mapping[str, str]) -> str:
    used = list(dict.fromkeys(instead.values()))
    return f"{candidate.source.name} {PASSED_OVER} {a_few(list(instead))}: used {a_few(used)}"
