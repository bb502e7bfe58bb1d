"""Implementation of ``shardlings nbgrader grade``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grader.cli.console import BROKEN, going_to, out, print_json, progress, say, tell, tell_slow
from grader.cli.options import need_jax
from grader.common.text import a_few
from grader.course.config import CourseError
from grader.reports.people import Person
from grader.reports.summary import Attention
from grader.reports.terminal import print_attention

if TYPE_CHECKING:
    from grader.batch.backends import Elsewhere


@dataclass(frozen=True)
class AssignmentOptions:
    """The options of one ``nbgrader grade`` command.

    Attributes:
        folder: nbgrader's course folder.
        jobs: how many submissions to grade at a time; None for the default.
        again: True to rewrite the reports of unchanged submissions, too.
        isolation: the value of ``--isolation``, which chooses the sandbox.
        remember: True to use the cache.
        elsewhere: the value of ``--cluster``, to grade on other machines; None to grade on this machine.
    """

    folder: Path
    assignment: str
    jobs: int | None = None
    again: bool = False
    isolation: str = "auto"
    remember: bool = True
    elsewhere: Elsewhere | None = None
    as_json: bool = False


def grade_assignment(options: AssignmentOptions) -> int:
    """Grade an nbgrader assignment, write the grades to nbgrader's gradebook, and return the exit code."""
    need_jax()
    try:
        from grader.integrations.nbgrader import batch
    except ModuleNotFoundError as missing:
        raise CourseError(f"{missing.name} is not installed; run: pip install 'nbgrader>=0.9.5,<0.10'") from None
    folder, assignment = options.folder, options.assignment
    done = batch.grade(
        folder, assignment, lambda total, what: progress(total, what, quiet=options.as_json), jobs=options.jobs or 0,
        isolation="" if options.isolation == "auto" else options.isolation, again=options.again,
        remember=options.remember, elsewhere=options.elsewhere,
        slow=None if options.as_json else tell_slow,
    )  # fmt: skip
    if options.as_json:
        print_json(vars(done) | {"late": {student: one.model_dump() for student, one in done.late.items()}})
    else:
        for warning in done.warnings:
            say(warning, "bold yellow")
        out.print(f"{len(done.graded)} graded, {len(done.kept)} unchanged  (isolation: {done.tier})", highlight=False)
        out.print(f"class page, for the staff: {done.page}", highlight=False, soft_wrap=True)
        out.print(
            f"next: {going_to(folder)}nbgrader generate_feedback {assignment}",
            style="dim",
            soft_wrap=True,
        )
        if done.no_secret:
            outside = f"these students did not submit through nbgrader's exchange: {a_few(done.no_secret)}"
            tell(
                "note",
                f"{outside}; release_feedback cannot reach these students: "
                f"send them feedback/STUDENT/{assignment}/ yourself",
            )
        needed = [Attention(student=s, reason="; ".join(why)) for s, why in done.attention.items()]
        print_attention(needed, out, {student: Person(name) for student, name in done.names.items()})
    for student in done.pending:
        tell("shardlings", f"{student} needs review: the grader itself failed")
    for student, error in done.failures.items():
        tell("shardlings", f"{student} was not graded: {error}")
    return BROKEN if done.failures or done.pending else 0
