"""The students' release of the course: the exercises, the tool that checks them, and instructions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from grader import __version__
from grader.authoring.leaks import leaks
from grader.course.build import products
from grader.course.config import CourseError
from grader.course.loading import EXAMPLE_SEED, Course
from grader.course.sources import cell
from grader.integrations.package import package_files, project_file

TEMPLATES = Path(__file__).parent / "templates"
EXERCISES, TOOL = "exercises", "tool"
LICENCES = ("LICENSE", "LICENSE.md", "LICENSE.txt", "COPYING")
IGNORED = ".venv/\n__pycache__/\n.ipynb_checkpoints/\n/*.zip\n"


def student_files(course: Course) -> dict[str, str]:
    """Return the files of the students' release, as path -> text.

    Raises CourseError if the course cannot be released, or if a file would show students secret data.
    """
    files = {f"{EXERCISES}/{path}": text for path, text in products(course).items()}
    files |= common_files(course)
    files["README.md"] = page(course, "student.md")
    files[".github/workflows/classroom.yml"] = (TEMPLATES / "classroom.yml").read_text(encoding="utf-8")
    refuse_leaks(leaking(course, files))
    return files


def common_files(course: Course) -> dict[str, str]:
    """Return files for both published branches (with and without solutions): the tool, ``.gitignore`` and a licence."""
    files = {f"{TOOL}/{path}": file.read_text(encoding="utf-8") for path, file in package_files().items()}
    files |= {f"{TOOL}/pyproject.toml": project_file(), ".gitignore": IGNORED}
    for name in LICENCES:
        if (course.root / name).is_file():
            files[name] = (course.root / name).read_text(encoding="utf-8", errors="replace")
    return files


def page(course: Course, template: str, **more: str) -> str:
    """Return the README that a template gives for this course. Raises CourseError for a course without exercises."""
    first = course.asked([])[0]
    words = {
        "@NAME@": course.config.name,
        "@VERSION@": __version__,
        "@FIRST@": first,
        "@MODULE@": course.module_of[first],
        "@MODULES@": _modules(course),
    } | more
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    for word, becomes in words.items():
        text = text.replace(word, becomes)
    return text


def _modules(course: Course) -> str:
    listed = [module for module in course.config.modules if module.exercises]
    dated = any(module.deadline for module in listed)
    rows = []
    for module in listed:
        due = f" {module.deadline:%Y-%m-%d %H:%M} |" if module.deadline else "  |"
        rows.append(f"| `{module.id}` | {cell(module.title)} | {len(module.exercises)} |{due if dated else ''}")
    heads = ["| module | | exercises |", "|---|---|--:|"]
    return "\n".join([heads[0] + " due |" * dated, heads[1] + "---|" * dated, *rows])


def leaking(course: Course, files: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each published text that students must not get.

    The tool's files do not depend on the course, so this function searches them only for the course's seed.
    """
    made = {path: text for path, text in files.items() if not path.startswith(f"{TOOL}/")}
    yield from (line.removeprefix(f"{EXERCISES}/") for line in leaks(course, made))
    yield from seeds(course, {path: text for path, text in files.items() if path not in made})


def seeds(course: Course, files: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each file that contains the course's secret seed. The example course's seed is public."""
    seed = course.config.seed
    if len(seed) > 3 and seed != EXAMPLE_SEED:
        yield from (f"{path} holds the course's seed" for path, text in files.items() if seed in text)


def refuse_leaks(found: Iterator[str]) -> None:
    """Raise CourseError with the first leak and the number of further leaks, if any leak was found."""
    if lines := list(found):
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        raise CourseError(f"nothing is published: {lines[0]}{more}; see: shardlings verify")
