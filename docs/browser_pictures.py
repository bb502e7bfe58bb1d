"""Take the pictures of docs/wings/browser.md: the page of ``watch --browser`` for a few exercises, in Chromium.

Run ``python docs/browser_pictures.py`` after a change of the page, and look at the pictures.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from grader.batch.explaining import reference  # noqa: E402
from grader.course.finding import find_course  # noqa: E402
from tests.browser import CHROMIUM  # noqa: E402

EXERCISES = {"b4": "light", "e3": "light", "h4": "dark", "i1": "light"}  # and the colour scheme of the wide picture
STEPS = 4  # rounds that the pictures step forward
MILLISECONDS = 120_000
RING = re.compile(r'(def ring_all_reduce\(a\):\n    """.*?"""\n)(.*?)(?=\n\S|\Z)', re.DOTALL)


@contextmanager
def watched(name: str, text: str, place: Path) -> Iterator[str]:
    """Start ``watch --browser`` for a file with this text, and yield the page's address."""
    (place / f"{name}.py").write_text(text)
    command = subprocess.Popen(
        [sys.executable, "-u", "-m", "grader", "watch", name.split("_")[0], "--browser", "--work", str(place)],
        cwd=ROOT, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert command.stdout is not None
    try:
        yield next(found[1] for line in command.stdout if (found := re.match(r"page: (http\S+)$", line)))
    finally:
        command.send_signal(signal.SIGINT)
        command.wait(60)


def take(browser: Browser, address: str, name: str, scheme: str) -> None:
    """Take pictures of the whole page, 1280 and 400 pixels wide."""
    for width, suffix in ((1280, ""), (400, "-400")):
        page = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce")
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.goto(address)
        expect(page.locator("#program .code")).to_be_visible()
        expect(page.locator(".busy")).to_have_count(0)
        if page.locator(".ring").count():
            for _ in range(STEPS):
                page.get_by_role("button", name=re.compile("^(Round|Tick) forward")).first.click()
        page.screenshot(path=ROOT / "docs" / f"browser-{name}{suffix}.png", full_page=True)
        page.close()


def main() -> None:
    expect.set_options(timeout=MILLISECONDS)
    course = find_course(ROOT)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        for short, scheme in EXERCISES.items():
            (name,), _ = course.find(short, lambda exercise: ())
            text = "".join(chunk.text for chunk in reference(course.exercise(name)).chunks)
            with tempfile.TemporaryDirectory() as place, watched(name, text, Path(place)) as address:
                take(browser, address, short, scheme)
            if short == "e3":
                wrong = RING.sub(lambda found: f'{found[1]}    return jax.lax.psum(a, "x")\n', text)
                with tempfile.TemporaryDirectory() as place, watched(name, wrong, Path(place)) as address:
                    page = browser.new_page(viewport={"width": 1280, "height": 900})
                    page.goto(address)
                    expect(page.locator("#checks .first figure, #checks .first svg").first).to_be_visible()
                    page.locator("#checks .first").screenshot(path=ROOT / "docs" / "browser-budget.png")
                    page.close()
        browser.close()


if __name__ == "__main__":
    main()
