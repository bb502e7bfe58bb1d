"""The content of pages: nothing is fetched, and untrusted text stays text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.common.result import ByHand, HandIn, Report
from grader.reports import pages as pages_module
from grader.reports.pages import INLINE_STYLES, page_name, render_fragment, render_html
from grader.reports.summary import summarise
from grader.reports.wording import Audience
from tests.browser import CHROMIUM, chromium
from tests.reports.example_reports import (
    EVIL,
    Nesting,
    a_class,
    class_page_html,
    evil_report,
    exercise,
    make_report,
    mixed,
    result,
)

TEMPLATES = Path(pages_module.__file__).parent / "templates"


def pages(report: Report, audience: Audience = "student") -> list[str]:
    """Return every HTML form of a report."""
    return [
        render_html(report, audience=audience),
        *(render_fragment(e, audience=audience) for e in report.exercises),
        class_page_html(summarise([report]), [report]),
    ]


def test_the_page_shows_every_result_and_where_it_was_made() -> None:
    page = Nesting(render_html(mixed()))
    for text in ["alice", "2 points are pending", "passed", "failed", "blocked", "pending", "hidden data", "question"]:
        assert text in page.text
    for text in ["sandlock", "cpu, 8 devices", "jax 0.10.2", "shardlings 2025.1"]:
        assert text in page.text
    assert "<code>scatter_dimension=1</code>" in render_html(mixed())
    assert page.tags.count("h1") == 1
    assert "broken" in Nesting(render_html(mixed(), audience="staff")).text


@pytest.mark.parametrize("audience", ["student", "staff"])
@pytest.mark.parametrize("make", [mixed, evil_report, make_report])
def test_pages_nest_and_fetch_nothing(make, audience: Audience) -> None:
    for text in pages(make(), audience):
        page = Nesting(text)
        assert page.tags.count("script") == (
            "script-src" in text
        )  # only the class page has a script; see test_class_page
        assert not {"link", "img", "iframe", "object", "form", "base"} & set(page.tags)
        for name, value in page.attributes:
            assert name not in {"src", "srcset", "action", "background"}
            assert not name.startswith("on")
            if name == "href":
                assert re.fullmatch(r"#[a-z0-9-]+|\./[A-Za-z0-9._~%@+-]+\.html", value)
        assert not re.search(r"url\((?!#hatch\))|@import|javascript:", text)


def test_points_by_hand_and_lateness_are_public_and_escaped() -> None:
    hand = ByHand(by=EVIL, reason=EVIL, graded=0, was=0)
    late = HandIn(module="03_matmuls", submitted="", source="", penalty=0.2, text=f"handed in 26 h late {EVIL}")
    part = exercise([result("value", "failed", earned=0.5, by_hand=hand)], by_hand=hand, earned=0.5)
    report = make_report(part, hand_ins=[late], earned=0.3)
    for audience in ("student", "staff"):
        page = Nesting(render_html(report, audience=audience))
        assert page.text.count("set by hand by") == 2 and "the grader gave 0" in page.text
        assert "handed in 26 h late" in page.text and "script" not in page.tags
    assert "set by hand by" in Nesting(render_fragment(part)).text


@pytest.mark.parametrize("name", ["index", "changes", "Changes", "leaderboard", "similar"])
def test_student_pages_do_not_overwrite_the_graders_pages(name: str) -> None:
    assert page_name(name) == f"~{ord(name[0]):02x}{name[1:]}.html"


def test_untrusted_text_is_escaped_and_stripped_in_pages() -> None:
    for text in pages(evil_report(), "staff"):
        assert "<script>" not in text.replace('<script>"use strict";', "")  # the page's own script
        assert "&lt;script&gt;alert(1)&lt;/script&gt;red" in text
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_code_spans_cannot_open_tags() -> None:
    page = render_html(make_report(exercise([result("a", "failed", reason="`<b>` and `` ` `")])))
    assert "<code>&lt;b&gt;</code>" in page
    Nesting(page)


def test_a_fragment_uses_inline_styles_only() -> None:
    fragment = render_fragment(mixed().exercises[0])
    page = Nesting(fragment)
    names = {name for name, _ in page.attributes}
    assert "class" not in names
    assert "id" not in names  # a page may have the fragment several times, and ids must be unique
    assert not {"html", "body", "style"} & set(page.tags)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_the_reason_is_the_widest_column_in_a_notebook(tmp_path: Path) -> None:
    """Jupyter gives all columns equal widths. Without a style, the column with pictures would be too narrow."""
    jupyter = "<style>table { table-layout: fixed; } td { text-align: right; }</style>"
    (tmp_path / "book.html").write_text(jupyter + render_fragment(mixed().exercises[0]), encoding="utf-8")
    with chromium() as page:
        page.open(tmp_path / "book.html", 900)
        share = "(c => c.offsetWidth / c.closest('table').offsetWidth)(document.querySelectorAll('tbody td')[1])"
        assert page.value(share) > 0.7


def test_every_look_in_a_template_has_an_inline_style() -> None:
    for path in TEMPLATES.glob("*.html.j2"):
        for name in re.findall(r'look\("([\w-]+)"\)', path.read_text(encoding="utf-8")):
            assert name in INLINE_STYLES


def test_the_class_page_links_to_every_student() -> None:
    page = Nesting(class_page_html(summarise(a_class()), a_class()))
    links = [value for name, value in page.attributes if name == "href"]
    assert {"./bob.html", "./carol.html", "./dan.html", "./zoe.html"} <= set(links)
    assert "needs review" in page.text
