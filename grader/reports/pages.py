"""Reports and class summaries as HTML. The templates are in the folder ``templates``."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from grader.clock.timeline import Timeline
from grader.common.drawing import drawn, each_drawn
from grader.common.files import file_name
from grader.common.result import ExerciseReport, Report, Result
from grader.reports.answers import answer_histogram, score_histogram
from grader.reports.bars import draw_bars
from grader.reports.explained import Explained, Placed
from grader.reports.explained_text import collective_text
from grader.reports.grids import Arrows, HeldSvg, draw_arrows, draw_held
from grader.reports.loglog import MeasuredPoint, draw_plot
from grader.reports.people import UNKNOWN, Person, with_name
from grader.reports.pictures import Picture, describe, draw_svg, pictures
from grader.reports.points import counted, pending_text, percentage, show_percent, tidy
from grader.reports.programs import rings_of, rooflines_of, step_limit, timelines_of
from grader.reports.roofline import Roofline, RooflineSvg, draw_roofline
from grader.reports.rounds import RoundsSvg, draw_rounds, rounds_in
from grader.reports.summary import SEVERAL, Summary
from grader.reports.timeline_svg import Chart, draw_chart
from grader.reports.untrusted import clean, clean_code
from grader.reports.whole_class import WholeClass
from grader.reports.wording import (
    Audience,
    by_hand_text,
    count_notes,
    data_pairs,
    has_file,
    percent_of,
    place_text,
    points_of,
    reason_text,
    score_of,
    seen_by,
    status_word,
    worth_of,
)

_PILL = "display:inline-block;white-space:nowrap;border-radius:1em;padding:0 .6em;font-size:.85em;font-weight:600;"
_BOX = "margin:.4em 0;padding:.45em .75em;border-radius:4px;"
INLINE_STYLES = {
    "exercise": "margin:1em 0;font-family:system-ui,sans-serif;line-height:1.5;max-width:60em;overflow-x:auto",
    "exercise-head": "display:flex;flex-wrap:wrap;align-items:baseline;justify-content:space-between;margin:0 0 .5em",
    "exercise-title": "margin:0;font-size:1.2em",
    "exercise-score": "font-weight:700;white-space:nowrap",
    "results": "border-collapse:collapse;table-layout:auto;width:100%;color:inherit;font:inherit",
    "offscreen": "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap",
    "row": "background:transparent;border-top:1px solid rgba(128,128,128,.35)",
    "status": "text-align:left;vertical-align:top;padding:.5em .75em .5em 0;width:1%",
    "what": "text-align:left;vertical-align:top;padding:.5em .75em .5em 0",
    "worth": "text-align:right;vertical-align:top;padding:.5em 0;white-space:nowrap;width:1%",
    "pill passed": _PILL + "background:#d5f2dc;color:#0b5a23",
    "pill failed": _PILL + "background:#fde0dd;color:#9b1c13",
    "pill blocked": _PILL + "background:#e4e6ea;color:#454b54",
    "pill broken": _PILL + "background:#fdeec2;color:#6b4a00",
    "pill waiting": _PILL + "background:#fdeec2;color:#6b4a00",
    "tag": "font-size:.75em;opacity:.75;border:1px solid;border-radius:3px;padding:0 .35em;margin-left:.4em",
    "label": "font-weight:600",
    "reason": "margin:.25em 0",
    "where": "opacity:.7;white-space:nowrap",
    "hint": _BOX + "background:#fff4d6;color:#4a3500",
    "note": _BOX + "background:#e4e6ea;color:#2b3038",
    "pending-note": _BOX + "background:#fdeec2;color:#5c4000",
    "data": "display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em;margin:.4em 0;font-size:.9em",
    "datum": "margin:0",
    "pictures": "display:flex;flex-wrap:wrap;gap:1em 2em;margin:.75em 0",
    "picture": "margin:0;min-width:0;max-width:100%;overflow-x:auto",
    "picture timeline": "margin:0;min-width:0;max-width:100%;overflow-x:auto",
    "ring": "margin:.75em 0",
    "picture-words": "contain:inline-size",  # text wraps at the picture's width, and does not widen the picture
    "picture-title": "font-size:.9em",
    "picture-caption": "font-size:.8em;opacity:.8",
    "holders": "font-size:.8em",
}
TEMPLATES = Path(__file__).parent / "templates"
SHOWN = 8
"""The number of misconceptions and checks that the class page shows unfolded."""


def render_html(report: Report, *, audience: Audience = "student", person: Person = UNKNOWN) -> str:
    """Return a report's page, which needs no other file: it has no scripts, fonts or images to fetch."""
    shown = seen_by(audience, report)
    return render("report.html.j2", report=shown, person=person, audience=audience, look=class_of, heading=2)


def render_fragment(exercise: ExerciseReport, *, audience: Audience = "student") -> str:
    """Return one exercise as an HTML fragment with inline styles, for a notebook's output."""
    shown = seen_by(audience, exercise)
    return render("exercise.html.j2", exercise=shown, audience=audience, look=inline, heading=3)


def summary_html(summary: Summary, whole: WholeClass, reports: Iterable[Report]) -> Iterator[str]:
    """Yield the class page in pieces, so that a large class's page is never in memory as a whole.

    The class page links to the students' pages. These pages must be in the same folder, with names from ``page_name``.
    The page's content security policy allows only the script that sorts and filters the table of students.

    Args:
        whole: facts about the class, counted over all of ``reports`` in advance.
        reports: an iterable, which is read only once.
    """
    script = (TEMPLATES / "class.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return render_pieces(
        "class.html.j2", summary=summary, whole=whole, reports=reports, kinds=summary.kinds,
        sections=whole.section_rates(), section_ids=whole.section_ids(), modules=whole.modules(summary), shown=SHOWN,
        script=Markup(script), script_hash=Markup(f"sha256-{digest}"),
    )  # fmt: skip


def render_picture(picture: Picture) -> str:
    """Return an array's layout on devices as an HTML fragment with inline styles."""
    return render("layout.html.j2", picture=picture, look=inline)


def render_arrows(explained: Explained) -> str:
    """Return pictures of a program's collectives as an HTML fragment with inline styles; '' if none can be drawn."""
    shown = drawn_arrows(explained)
    ident = "a" + hashlib.sha256(repr(shown).encode()).hexdigest()[:8] + "-"
    return render("arrows.html.j2", pictures=shown, ident=ident, look=inline)


def drawn_arrows(explained: Explained) -> list[Arrows]:
    """Return pictures of the first eight distinct collectives of a program, without those that cannot be drawn."""
    return each_drawn(lambda of: draw_arrows(of[0], explained.mesh, collective_text(*of)), explained.alike[:8])


def render_held(explained: Explained) -> str:
    """Return an HTML fragment that shows each device's parts of arguments and results; '' if no array can be drawn."""
    grids = held_grids(explained.arguments, explained) + held_grids(explained.results, explained)
    return render("held.html.j2", grids=grids, look=inline) if grids else ""


def held_grids(arrays: Sequence[Placed], explained: Explained) -> list[HeldSvg]:
    return [grid for array in arrays if (grid := draw_held(array, explained.mesh)) is not None]


def render_rounds(explained: Explained) -> str:
    """Return an HTML fragment with tables of permuted data (see ``rounds``); '' if there are no tables."""
    return render("rounds.html.j2", rings=drawn_rounds(explained), look=inline)


def drawn_rounds(explained: Explained) -> list[RoundsSvg]:
    return each_drawn(draw_rounds, rounds_in(explained))


@cache
def player() -> str:
    """Return the script that animates pictures, for pages that allow scripts."""
    return (TEMPLATES / "player.js").read_text(encoding="utf-8")


def render_roofline(roofline: Roofline) -> str:
    """Return the picture of a program's roofline model as an HTML fragment with inline styles."""
    return render("roofline.html.j2", plot=draw_roofline(roofline), look=inline)


def render_timelines(timelines: Mapping[str, Timeline]) -> str:
    """Return an HTML fragment with a picture of all timelines on one scale, and their totals."""
    return render("timeline.html.j2", chart=draw_chart(timelines), look=inline)


def _charts_of(result: Result) -> list[Chart]:
    limited = ((timeline, step_limit(result, timeline)) for timeline in timelines_of(result))
    return each_drawn(lambda of: draw_chart({"timeline of your program": of[0]}, limit=of[1]), limited)


def _plots_of(result: Result) -> list[RooflineSvg]:
    return each_drawn(draw_roofline, rooflines_of(result))


def _rings_of(result: Result) -> list[RoundsSvg]:
    return each_drawn(draw_rounds, rings_of(result))


def loglog_svg(points: Sequence[MeasuredPoint], heading: str) -> str:
    """Return the plot of predicted and measured times as an SVG file with a white background."""
    return render("loglog.svg.j2", plot=draw_plot(points, heading))


def render(template: str, **data: Any) -> str:
    """Return the page or fragment that a template makes."""
    return "".join(render_pieces(template, **data))


def render_pieces(template: str, **data: Any) -> Iterator[str]:
    """Render the template of this name, and yield the page in pieces, so that it is never in memory as a whole."""
    return _environment().get_template(template).generate(**data)


def render_template(template: str, folder: Path, **data: Any) -> str:
    """Render a template from the folder of a wing (an optional part of the grader).

    The template may extend and include templates of its own folder, and templates of ``grader.reports``.
    """
    return _with_folder(folder).get_template(template).render(**data)


@cache
def _with_folder(folder: Path) -> Environment:
    return _environment().overlay(loader=ChoiceLoader([FileSystemLoader(folder), FileSystemLoader(TEMPLATES)]))


@lru_cache(1024)
def class_of(name: str) -> Markup:
    """Return the HTML attribute ``class``, which gives an element a style from the page's style sheet."""
    return Markup('class="{}"').format(name)


def inline(name: str) -> Markup:
    return Markup('style="{}"').format(INLINE_STYLES[name])


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.globals.update(word=status_word, reason=reason_text, where=place_text, data_pairs=data_pairs)
    environment.globals.update(by_hand=by_hand_text, pictures=pictures, describe=describe)
    environment.globals.update(drawing=partial(drawn, None, draw_svg), bars_of=partial(drawn, None, draw_bars))
    environment.globals.update(charts_of=_charts_of, plots_of=_plots_of, rings_of=_rings_of)
    environment.globals.update(points_of=points_of, percent=percentage, counted=counted, pending_text=pending_text)
    environment.globals.update(score_of=score_of, percent_of=percent_of, worth_of=worth_of)
    environment.globals.update(score_histogram=score_histogram, answer_histogram=answer_histogram)
    environment.globals.update(page_name=page_name, quote=quote, show_percent=show_percent, notes_of=count_notes)
    environment.globals.update(several=SEVERAL, with_name=with_name, has_file=has_file)
    environment.filters.update(prose=_prose, tidy=tidy, clean=clean, code=clean_code)
    for name in environment.list_templates(extensions=["j2", "css"]):
        environment.get_template(name)
    return environment


def load_templates() -> None:
    """Compile the templates, before other threads parse Python source, because doing both at once can fail."""
    _environment()


def _finalize(value: Any) -> Any:
    """Clean a value that a template prints, if it is a string. Jinja escapes the result."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _prose(text: str, limit: int = 2000) -> Markup:
    """Return text escaped for HTML, with `code` between backticks as HTML code elements."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(clean(text, limit)))))


def page_name(student: str) -> str:
    return f"{file_name(student)}.html"
