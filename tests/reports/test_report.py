"""Reports for people: what is said, what is kept from students, and what untrusted text cannot do."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pydantic import BaseModel
from rich.console import Console

from grader.common.layout import owner_slices
from grader.common.result import ExerciseReport, Report, Result
from grader.reports import report as report_module
from grader.reports.report import (
    Audience,
    Picture,
    blocks,
    clean,
    csv_cell,
    describe,
    page_name,
    print_report,
    print_summary,
    render_fragment,
    render_html,
    render_summary_html,
    show_data,
    summarise,
    write_grades_csv,
)

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
        "versions": {"jax": "0.10.2", "jaxlib": "0.10.2", "shardlings": "0.1.0"},
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
    """All four statuses, a hidden check, a question, and notes."""
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
    """Fails on tags that do not nest; remembers every attribute and visible text."""

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


def pages(report: Report, audience: Audience = "student") -> list[str]:
    """Every HTML form of a report."""
    return [
        render_html(report, audience=audience),
        *(render_fragment(e, audience=audience) for e in report.exercises),
        render_summary_html(summarise([report]), [report]),
    ]


def evil_report() -> Report:
    """Hostile text in every place that may derive from a learner."""
    bad = layout_failure(
        label=EVIL, reason=EVIL, hint=EVIL, where=EVIL, misconception=EVIL, expected=EVIL, actual={EVIL: [EVIL]}
    )
    drawn = picture(f"actual {EVIL}", (EVIL,), (8,), {EVIL: 2})
    worse = result(EVIL, "failed", label=EVIL, pictures=[drawn])
    broken = result("b", "broken", reason=EVIL)
    ill = exercise([bad, worse, broken], exercise=EVIL, module=EVIL, title=EVIL, notes=[EVIL])
    changes = dict.fromkeys(["student", "course", "isolation", "backend", "fingerprint"], EVIL)
    return make_report(ill, **changes, versions={EVIL: EVIL}, notes=[EVIL])


# -- untrusted text ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://a.b\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\x1bcb", "ab"),
        ("a\x00\x08b\x7f", "ab"),
        ("\u202edetrevni\u2066 a\u200bb\u00ad", "detrevni ab"),
        ("two\r\nlines\tand\u2028more", "two lines and more"),
        ("\ud800lone", "lone"),
        ("C[I, K_X] · ×", "C[I, K_X] · ×"),
    ],
)
def test_clean_leaves_one_line_of_visible_characters(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_clean_caps_the_length() -> None:
    assert clean("x" * 10_000_000, 10) == "x" * 9 + "…"
    assert clean("x" * 10, 10) == "x" * 10


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\x1b[0m=", "\u202e =", "\uff1d", " ="])
def test_csv_formulas_become_text(start: str) -> None:
    cell = csv_cell(f"{start}cmd|' /C calc'!A0")
    assert isinstance(cell, str)
    assert cell.startswith("'")


@pytest.mark.parametrize(
    ("value", "cell"), [("-1.5", "-1.5"), (-1.5, -1.5), (0.1 + 0.2, 0.3), (2.0, 2), ("bob", "bob")]
)
def test_csv_numbers_stay_numbers(value: object, cell: object) -> None:
    assert csv_cell(value) == cell


def test_data_is_shown_on_one_line() -> None:
    assert show_data({"all_reduce x": 2, "all_gather y": 1}) == "all_reduce x: 2, all_gather y: 1"
    assert show_data({}) == "none"
    assert show_data([24, 40]) == "[24, 40]"
    assert len(show_data({"k" * 50: "v" * 500})) <= 300


# -- layouts -----------------------------------------------------------------------------------


def test_devices_that_hold_one_block_are_grouped() -> None:
    seen = Picture.model_validate(picture("actual", (None, "x")))
    assert [(b.cols, b.devices) for b in blocks(seen)][:2] == [((0, 10), (0, 1)), ((10, 20), (2, 3))]
    assert describe(seen)[0] == ("[0:24, 0:10]", "2 devices: x=0, y=0..1")


def test_whole_single_and_scattered_holders_are_named() -> None:
    assert describe(Picture.model_validate(picture("a", ()))) == [("[0:24, 0:40]", "all 8 devices")]
    assert describe(Picture.model_validate(picture("a", ("x", "y"))))[1] == ("[0:6, 20:40]", "(x=0, y=1)")
    diagonal = Picture(title="a", mesh={"x": 2, "y": 2}, shape=[4], slices=[[(0, 2)], [(2, 4)], [(2, 4)], [(0, 2)]])
    assert describe(diagonal)[0] == ("[0:2]", "(x=0, y=0), (x=1, y=1)")


@pytest.mark.parametrize("shape", [(), (8,), (8, 16), (3, 8, 16), (8, 3, 3, 16)])
def test_arrays_of_any_rank_are_drawn(shape: tuple[int, ...]) -> None:
    spec = tuple(("x" if n == 8 else "y" if n == 16 else None) for n in shape)
    report = make_report(exercise([layout_failure(pictures=[picture("actual", spec, shape)])]))
    page = Nesting(render_html(report))
    assert page.tags.count("svg") == 1
    assert "mesh x=4, y=2" in printed(report)


def test_of_more_than_two_dimensions_the_cut_ones_are_drawn() -> None:
    seen = Picture.model_validate(picture("a", ("x", None, "y"), (8, 3, 16)))
    assert seen.caption == "8 × 3 × 16 on mesh x=4, y=2; drawn: dimensions 0 and 2"
    all_cut = Picture.model_validate(picture("a", ("x", "y", "z"), (8, 8, 8), {"x": 2, "y": 2, "z": 2}))
    assert all_cut.caption.endswith("drawn: dimensions 0 and 1; dimension 2 is cut too")
    assert len(blocks(all_cut)) == 4


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"slices": [[[0, 9]]] * 8},
        {"slices": [[[0, 4]]]},
        {"mesh": [1, 2]},
        {"mesh": {"x": 0}},
        {"shape": ["many"]},
        {"shape": [8, 8]},
        {"mesh": {"x": 10**9}},
    ],
)
def test_what_cannot_be_drawn_is_left_out(bad: dict) -> None:
    raw = (picture("actual", ("x",), (8,)) | bad) if bad else {}
    report = make_report(exercise([layout_failure(pictures=[raw])]))
    assert "<svg" not in render_html(report)
    assert "the result is sharded" in printed(report)


def test_a_mesh_given_as_pairs_keeps_its_order_through_a_file() -> None:
    mesh = {"tp": 2, "dp": 4}
    raw = picture("actual", ("dp",), (8,), mesh) | {"mesh": [[a, n] for a, n in mesh.items()]}
    report = Report.loads(make_report(exercise([layout_failure(pictures=[raw])])).dumps())
    assert "[0:2] on 2 devices: tp=0..1, dp=0" in render_html(report)


def test_a_large_mesh_is_listed_instead_of_labelled() -> None:
    big = picture("actual", ("x", "y"), (256, 512), {"x": 16, "y": 16})
    report = make_report(exercise([layout_failure(pictures=[big])]))
    page = Nesting(render_html(report))
    assert "which device holds what" in page.text
    assert "and 240 more blocks" in printed(report)


def test_a_picture_is_described_for_those_who_cannot_see_it() -> None:
    page = Nesting(render_html(make_report(exercise([layout_failure()]))))
    alts = [value for name, value in page.attributes if name == "aria-label" and "array" in value]
    assert alts[0].startswith("expected: array 24 × 40 on mesh x=4, y=2. [0:24, 0:10] on 2 devices: x=0, y=0..1;")
    assert alts[1].startswith("yours: array")


# -- terminal ----------------------------------------------------------------------------------


def test_terminal_says_all_that_matters() -> None:
    text = printed(mixed())
    assert "C3 Both operands cut along the contracting dimension  2/6" in text
    assert "✓ matmul: value is right  2/2" in text
    assert "✗ matmul: layout is right  0/1" in text
    assert "– matmul: traffic is right  0/1" in text
    assert "! matmul: memory is right  0/2" in text
    assert "    hint: `psum_scatter` cuts dimension 0" in text
    assert "    an earlier check that this one needs did not pass" in text
    assert "note: a cell was left out" in text
    assert "│ x=0, y=0..1 │" in text
    assert text.rstrip().splitlines()[-2:] == [
        "Score: 2 / 8 (25%)",
        "2 points are pending: the grader itself failed there, a person will look",
    ]


def test_nothing_is_said_of_pending_points_when_there_are_none() -> None:
    text = printed(make_report(exercise([result()])))
    assert text.rstrip().endswith("Score: 1 / 1 (100%)")


@pytest.mark.parametrize("width", [12, 20, 40, 60])
def test_a_narrow_terminal_loses_no_text(width: int) -> None:
    text = printed(mixed(), width=width)
    assert all(len(line) <= width for line in text.splitlines())
    assert "apersonwilllook" in re.sub(r"\s", "", text)


def test_an_ascii_console_gets_ascii() -> None:
    console, raw = ascii_console()
    print_report(mixed(), console)
    print_summary(summarise([mixed()]), console)
    text = raw.getvalue().decode("ascii")
    assert "+ matmul: value is right  2/2" in text
    assert "x matmul: layout is right  0/1" in text
    assert "24 x 40 on mesh x=4, y=2" in text
    assert "+-------------+" in text


def test_a_terminal_obeys_nothing_in_a_report() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system="standard")
    print_report(evil_report(), console, audience="staff")
    print_summary(summarise([evil_report()]), console)
    file = console.file
    assert isinstance(file, io.StringIO)
    text = re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())  # rich's own colours
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "[bold]markup[/bold]" in text
    assert "\x1b[31mred" not in file.getvalue()


# -- HTML --------------------------------------------------------------------------------------


def test_the_page_shows_every_result_and_where_it_was_made() -> None:
    page = Nesting(render_html(mixed()))
    for text in ["alice", "2 points are pending", "passed", "failed", "blocked", "pending", "hidden data", "question"]:
        assert text in page.text
    for text in ["sandlock", "cpu, 8 devices", "jax 0.10.2", "shardlings 2025.1", "3f3f3f"]:
        assert text in page.text
    assert "<code>scatter_dimension=1</code>" in render_html(mixed())
    assert page.tags.count("h1") == 1
    assert "broken" in Nesting(render_html(mixed(), audience="staff")).text


@pytest.mark.parametrize("audience", ["student", "staff"])
@pytest.mark.parametrize("make", [mixed, evil_report, make_report])
def test_pages_nest_and_fetch_nothing(make, audience: Audience) -> None:
    for text in pages(make(), audience):
        page = Nesting(text)
        assert not {"script", "link", "img", "iframe", "object", "form", "base"} & set(page.tags)
        for name, value in page.attributes:
            assert name not in {"src", "srcset", "action", "background"}
            assert not name.startswith("on")
            if name == "href":
                assert re.fullmatch(r"#[a-z0-9-]+|\./[A-Za-z0-9._-]+\.html", value)
        assert not re.search(r"url\(|@import|javascript:", text)


def test_untrusted_text_is_escaped_and_stripped_in_pages() -> None:
    for text in pages(evil_report(), "staff"):
        assert "<script>" not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;red" in text
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_code_spans_cannot_open_tags() -> None:
    page = render_html(make_report(exercise([result("a", "failed", reason="`<b>` and `` ` `")])))
    assert "<code>&lt;b&gt;</code>" in page
    Nesting(page)


def test_a_fragment_brings_its_own_looks() -> None:
    fragment = render_fragment(mixed().exercises[0])
    page = Nesting(fragment)
    names = {name for name, _ in page.attributes}
    assert "class" not in names
    assert "id" not in names  # it may stand in a page more than once
    assert not {"html", "body", "style"} & set(page.tags)


def test_every_look_has_an_inline_style() -> None:
    for path in (Path(report_module.__file__).parent / "templates").glob("*.html"):
        for name in re.findall(r'look\("([\w-]+)"\)', path.read_text(encoding="utf-8")):
            assert name in report_module._INLINE


# -- who may see what --------------------------------------------------------------------------


def test_students_never_see_what_hidden_checks_and_questions_expect() -> None:
    report = mixed()
    shown = [render_html(report), printed(report), *(render_fragment(e) for e in report.exercises)]
    assert all("SECRET" not in text for text in shown)
    staff = render_html(report, audience="staff")
    assert all(secret in staff for secret in ["SECRET-SPEC", "SECRET-CASE", "SECRET-PICTURE", "SECRET-NUMBER"])
    assert "SECRET-NUMBER" in printed(report, audience="staff")
    assert "hidden check" in printed(report, audience="staff")


def test_students_see_their_own_layout_and_answer() -> None:
    hidden = render_html(make_report(mixed().exercises[1]))
    assert 'aria-label="yours: array' in hidden
    assert "745.65 us" in hidden


# -- CSV ---------------------------------------------------------------------------------------


def test_grades_are_ordered_and_complete(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    bob = make_report(exercise([result(points=0.1), result("b", points=0.2)]), student="bob")
    write_grades_csv([bob, mixed()], path)
    raw = path.read_bytes()
    assert b"\r" not in raw
    assert list(csv.reader(io.StringIO(raw.decode("utf-8")))) == [
        ["student", "c3_contracting", "c4_hidden", "earned", "points", "percent", "pending", "notes"],
        ["alice", "2", "0", "2", "8", "25", "2", "2"],
        ["bob", "0.3", "", "0.3", "0.3", "100", "0", "0"],
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["grades.csv"]


def test_a_student_named_like_a_formula_is_text(tmp_path: Path) -> None:
    write_grades_csv([make_report(student='=HYPERLINK("http://a.b","x")')], tmp_path / "g.csv")
    lines = list(csv.reader(io.StringIO((tmp_path / "g.csv").read_text(encoding="utf-8"))))
    assert lines[1][0] == '\'=HYPERLINK("http://a.b","x")'


# -- the class ---------------------------------------------------------------------------------


def a_class() -> list[Report]:
    perfect = make_report(exercise([result("value"), result("layout")]), student="zoe")
    one = make_report(exercise([result("value"), layout_failure()]), student="bob")
    two = make_report(exercise([result("value", "failed"), layout_failure()]), student="carol")
    broken = make_report(exercise([result("value", "broken"), result("layout", "blocked")]), student="dan")
    return [two, perfect, broken, one]


def test_a_class_is_counted() -> None:
    summary = summarise(a_class())
    assert (summary.submissions, summary.mean, summary.median) == (4, 37.5, 25.0)
    assert (summary.minimum, summary.maximum) == (0.0, 100.0)
    value, layout = summary.checks
    assert (value.passed, value.failed, value.broken, value.rate) == (2, 1, 1, 66.67)  # of three judged
    assert (layout.passed, layout.failed, layout.blocked, layout.rate) == (1, 2, 1, 25.0)
    assert [(e.exercise, e.mean, e.full) for e in summary.exercises] == [("c3_contracting", 37.5, 1)]
    assert [(m.name, m.students) for m in summary.misconceptions] == [("wrong_dimension", 2)]
    assert [(b.student, b.name) for b in summary.broken] == [("dan", "value")]


def test_the_most_common_misconception_comes_first() -> None:
    reports = [make_report(exercise([number()]), student="a"), *a_class()]
    assert [m.name for m in summarise(reports).misconceptions] == ["wrong_dimension", "one_way"]


def test_a_student_has_a_misconception_once() -> None:
    twice = make_report(exercise([layout_failure(), layout_failure(name="again")]))
    assert summarise([twice, twice]).misconceptions[0].students == 1


def test_an_empty_class_has_no_mean() -> None:
    summary = summarise([])
    assert (summary.submissions, summary.mean, summary.checks) == (0, None, [])
    Nesting(render_summary_html(summary, []))


def test_the_class_page_links_to_every_student() -> None:
    page = Nesting(render_summary_html(summarise(a_class()), a_class()))
    links = [value for name, value in page.attributes if name == "href"]
    assert {"./bob.html", "./carol.html", "./dan.html", "./zoe.html"} <= set(links)
    assert "a person must look" in page.text


def test_page_names_are_safe_and_do_not_collide() -> None:
    assert page_name("alice.b-c_1") == "alice.b-c_1.html"
    odd = ["../../etc/passwd", "a/b", "a\\b", "a b", "index", "..", "", ".hidden", "javascript:alert(1)", "\ud800", "ä"]
    names = [page_name(student) for student in odd]
    assert len(set(names)) == len(odd)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+\.html", name) for name in names)
    assert "index.html" not in names


def test_who_needs_a_person_heads_the_page_with_the_reason() -> None:
    nothing = exercise([result("a", "failed")], handed_in=False)
    lost = exercise([result("a", "broken", points=2, reason="XLA ended its process")], pending=2)
    reports = [
        make_report(nothing, student="ann", notes=["c3.rar is no .py file"]),
        make_report(exercise([result()]), nothing, student="bea", notes=["x.ipynb is not a notebook", "cell 3 of"]),
        make_report(lost, student="cat", pending=2),
        make_report(exercise([result()]), student="dan", notes=["book.db is a link and was not followed"]),
        make_report(exercise([result()]), student="eli", notes=["c3 (1).py is taken for c3.py"]),
        make_report(exercise([result()]), nothing, student="fay"),
    ]
    summary = summarise(reports, not_graded={"zed": "zed is there twice: <a> and b"}, warnings=["the seed is known"])
    found = {a.student: a.reason for a in summary.attention}
    assert found == {
        "zed": "not graded: zed is there twice: <a> and b",
        "cat": "2 points pending in c3_contracting: XLA ended its process",
        "ann": "nothing was found that can be graded; c3.rar is no .py file",
        "bea": "nothing was found for c3_contracting; x.ipynb is not a notebook; cell 3 of",
        "dan": "book.db is a link and was not followed",
    }
    page = render_summary_html(summary, reports)
    assert "zed is there twice: &lt;a&gt; and b" in page and "the seed is known" in page
    assert page.index("These need a person") < page.index("<h2>Students")
    console = Console(file=io.StringIO(), width=100)
    print_summary(summary, console)
    assert "These need a person" in console.file.getvalue().split("Misconceptions")[-1]  # type: ignore[attr-defined]


def test_whose_program_ended_xla_twice_is_named_for_a_person() -> None:
    """It is a failure of theirs, and honest work can meet with it."""
    died = result(
        "value", "failed", reason="total: XLA ended the process twice while running this program: Check failed"
    )
    (named,) = summarise([make_report(exercise([died]), student="eve"), make_report(student="fay")]).attention
    told = "XLA ended the process twice over c3_contracting: look whether it is honest work"
    assert (named.student, named.reason) == ("eve", told)


def test_what_was_not_handed_in_is_in_no_rate_of_a_check_and_an_extension_in_no_mean() -> None:
    done = exercise([result("a", "passed", points=2, earned=2)], points=2, earned=2)
    left = exercise([result("a", "failed", points=2, earned=0)], points=2, earned=0, handed_in=False)
    reports = [make_report(done, student="ann"), make_report(left, student="bea")]
    summary = summarise(reports)
    assert [c.rate for c in summary.checks] == [100]
    assert [(a.module, a.handed_in, a.submissions, a.mean, a.full) for a in summary.assignments] == [
        (done.module, 1, 2, 100, 1)
    ]
    assert [e.mean for e in summary.exercises] == [50]
    assert [e.mean for e in summarise(reports, extensions={done.exercise}).exercises] == [100]


def test_the_terminal_summary_names_what_matters() -> None:
    console = Console(file=io.StringIO(), width=100)
    print_summary(summarise(a_class()), console)
    file = console.file
    assert isinstance(file, io.StringIO)
    text = file.getvalue()
    for part in ["4 submissions", "mean 37.5%", "66.7%", "psum_scatter", "dan", "reason of value"]:
        assert part in text


def test_everything_is_the_same_for_the_same_reports(tmp_path: Path) -> None:
    forward, backward = a_class(), a_class()[::-1]
    assert summarise(forward) == summarise(backward)
    page = render_summary_html(summarise(forward), forward)
    assert page == render_summary_html(summarise(backward), backward)
    write_grades_csv(forward, tmp_path / "a.csv")
    write_grades_csv(backward, tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert render_html(mixed()) == render_html(Report.loads(mixed().dumps()))
    assert printed(mixed()) == printed(Report.loads(mixed().dumps()))


# -- the schema's document ---------------------------------------------------------------------

SCHEMA = (Path(__file__).parents[2] / "docs" / "report-schema.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("model", [Report, ExerciseReport, Result])
def test_the_document_describes_exactly_the_fields_of_each_model(model: type[BaseModel]) -> None:
    section = re.search(rf"^## {model.__name__}$(.*?)^##+ ", SCHEMA, re.MULTILINE | re.DOTALL)
    assert section
    assert re.findall(r"^\| `(\w+)` \|", section[1], re.MULTILINE) == list(model.model_fields)


def test_the_document_describes_every_status_and_key() -> None:
    for word in ["passed", "failed", "blocked", "broken", *Picture.model_fields]:
        assert re.search(rf"^\| `{word}` \|", SCHEMA, re.MULTILINE)


def test_the_document_s_example_is_a_report() -> None:
    example = re.search(r"```json\n(.*?)```", SCHEMA, re.DOTALL)
    assert example
    report = Report.loads(example[1])
    assert report.schema_version == report_module.Report.model_fields["schema_version"].default
    assert render_html(report).count("<svg") == 2
