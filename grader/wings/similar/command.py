"""The command ``similar`` for staff: find similar submissions. The command reads submissions and never runs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from grader.batch.confined import parsing
from grader.cli.console import print_json, progress, say, tell
from grader.cli.options import AsJson, CourseOption, Only, RosterOption, roster_in, solved_course_at
from grader.common.files import write_atomic
from grader.common.text import a_few
from grader.course.build import handed_out_texts
from grader.course.config import GRADING
from grader.course.loading import Course
from grader.intake.parsers import Parsers
from grader.intake.reading import read
from grader.intake.students import find_submissions
from grader.intake.submission import Place, Submission, Unreadable, reasons_of
from grader.reports.pages import render_template
from grader.reports.people import People, with_name
from grader.reports.points import counted
from grader.reports.untrusted import clean, clean_code
from grader.wings.similar.comparing import LENGTH, LONGEST, Comparison, Part, StudentCode, WordsOf, compare
from grader.wings.similar.confined import confined_words
from grader.wings.similar.page import Group, groups, lines, listed

TEMPLATES = Path(__file__).parent / "templates"


def similar(
    paths: Annotated[list[Path], typer.Argument(help="folders with one folder per student, or students' files")],
    only: Only = None,
    file: Annotated[Path, typer.Option("--file", help="write the page to this file")] = Path("similar.html"),
    most: Annotated[int, typer.Option("--most", min=1, help="pairs to show")] = 20,
    roster: RosterOption = None,
    course: CourseOption = None,
    as_json: AsJson = False,
) -> None:
    """Show pairs of students whose code is unusually similar.

    The page shows the pairs that are unusual in this class, side by side. No score is affected.
    """
    found = solved_course_at(course, paths)
    names = found.asked(only or [], ": nothing to compare")
    known = roster_in(roster)
    with parsing() as parsers:
        login, on_roster = (known.login, known.lists) if known else (str, lambda _: False)
        students, notes, cases = find_submissions(paths, found.module_of, login, parsers, on_roster)
        for note in (*notes, *reasons_of(cases).values()):
            tell("note", note)
        submissions = read_all(found, students, parsers, quiet=as_json)
    by_module = works_by_module(found, submissions, names)
    people = known.people(work.student for works in by_module.values() for work in works) if known else {}
    with confined_words(work for works in by_module.values() for work in works) as words_of:
        compared = compare_all(found, by_module, names, words_of, quiet=as_json)
        write_atomic(file, render(compared, most, people, words_of))
    if as_json:
        print_json({module: as_data(module, of) for module, of in compared.items()})
    else:
        say_pairs(compared, most, file, people)


def compare_all(
    course: Course, works: Mapping[str, list[StudentCode]], names: list[str], words_of: WordsOf, *, quiet: bool
) -> dict[str, Comparison]:
    compared = {}
    with progress(len(works), "comparing", quiet=quiet) as step:
        for module, of_module in works.items():
            ours = handed_out_texts(course, module), own_texts(course, module, names)
            compared[module] = compare(of_module, *ours, words_of)
            step(module)
    return compared


def read_all(
    course: Course, students: Sequence[tuple[str, Place]], parsers: Parsers, *, quiet: bool
) -> list[Submission]:
    """Return the readable submissions. Print notes on students without a readable file."""
    submissions, unread = [], []
    with progress(len(students), "reading", quiet=quiet) as step:
        for student, place in students:
            try:
                found = read(place, student, course.module_of, course.handed_out, parsers)
            except Unreadable as error:
                tell("note", f"{student} is left out: {error}")
            else:
                submissions.append(found)
                if found.notes and not found.sources:
                    unread.append(f"{student} ({found.notes[0]})")
            step(student)
    if unread:
        tell("note", f"{counted(len(unread), 'student')} left out, because no file could be read: {a_few(unread)}")
    return submissions


def say_pairs(compared: Mapping[str, Comparison], most: int, file: Path, people: People) -> None:
    """Print the groups of three or more students, and the pairs that share the most code."""
    for group in larger_groups(compared):
        names_of = a_few([with_name(student, people) for student in group.students], 10)
        say(f"{group.module}: {counted(len(group.students), 'student')} in one group: {names_of}")
    pairs = listed(compared, most)
    if pairs:
        say(
            " passages  share  module  students (passages: code that both have; share: part of the shorter code)",
            style="dim",
        )
    for module, pair in pairs:
        mark = "*" if pair.unusual else " "
        one, other = (with_name(work.student, people) for work in (pair.one, pair.other))
        say(f"{mark} {pair.shared:7g} {pair.overlap:6.0%}  {module}  {one}, {other}")
    unusual = sum(pair.unusual for of in compared.values() for pair in of.pairs)
    works = sum(of.works for of in compared.values())
    compared_text = f"{counted(works, 'submission')} compared; {counted(unusual, 'pair')} unusually similar"
    say(f"{compared_text}{' (marked *)' if unusual else ''}: {file} shows the pairs side by side")


def larger_groups(compared: Mapping[str, Comparison]) -> list[Group]:
    """Return the groups of three or more students. A group of two students is already listed as a pair."""
    return [group for group in groups(compared) if len(group.students) > 2]


def works_by_module(course: Course, submissions: list[Submission], names: list[str]) -> dict[str, list[StudentCode]]:
    """Return the students' code by module, for modules with submissions. Long code is cut and reported."""
    found: dict[str, list[StudentCode]] = {}
    too_long = []
    for submission in submissions:
        for module, parts in _parts(course, submission, names).items():
            work = StudentCode(clean(submission.student, 100), tuple(parts))
            if work.too_long:
                too_long.append(submission.student)
            found.setdefault(module, []).append(work.cut())
    if too_long:
        tell(
            "note",
            f"only the first {LONGEST // 1000} kB of these students' code were compared: {a_few(too_long)}",
        )
    return dict(sorted(found.items()))


def _parts(course: Course, submission: Submission, names: list[str]) -> Mapping[str, list[Part]]:
    """Return a submission's code by module. A file or notebook with several exercises is included only once."""
    found: dict[str, dict[str, Part]] = {}
    for exercise, source in submission.sources.items():
        if exercise in names:
            of_module = found.setdefault(course.module_of[exercise], {})
            for chunk in source.chunks:
                name = source.name if len(source.chunks) == 1 else f"{source.name}, {chunk.name}"
                of_module[name] = Part(clean(name, 200), _visible(chunk.text))
    return {module: list(parts.values()) for module, parts in found.items()}


def _visible(text: str) -> str:
    """Return code without invisible characters and without blanks at the ends of lines.

    The lexer's time grows with the square of the number of successive lines that have only blanks.
    """
    return "\n".join(line.rstrip() for line in clean_code(text).split("\n"))


def own_texts(course: Course, module: str, names: list[str]) -> Iterator[str]:
    """Yield the course's own code for a module: solutions and misconceptions (known mistakes)."""
    for name in course.module(module).exercises:
        path = course.path_of(name)
        for place in (path, path.parent / GRADING / path.name) if name in names else ():
            if place.is_file():
                yield place.read_text(encoding="utf-8")


def as_data(module: str, compared: Comparison) -> dict[str, object]:
    pairs = [
        {
            "students": [pair.one.student, pair.other.student],
            "shared": pair.shared,
            "overlap": pair.overlap,
            "unusual": pair.unusual,
        }
        for pair in compared.pairs
    ]
    return {
        "works": compared.works,
        "median": compared.median,
        "usual": compared.usual,
        "pairs": pairs,
        "groups": [group.students for group in groups({module: compared})],
    }


def render(compared: Mapping[str, Comparison], most: int, people: People, words_of: WordsOf) -> str:
    """Return the staff's page of similar submissions, side by side.

    The code in ``compared`` must be without invisible characters, as ``clean_code`` returns it.
    """
    shown = lines(compared, most, words_of)
    pairs = [pair for of in compared.values() for pair in of.pairs]
    return render_template(
        "similar.html.j2",
        TEMPLATES,
        compared=compared,
        people=people,
        lines=shown,
        groups=larger_groups(compared),
        left=len(pairs) - len(shown),
        left_unusual=sum(pair.unusual for pair in pairs) - sum(line.pair.unusual for line in shown),
        length=LENGTH,
    )
