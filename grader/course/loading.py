"""A course: its configuration, the exercises that the configuration lists, and their names as people type them.

A course is code that runs as the user who types the command; ``finding`` decides which course may run. Authors have a
course with the folder ``solutions/``. Learners get only the public part of each exercise, in
``exercises/<module>/_public/``. An installed package contains this public part, too.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.common.text import near, nearest
from grader.course.config import PUBLIC, Config, CourseError, Module, read_yaml

if TYPE_CHECKING:
    from grader.exercise import Exercise, Question

MANY = 20
"""One line lists at most this many names. A longer list shows the first names, and the command that lists all names."""
EXAMPLE_SEED = "change-me-before-term"  # seed of the published course


def meant_by(name: str, names: Sequence[str], what: str) -> list[str]:
    """Return the names that ``name`` means. Upper and lower case do not matter.

    These rules apply in order, until one finds a name:

    - ``name`` is one of ``names``, and means this name.
    - ``name`` means all names that begin with ``name`` and an underscore: ``03`` means ``03_matmuls``.
    - ``name`` means the only name that begins with ``name``: ``c3_c`` means ``c3_contracting``.

    Raises CourseError if no rule finds a name. ``what`` is the kind of the names, such as "exercise", for the error's
    message.
    """
    if name in names:
        return [name]
    typed = name.lower()
    if words := [n for n in names if name and n.lower().startswith(f"{typed}_")]:
        return words
    begun = [n for n in names if name and n.lower().startswith(typed)]
    if len(begun) > 1:
        raise CourseError(f"{name!r} could be {', '.join(begun)}: write more of the name")
    if not begun:
        raise CourseError(f"no {what} {name!r}{_of_path(Path(name), names) or near(name, names) or _some(names)}")
    return begun


def _of_path(path: Path, names: Sequence[str]) -> str:
    """Return what to write in place of the path of an exercise's file, or ''."""
    if path.stem not in names:
        return ""
    return f"; write the name {path.stem}; check, explain and watch take your folder as --work {path.parent}"


def _some(names: Sequence[str]) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - MANY} more: shardlings list" if len(listed) > MANY else ""
    return f"; there are {', '.join(listed[:MANY])}{more}"


def only_one(name: str, names: Sequence[str], what: str) -> str:
    """Return the only name that ``name`` means (see ``meant_by``). Raises CourseError for several names or none."""
    found = meant_by(name, names, what)
    if len(found) > 1:
        raise CourseError(f"{name!r} could be {', '.join(found)}: write more of the name")
    return found[0]


def check_named(where: str, exercises: Sequence[str], names_of: Callable[[str], Sequence[str]]) -> tuple[str, str]:
    """Return (exercise, check or question) for ``EXERCISE/CHECK``, ``CHECK`` or ``EXERCISE``; each may be a prefix.

    The check is '' for an exercise as a whole. Without an exercise, a check's name must occur in only one exercise.

    Args:
        exercises: ids of all exercises.
        names_of: returns the names of an exercise's checks and questions.

    Raises:
        CourseError: ``where`` means no check and no exercise, or several.
    """
    name, slash, check = where.partition("/")
    if slash:
        exercise = only_one(name, exercises, "exercise")
        return exercise, only_one(check, names_of(exercise), "check or question")
    owners: dict[str, list[str]] = {}
    for exercise in exercises:
        for one in names_of(exercise):
            owners.setdefault(one, []).append(exercise)
    found = only_one(name, [*dict.fromkeys([*exercises, *owners])], "exercise, check or question")
    if found in exercises:
        return found, ""
    if len(owners[found]) > 1:
        several = ", ".join(owners[found])
        raise CourseError(f"several exercises have {found}: {several}; name the exercise too: EXERCISE/{found}")
    return owners[found][0], found


class Course:
    """A loaded course.

    Attributes:
        root: the folder of course.yaml.
        solved: whether the folder has the solutions. True for authors, TAs and self-study, False for learners.
        exercises: by id, in course order; loaded on first use.
    """

    def __init__(self, root: Path, config: Config) -> None:
        self.root, self.config = root, config
        self.solved = (root / "solutions").is_dir()
        self._loaded: dict[str, Exercise] = {}
        self._lock = threading.RLock()

    @cached_property
    def module_of(self) -> dict[str, str]:
        """Module id by exercise id, in course order."""
        return {e: m.id for m in self.config.modules for e in m.exercises}

    def module(self, name: str) -> Module:
        """Return the module with this id. Raises CourseError for an unknown id."""
        for module in self.config.modules:
            if module.id == name:
                return module
        raise CourseError(f"no module {name!r}{nearest(name, [m.id for m in self.config.modules])}")

    def module_begun(self, name: str) -> Module:
        """Return the module with this id or unique prefix. Raises CourseError if there is none."""
        return self.module(only_one(name, [m.id for m in self.config.modules], "module"))

    def module_called(self, name: str) -> Module | None:
        """Return the module that ``name`` means (see ``meant_by``); None if there is no such module."""
        try:
            meant = meant_by(name, [*self.module_of, *(m.id for m in self.config.modules)], "exercise")
        except CourseError:
            return None
        return next((m for m in self.config.modules if [m.id] == meant), None)

    def select(self, names: list[str]) -> list[str]:
        """Return exercise ids for names of exercises and modules, or their prefixes (``c3``, ``03``, ``c3_con``).

        For empty ``names``, return all exercises. Raises CourseError for an unknown or ambiguous name.
        """
        module_of = self.module_of
        ids, modules = list(module_of), [m.id for m in self.config.modules]
        chosen: list[str] = []
        for name in names:
            try:
                meant = meant_by(name, [*ids, *modules], "exercise")
            except CourseError as error:
                raise CourseError(f"{error}{self._written_alone(name)}") from None
            chosen += [e for e in ids if e in meant or module_of[e] in meant]
        return [e for e in ids if e in chosen] if names else ids

    @property
    def unlisted(self) -> list[Path]:
        """Exercise files that ``course.yaml`` does not list, relative to the course's folder."""
        listed = {(module, name) for name, module in self.module_of.items()}
        found = sorted((self.root / "solutions").glob("[!_.]*/[!_.]*.py"))
        return [p.relative_to(self.root) for p in found if (p.parent.name, p.stem) not in listed]

    def _written_alone(self, name: str) -> str:
        """Return advice to list an exercise's file in course.yaml if ``name`` means an unlisted file, else ''."""
        found = [path for path in self.unlisted if name and path.stem.lower().startswith(name.lower())]
        return f". {found[0].as_posix()} is not listed in course.yaml: add the exercise to its module" if found else ""

    def asked(self, names: Sequence[str], then: str = "") -> list[str]:
        """Return the exercises that ``names`` select.

        Raises CourseError if there are none. The error's message ends with ``then``.
        """
        if found := self.select(list(names)):
            return found
        raise CourseError(f"no exercise in {', '.join(names) or 'the course'} yet{then}")

    def find(self, name: str, parts: Callable[[], Mapping[str, str]]) -> tuple[list[str], str | None]:
        """Return the exercises that ``name`` means, and the part of an exercise if ``name`` means a part (else None).

        ``parts`` returns the exercise of each part, such as a task or question. It is called only if ``name`` means no
        exercise. Raises CourseError for an unknown or ambiguous name.
        """
        try:
            return self.asked([name]), None
        except CourseError as error:
            owners = parts()
            if not any(name and part.startswith(name) for part in owners):
                raise error from None
            part = only_one(name, [*self.module_of, *owners], "exercise")
            return [owners[part]], part

    def path_of(self, exercise: str) -> Path:
        module = self.module_of[exercise]
        if self.solved:
            return self.root / "solutions" / module / f"{exercise}.py"
        return self.root / module / PUBLIC / f"{exercise}.py"

    def exercise(self, name: str) -> Exercise:
        """Load an exercise. Raises CourseError if the exercise's file is missing or has a wrong declaration."""
        with self._lock:  # importing exercises in two threads at the same time fails
            if name not in self._loaded:
                # Imported late, because the module loads NumPy, which reading course.yaml does not need.
                from grader.course.exercises import expect_devices, load_exercise

                path, rtol = self.path_of(name), self.config.tolerances.numbers
                exercise = load_exercise(path, name, self.module_of[name], rtol)
                expect_devices(exercise, self.config.devices)
                self._loaded[name] = exercise
            return self._loaded[name]

    def usable(self, names: Iterable[str]) -> tuple[list[str], dict[str, str]]:
        """Return the usable exercises, and a one-line reason for each unusable exercise."""
        good, unusable = [], {}
        for name in names:
            try:
                self.exercise(name)
                good.append(name)
            except CourseError as error:
                unusable[name] = str(error)
        return good, unusable

    @property
    def exercises(self) -> dict[str, Exercise]:
        return {name: self.exercise(name) for name in self.module_of}

    @property
    def handed_out(self) -> frozenset[str]:
        """Fingerprints of the stubs and notebooks that learners get, to recognize files without changes."""
        given = self.root / "exercises" / "course.yaml"
        if self.solved and given.is_file():
            return load_course(given).handed_out
        return frozenset(self.config.handed_out)

    @property
    def seed_problem(self) -> str:
        """The reason why students could compute the hidden inputs; '' if there is none."""
        if not self.solved or self.config.seed not in ("", EXAMPLE_SEED):
            return ""
        what = f"is the published seed, {self.config.seed}" if self.config.seed else "is missing"
        return f"the seed in course.yaml {what}. Set your own seed: the grader draws hidden inputs from the seed"

    def params(self, question: Question, student: str = "") -> dict[str, Any]:
        """Return a question's parameters. If they differ between students, return the parameters of ``student``."""
        from grader.judging.answers import params_for

        who = student if self.config.variants.mode == "per_student" else None
        return params_for(question, seed=self.config.variants.seed, student=who)

    def weight(self, exercise: str) -> float:
        return self.module(self.module_of[exercise]).weight

    def digest(self, exercises: list[str]) -> str:
        """Return a digest of the parts of the course that reports depend on, except deadlines and late penalties."""
        left_out = {"late": True, "statement_words": True, "modules": {"__all__": {"deadline"}}}
        config = self.config.model_dump_json(exclude=left_out)
        text = config + "".join(self.exercise(e).digest for e in exercises)
        return hashlib.sha256(text.encode()).hexdigest()

    def digest_of_checks(self, name: str) -> str:
        """Return a digest of everything in an exercise that the results of its checks depend on.

        Results also depend on the number of devices, the limits and the seed in course.yaml. The digest leaves these
        out, because the key of a cached result contains the devices, the limits and the inputs drawn from the seed.
        """
        exercise = self.exercise(name)
        return hashlib.sha256(f"{exercise.module}\0{exercise.digest}".encode()).hexdigest()


def load_course(path: Path) -> Course:
    """Load a course. Raises CourseError with the file, the line and the field."""
    return Course(path.parent, read_yaml(path, Config))
