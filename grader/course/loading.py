"""A course: its configuration, and the exercises it lists.

A course is code that runs as whoever types the command: ``finding`` says which one may. In an author's checkout it has
``solutions/``; what learners are given has only the public part of each exercise, in ``exercises/<module>/_public/``;
an installed package carries the latter inside, for learners who have no other near.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.common.text import nearest
from grader.course.config import PUBLIC, Config, CourseError, Module, read_config
from grader.course.naming import meant_by, only_one

if TYPE_CHECKING:
    from grader.exercise import Exercise, Question

EXAMPLE_SEED = "change-me-before-term"  # of the course as it is published


class Course:
    """A loaded course.

    Attributes:
        root: the folder of course.yaml.
        solved: True when the solutions are here (author, TA, self-study), False in a release.
        exercises: by id, in course order; loaded when first asked for.
    """

    def __init__(self, root: Path, config: Config) -> None:
        self.root, self.config = root, config
        self.solved = (root / "solutions").is_dir()
        self._loaded: dict[str, Exercise] = {}
        self._lock = threading.RLock()

    @cached_property
    def module_of(self) -> dict[str, str]:
        """Exercise id to module id, in course order."""
        return {e: m.id for m in self.config.modules for e in m.exercises}

    def module(self, name: str) -> Module:
        """The module of this id. Raises CourseError."""
        for module in self.config.modules:
            if module.id == name:
                return module
        raise CourseError(f"no module {name!r}{nearest(name, [m.id for m in self.config.modules])}")

    def module_begun(self, name: str) -> Module:
        """The module of this id, or the only one whose id begins so. Raises CourseError."""
        return self.module(only_one(name, [m.id for m in self.config.modules], "module"))

    def select(self, names: list[str]) -> list[str]:
        """Return exercise ids for names of exercises and modules, or their beginnings (``c3``, ``03``, ``c3_con``).

        Args:
            names: all exercises if empty.

        Raises:
            CourseError: a name is unknown (with the nearest one), or could be several (with all of them).
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
        """Files of exercises, from the course's folder, that ``course.yaml`` does not list."""
        listed = {(module, name) for name, module in self.module_of.items()}
        found = sorted((self.root / "solutions").glob("[!_.]*/[!_.]*.py"))
        return [p.relative_to(self.root) for p in found if (p.parent.name, p.stem) not in listed]

    def _written_alone(self, name: str) -> str:
        """What to do about an exercise of this name or beginning that nobody listed."""
        found = [path for path in self.unlisted if name and path.stem.lower().startswith(name.lower())]
        return f". {found[0].as_posix()} is not listed in course.yaml: add it to its module" if found else ""

    def asked(self, names: Sequence[str], then: str = "") -> list[str]:
        """What ``select`` finds, one at least. Raises CourseError where nothing is listed yet; ``then``: so what."""
        if found := self.select(list(names)):
            return found
        raise CourseError(f"there is no exercise in {', '.join(names) or 'the course'} yet{then}")

    def find(self, name: str, parts: Callable[[Exercise], Iterable[str]]) -> tuple[list[str], str | None]:
        """The exercises that a name means; else the one that has a part of this name or beginning, and the part's name.

        Args:
            parts: the names of an exercise's tasks, or of its questions.

        Raises:
            CourseError: it means nothing, or could mean several.
        """
        try:
            return self.asked([name]), None
        except CourseError as error:
            owners = {part: e for e in self.usable(self.module_of)[0] for part in parts(self.exercise(e))}
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
        """Raises CourseError when its file is missing or declares something wrongly."""
        with self._lock:  # imports inside imports, from two threads, fail
            if name not in self._loaded:
                # Here, with NumPy and more that who reads course.yaml alone has no need of.
                from grader.course.exercises import expect_devices, load_exercise

                path, rtol = self.path_of(name), self.config.tolerances.numbers
                exercise = load_exercise(path, name, self.module_of[name], rtol)
                expect_devices(exercise, self.config.devices)
                self._loaded[name] = exercise
            return self._loaded[name]

    def usable(self, names: Iterable[str]) -> tuple[list[str], dict[str, str]]:
        """Of these exercises those that can be used, and for each of the others one line that says why not."""
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
        """Fingerprints of untouched stubs and notebooks, which give way to work that was done."""
        given = self.root / "exercises" / "course.yaml"
        if self.solved and given.is_file():
            return load_course(given).handed_out
        return frozenset(self.config.handed_out)

    @property
    def seed_problem(self) -> str:
        """Why hidden inputs could be drawn by anybody; empty when they cannot."""
        if not self.solved or self.config.seed not in ("", EXAMPLE_SEED):
            return ""
        what = f"is {self.config.seed}, which everybody knows" if self.config.seed else "is missing"
        return f"the seed in course.yaml {what}: hidden inputs are drawn from it; set one of your own"

    def params(self, question: Question, student: str = "") -> dict[str, Any]:
        """The parameters that this student's question has; where numbers are shared, everybody's."""
        from grader.judging.answers import params_for

        who = student if self.config.variants.mode == "per_student" else None
        return params_for(question, seed=self.config.variants.seed, student=who)

    def weight(self, exercise: str) -> float:
        return self.module(self.module_of[exercise]).weight

    def digest(self, exercises: list[str]) -> str:
        """A digest of everything that verdicts depend on; deadlines and late penalties are not part of it."""
        config = self.config.model_dump_json(exclude={"late": True, "modules": {"__all__": {"deadline"}}})
        text = config + "".join(self.exercise(e).digest for e in exercises)
        return hashlib.sha256(text.encode()).hexdigest()


def load_course(path: Path) -> Course:
    """Raises CourseError naming the file, the line and the field."""
    return Course(path.parent, read_config(path))
