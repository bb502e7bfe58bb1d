"""Pages that learners read: an exercise's page, in two parts, and a module's page."""

from __future__ import annotations

from grader.course.config import CourseError
from grader.course.exercises import FURTHER
from grader.course.loading import Course
from grader.exercise import Exercise

README = "README.md"
TRACED = """\
**Traced functions.** The grader traces your function into a program. Compute with `jnp` and `jax.lax`. A traced array
has no values that Python can read, so `float(x)`, `if x[0] > 0` and `np.asarray(x)` raise an error. You may print
arrays and look at their shardings."""


def further(exercise: Exercise) -> str:
    """Return the text 'Going further' with its heading, which learners read below their code; '' if there is none."""
    return f"{FURTHER}\n\n{exercise.further}" if exercise.further else ""


def whole(exercise: Exercise) -> str:
    """Return the exercise's statement, followed by the text 'Going further'."""
    return "\n\n".join(part for part in (exercise.statement, further(exercise)) if part)


def module_page(course: Course, module: str) -> str:
    """Return the module's title and the notes for all its exercises. Raises CourseError for an unusable README.md."""
    title, text = _written(course, module) or f"# {course.module(module).title}", module_text(course, module)
    return f"{title.splitlines()[0]}\n\n{text}".strip()


def module_text(course: Course, module: str) -> str:
    """Return the notes for all exercises of a module: the text of its README.md without the title, then ``TRACED``.

    Only modules with tasks that the grader traces with JAX get the paragraph ``TRACED``. Raises CourseError if the
    README.md cannot be read, or does not start with a title.
    """
    text = "\n".join(_written(course, module).splitlines()[1:]).strip()
    exercises = map(course.exercise, course.usable(course.module(module).exercises)[0])
    traced = any(task.kind != "function" for exercise in exercises for task in exercise.tasks.values())
    if traced and TRACED not in text:  # in a learner's folder, README.md already has this paragraph
        text = f"{text}\n\n{TRACED}".strip()
    return text


def _written(course: Course, module: str) -> str:
    path = course.root / ("solutions" if course.solved else "") / module / README
    try:
        text = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} cannot be read: {error}") from None
    if not text.startswith("# "):
        raise CourseError(f"{path}: it must start with '# Title'")
    return text
