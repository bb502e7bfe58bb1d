"""Example reports, an example class, hostile text, and a parser that reads rendered pages."""

from __future__ import annotations

import io
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path

from rich.console import Console

from grader.common.layout import owner_slices
from grader.common.result import ExerciseReport, Report, Result
from grader.reports.answers import Answers
from grader.reports.pages import summary_html
from grader.reports.summary import Summary
from grader.reports.tables import NOTHING, write_grades_csv
from grader.reports.terminal import print_report
from grader.reports.whole_class import WholeClass
from grader.reports.wording import Audience

MESH = {"x": 4, "y": 2}
EVIL = "<script>alert(1)</script>\x1b[31mred\x1b]0;title\x07\u202eesrever [bold]markup[/bold] \"'>&"


def picture(title: str, spec: tuple, shape: tuple[int, ...] = (24, 40), mesh: dict[str, int] = MESH) -> dict:
    slices = [[list(cut) for cut in part] for part in owner_slices(shape, spec, mesh)]
    return {"title": title, "mesh": mesh, "shape": list(shape), "slices": slices}


def result(name: str = "value", status: str = "passed", /, **changes) -> Result:
    points = changes.pop("points", 1.0)
    base = {
        "kind": "check",
        "name": name,
        "label": f"matmul: {name} is right",
        "task": "matmul",
        "status": status,
        "points": points,
        "earned": points if status == "passed" else 0.0,
        "public": True,
        "reason": "" if status == "passed" else f"reason of {name}",
    }
    return Result.model_validate(base | changes)


def layout_failure(**changes) -> Result:
    shown = [picture("expected", (None, "x")), picture("actual", (("x", "y"),))]
    return result(
        "layout",
        "failed",
        **{
            "reason": "the result is sharded P(('x', 'y')), expected P(None, 'x')",
            "where": "(x=0, y=0)",
            "hint": "`psum_scatter` cuts dimension 0 unless you pass `scatter_dimension=1`",
            "misconception": "wrong_dimension",
            "expected": "P(None, 'x')",
            "actual": "P(('x', 'y'))",
            "pictures": shown,
        }
        | changes,
    )


def number(**changes) -> Result:
    return result(
        "scatter_time",
        "failed",
        **{
            "kind": "number",
            "public": False,
            "label": "How long does the reduce-scatter take?",
            "reason": "your answer is not within 2%",
            "hint": "You used one direction of the link; on a ring data flows both ways.",
            "misconception": "one_way",
            "expected": "372.8 us",
            "actual": "745.65 us",
        }
        | changes,
    )


def exercise(results: list[Result], **changes) -> ExerciseReport:
    base = {
        "exercise": "c3_contracting",
        "module": "03_matmuls",
        "title": "C3 Both operands cut along the contracting dimension",
        "points": sum(r.points for r in results),
        "earned": sum(r.earned for r in results),
        "pending": sum(r.points for r in results if r.status == "broken"),
        "results": results,
    }
    return ExerciseReport.model_validate(base | changes)


def make_report(*exercises: ExerciseReport, **changes) -> Report:
    base = {
        "student": "alice",
        "course": "shardlings 2025.1",
        "versions": {"jax": "0.10.2", "jaxlib": "0.10.2", "shardlings": "0.2.0"},
        "isolation": "sandlock",
        "backend": "cpu, 8 devices",
        "fingerprint": "3f" * 32,
        "points": sum(e.points for e in exercises),
        "earned": sum(e.earned for e in exercises),
        "pending": sum(e.pending for e in exercises),
        "exercises": list(exercises),
    }
    return Report.model_validate(base | changes)


def mixed(**changes) -> Report:
    """Return a report with all four statuses, a hidden check, a question, and notes."""
    secret = layout_failure(
        name="hidden_layout",
        public=False,
        reason="the result is sharded otherwise",
        expected="SECRET-SPEC",
        staff="SECRET-CASE",
        pictures=[picture("expected SECRET-PICTURE", (None, "x")), picture("actual", ("x",))],
    )
    blocked = result("traffic", "blocked", reason="")
    broken = result("memory", "broken", points=2, reason="the compiler ran out of time")
    first = exercise([result("value", points=2), layout_failure(staff="SECRET-CASE"), blocked, broken])
    second = exercise(
        [secret, number(expected="SECRET-NUMBER")],
        exercise="c4_hidden",
        title="C4 Hidden",
        notes=["a cell was left out"],
    )
    return make_report(first, second, **{"notes": ["the notebook has no kernel"]} | changes)


def evil_report() -> Report:
    """Return a report with hostile text in every place that may derive from a learner."""
    bad = layout_failure(
        label=EVIL, reason=EVIL, hint=EVIL, where=EVIL, misconception=EVIL, expected=EVIL, actual={EVIL: [EVIL]}
    )
    drawn = picture(f"actual {EVIL}", (EVIL,), (8,), {EVIL: 2})
    worse = result(EVIL, "failed", label=EVIL, pictures=[drawn])
    broken = result("b", "broken", reason=EVIL)
    ill = exercise([bad, worse, broken], exercise=EVIL, module=EVIL, title=EVIL, notes=[EVIL])
    changes = dict.fromkeys(["student", "course", "isolation", "backend", "fingerprint"], EVIL)
    return make_report(ill, **changes, versions={EVIL: EVIL}, notes=[EVIL])


def a_class() -> list[Report]:
    perfect = make_report(exercise([result("value"), result("layout")]), student="zoe")
    one = make_report(exercise([result("value"), layout_failure()]), student="bob")
    two = make_report(exercise([result("value", "failed"), layout_failure()]), student="carol")
    broken = make_report(exercise([result("value", "broken"), result("layout", "blocked")]), student="dan")
    return [two, perfect, broken, one]


def class_page_html(summary: Summary, reports: Iterable[Report]) -> str:
    """Return the whole class page."""
    listed = list(reports)
    return "".join(summary_html(summary, WholeClass(listed), listed))


def answers_of(reports: Iterable[Report]) -> list[Answers]:
    return WholeClass(reports).answers.answers()


def grades_csv(reports: list[Report], path: Path, absent: Iterable[str] = ()) -> None:
    write_grades_csv(WholeClass(reports), reports, path, dict.fromkeys(absent, NOTHING))


def printed(report: Report, width: int = 100, audience: Audience = "student") -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_report(report, console, audience=audience)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def ascii_console(width: int = 80) -> tuple[Console, io.BytesIO]:
    raw = io.BytesIO()
    return Console(file=io.TextIOWrapper(raw, encoding="ascii", write_through=True), width=width), raw


class Nesting(HTMLParser):
    """A parser that fails on tags that do not nest, and collects every attribute and visible text."""

    VOID = frozenset({"meta", "br", "link", "img", "input", "hr"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
