"""Measure the speed of the page of ``watch --browser`` for C3: first paint, and time from a save to the verdict.

A script in the page notes the time of the frame that shows the verdict, because Playwright may notice the verdict 0.5 s
later. After each save, a warm grader without a page checks the same file, so that the output shows whether other load
slows the machine down.

python bench/page_speed.py            # in a checkout with its solutions, with Chromium
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from grader.batch.explaining import reference
from grader.batch.grade import Grader
from grader.course.finding import find_course
from grader.intake.reading import read
from grader.sandbox.tiers import best_tier

ROOT = Path(__file__).resolve().parent.parent
NAME = "c3_contracting"
TIMES = 22  # number of pairs of saves; the results leave out the first pair
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
STATUS = "#checks li:first-child .pill"
NOTE = """([selector, word]) => {
  window.seen = new Promise((done) => {
    const look = () => requestAnimationFrame(() => setTimeout(() => {
      if (document.querySelector(selector + "." + word)) done((performance.timeOrigin + performance.now()) / 1000);
    }));
    new MutationObserver(look).observe(document.querySelector("#checks"), { childList: true, subtree: true });
  });
}"""


def main() -> None:
    course = find_course(ROOT)
    with tempfile.TemporaryDirectory() as folder, Grader(course, best_tier()) as grader:
        work = Path(folder, f"{NAME}.py")
        work.write_text("".join(chunk.text for chunk in reference(course.exercise(NAME)).chunks))
        env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}
        words = [sys.executable, "-u", "-m", "grader", "watch", "c3", "--browser", "--work", folder]

        def bare() -> float:
            """Return the seconds that a check takes without ``watch`` and the page."""
            began = time.perf_counter()
            grader.grade(read(work, "me", course.module_of, course.handed_out), [NAME], public=False)
            return time.perf_counter() - began

        with subprocess.Popen(
            words, cwd=ROOT, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        ) as it:
            assert it.stdout is not None
            address = next(found[1] for line in it.stdout if (found := re.match(r"page: (http\S+)$", line)))
            try:
                with sync_playwright() as driver:
                    browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                    measure(browser.new_page(), address, work, bare)
                    browser.close()
            finally:
                it.send_signal(signal.SIGINT)


def measure(page: Page, address: str, work: Path, bare: Callable[[], float]) -> None:
    page.goto(address)
    right = work.read_text()
    texts = {"failed": right.replace("import jax\n", "import jax\nraise SystemError\n", 1), "passed": right}
    page.wait_for_selector(f"{STATUS}.passed")  # the page has painted by now
    print(f"first paint   {page.evaluate(PAINT):6.0f} ms after the address was opened")
    took: dict[str, list[tuple[float, float]]] = {"failed": [], "passed": []}
    for _ in range(TIMES):
        for word, text in texts.items():
            page.evaluate(NOTE, [STATUS, word])
            began = time.time()
            work.write_text(text)
            seen = page.evaluate("window.seen") - began
            page.wait_for_timeout(1000)  # give the page time to draw its pictures, as between two saves of a learner
            took[word].append((seen, bare()))
    for name, word in (("stops with an error", "failed"), ("the solution", "passed")):
        pages, alone = zip(*took[word][1:], strict=True)
        print(f"{name}: save to verdict {spread(pages)}; the check alone {spread(alone)}")
        print(f"  ratio of the medians {statistics.median(pages) / statistics.median(alone):.2f}, {len(pages)} saves")
    print(f"load of the machine in the last minute {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")


def spread(seconds: Sequence[float]) -> str:
    return f"median {statistics.median(seconds):.3f} s, 90% {sorted(seconds)[int(0.9 * len(seconds))]:.3f} s, most {max(seconds):.3f} s"


if __name__ == "__main__":
    main()
