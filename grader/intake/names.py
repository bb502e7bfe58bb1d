"""Match file names to exercises, modules and students."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from grader.common.text import a_few, composed

# "x (1)", "x-Copy1", "x copy 2", "x_v2"
_COPY = re.compile(r"(?:\(\d{1,4}\)|[ -]copy *\d{0,4}|[ _-]v\d{1,3})$", re.IGNORECASE)
_DELIMITERS = " _-.,+()"
# Canvas names a file STUDENT_NUMBER_NUMBER_FILE: the student's number, then the file's number, which has many digits.
# In team_1_2 and lee_11_2026, the last number belongs to the name.
_DOWNLOAD = re.compile(r"^([^\W_]+)_(?:late_)?(\d+)_\d{5,}$", re.IGNORECASE)
# A path that looks like a module's notebook or folder, such as 03_matmuls.ipynb.
OTHER_MODULE = re.compile(r"(?:.*/)?\d\d_[a-z0-9_]+(?:\.ipynb|/.*)")
_OLD = {
    "old", "older", "bak", "backup", "backups", "archive", "archived", "draft", "drafts", "previous", "prev", "unused",
    "deprecated", "trash", "scratch", "wip",
}  # fmt: skip
_FINAL = {"final", "finished", "submit", "submission", "submitted", "handin"}
_VERSION = _OLD | _FINAL | {"attempt", "fixed", "new", "submissions", "try", "v", "version"}


class Quality(IntEnum):
    """How well a file name matches the id of an exercise or module, from the best match to no match."""

    EXACT = 0
    CONTAINS = 1
    BEGINS = 2
    NEAR = 3
    NONE = 4


@dataclass(frozen=True)
class Match:
    """The exercise or module that a file name matches. For an ambiguous name, ``targets`` has several ids."""

    quality: Quality
    targets: tuple[str, ...] = ()


def best_match(stem: str, exercises: Mapping[str, str]) -> Match:
    """Return the exercise or module that a file is named after."""
    modules = tuple(dict.fromkeys(exercises.values()))
    if stem in exercises or stem in modules:
        return Match(Quality.EXACT, (stem,))
    plain = _without_copy_marks(stem)[-1]
    for ids in (exercises, modules):
        inside = [i for i in ids if _position(plain, i)]
        if inside:
            return Match(Quality.CONTAINS, (max(inside, key=len),))
    begun = [i for i in (*exercises, *modules) if i.lower().startswith(f"{plain.lower()}_")]
    if len(begun) == 1:
        return Match(Quality.BEGINS, (begun[0],))
    near = _nearest(plain, (*exercises, *modules))
    return Match(Quality.NEAR, near) if near else Match(Quality.NONE)


def _without_copy_marks(stem: str) -> list[str]:
    """Return the name, then the name without the last copy mark, and so on."""
    names = [stem]
    while (shorter := _COPY.sub("", names[-1]).rstrip(" _-")) not in ("", names[-1]):
        names.append(shorter)
    return names


def _position(stem: str, name: str) -> re.Match[str] | None:
    """Return the place of the id ``name`` in a file name, as whole words in upper or lower case; None for no place."""
    return re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", stem, re.IGNORECASE | re.ASCII)


def _nearest(stem: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the most similar id if ``stem`` may be a misspelling of it, or several equally similar ids.

    Digits must be equal, because many ids differ only in digits.
    """
    digits = re.findall(r"\d+", stem)
    scores = {
        name: difflib.SequenceMatcher(None, name.lower(), stem.lower()).ratio()
        for name in names
        if len(stem) <= 100 and re.findall(r"\d+", name) == digits
    }
    best = max(scores.values(), default=0.0)
    return tuple(name for name, score in scores.items() if score == best >= 0.85)


def _without_exercises(name: str, exercises: Mapping[str, str]) -> str:
    while (match := best_match(name, exercises)).quality in (Quality.EXACT, Quality.CONTAINS):
        place = _position(name, match.targets[0])
        if place is None:
            break
        after = name[place.end() :].strip()
        before = name[: place.start()].strip(_DELIMITERS)
        rest = before or ("" if _COPY.fullmatch(after) else after.strip(_DELIMITERS))
        if not rest:
            break
        name = rest
    return name


def looked_for(exercises: Mapping[str, str]) -> str:
    """Return text for a message: the file names that the grader looked for."""
    modules = dict.fromkeys(exercises.values())
    return (
        f"the grader looked for {a_few([f'{e}.py' for e in exercises], 3)}, "
        f"or {a_few([f'{m}.ipynb' for m in modules], 3)}"
    )


@dataclass(frozen=True)
class Signatures:
    """Finds students' names in file names.

    Attributes:
        exercises: exercise id -> module id.
        login: a function from a name in another system, such as Canvas, to the student's name.
        on_roster: returns whether the roster has a login, id or e-mail address. The roster may have the students Bak
            and nguyen_v2, although "bak" and "_v2" also mark versions.
        in_class: returns whether a student is on the roster, or has a report or case from earlier runs.
    """

    exercises: Mapping[str, str]
    login: Callable[[str], str] = str
    on_roster: Callable[[str], bool] = lambda _: False
    in_class: Callable[[str], bool] = lambda _: False

    def student(self, name: str) -> str:
        """Return the student's name for a name in a file name."""
        return composed(self.login(composed(name)))

    def owner(self, stem: str) -> str:
        """Return the student's name in a file name: "alice" for "alice_c3_contracting (1)".

        A file name without a student's name loses only the number of a copy: "c3_contracting (1)" becomes
        "c3_contracting". If nguyen_v2 is on the roster, "nguyen_v2" is a student's name, and no copy of "nguyen".
        """
        stems = _without_copy_marks(composed(stem))
        # A file in a zip may have hundreds of copy marks.
        names = [_without_exercises(part, self.exercises) for part in (*stems[:3], stems[-1])]
        return next(filter(self.on_roster, names), _DOWNLOAD.sub(r"\1_\2", names[-1]))

    def is_unsigned(self, stem: str) -> bool:
        """Return True if a file name has only the name of an exercise, module or version, but no student's name."""
        match, name = best_match(stem, self.exercises), self.owner(stem)
        # Not ``student(name)``, which would convert the name of a version, such as final_2, to Canvas's student 2.
        if self.on_roster(name):
            return False
        if match.quality not in (Quality.NONE, Quality.CONTAINS) or name.lower() in map(str.lower, match.targets):
            return True
        return is_version(stem if match.quality == Quality.NONE else name)


def is_version(name: str) -> bool:
    """Return True if all words of a name mark a version of a file, as in "old", "v2" and "final 2"."""
    words = {word.strip("0123456789") for word in re.split(r"[\W_]+", name.lower())} - {""}
    return bool(words) and words <= _VERSION


def is_called_old(path: str) -> bool:
    """Return True if a word of the path marks the submission as superseded."""
    return bool(_words(path) & _OLD)


def is_called_final(path: str) -> bool:
    """Return True if a word of the path marks the submission as final."""
    return bool(_words(path) & _FINAL)


def _words(path: str) -> set[str]:
    return set(re.split(r"[^a-z]+", path.lower()))
