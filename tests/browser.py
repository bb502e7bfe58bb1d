"""Control a headless Chromium through its DevTools protocol, to see what a page shows, logs and requests.

Not a test file.
"""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
_TELLING = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")

CONTRAST = """
(() => {
  const channels = (colour) => (colour.match(/[\\d.]+/g) || []).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const found = channels(getComputedStyle(e).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || element.closest("script, style, title, defs")) continue;
    const style = getComputedStyle(element);
    const ink = channels(element.closest("svg") ? style.fill : style.color);
    const [a, b] = [luminance(ink), luminance(ground(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) low.push(`${element.tagName} ${element.className}: ${ratio.toFixed(2)} ${element.textContent.slice(0, 30)}`);
  }
  return low;
})()
"""
"""JavaScript that returns texts with too little contrast for WCAG's level AA."""


OUTSIDE = """
(() => {
  const width = document.documentElement.clientWidth;
  const scrolls = (e) => ["auto", "scroll"].includes(getComputedStyle(e).overflowX);
  const clipped = (e) => e && (getComputedStyle(e).clipPath !== "none" || clipped(e.parentElement)); // for screen readers alone
  const name = (e) => `${e.tagName.toLowerCase()}.${e.getAttribute("class") || ""}: ${e.textContent.trim().slice(0, 40)}`;
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    if (element.closest("script, style, defs, .bar") || clipped(element)) continue;
    const box = element.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    let inside = false;
    for (let e = element.parentElement; e && e !== document.body; e = e.parentElement) inside ||= scrolls(e);
    if (!inside && (box.right > width + 1 || box.left < -1)) found.push(`outside: ${name(element)}`);
    const style = getComputedStyle(element);
    const cuts = ["hidden", "clip"].includes(style.overflowX) && !element.closest("svg");
    if (cuts && element.scrollWidth > element.clientWidth + 1) found.push(`cut: ${name(element)}`);
  }
  return found;
})()
"""
"""JavaScript that returns elements beyond the window without a scrolling box around them, and cut elements."""


class Page:
    """One tab.

    Attributes:
        told: messages on the browser's console, and requests that the page's content security policy refused.
        asked: the addresses that the page requested.
    """

    def __init__(self, address: str) -> None:
        from websocket import create_connection

        self._socket = create_connection(address, timeout=300, suppress_origin=True)
        self._numbers = itertools.count(1)
        self.told: list[str] = []
        self.asked: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        return self._until(lambda message: message.get("id") == number)

    def close(self) -> None:
        self._socket.close()

    def open(self, path: Path, width: int, *, dark: bool = False, media: str = "screen") -> None:
        """Load a file, and wait until the page has loaded."""
        self.told.clear()
        self.asked.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.call("Page.navigate", url=path.as_uri())
        self._until(lambda message: message.get("method") == "Page.loadEventFired")

    def value(self, script: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True)["result"]
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than its window. The scroll bar is not part of the window."""
        root = "document.documentElement"
        return self.value(f"{root}.scrollWidth - {root}.clientWidth")

    def height(self) -> int:
        """Return the height of the whole page, in pixels."""
        return self.value("document.documentElement.scrollHeight")

    def _until(self, wanted: Any) -> dict[str, Any]:
        while True:
            message = json.loads(self._socket.recv())
            method, params = message.get("method"), message.get("params", {})
            if method in _TELLING:
                self.told.append(json.dumps(params))
            if method == "Network.requestWillBeSent":
                self.asked.append(params["request"]["url"])
            if wanted(message):
                return message


@contextmanager
def chromium() -> Iterator[Page]:
    """Yield a browser with one empty tab."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
        process = subprocess.Popen(
            [str(CHROMIUM), *flags, "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            port = _port(Path(profile, "DevToolsActivePort"))
            page = Page(_tab(port))
            try:
                yield page
            finally:
                page.close()
        finally:
            process.terminate()
            process.wait(120)


def _port(file: Path) -> str:
    for _ in range(600):
        if file.is_file() and (text := file.read_text().split()):
            return text[0]
        time.sleep(0.1)
    raise AssertionError("Chromium did not start")


def _tab(port: str) -> str:
    """Wait for the browser's first tab, which may come after its port, and return the tab's address."""
    for _ in range(600):
        with urlopen(f"http://127.0.0.1:{port}/json/list", timeout=30) as answer:
            tabs = json.load(answer)
        if found := [tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"]:
            return found[0]
        time.sleep(0.1)
    raise AssertionError("Chromium opened no tab")
