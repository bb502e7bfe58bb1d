"""The site in a browser: axe-core finds no violation on any page, and no page is wider than its window."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Literal

import pytest

from tests.browser import CHROMIUM
from tests.commands import ROOT
from tests.test_site import built

MODES: dict[Literal["light", "dark"], str] = {"light": "default", "dark": "slate"}
"""The site's name for each mode."""
JUDGED: dict[str, int] = {"light": 1280, "dark": 400}
"""The width at which axe-core judges each mode. Colours do not depend on the width."""
IN_DARK = ("modules/", "index.html", "404.html", "explain.html", "checks.html")
"""Beginnings of the pages that the test opens in dark mode: all pictures, and each style of page.

The layout does not depend on the mode.
"""
ONLY_VIOLATIONS = {"resultTypes": ["violations"]}  # axe-core then spends no time on a list of elements that passed
WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
SETTLED = """async () => {
  for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
  document.getAnimations().forEach((one) => one.finish());
}"""
"""JavaScript that waits until observers have seen the new size, and ends transitions of colours."""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder over HTTP. The page 404.html has absolute addresses, which need a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_everyone_can_use_every_page(tmp_path: Path) -> None:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import expect, sync_playwright

    done = built(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    names = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.html"))
    assert {"index.html", "modules/05_rings.html"} < set(names)
    found = []
    with served(tmp_path) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for mode, scheme in MODES.items():
            page = browser.new_page(color_scheme=mode)
            page.set_default_timeout(120_000)
            for name in names if mode == "light" else [n for n in names if n.startswith(IN_DARK)]:
                page.goto(f"{address}/{name}")
                expect(page.locator("body")).to_have_attribute("data-md-color-scheme", scheme, timeout=120_000)
                for width in (400, 1280):
                    page.set_viewport_size({"width": width, "height": 900})
                    page.evaluate(SETTLED)
                    found += [(name, width, mode, "is wider than its window")] if page.evaluate(WIDER) else []
                    if width == JUDGED[mode]:
                        violations = Axe().run(page, options=ONLY_VIOLATIONS).response["violations"]
                        found += [(name, width, mode, v["id"], [n["target"] for n in v["nodes"]]) for v in violations]
        browser.close()
    assert found == []
