"""Make the parts of the page from a session and the result of ``explain``."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from grader.common.intervals import Interval
from grader.common.observation import Collective, Fault
from grader.common.routes import Route
from grader.course.loading import load_course
from grader.exercise import Call
from grader.intake.submission import Chunk, Source
from grader.reports.explained import Explained, Placed
from grader.watching.session import WatchSession
from grader.wings.browser.view import (
    MOST_LINES,
    SLICES,
    WIDEST,
    PageState,
    as_html,
    fitting,
    marked_lines,
    render,
    usual_slice,
    whole_page,
)
from tests.made_up import made_up
from tests.reports.example_reports import EVIL, Nesting, exercise, layout_failure, result

MESH = {"x": 4}
GATHER = Collective("all_gather", ("x",), 24, Interval.of(72), file=EVIL, line=3, groups=((0, 1, 2, 3),))


class Elements(HTMLParser):
    """The names of a page's elements and attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {tag, *(name for name, _ in attrs)}


def program(task: str = "gather", fault: Fault | None = None) -> Explained:
    held = ((0, 1, 2, 3), (3, 0, 1, 2))
    array = Placed(EVIL, (8, 3), "float32", ("x", None), ((2, 3),))
    route = Route(("x",), (3,), held)
    return Explained("x1_gather", task, MESH, {}, [array], [array], [GATHER], routes=[route], fault=fault)


@pytest.fixture
def session(tmp_path: Path) -> WatchSession:
    made_up(tmp_path)
    (tmp_path / "work").mkdir()
    return WatchSession(load_course(tmp_path / "course.yaml"), tmp_path / "work", "me", ["x1_gather"])


def test_before_a_file_and_a_check_the_page_says_what_it_waits_for(session: WatchSession) -> None:
    regions = render(session, PageState(status="waiting for x1_gather.py"))
    assert "waiting for x1_gather.py" in regions["head"] and "no file yet" in regions["head"]
    assert "There is no file to check yet." in regions["checks"] and regions["hints"].strip() == ""
    assert "The pictures appear when you have a file of this exercise." in regions["program"]
    page = whole_page(regions)
    assert all(f'data-region="{name}"' in page for name in regions) and "Say what to do." in page


def test_a_learners_text_is_never_html(session: WatchSession) -> None:
    source = Source(EVIL, (Chunk(EVIL, f"a = 1\n# {EVIL}\n"),))
    session.source = source
    session.report = exercise(
        [layout_failure(task=EVIL, reason=EVIL, where=EVIL, hint=EVIL, expected=EVIL, actual=EVIL)]
    )
    shown = PageState(status=EVIL)
    shown.explained("x1_gather", source, [program(EVIL)], "")
    page = whole_page(render(session, shown))
    assert EVIL.split("\x1b")[0] not in page and "&lt;script&gt;alert(1)" in page and "\u202e" not in page
    assert not {"img", "onerror", "style"} & Elements(page).names and page.count("<script") == 2
    Nesting(page)
    shown.explained("x1_gather", source, [], EVIL)
    assert EVIL.split("\x1b")[0] not in render(session, shown)["program"]


def test_a_program_is_drawn_with_devices_arrows_rounds_and_source(session: WatchSession) -> None:
    session.source = Source("x1_gather.py", (Chunk("x1_gather.py", "one\ntwo\n\tthree\n"),))
    shown = PageState()
    shown.explained("x1_gather", session.source, [program()], "")
    drawn = render(session, shown)["program"]
    assert "Before: what each device holds" in drawn and "Communication" in drawn and 'data-rounds="{' in drawn
    assert '<span data-line="3"><i aria-hidden="true">3</i><code>    three</code></span>' in drawn
    shown.exercise = "x2"
    assert "The pictures appear after the check." in render(session, shown)["program"]


def test_long_sources_are_cut(session: WatchSession) -> None:
    session.source = Source("x1_gather.py", (Chunk("x1_gather.py", "#" * 5_000_000 + "\n" + "y = 1\n" * 300_000),))
    shown = PageState()
    shown.explained("x1_gather", session.source, [program()], "")
    drawn = render(session, shown)["program"]
    assert "#" * WIDEST + " …" in drawn and "#" * (WIDEST + 1) not in drawn
    assert drawn.count("<code>y = 1</code>") == MOST_LINES - 1 and "… 298001 more lines" in drawn


def test_the_chosen_program_stays_chosen_and_faults_are_shown() -> None:
    shown, source = PageState(), Source("x1_gather.py", ())
    assert shown.program is None and shown.timeline(700) == ""
    shown.explained("x1_gather", source, [program("first"), program("second")], "")
    shown.choose(7)
    assert shown.program is not None and shown.program.task == "second" and "v5e:2x2" in shown.slices
    shown.explained("x1_gather", source, [program("other"), program("first"), program("second")], "")
    assert shown.chosen == 2
    shown.choose(-1)
    assert shown.chosen == 0
    shown.explained("x1_gather", source, [program("first", Fault("error", "line 3: it stopped"))], "")
    assert shown.program is None and shown.problem == "line 3: it stopped" and shown.slices == []


def test_a_function_and_its_gradient_are_distinguished(session: WatchSession) -> None:
    forward = program()
    placed = forward.results[0]
    gradients = replace(forward, results=[replace(placed, name=name) for name in ("loss", "gradient of w")])
    shown, session.source = PageState(), Source("x1_gather.py", ())
    shown.explained("x1_gather", session.source, [forward, gradients], "")
    shown.choose(1)
    shown.explained("x1_gather", session.source, [forward, gradients], "")
    assert shown.chosen == 1
    drawn = render(session, shown)["program"]
    assert '<option value="0">gather on x=4</option>' in drawn
    assert '<option value="1" selected>gather on x=4: loss, gradient of w</option>' in drawn


def test_lines_of_failed_checks_are_marked_once() -> None:
    failed = [
        result(f"c{i}", "failed", where=where) for i, where in enumerate(["cell 3, line 14", "line 20", "line 20"])
    ]
    report = exercise([*failed, result("d", where="line 9"), result("e", "failed", where="(x=0, y=0)")])
    assert marked_lines(report) == "cell 3:14|:20" and marked_lines(None) == ""


@pytest.mark.parametrize(("where", "named"), [("line 3", True), ("(x=0, y=0)", False), ("", False)])
def test_the_source_names_a_marked_failure_only_if_the_failure_has_a_line(
    session: WatchSession, where: str, named: bool
) -> None:
    session.source = Source("x1_gather.py", (Chunk("x1_gather.py", "one\ntwo\nthree\n"),))
    session.report = exercise([layout_failure(where=where, pictures=[])])
    shown = PageState()
    shown.explained("x1_gather", session.source, [program()], "")
    drawn = render(session, shown)["program"]
    assert ("Marked: the result is sharded" in drawn) is named
    assert ('data-marked=":3"' in drawn) is named


def test_a_slice_fits_if_its_chips_are_the_mesh() -> None:
    assert fitting({"x": 4, "y": 2})[0] == "v5e:2x4"
    assert all(name in SLICES for name in fitting({"x": 8})) and fitting({"x": 8})
    assert fitting({"x": 5}) == [] and fitting({"x": 2**20}) == []


def test_the_usual_slice_fits_a_mesh_of_the_exercise(tmp_path: Path) -> None:
    made_up(tmp_path)
    course = load_course(tmp_path / "course.yaml")
    exercise = course.exercise("x1_gather")
    meshes = [
        mesh
        for check in exercise.checks.values()
        for call in check.calls
        if isinstance(call, Call)
        for mesh in call.meshes
    ]
    assert any(usual_slice(exercise, course) in fitting(mesh) for mesh in meshes)


def test_a_table_scrolls_in_its_own_box() -> None:
    made = as_html("| a | b |\n|---|---|\n| `P('x')` | 2 |\n")
    assert made.startswith('<div class="wide"><table>') and made.endswith("</table></div>\n")
    assert "<code>P('x')</code>" in made


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ('a <img src=x onerror="alert(1)">', "&lt;img src=x onerror=&quot;alert(1)&quot;&gt;"),
        ("[here](javascript:alert(1))", "[here](javascript:alert(1))"),
        ("![far](https://far.example/a.png)", '!<a href="https://far.example/a.png">far</a>'),
    ],
    ids=["a script", "an attribute", "a link that is a script", "a picture from elsewhere"],
)
def test_scripts_and_links_in_statements_are_only_text(text: str, shown: str) -> None:
    assert shown in as_html(text)
