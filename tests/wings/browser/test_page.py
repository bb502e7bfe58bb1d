"""``watch --browser`` with a real browser, a real file and the real command."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from grader.batch.explaining import reference
from grader.common.files import write_atomic
from grader.common.pipelines import Pipeline, Work
from grader.course.finding import find_course
from grader.reports.explained import Explained
from grader.reports.pages import player, render_rounds
from tests.browser import CHROMIUM, OUTSIDE
from tests.commands import ROOT, shardlings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here"),
]
NAME = "e3_ring_all_reduce"
SECONDS = 120_000  # milliseconds; an action takes one or two seconds, but more on a busy machine
EMPTY = 'raise NotImplementedError("ring_all_reduce")'
ALL_AT_ONCE = 'return jax.lax.psum(a, "x")  # <img src=x onerror="document.title=1">'

OUTLINE = """(() => {
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
  return [outlineStyle, parseFloat(outlineWidth)];
})()"""
BY_HAND = "() => { window.setTimeout = (step) => { window.step = step; return 0; }; }"
"""JavaScript that stops the time between two rounds of "Play". The next round begins with a call of ``step()``."""


@dataclass
class Watched:
    """A running ``watch --browser``: the learner's file, as handed out and right, and the page's address."""

    file: Path
    stub: str
    right: str
    command: subprocess.Popen[str]
    address: str = ""
    said: list[str] = field(default_factory=list)

    def saves(self, body: str) -> None:
        write_atomic(self.file, self.stub.replace(EMPTY, body), lasting=False)

    def saves_and_settles(self, body: str, page: Page) -> None:
        """Save, and wait until the page shows this program. Then nothing on the page changes until the next action."""
        self.saves(body)
        if body == EMPTY:
            expect(page.locator("#program")).to_contain_text("There are no pictures: ")
        else:
            longest = max(map(str.strip, body.splitlines()), key=len)
            expect(page.locator("#program .code")).to_contain_text(longest)

    def ends(self) -> int:
        """Press Ctrl-C and return the exit code."""
        if self.command.poll() is None:
            self.command.send_signal(signal.SIGINT)
        with self.command:
            return self.command.wait(60)


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the learners' release of a course with one exercise."""
    clone = tmp_path_factory.mktemp("clone")
    for part in ("", "grading"):
        path = Path("solutions", "05_rings", part, f"{NAME}.py")
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, clone / path)
    (clone / "course.yaml").write_text(
        f"name: small\nseed: a-secret-seed\nmodules:\n  - id: 05_rings\n    title: Rings\n    exercises: [{NAME}]\n"
    )
    assert shardlings("build", cwd=clone).returncode == 0
    return clone / "exercises"


@pytest.fixture(scope="module")
def watched(handed_out: Path) -> Iterator[Watched]:
    made = begin(handed_out)
    yield made
    made.ends()


def begin(place: Path) -> Watched:
    file = place / "05_rings" / f"{NAME}.py"
    solved = "".join(chunk.text for chunk in reference(find_course(ROOT).exercise(NAME)).chunks)
    body = re.search(r'def ring_all_reduce\(a\):\n    """.*?"""\n(.*?)(?=\n\S|\Z)', solved, re.DOTALL)
    assert body is not None
    hidden = ("XLA_FLAGS", "JAX_PLATFORMS", "SHARDLINGS_STUDENT", "DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    command = subprocess.Popen(
        [sys.executable, "-u", "-m", "grader", "watch", "e3", "--browser"], cwd=place, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={k: v for k, v in os.environ.items() if k not in hidden} | {"PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    made = Watched(file, file.read_text(), body[1].strip(), command)
    assert command.stdout is not None
    for line in command.stdout:
        made.said.append(line)
        if found := re.match(r"page: (http\S+)$", line):
            made.address = found[1]
            return made
    raise AssertionError("".join(made.said))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        expect.set_options(timeout=SECONDS)
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser, watched: Watched) -> Iterator[Page]:
    """Yield the page at 1280 px, and assert that it logs nothing. The browser logs each script that it refuses."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(SECONDS)
    logged: list[str] = []

    def log(message: ConsoleMessage) -> None:
        logged.append(message.text)

    opened = context.new_page()
    opened.on("console", log)
    opened.on("pageerror", lambda error: logged.append(str(error)))
    opened.goto(watched.address)
    yield opened
    context.close()
    assert logged == []


def test_a_save_updates_checks_and_marks_the_failing_lines(page: Page, watched: Watched) -> None:
    checks = page.locator("#checks li")
    watched.saves_and_settles(EMPTY, page)
    expect(checks.first).to_contain_text("every device holds the sum")
    watched.saves(ALL_AT_ONCE)
    expect(page.locator("#checks li", has_text="every device holds the sum")).to_contain_text("passed")
    first = page.locator("#checks .first")
    expect(first).to_contain_text("all_reduce over x")
    expect(first).to_contain_text("the budget is permute over x")
    marked = page.locator("#program .code .over")
    expect(marked).to_have_count(1)
    expect(marked).to_contain_text('jax.lax.psum(a, "x")  # <img src=x onerror="document.title=1">')
    expect(page.locator("#program figure.over")).to_have_count(1)
    assert page.locator("#program img").count() == 0 and page.title() == "shardlings watch"


def test_devices_are_shown_before_and_after(page: Page, watched: Watched) -> None:
    watched.saves_and_settles(ALL_AT_ONCE, page)
    part = page.locator("#program .held g[data-part]").first
    expect(part).to_contain_text(re.compile(r"device \(x=0.*\) holds a\[0:\d+, 0:\d+\], [\d,]+ bytes"))
    part.hover()
    expect(page.locator("#program .held g.here").first).to_be_attached()
    expect(page.locator("#program .held h3")).to_have_text(["Before: what each device holds", "After"])


def test_rounds_of_a_ring_are_stepped_through(page: Page, watched: Watched) -> None:
    watched.saves_and_settles(watched.right, page)
    page.evaluate(BY_HAND)
    ring = page.locator("#program .ring").first
    said, forward = ring.locator("output"), ring.get_by_role("button", name="Round forward")
    chips = ring.locator("g[data-holds]")
    expect(said).to_contain_text("at first: 0 holds the data of 0; 1 holds the data of 1")
    first = chips.evaluate_all("(chips) => chips.map((c) => c.dataset.holds)")
    forward.focus()
    page.keyboard.press("Enter")
    expect(said).to_contain_text(re.compile(r"round 1, line \d+: 0 holds the data of"))
    second = chips.evaluate_all("(chips) => chips.map((c) => c.dataset.holds)")
    assert sorted(first) == sorted(second) and first != second
    expect(page.locator("#program .code .here")).to_contain_text("ppermute")
    scrub = ring.get_by_role("slider", name="Round")
    scrub.focus()
    page.keyboard.press("End")
    last = scrub.get_attribute("max")
    expect(said).to_contain_text(f"round {last}, line")
    page.keyboard.press("Home")
    expect(said).to_contain_text("at first")
    ring.get_by_role("button", name="Play").click()
    expect(said).to_contain_text("round 1,")
    page.evaluate("window.step()")
    expect(said).to_contain_text("round 2,")


@pytest.mark.parametrize("width", [400, 1280])
def test_ticks_of_a_pipeline_are_stepped_through_by_keyboard(browser: Browser, width: int) -> None:
    def work(entry: int, *sources: int) -> Work:
        return Work((((entry, entry + 1),),), sources, used=True)

    ticks = tuple((work(t), work(max(t - 1, 0), 0)) for t in range(3))
    program = Explained("i1", "pipe", {"pp": 2}, {}, pipelines=[Pipeline(("x",), ("pp",), (7, 7, 7), ticks)])
    page = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce")
    page.set_content(f"<html lang=en><title>ticks</title><main><h1>ticks</h1>{render_rounds(program)}</main>")
    page.add_script_tag(content=player())
    said = page.locator("output")
    expect(said).to_have_text("tick 0, line 7: 0 has x[0]; 1 has x[0]")
    page.get_by_role("button", name="Tick forward").focus()
    page.keyboard.press("Enter")
    expect(said).to_have_text("tick 1, line 7: 0 has x[1]; 1 has x[0]")
    assert page.locator("g[data-holds]").evaluate_all("(chips) => chips.map((c) => c.dataset.holds)") == ["x1", "x0"]
    expect(page.locator("svg g path[d]").first).to_have_attribute("d", re.compile("^M"))
    page.get_by_role("slider", name="Tick").focus()
    page.keyboard.press("End")
    expect(page.locator("svg[role=img]").first).to_have_attribute(
        "aria-label", "tick 2, line 7: 0 has x[2]; 1 has x[1]"
    )
    assert Axe().run(page).response["violations"] == []
    page.close()


def test_the_timeline_leads_to_the_source_and_is_zoomed(page: Page, watched: Watched) -> None:
    watched.saves_and_settles(watched.right, page)
    laid = page.locator("#program .laid")
    laid.locator(".scroll").focus()
    page.keyboard.press("ArrowRight")
    expect(laid.locator(".read")).to_contain_text(re.compile(rf"us, .*{NAME}\.py:\d+"))
    expect(page.locator("#program .code .here")).to_have_count(1)
    laid.locator("g[data-line]").last.hover()
    expect(page.locator("#program .code .here")).to_contain_text("ppermute")
    width = laid.locator("svg").bounding_box()
    laid.get_by_role("button", name="Zoom in").click()
    expect(laid).to_have_attribute("data-zoom", "2")
    expect(laid.locator("svg")).to_have_attribute("width", re.compile(r"1360"))
    assert width is not None and width["width"] == 680
    page.get_by_label("slice").select_option("v5e:2x4")
    expect(page.locator("#program .laid figcaption").first).to_contain_text("v5e 2x4")


def test_hints_come_one_by_one(page: Page, watched: Watched) -> None:
    watched.saves_and_settles(EMPTY, page)
    expect(page.locator("#checks .first")).to_contain_text("not written yet")
    shown = page.locator("#hints li").count()
    button = page.locator("#hints button")
    button.click()
    expect(page.locator("#hints li")).to_have_count(shown + 1)


@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_is_accessible_at_every_width_and_colour_scheme(page: Page, watched: Watched, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for body in (ALL_AT_ONCE, watched.right):
        watched.saves_and_settles(body, page)
        expect(page.locator("#program .code .over")).to_have_count(1 if body == ALL_AT_ONCE else 0)
        expect(page.locator("#program .ring")).to_have_count(0 if body == ALL_AT_ONCE else 1)
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            found = Axe().run(page).response["violations"]
            assert [(v["id"], [n["target"] for n in v["nodes"]]) for v in found] == []
        assert page.evaluate(OUTSIDE) == []
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


KEYS = [
    ("Statement", "Enter", "#statement details:not([open])", "Statement"),
    ("Statement", "Enter", "#statement details[open]", "ring_all_reduce"),
    (
        "Devices: arrow keys go from device to device",
        "ArrowRight",
        ".held + .read",
        r"device \(x=0.*\) holds a\[.*bytes",
    ),
    ("Devices: arrow keys go from device to device", "ArrowLeft", ".held + .read", r"holds result\[.*bytes"),
    ("Communication: arrow keys go from picture to picture", "ArrowRight", ".code .here", "ppermute"),
    ("Play", "Enter", ".ring output", "round 1,"),
    ("Play", "Enter", ".ring .player", "Play"),
    ("Round forward", "Enter", ".ring output", "round 2,"),
    ("Round", "Home", ".ring output", "at first"),
    ("Round", "ArrowRight", ".ring output", "round 1"),
    ("Zoom in", "Enter", '.laid[data-zoom="2"]', "us"),
    ("Zoom out", "Enter", '.laid[data-zoom="1"]', "us"),
    ("Timeline: arrow keys go from bar to bar, + and - zoom", "+", '.laid[data-zoom="2"]', "us"),
    ("Timeline: arrow keys go from bar to bar, + and - zoom", "ArrowRight", ".laid .read", rf"us, .*{NAME}\.py:\d+"),
    ("Whole timeline", "Enter", '.laid[data-zoom="1"]', "us"),
    ("Your source, by lines", "End", ".code", "ppermute"),
    ("Give me a hint", "Space", "#hints ol", "."),
]
"""For each stop, in the page's order: its name, a key, and an element that then contains a text. "Play" also pauses."""


def stops(page: Page) -> Iterator[tuple[str, str]]:
    """Press Tab until the focus leaves the page. Yield the role and name of each element with the focus.

    Assert that each element has a visible outline.
    """
    tools = page.context.new_cdp_session(page)
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            return
        focused = tools.send("Runtime.evaluate", {"expression": "document.activeElement"})["result"]["objectId"]
        tree = tools.send("Accessibility.getPartialAXTree", {"objectId": focused, "fetchRelatives": False})
        role, name = (tree["nodes"][0][key]["value"].strip() for key in ("role", "name"))
        style, width = page.evaluate(OUTLINE)
        assert style != "none" and width >= 2, f"{name}: no visible focus"
        yield role, name
    raise AssertionError("Tab does not leave the page")


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("right", [True, False])
def test_the_keyboard_alone_is_enough(
    page: Page, watched: Watched, scheme: Literal["dark", "light"], right: bool
) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    watched.saves_and_settles(watched.right if right else EMPTY, page)
    expect(page.locator("#program .ring")).to_have_count(int(right))
    page.evaluate(BY_HAND)
    pressed, hint = set(), {"Give me a hint"}
    for role, name in stops(page):
        assert name and role != "generic"
        for stop, key, selector, text in KEYS:
            if stop == re.sub(r" \(\d+ left\)", "", name).replace("Another", "Give me a"):
                hints = page.locator("#hints li").count() + (stop in hint)
                page.keyboard.press(key)
                expect(page.locator("#hints li")).to_have_count(hints)
                expect(page.locator(selector).first).to_contain_text(re.compile(text, re.DOTALL))
                pressed.add(stop)
    assert pressed == ({stop for stop, *_ in KEYS} - hint if right else {"Statement"} | hint)


def test_the_end_is_shown(browser: Browser, handed_out: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(handed_out, tmp_path / "exercises"))
    made = begin(place)
    opened = browser.new_page()
    opened.goto(made.address)
    expect(opened.locator("html")).to_have_attribute("data-ready", "1")
    assert made.ends() == 130
    expect(opened.locator("#ended")).to_be_visible()
    opened.close()
