"""The output of ``watch``. After each change, a terminal's screen is drawn again; other outputs only get new lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from grader.common.result import Report
from grader.course.config import CourseError
from grader.reports.explained import Explained, alike
from grader.reports.explained_text import print_explained
from grader.reports.overview import print_overview, print_watched
from grader.reports.paper import Paper
from grader.reports.points import counted
from grader.reports.wording import first_failure
from grader.watching.session import WatchSession

KEYS = "h hint, n next, p previous, l list, x explain, r reset, q quit"


class Screen:
    """Draws the session's state.

    Attributes:
        has_keys: True if keys of the keyboard control ``watch``. Then the screen lists the keys.
        news: a line to show once, with the next drawing.
        question: the question that waits for y or n; "" if there is no question.
    """

    def __init__(self, session: WatchSession, console: Console) -> None:
        self.session, self.console, self.paper = session, console, Paper(console)
        self.has_keys, self.news, self.question = False, "", ""
        self._drawn: Callable[[], None] = self._exercise
        self._took = ""

    def again(self, *, hints: bool = False) -> None:
        """Draw the current state again."""
        if hints or (self.elsewhere and self.session.report is not None):
            self._drawn = self._exercise
        self._draw()

    @property
    def elsewhere(self) -> bool:
        """Whether the screen shows a list or an explanation in place of the current exercise."""
        return self._drawn != self._exercise

    def result(self, seconds: float) -> None:
        self._took = f"{time.strftime('%H:%M:%S')}, in {seconds:.1f} s"
        self._show(self._exercise)

    def nothing(self) -> None:
        """Show that the current exercise has no file."""
        self._show(self._exercise)

    def progress(self, report: Report) -> None:
        """Show all watched exercises."""
        titles = {m.id: m.title for m in self.session.course.config.modules}
        self._show(lambda: print_overview(report, titles, self.console))

    def explained(self, programs: Sequence[Explained]) -> None:
        """Show the facts about the learner's function on each mesh."""

        def draw() -> None:
            self._line(f"what your functions in {self.session.exercise.id} do:")
            for task in dict.fromkeys(p.task for p in programs):
                for program in alike(p for p in programs if p.task == task):
                    self.console.print()
                    print_explained(program, self.console)

        self._show(draw)

    def failed(self, error: Exception) -> None:
        """Show that the grader itself failed."""
        kind = "" if isinstance(error, CourseError | OSError) else f"the grader itself failed, {type(error).__name__}: "
        self.say(f"{kind}{error}")

    def checking(self, name: str) -> None:
        if self.console.is_terminal:
            what = {"start": "checking all exercises", "list": "checking all", "explain": "reading your program"}
            self._line(f"{what.get(name, 'checking')} ...", "bright_black")

    def still(self, name: str) -> None:
        if name.startswith("check "):
            limit = self.session.course.config.limits.trace_seconds
            self._line(f"still running; an endless loop is stopped after {limit:g} s, or when you save again", "yellow")

    def ask(self, question: str) -> None:
        """Show a question that the user answers with y or n."""
        self.question = question
        self.say(question)

    def say(self, text: str) -> None:
        """Print one line below the current drawing."""
        self._line(text, "yellow")

    def _show(self, draw: Callable[[], None]) -> None:
        self._drawn = draw
        self._draw()

    def _draw(self) -> None:
        if self.console.is_terminal:
            self.console.clear()
        self._drawn()
        if self.news:
            self.say(self.news)
            self.news = ""
        if self.has_keys:
            back = "any key goes back; " if self.elsewhere else ""
            self._line(back + KEYS, "bright_black")
        if self.question:
            self.say(self.question)

    def _line(self, text: str, style: str = "") -> None:
        self.paper.line(self.paper.text(text, style))

    # the current exercise

    def _exercise(self) -> None:
        session, exercise = self.session, self.session.exercise
        self._line(f"{exercise.title} ({session.position})", "bold")
        where = session.where
        function = f", {session.function}" if session.function else ""
        self._line(f"{exercise.id}{function}: {where or 'no file yet'}", "cyan")
        for note in session.notes[:3]:
            self._line(f"note: {note}", "italic")
        self.console.print()
        if session.source is None:
            module = session.course.module_of[exercise.id]
            self._line(f"waiting for {exercise.id}.py or {module}.ipynb in {session.place}")
        elif session.report is not None:
            print_watched(session.report, self.console)
            self._hints()
            self._outcome()
        self.console.print()

    def _hints(self) -> None:
        session = self.session
        for number, hint in enumerate(session.hints, 1):
            self._line(f"hint {number} for {session.function}: {hint}", "cyan")
        if session.hints and not session.hints_left:
            self._line(f"that was the last hint for {session.function}", "bright_black")

    def _outcome(self) -> None:
        session = self.session
        assert session.report is not None
        if first_failure(session.report) is None:
            further = "; n goes to the next exercise" if session.has(1) and self.has_keys else ""
            self._line(f"everything that was checked passes{further}", "green")
        if not session.course.solved and (hidden := session.exercise.hidden_points):
            worth = hidden * session.course.weight(session.exercise.id)
            self._line(
                f"hidden checks are worth {counted(worth, 'point')} more; they run when your submission is graded",
                "bright_black",
            )
        self.paper.line(Text(f"checked at {self._took}", style="bright_black"))
