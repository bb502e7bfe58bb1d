"""``watch``: work is checked again whenever it is saved."""

from __future__ import annotations

from grader.cli.console import out, tell_unusable
from grader.cli.learner import own_grader
from grader.cli.options import CourseOption, Names, Student, Work, course_at, student_name, work_in
from grader.course.config import CourseError
from grader.watching.files import changes
from grader.watching.loop import Loop
from grader.watching.session import Session
from grader.watching.terminal import keys


def watch(names: Names = None, work: Work = None, course: CourseOption = None, student: Student = "") -> None:
    """Check my work again whenever I save it. Keys: h hint, n next, p previous, l list, x explain, r reset, q quit.

    Without names: all exercises, from the first of which something is left to do.
    """
    found = course_at(course, [work] if work else [], packaged=True)
    chosen, unusable = found.usable(found.asked(names or []))
    tell_unusable(unusable, "note" if chosen else "shardlings")
    if not chosen:
        raise CourseError("nothing is left to watch")
    place = work_in(found, work)
    session = Session(found, place, student_name(found, student), chosen)
    loop = Loop(session, lambda: own_grader(found), out)
    try:
        with keys(loop.pressed, loop.resized) as loop.screen.has_keys, changes(place, loop.saved):
            loop.run(anywhere=not names)
    finally:
        loop.checker.close()
