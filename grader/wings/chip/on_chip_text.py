"""Print facts and two timelines of a compiled program on a terminal.

The upper timeline shows the compiler's schedule, and the lower timeline the course's own model of time. The two
timelines have equal time scales.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from grader.reports.paper import Paper
from grader.reports.timeline_text import legend, print_lanes
from grader.wings.chip.on_chip import OnChip, differences, exposed_lines, facts


def print_on_chip(about: OnChip, console: Console, *, drawn: bool = True) -> None:
    """Print a heading, a line for every fact, the available timelines if ``drawn``, and their differences."""
    paper = Paper(console)
    paper.line(paper.text(about.title, "bold"))
    if about.fault is not None:
        paper.line(paper.text(about.fault.message, "red"), indent=2)
        return
    for word, text in facts(about):
        paper.line(Text(paper.fit(f"{word:9} "), style="bright_black"), paper.text(text), indent=2)
    if about.timeline is not None:
        for text in exposed_lines(about.timeline):
            paper.line(Text(paper.fit("exposed   "), style="bright_black"), paper.text(text, "yellow"), indent=2)
    lines = about.lines
    if drawn and lines:
        print_lanes(lines, console)
        paper.line(paper.text(legend(lines.values())), indent=2)
    if about.untimed:
        paper.line(
            paper.text(f"the course's clock has no timeline of this program: {about.untimed}", "yellow"), indent=2
        )
    apart = differences(about)
    word = "differs" if apart else "agrees"
    for text in apart or (["the compiler's and the clock's figures do not differ"] if len(lines) == 2 else []):
        paper.line(Text(paper.fit(f"{word:9} "), style="bright_black"), paper.text(text), indent=2)
