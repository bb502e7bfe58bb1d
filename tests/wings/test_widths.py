"""All text fits on every kind of page, at 400 px (phone) and 1280 px (desktop), with 500 students and long names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from grader.batch.changes import Change, RecordedChange, by_regrade
from grader.common.observation import Fault
from grader.common.result import HandIn
from grader.reports.appeal import Appeal, CodePart, Run, ShownArray, render_appeal
from grader.reports.pages import render, render_fragment, render_html, summary_html
from grader.reports.people import Person
from grader.reports.summary import summarise
from grader.reports.whole_class import WholeClass
from grader.wings.chip.command import render as on_chip_page
from grader.wings.leaderboard import command as leaderboard
from grader.wings.leaderboard.command import Board, Place
from grader.wings.similar import command as similar
from grader.wings.similar.comparing import compare, words
from tests.browser import CHROMIUM, OUTSIDE, Page, chromium
from tests.made_up import made_up
from tests.reports.example_reports import evil_report, exercise, layout_failure, make_report, mixed, result
from tests.reports.test_programs import in_rounds
from tests.reports.test_whole_class import drawn
from tests.wings.chip.test_on_chip import on_chip, schedule
from tests.wings.similar.programs import disguised, honest, work

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here"),
]

LONG = "Maria-del-Carmen.Fernandez-Villaverde.y.Ortega.de.la.Torre.1998@students.university.example"
UNBROKEN = "Wolfeschlegelsteinhausenbergerdorff" * 3
LATE = HandIn(module="03_matmuls", submitted="", source="", penalty=0.3, text=f"handed in 26 h late {UNBROKEN}")
BONUS = exercise([result("more", points=4)], exercise="d2_bonus", title="D2 More", extension=True)


def whole_class() -> str:
    reports = [*drawn(497), mixed(), evil_report(), make_report(exercise([layout_failure()]), student=LONG)]
    people = {r.student: Person(UNBROKEN if i % 3 else "Bo Li", "ABC"[i % 3]) for i, r in enumerate(reports)}
    warnings = [f"Late penalties change the points of 300 of 500 students. {UNBROKEN}"]
    ungraded = {LONG: f"two folders {UNBROKEN}", "zed": "a" * 900}
    summary = summarise(reports, not_graded=ungraded, absent=2, warnings=warnings, also=[("", UNBROKEN)])
    return "".join(summary_html(summary, WholeClass(reports, people), reports))


def class_of_one() -> str:
    return "".join(summary_html(summarise([mixed()]), WholeClass([mixed()]), [mixed()]))


def student(audience: str) -> str:
    shown = mixed(student=LONG, notes=[UNBROKEN], hand_ins=[LATE])
    shown = shown.model_copy(update={"exercises": [*shown.exercises, BONUS], "earned": shown.earned + BONUS.earned})
    return render_html(shown, audience=audience, person=Person(UNBROKEN, UNBROKEN))  # type: ignore[arg-type]


def changes() -> str:
    texts = "passed -> failed; the course changed (exercise, checks or course.yaml)"
    found = [
        change
        for name in (LONG, *(f"student{n:03}" for n in range(499)))
        for change in (
            Change(name, f"c3_contracting/{UNBROKEN}", 2, 0.25, 2, texts),
            Change(name, "score", 21.5, 19.75, 22, texts),
        )
    ]
    told = [RecordedChange(1, "2026-11-24T12:00:00+00:00", change) for change in found]
    return render("changes.html.j2", regrades=by_regrade(told), people={LONG: Person(UNBROKEN, "A")})


def of_nbgrader() -> str:
    pytest.importorskip("nbgrader")
    from grader.integrations.nbgrader import class_page
    from grader.integrations.nbgrader.class_page import BatchOutcome

    reports = {one.student: [one] for one in [*drawn(498), mixed(), mixed(student=LONG)]}
    outcome = BatchOutcome(
        names=dict.fromkeys(reports, UNBROKEN), attention={LONG: [f"pending {UNBROKEN}", "a " * 400]}
    )
    outcome.late = {"student001": LATE.model_copy(update={"penalty": 0.0}), "student002": LATE}
    with TemporaryDirectory() as folder:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(class_page, "render_html", lambda *_, **__: "")
            class_page.write(Path(folder), made_up(Path(folder) / "course"), reports, outcome, lambda _: None)
        return (Path(folder) / "index.html").read_text(encoding="utf-8")


def on_a_chip() -> str:
    about = replace(on_chip(schedule(serial=True), schedule()), task=UNBROKEN)
    fault = replace(about, fault=Fault("memory", f"it needs 21 of 16 GiB {UNBROKEN}"))
    return on_chip_page([about, on_chip(schedule(kind="all_gather"), schedule()), fault])


def appeal() -> str:
    code = CodePart("c3_contracting.py", 12, "x = " + " + ".join(["unbroken" * 20] * 30))
    array = ShownArray("a", "float32[48, 32]", "\n".join("0.123456 " * 40 for _ in range(10)))
    runs = [Run(f"matmul on x=4, y=2 {UNBROKEN}", n > 1, n, "" if n % 2 else f"wrong {UNBROKEN}") for n in range(6)]
    return render_appeal(
        Appeal(
            LONG, "shardlings", f"c3_contracting/{UNBROKEN}", mixed().exercises[0], [code], [code], UNBROKEN, [array],
            [array], runs=runs, lines=["line " * 80], differs=[UNBROKEN], on_file=True,
        )
    )  # fmt: skip


def alike() -> str:
    alike_works = [work(f"student{i}", honest(i)) for i in range(200)]
    alike_works += [work(name, disguised(honest(3)) + f"\nx = '{UNBROKEN}'") for name in (LONG, "student200")]
    compared = {"03_matmuls": compare(alike_works, ["stub"], [])}
    people = dict.fromkeys([one.student for one in alike_works], Person(UNBROKEN, "A"))
    return similar.render(compared, 20, people, words)


def ranks() -> str:
    places = [Place(n, "w" * 30 if n % 2 else "newt", 69_655_000_000 * n, "s") for n in range(1, 500)]
    return leaderboard.render(Board("m2_train_step", "M2 A training step", places))


KINDS: dict[str, Callable[[], str]] = {
    "class": whole_class,
    "class of one": class_of_one,
    "student": lambda: student("student"),
    "staff": lambda: student("staff"),
    "extensions alone": lambda: render_html(make_report(BONUS, points=0.0)),
    "rounds": lambda: render_html(make_report(exercise([in_rounds()]))),
    "hostile": lambda: render_html(evil_report(), audience="staff"),
    "exercise": lambda: render_fragment(mixed().exercises[0]),
    "changes": changes,
    "appeal": appeal,
    "similar": alike,
    "leaderboard": ranks,
    "nbgrader's class": of_nbgrader,
    "chip": on_a_chip,
}


SCROLLED = """[...document.querySelectorAll("table")].filter((t) => t.offsetWidth > t.parentElement.clientWidth + 1)
  .map((t) => t.textContent.trim().slice(0, 40))"""
"""JavaScript that returns the tables that are wider than their box."""


SPLIT = """[...document.querySelectorAll("th, dt")].filter((e) => {
  const range = document.createRange();
  range.selectNodeContents(e);
  return /^[a-z]{1,14}$/.test(e.textContent.trim()) && new Set([...range.getClientRects()].map((r) => r.top)).size > 1;
}).map((e) => e.textContent.trim())"""
"""JavaScript that returns the labels of one short word that are split into several lines."""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with chromium() as opened:
        yield opened


@pytest.mark.parametrize("kind", KINDS)
def test_no_element_leaves_the_window_and_none_is_cut(kind: str, page: Page, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(KINDS[kind](), encoding="utf-8")
    for width in (400, 1280):
        page.open(path, width)
        for _folded in range(2):
            assert page.value(OUTSIDE) == [], f"{kind} at {width} px"
            assert page.overflow() == 0, f"{kind} at {width} px"
            assert page.value(SPLIT) == [], f"{kind} at {width} px"
            # A fragment's inline styles cannot depend on the width, so its box may scroll.
            assert kind == "exercise" or page.value(SCROLLED) == [], f"{kind} at {width} px"
            page.value("document.querySelectorAll('details').forEach((d) => { d.open = true })")


def test_an_element_that_leaves_the_window_is_found(page: Page, tmp_path: Path) -> None:
    wide = '<div style="width:900px">wide</div>'
    cut = '<p style="width:90px;overflow:hidden;white-space:nowrap">a text that is cut at its end</p>'
    scrolled = '<div style="overflow-x:auto"><table style="width:900px"><tr><td>scrolls</td></tr></table></div>'
    for text, found in (
        (wide, ["outside: div.: wide"]),
        (scrolled, []),
        (cut, ["cut: p.: a text that is cut at its end"]),
    ):
        (tmp_path / "page.html").write_text(f"<!DOCTYPE html>{text}", encoding="utf-8")
        page.open(tmp_path / "page.html", 400)
        assert page.value(OUTSIDE) == found, json.dumps(text)


def test_students_are_sorted_and_filtered_on_a_phone(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(whole_class(), encoding="utf-8")
    page.open(path, 400)
    heads = "[...document.querySelectorAll('#students thead button')].filter((b) => b.offsetWidth)"
    assert page.value(f"{heads}.length") == 9
    page.value(f"{heads}[0].click(), {heads}[0].click(), 0")
    assert page.value("document.querySelector('#students tbody th a').textContent") > "student"
    page.value(
        "{ const i = document.querySelector('#students input'); i.value = 'student042'; i.dispatchEvent(new Event('input')) }"
    )
    assert page.value(f"{VISIBLE}.length") == 1


BELOW = """[...document.querySelectorAll("#attention .scroll")].map((box) => [...box.querySelectorAll("tbody tr")]
  .filter((row) => row.getBoundingClientRect().bottom > box.getBoundingClientRect().bottom + 1).length)"""
"""JavaScript that returns, for each table about cases that need review, how many rows a reader must scroll to."""


def test_paper_shows_all_cases_that_need_review(tmp_path: Path) -> None:
    """Each width has its own browser: to leave a large page in print media takes Chromium 20 s or more."""
    path = tmp_path / "page.html"
    path.write_text(whole_class(), encoding="utf-8")
    for width in (400, 1280):
        with chromium() as page:
            page.open(path, width, media="print")
            assert page.value(BELOW) == [0, 0], width


SECTION = "document.getElementById('section')"
VISIBLE = "[...document.querySelectorAll('#students tbody tr')].filter((r) => getComputedStyle(r).display !== 'none')"


def test_a_section_is_shown_alone_with_and_without_a_script(page: Page, tmp_path: Path) -> None:
    text = whole_class()
    for name, shown in (("with", text), ("without", text[: text.index("<script>")])):
        (tmp_path / f"{name}.html").write_text(shown, encoding="utf-8")
        page.open(tmp_path / f"{name}.html", 1280)
        page.value(f"{SECTION}.value = '2'; {SECTION}.dispatchEvent(new Event('change')); 0")
        assert page.value(f"{VISIBLE}.length") == 167  # the second of three sections has 167 of the 500 students
        assert page.value(f"[...new Set({VISIBLE}.map((r) => r.cells[1].textContent))]") == ["B"]
        if name == "with":
            assert page.value("document.querySelector('#students output').textContent") == "167 of 500 students"
