"""The content of the class page, and its look in a browser for classes of 26 and 500 students."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from grader.common.result import Report
from grader.reports.pages import SHOWN, page_name, render_html
from grader.reports.summary import summarise
from grader.reports.whole_class import WholeClass
from tests.browser import CHROMIUM, CONTRAST, Page, chromium
from tests.reports.example_reports import (
    Nesting,
    a_class,
    class_page_html,
    evil_report,
    exercise,
    layout_failure,
    make_report,
    mixed,
    number,
    result,
)
from tests.reports.test_programs import in_rounds

browser_only = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


def drawn(students: int) -> list[Report]:
    """Return reports of a class, drawn from a seed: four modules of five exercises each, and all kinds of results."""
    return [_student(f"student{i:03}", random.Random(i)) for i in range(students)]


def _student(name: str, rng: random.Random) -> Report:
    exercises = []
    for module in range(1, 5):
        for i in range(5):
            results = [result(f"check{k}", rng.choice(["passed", "passed", "failed", "blocked"])) for k in range(3)]
            results.append(layout_failure(misconception=f"misconception{module}{i}{rng.randrange(4)}"))
            results.append(_answer(rng))
            if rng.random() < 0.01:
                results.append(result("memory", "broken", reason="the compiler ran out of time"))
            exercises.append(
                exercise(
                    results, exercise=f"m{module}e{i}", module=f"0{module}_module", title=f"M{module}.{i} An exercise"
                )
            )
    notes = ["c3 (1).py is not graded for c3: used c3.py"] if rng.random() < 0.1 else []
    return make_report(*exercises, student=name, notes=notes)


def _answer(rng: random.Random):
    if rng.random() < 0.5:
        return number(status="passed", earned=1.0, actual="read as 373 us", misconception="", hint="")
    misconceptions = [
        ("one_way", "read as 745.65 us"),
        ("", "read as 1 MB"),
        ("", None),
        ("", f"read as {rng.uniform(1, 9e5)} us"),
    ]
    misconception, actual = rng.choice(misconceptions)
    return number(misconception=misconception, actual=actual)


def write(folder: Path, reports: list[Report], pages: int | None = None) -> Path:
    """Write the class page, and the pages of all or the first ``pages`` students. Return the class page's path."""
    for report in reports[:pages]:
        (folder / page_name(report.student)).write_text(render_html(report, audience="staff"), encoding="utf-8")
    summary = summarise(reports, not_graded={"zed": "two folders"})
    (folder / "index.html").write_text(class_page_html(summary, reports), encoding="utf-8")
    return folder / "index.html"


def test_the_sections_of_the_class_page_are_in_order() -> None:
    reports = drawn(26)
    page = class_page_html(summarise(reports), reports)
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    assert titles == [
        "Needs review",
        "Scores",
        "Assignments",
        "Misconceptions",
        "Most-failed checks",
        "Exercises, checks and answers",
        "Students",
    ]
    Nesting(page)


def test_missing_students_are_mentioned_only_if_there_are_any() -> None:
    assert "roster" not in class_page_html(summarise(a_class()), a_class())
    page = class_page_html(summarise(a_class(), absent=2), a_class())
    assert "2 students handed in nothing that can be graded: 0 points in <code>grades.csv</code>" in page


def test_long_parts_are_folded_and_nothing_is_lost() -> None:
    reports = drawn(26)
    summary = summarise(reports)
    page = class_page_html(summary, reports)
    assert f"<summary>{len(summary.misconceptions) - SHOWN} more</summary>" in page
    for item in summary.misconceptions:
        assert item.name in page
        for student in item.who:
            assert f'<a href="./{student}.html">{student}</a>' in page


def test_the_most_failed_checks_come_first() -> None:
    summary = summarise(a_class())
    assert [(c.name, c.failed) for c in summary.hardest] == [("layout", 2), ("value", 1)]
    assert [
        (module, [rate.exercise for rate, _, _ in parts]) for module, parts in WholeClass(a_class()).modules(summary)
    ] == [("03_matmuls", ["c3_contracting"])]


def test_classes_of_no_and_of_one_student_have_a_page() -> None:
    for reports in ([], [mixed()], [evil_report()]):
        Nesting(class_page_html(summarise(reports), reports))


def test_only_the_pages_own_script_may_run() -> None:
    page = class_page_html(summarise(a_class()), a_class())
    assert re.search(r"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-[A-Za-z0-9+/]{43}='", page)
    assert Nesting(page).tags.count("script") == 1
    assert "script-src" not in render_html(mixed())


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(
        tmp_path_factory.mktemp("small"),
        [*drawn(26), mixed(), evil_report(), make_report(exercise([in_rounds()]), student="rounds")],
    )


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("large"), drawn(500), pages=0)


pytestmark = pytest.mark.xdist_group("browser")


@browser_only
@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1440])
def test_pages_fit_the_window_log_nothing_and_fetch_nothing(page: Page, small: Path, width: int) -> None:
    for path in (
        small,
        small.with_name("alice.html"),
        small.with_name("student003.html"),
        small.with_name("rounds.html"),
        *small.parent.glob("script*"),
    ):
        page.open(path, width)
        page.value("document.querySelectorAll('details').forEach((d) => { d.open = true })")
        assert page.overflow() == 0, path.name
        assert page.told == []
        assert page.asked == [path.as_uri()]


@browser_only
@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
def test_every_text_has_enough_contrast(page: Page, small: Path, dark: bool) -> None:
    for path in (small, small.with_name("alice.html"), small.with_name("rounds.html")):
        page.open(path, 1440, dark=dark)
        page.value("document.querySelectorAll('details').forEach((d) => { d.open = true })")
        assert page.value(CONTRAST) == []


@browser_only
@pytest.mark.slow
def test_a_class_of_500_has_a_page_of_bounded_height(page: Page, large: Path) -> None:
    for width, most in ((400, 8000), (1440, 5000)):
        page.open(large, width)
        assert page.overflow() == 0
        assert page.height() < most


LINES = """[...document.querySelectorAll('th[scope=row]')].filter((t) => t.textContent === '10_experts_attention').map((t) => {
    const range = document.createRange();
    range.selectNodeContents(t);
    return range.getClientRects().length;
})"""


@browser_only
@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1280])
def test_the_name_of_an_assignment_is_in_one_line(page: Page, tmp_path: Path, width: int) -> None:
    """Earlier, the table cut "02_collectives" before its last letter."""
    other = [e.model_copy(update={"module": "10_experts_attention"}) for e in mixed().exercises]
    report = mixed().model_copy(update={"exercises": [*mixed().exercises, *other]})
    page.open(write(tmp_path, [report], pages=0), width)
    assert page.value(LINES) == [1]


@browser_only
@pytest.mark.slow
def test_links_resolve_and_pictures_have_words(page: Page, small: Path) -> None:
    page.open(small, 1440)
    links = page.value("[...document.links].map((a) => a.getAttribute('href'))")
    assert len(links) > 26
    for link in set(links):
        if link.startswith("#"):
            assert page.value(f"document.getElementById('{link[1:]}') !== null")
        else:
            assert (small.parent / unquote(link)).is_file(), link
    pictures = "[...document.querySelectorAll('svg:not([aria-hidden])')]"
    assert page.value(f"{pictures}.every((s) => s.role === 'img' && s.getAttribute('aria-label').length > 10)")
    regions = "[...document.querySelectorAll('.scroll')]"
    assert page.value(f"{regions}.every((r) => r.tabIndex === 0 && r.getAttribute('aria-label'))")


FIRST = "document.querySelector('table.sortable tbody tr:not([hidden]) th').textContent.trim()"
SHOWN_ROWS = "document.querySelectorAll('table.sortable tbody tr:not([hidden])').length"


@browser_only
@pytest.mark.slow
def test_students_are_sorted_and_filtered_without_a_server(page: Page, large: Path) -> None:
    page.open(large, 1440)
    by_percent = "document.querySelectorAll('table.sortable thead button')[3]"
    shares = "[...document.querySelectorAll('table.sortable tbody tr')].map((r) => +r.cells[3].dataset.value)"
    page.value(f"{by_percent}.click()")
    assert page.value(shares) == sorted(page.value(shares))
    assert page.value(f"{by_percent}.closest('th').getAttribute('aria-sort')") == "ascending"
    page.value(f"{by_percent}.click()")
    assert page.value(shares) == sorted(page.value(shares), reverse=True)
    page.value(
        "{ const i = document.querySelector('input'); i.value = 'student042'; i.dispatchEvent(new Event('input')) }"
    )
    assert (page.value(FIRST), page.value(SHOWN_ROWS)) == ("student042", 1)
    assert page.value("document.querySelector('output').textContent") == "1 of 500 students"


@browser_only
@pytest.mark.slow
def test_on_paper_everything_is_unfolded(page: Page, small: Path) -> None:
    page.open(small, 1440)
    folded = page.height()
    page.open(small, 1440, media="print")
    assert page.height() > 2 * folded
    assert page.value("getComputedStyle(document.querySelector('.scroll')).maxHeight") == "none"
