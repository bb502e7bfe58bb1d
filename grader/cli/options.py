"""Options of several commands, and functions for their values: the course, the learner's work, the roster."""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from grader import __version__, wing
from grader.cli.completion import modules_and_exercises
from grader.cli.console import tell
from grader.course.config import CourseError
from grader.course.finding import PACKAGED, find_course
from grader.course.loading import Course
from grader.sandbox.processes import begin_ahead

if TYPE_CHECKING:
    from grader.batch.backends import Beside, Devices
    from grader.integrations.roster import Roster

# Both versions must agree with pyproject.toml.
# The script .ci/run tests the oldest JAX, and the newest JAX for each Python version.
OLDEST_JAX, UNTESTED_JAX = (0, 10, 2), (0, 13)

CourseOption = Annotated[
    Path | None,
    typer.Option("--course", help="course.yaml or its folder; default: the nearest course.yaml, here or above"),
]
Isolation = Annotated[
    str,
    typer.Option(
        "--isolation",
        help="the sandbox: auto, sandlock, bwrap or none",
        autocompletion=lambda: ["auto", "sandlock", "bwrap", "none"],
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "-j",
        "--jobs",
        min=1,
        max=64,
        help="submissions, exercises or mutants graded at a time [default: one for each core]",
    ),
]
NoStore = Annotated[bool, typer.Option("--no-store", help="neither read nor write the cache of results")]
RosterOption = Annotated[
    Path | None,
    typer.Option(
        "--roster",
        help="the class: a gradebook exported from Canvas, or a CSV with id,name,email,section,extension",
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="print only problems and the summary line")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON instead")]
Student = Annotated[
    str,
    typer.Option(
        "--student",
        envvar="SHARDLINGS_STUDENT",
        help="your login, if each student has different numbers in this course",
    ),
]


Names = Annotated[
    list[str] | None,
    typer.Argument(help="exercises or modules; any unique prefix works", autocompletion=modules_and_exercises),
]
Work = Annotated[
    Path | None,
    typer.Option("--work", help="the folder or notebook with your work; default: exercises/, or the current folder"),
]

Only = Annotated[
    list[str] | None,
    typer.Option("--only", help="only these exercises or modules", autocompletion=modules_and_exercises),
]
BackendOption = Annotated[
    str,
    typer.Option(
        "--backend",
        autocompletion=lambda: ["cpu", "gpu", "tpu"],
        help="cpu (only simulated devices), gpu or tpu (values are judged on GPUs or TPUs as well: "
        "docs/wings/devices.md), or a TPU slice such as tpu:v5e:2x4 (checks that need no run are "
        "judged on programs compiled for this slice: docs/wings/chip.md)",
    ),
]


class BackendChoice(NamedTuple):
    """The values of ``--backend`` and ``--processes``."""

    backend: str
    processes: int


SIMULATED = BackendChoice("cpu", 1)  # the defaults: only simulated devices, all in one process


def from_wing(name: str, parser: Callable[[str], Any] | None = None) -> Any:
    """Return an option that a wing (an optional part of the project) adds.

    Without the wing, the option is not in ``--help``, and ``parser`` or the command reports that the wing is missing.
    """
    offered = wing.named("options")
    return wing.load(offered[name]) if name in offered else typer.Option(name, hidden=True, parser=parser)


def _without_cluster(address: str) -> None:
    raise wing.missing("--cluster", "cluster")


ElsewhereOption = Annotated[Any, from_wing("--cluster", _without_cluster)]
Processes = Annotated[int, from_wing("--processes")]


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def jax_problem(version: str | None = None) -> str:
    """Return a line that says that JAX is missing or too old; '' for a usable version."""
    oldest = ".".join(map(str, OLDEST_JAX))
    try:
        version = version or importlib.metadata.version("jax")
    except importlib.metadata.PackageNotFoundError:
        return f"JAX is not installed; pip install 'jax>={oldest}'"
    return "" if numbers(version) >= OLDEST_JAX else f"JAX {version} is too old; pip install 'jax>={oldest}'"


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version: ``(0, 10, 2)`` for ``0.10.2``."""
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def need_jax() -> None:
    """Raise CourseError if JAX is missing or too old."""
    if problem := jax_problem():
        raise CourseError(problem)


def course_at(path: Path | None, handed_in: Sequence[Path] = (), *, packaged: bool = False) -> Course:
    """Return the course at ``path``, or the nearest course at or above the working directory if ``path`` is None.

    Args:
        handed_in: the paths of submissions, which must not contain the course.
        packaged: True to use the packaged course, with a note, if there is no other course.
    """
    need_jax()
    found = find_course(path, handed_in=handed_in, packaged=packaged)
    if path is None and found.root == PACKAGED:
        which = f"no course.yaml in {Path.cwd()} or above, so this is the packaged course, shardlings {__version__}"
        tell(
            "note",
            f"{which}. To work in this course: shardlings start FOLDER. For another course, go to the folder of that "
            "course or pass --course",
        )
    return found


def solved_course_at(path: Path | None, handed_in: Sequence[Path] = ()) -> Course:
    """Return the course to grade with. Raises CourseError if the course has no solutions."""
    found = course_at(path, handed_in)
    if not found.solved:
        raise CourseError("grading needs the solutions, which the learners' release of a course lacks")
    return found


def usual_place(course: Course) -> Path:
    """Return the default folder for a learner's work, which is never the packaged course. The folder may be missing."""
    return Path.cwd() if course.root == PACKAGED else course.root / "exercises" if course.solved else course.root


def work_in(course: Course, work: Path | None) -> Path:
    """Return ``work``, or the default folder if it is None. Raises CourseError if the folder is missing."""
    place = work or usual_place(course)
    if not place.exists():
        raise CourseError(f"no such file or folder: {place}")
    return place


def refuse_course_beside(course: Course, place: Path) -> None:
    """Raise CourseError if the learner's work is in the folder of a course without solutions.

    The author of the work may also have written this course, and the grader would run its code.
    """
    if place.resolve().is_relative_to(course.root.resolve()) and not course.solved:
        raise CourseError(
            f"{course.root / 'course.yaml'} is beside the learner's files, so the course's code could be a learner's; "
            "pass the course that you trust: --course FOLDER"
        )


def begin_workers(course: Course, tier: str) -> None:
    """Start the worker processes early, so that they import JAX while this process starts."""
    if hasattr(os, "fork"):
        begin_ahead(("trace", "run"), tier, course.config.devices, course.config.limits)


def has_reports(to: Path) -> bool:
    """Return True if the folder has reports."""
    return (to / "grades.sqlite").exists() or any((to / "reports").glob("*.json"))


def student_name(course: Course, student: str) -> str:
    """Return the student's name. The name is required only if each student gets different numbers."""
    if course.config.variants.mode == "per_student" and not student:
        raise CourseError("each student has different numbers in this course; name yourself with --student NAME "
                          "or export SHARDLINGS_STUDENT=NAME")  # fmt: skip
    return student or "me"


def refuse_two_outputs(*, quiet: bool, as_json: bool, verbose: bool = False) -> None:
    """Raise CourseError if the options ask for less output and for other output."""
    if quiet and (verbose or as_json):
        raise CourseError(f"--quiet and {'--verbose' if verbose else '--json'} exclude each other; pass one")


def roster_in(path: Path | None) -> Roster | None:
    if path is None:
        return None
    from grader.integrations.roster import Roster

    return Roster(path)


def sizes_of(option: str, text: str) -> dict[str, int]:
    """Return the sizes by name in a text such as ``x=4,y=2``. Raises CourseError for any other text."""
    sizes: dict[str, int] = {}
    for part in text.split(",") if text else ():
        name, equals, size = (word.strip() for word in part.partition("="))
        if not (equals and name.isidentifier() and size.isascii() and size.isdigit() and 0 < int(size[:13]) < 10**12):
            raise CourseError(f"{option} {text}: {part.strip() or 'nothing'} is not a name and a size; write x=4,y=2")
        if name in sizes:
            raise CourseError(f"{option} {text}: {name} appears twice; write each name once")
        sizes[name] = int(size)
    return sizes


# -- devices and compilers in addition to the simulated devices -------------------------------------


def beside_at(
    name: str, processes: int, course: Course, tier: str, *, quiet: bool = False, remember: bool = True
) -> Beside:
    """Return the devices or the compiler that the two options request in addition to the simulated devices.

    Raises CourseError, WingError.

    Args:
        quiet: True to print errors only.
        remember: True to reuse earlier compilations.
    """
    from grader.batch.backends import Beside

    if name.startswith("tpu:"):
        return Beside(compiler=wing.needed("chip", f"--backend {name}")(name, processes, course, tier, remember))
    return Beside(devices=devices_at(name, processes, course, tier, quiet=quiet))


def devices_at(name: str, processes: int, course: Course, tier: str, *, quiet: bool = False) -> Devices | None:
    """Return the devices that the options request; None if they request only simulated devices in one process.

    Raises CourseError, WingError.
    """
    if (name, processes) == SIMULATED:
        return None
    if name.startswith("tpu:"):
        raise CourseError(
            f"this command cannot use --backend {name}; to see how the slice's compiler schedules a function: "
            f"shardlings chip NAME --on {name[4:]}"
        )
    option = f"--backend {name}" if processes == 1 else f"--processes {processes}"
    return wing.needed("devices", option)(name, processes, course, tier, quiet=quiet)
