"""``watch``: check a learner's work again whenever the learner saves a file."""

from __future__ import annotations

from typing import Annotated

from grader import wing
from grader.batch.grade import Grader
from grader.cli.checking import own_grader
from grader.cli.console import out, tell_unusable
from grader.cli.options import (
    BackendOption,
    CourseOption,
    Names,
    Processes,
    Student,
    Work,
    beside_at,
    course_at,
    from_wing,
    student_name,
    work_in,
)
from grader.course.config import CourseError
from grader.watching.files import changes
from grader.watching.loop import WatchLoop
from grader.watching.screen import Screen
from grader.watching.session import WatchSession
from grader.watching.terminal import keys


def watch(
    names: Names = None,
    work: Work = None,
    backend: BackendOption = "cpu",
    processes: Processes = 1,
    course: CourseOption = None,
    student: Student = "",
    browser: Annotated[bool, from_wing("--browser")] = False,
    port: Annotated[int, from_wing("--port")] = 0,
    at: Annotated[str, from_wing("--at")] = "",
) -> None:
    """Check my work again whenever I save it. Keys: h hint, n next, p previous, l list, x explain, r reset, q quit.

    Without names, watch starts with the first unfinished exercise. With one name, watch starts with that exercise.
    """
    if (port or at) and not browser:
        raise CourseError("--port and --at are options of the page in the browser: add --browser")
    found = course_at(course, [work] if work else [], packaged=True)
    chosen, unusable = found.usable(found.asked(names or []))
    tell_unusable(unusable, "note" if chosen else "shardlings")
    if not chosen:
        raise CourseError("there is no exercise to watch")
    place, first = work_in(found, work), chosen[0]
    # Load all exercises, because the keys n and p move to other exercises.
    if len(chosen) == 1:
        chosen, _ = found.usable(found.module_of)
    session = WatchSession(found, place, student_name(found, student), chosen)
    session.go_to(first)
    # Call ``beside_at`` before the screen is drawn, because the call raises an error for impossible options.
    begun = [beside_at(backend, processes, found, "none")]

    def make() -> Grader:
        beside = begun.pop() if begun else beside_at(backend, processes, found, "none", quiet=True)
        return own_grader(found, "none", *beside)

    if browser:
        loop = wing.needed("browser", "--browser")(session, make, out, port, at)
    else:
        loop = WatchLoop(session, make, Screen(session, out))
    try:
        with keys(loop.pressed, loop.resized) as loop.screen.has_keys, changes(place, loop.saved):
            loop.run(anywhere=not names)
    finally:
        loop.close()
