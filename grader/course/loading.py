"""course.yaml, and the exercises it lists.

A course is code that runs as whoever types the command. It is used where it was named (``--course``); else it
is found by walking up from the working directory, but never in what was handed in (see ``find_course``). In an
author's checkout it has ``solutions/``; what learners are given has only the public part of each exercise, in
``exercises/<module>/_public/``; an installed package carries the latter inside, for learners who have no other near.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import math
import os
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import jinja2
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from grader.declared import nearest
from grader.exercise import AuthorError, Call, Exercise, Number
from grader.judging import variants
from grader.judging.questions import render_question
from grader.judging.units import BadAnswer, unit_of
from grader.sandbox.limits import Limits

PUBLIC = "_public"
GRADING = "grading"
EXAMPLE_SEED = "change-me-before-term"  # of the course as it is published
PACKAGED = Path(__file__).parents[1] / "_course"
_NAMED = threading.Lock()  # held while an exercise can be imported by its name: sys.modules is everybody's


class CourseError(Exception):
    """The course cannot be used as it stands; the message is one line: what, where and what to do."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Module(_Strict):
    """One assignment: its exercises in order; ``weight`` multiplies their points."""

    id: str = Field(pattern=r"^\d\d_[a-z0-9_]+$")
    title: str
    exercises: tuple[str, ...] = ()
    weight: float = Field(default=1.0, gt=0)
    deadline: datetime | None = None

    @field_validator("exercises", mode="before")
    @classmethod
    def _nothing_is_none(cls, listed: Any) -> Any:
        return () if listed is None else listed  # "exercises:" and nothing behind it


class Variants(_Strict):
    mode: Literal["shared", "per_student"] = "shared"
    seed: str = "1"


class Tolerances(_Strict):
    numbers: float = Field(default=0.02, gt=0, lt=0.5)


class LimitsConfig(_Strict):
    trace_seconds: float = Field(default=20, gt=0)
    total_seconds: float = Field(default=300, gt=0)
    run_seconds: float = Field(default=60, gt=0)
    total_run_seconds: float = Field(default=180, gt=0)
    memory_mib: int = Field(default=6144, ge=1024)
    file_mib: int = Field(default=16, ge=1)


class Config(_Strict):
    """All of course.yaml. ``seed`` is secret and absent from what learners are given.

    ``handed_out`` is written by ``build``: fingerprints of untouched stubs and notebooks.
    """

    name: str
    seed: str = ""
    devices: int = Field(default=8, ge=1, le=512)
    variants: Variants = Variants()
    tolerances: Tolerances = Tolerances()
    limits: LimitsConfig = LimitsConfig()
    modules: tuple[Module, ...] = Field(min_length=1)
    handed_out: tuple[str, ...] = ()

    @field_validator("modules")
    @classmethod
    def _names_once(cls, modules: tuple[Module, ...]) -> tuple[Module, ...]:
        seen: set[str] = set()
        for name in [m.id for m in modules] + [e for m in modules for e in m.exercises]:
            if name in seen:
                raise ValueError(f"{name} is listed twice")
            seen.add(name)
        return modules


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

    @property
    def module_of(self) -> dict[str, str]:
        """Exercise id to module id, in course order."""
        return {e: m.id for m in self.config.modules for e in m.exercises}

    def module(self, name: str) -> Module:
        for module in self.config.modules:
            if module.id == name:
                return module
        raise CourseError(f"no module {name!r}{nearest(name, [m.id for m in self.config.modules])}")

    def select(self, names: list[str]) -> list[str]:
        """Exercise ids for ids of exercises and modules, and for their beginnings (``c3``, ``03``); all for none.

        Raises CourseError, with the nearest name, for one that is neither.
        """
        ids = list(self.module_of)
        chosen: list[str] = []
        for name in names:
            found = [e for e in ids if e == name] or [e for e in ids if self.module_of[e] == name]
            found = found or [e for e in ids if e.startswith(name + "_") or self.module_of[e].startswith(name + "_")]
            modules = [m.id for m in self.config.modules]
            if not found and not any(m == name or m.startswith(name + "_") for m in modules):  # one may be empty
                raise CourseError(f"no exercise {name!r}{nearest(name, [*ids, *modules])}")
            chosen += found
        return [e for e in ids if e in chosen] if names else ids

    def path_of(self, exercise: str) -> Path:
        module = self.module_of[exercise]
        if self.solved:
            return self.root / "solutions" / module / f"{exercise}.py"
        return self.root / module / PUBLIC / f"{exercise}.py"

    def exercise(self, name: str) -> Exercise:
        """Raises CourseError when its file is missing or declares something wrongly."""
        with self._lock:  # imports inside imports, from two threads, fail
            if name not in self._loaded:
                path, rtol = self.path_of(name), self.config.tolerances.numbers
                exercise = load_exercise(path, name, self.module_of[name], rtol)
                self._expect_devices(exercise)
                self._loaded[name] = exercise
            return self._loaded[name]

    def _expect_devices(self, exercise: Exercise) -> None:
        calls = [c.call for c in exercise.checks.values() if isinstance(c.call, Call)]
        for mesh in (m for call in calls for m in call.meshes):
            need = math.prod(mesh.values())
            if need > self.config.devices:
                raise CourseError(
                    f"{exercise.id} needs {need} devices for its mesh {dict(mesh)}, "
                    f"course.yaml says devices: {self.config.devices}"
                )

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

    @property
    def limits(self) -> Limits:
        return Limits(**self.config.limits.model_dump())

    def params(self, question: Number, student: str = "") -> dict[str, Any]:
        """The parameters that this student's question has; where numbers are shared, everybody's."""
        who = student if self.config.variants.mode == "per_student" else None
        return variants.params_for(question, seed=self.config.variants.seed, student=who)

    def weight(self, exercise: str) -> float:
        return self.module(self.module_of[exercise]).weight

    def digest(self, exercises: list[str]) -> str:
        """Changes when anything that verdicts depend on changes."""
        text = self.config.model_dump_json() + "".join(self.exercise(e).digest for e in exercises)
        return hashlib.sha256(text.encode()).hexdigest()


# -- finding and loading -----------------------------------------------------------------------


def find_course(start: Path | None = None, *, handed_in: Sequence[Path] = (), packaged: bool = False) -> Course:
    """The course at ``start``, where one was named; else that of the working directory.

    A course's files are executed by whoever looks at them, and somebody who hands in work can put a ``course.yaml``
    beside it. So one that was merely found is used only where it is in nobody's submission: not in ``handed_in``,
    not in the folders in which nbgrader keeps work, not inside another course, and not put there by another user.

    Args:
        start: a course.yaml, or the folder that holds it: whoever names it trusts it.
        handed_in: what is about to be graded or checked.
        packaged: where there is no other, take the one that was installed with the package; whoever asks says so to people.

    Raises:
        CourseError: there is none, or the one that was found is not to be trusted unless it is named.
    """
    if start is not None:
        named = [start] if start.is_file() else [p for p in _course_files(start) if p.is_file()]
        if not named:
            raise CourseError(f"no course.yaml in {start}; go to the course's folder or pass --course")
        return load_course(named[0])
    here = Path.cwd()
    if found := courses_above(here):
        if reason := _distrust(found, here, handed_in):
            raise CourseError(f"{found[0]} {reason}; a course is code: pass the one to trust, --course FOLDER")
        return load_course(found[0])
    if packaged and (PACKAGED / "course.yaml").is_file():
        return load_course(PACKAGED / "course.yaml")
    raise CourseError(
        f"no course.yaml in {here} or above; go to the course's folder, pass --course, "
        "or start one: shardlings new course FOLDER"
    )


def course_around() -> Course:
    """The course of the working directory, for a notebook that runs in it: its code is running already."""
    found = courses_above(Path.cwd())
    return load_course(found[0]) if found else find_course(packaged=True)


def courses_above(here: Path) -> list[Path]:
    """The course.yaml of this folder and of those above it, innermost first."""
    return [p for folder in (here, *here.parents) for p in _course_files(folder) if p.is_file()]


def _course_files(folder: Path) -> tuple[Path, Path]:
    return folder / "course.yaml", folder / "exercises" / "course.yaml"


def _distrust(found: Sequence[Path], here: Path, handed_in: Sequence[Path]) -> str:
    """Why the innermost course that was found is not used unless somebody names it; empty when it is."""
    inner = found[0].parent.resolve()
    for path in handed_in:
        if inner.is_relative_to(path.resolve()):
            return f"lies in what was handed in ({path})"
    if any(_holds_submissions(folder, inner) for folder in inner.parents):
        return "lies where nbgrader keeps what was handed in"
    for folder in (p.parent.resolve() for p in found[1:]):
        if folder not in (inner, inner / "exercises") and inner != folder / "exercises":
            return f"lies inside another course, {folder}"
    users = {os.stat(here).st_uid, 0, os.getuid()} if hasattr(os, "getuid") else set()
    if users and found[0].stat().st_uid not in users:
        return "belongs to another user"
    return ""


def _holds_submissions(folder: Path, inner: Path) -> bool:
    """Whether ``inner`` lies in what nbgrader keeps of students, in a course folder of its own."""
    kept = inner.relative_to(folder).parts[0] in ("submitted", "autograded", "feedback", "downloaded")
    return kept and any((folder / name).exists() for name in ("nbgrader_config.py", "gradebook.db"))


def load_course(path: Path) -> Course:
    """Raises CourseError naming the file, the line and the field."""
    try:
        text = path.read_text(encoding="utf-8")
        data = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} cannot be read: {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f":{mark.line + 1}" if mark else ""
        raise CourseError(f"{path}{at}: not YAML: {getattr(error, 'problem', error)}") from None
    try:
        return Course(path.parent, Config.model_validate(data))
    except ValidationError as error:
        raise CourseError(_first_problem(path, text, error)) from None


def _first_problem(path: Path, text: str, error: ValidationError) -> str:
    problem = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")  # a misspelt field, not the missing one
    field = ".".join(str(p) for p in problem["loc"]) or "the file"
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        known = _known_fields(problem["loc"])
        message = f"no such field{nearest(str(problem['loc'][-1]), known)}"
    return f"{path}:{_line_of(text, problem['loc'])}: {field}: {message}"


def _known_fields(loc: tuple) -> list[str]:
    model: Any = Config
    for part in loc[:-1]:
        if part in getattr(model, "model_fields", {}):
            inner = {"variants": Variants, "tolerances": Tolerances, "limits": LimitsConfig, "modules": Module}
            model = inner.get(str(part), model)
    return list(model.model_fields)


def _line_of(text: str, loc: tuple) -> int:
    """The line of a YAML node; of the nearest enclosing one when it is missing."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    line = 1
    for part in loc:
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if k.value == part), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line


def load_exercise(path: Path, name: str, module: str, rtol: float) -> Exercise:
    """Execute an author's file and the one beside it that grades. Raises CourseError with the line at fault."""
    try:
        source = path.read_text(encoding="utf-8")
    except OSError:
        raise CourseError(f"{path} is missing; write it with `shardlings new {module}/{name}`") from None
    space = _executed(path, f"shardlings_course_{name}", source)
    exercise = space.__dict__.get("exercise")
    if not isinstance(exercise, Exercise):
        raise CourseError(f"{path}: no `exercise = Exercise(...)` at its top")
    exercise.id, exercise.module, exercise.source = name, module, source
    exercise.statement = inspect.cleandoc(space.__doc__ or "").strip()  # Python 3.13 compiles it so, the others do not
    if not exercise.statement.startswith("# "):
        raise CourseError(f"{path}: its docstring must be the statement and start with '# Title'")
    _load_grading(path.parent / GRADING / path.name, exercise, space)
    _expect_questions(path, exercise)
    for number in exercise.numbers.values():
        number.rtol = rtol if number.usual_rtol else number.rtol
    return exercise


def _expect_questions(path: Path, exercise: Exercise) -> None:
    """Raises CourseError for a question without a known unit or a choice of parameters, or whose text is no template."""
    for question in exercise.numbers.values():
        at = f"{path}:{_line_of_function(question.fn)}: {question.name}"
        try:
            unit_of(question.unit)
            drawn = next(question.variants(), None)
            if drawn is None:
                raise CourseError(f"{at}: no parameters satisfy its `where`")
            render_question(question, drawn)
        except BadAnswer as error:
            raise CourseError(f"{at}: {error}") from None
        except jinja2.TemplateError as error:
            raise CourseError(f"{at}: its text does not render: {error}") from None
        except CourseError:
            raise
        except Exception as error:  # `where` is the author's
            raise CourseError(f"{at}: {type(error).__name__}: {error}") from None


def _line_of_function(fn: Callable[..., Any]) -> int:
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return code.co_firstlineno if code else 1


def _executed(path: Path, name: str, source: str) -> types.ModuleType:
    space = types.ModuleType(name)
    space.__file__ = str(path)
    sys.modules[space.__name__] = space
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), space.__dict__)
    except SyntaxError as error:
        raise CourseError(f"{path}:{error.lineno or 1}: {error.msg}") from None
    except (Exception, SystemExit) as error:
        line = next(
            (n for frame, n in reversed(list(traceback.walk_tb(error.__traceback__)))
             if frame.f_code.co_filename == str(path)), 1,
        )  # fmt: skip
        kind = "" if isinstance(error, AuthorError) else f"{type(error).__name__}: "
        raise CourseError(f"{path}:{line}: {kind}{error}") from None
    return space


def _load_grading(path: Path, exercise: Exercise, space: types.ModuleType) -> None:
    """Execute the file of checks and misconceptions, if there is one; it imports the exercise by its name."""
    try:
        exercise.grading_source = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    learners = {**exercise.tasks, **exercise.numbers}
    before = len(exercise.checks) + len(exercise.misconceptions)
    with _importable(space, path.stem):
        second = _executed(path, f"{space.__name__}_{GRADING}", exercise.grading_source)
    for name in sorted(vars(second).keys() & vars(space).keys()):  # build writes both as one file, where one would win
        if not name.startswith("__") and vars(second)[name] is not vars(space)[name]:
            raise CourseError(f"{path}: {name} is something else in {space.__file__}; give it another name")
    for name, thing in {**exercise.tasks, **exercise.numbers}.items():
        if name not in learners:  # what learners are given is read from the exercise's own file
            line = _line_of_function(thing.fn)
            raise CourseError(
                f"{path}:{line}: {name} is neither check nor misconception; declare it in {space.__file__}"
            )
    if len(exercise.checks) + len(exercise.misconceptions) == before:
        raise CourseError(f"{path}: declares no check and no misconception of the `exercise` in {space.__file__}")


@contextlib.contextmanager
def _importable(space: types.ModuleType, name: str) -> Iterator[None]:
    """``from NAME import ...`` finds this module, for as long as this lasts."""
    with _NAMED:
        before = sys.modules.get(name)
        sys.modules[name] = space
        try:
            yield
        finally:
            del sys.modules[name]
            if before is not None:
                sys.modules[name] = before
