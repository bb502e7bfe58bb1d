"""How fast the page of ``watch --browser`` is for C3: first paint, and from a save to the verdict on the screen.

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
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from grader.batch.explaining import reference
from grader.course.finding import find_course

ROOT = Path(__file__).resolve().parent.parent
NAME = "c3_contracting"
TIMES = 10
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
VALUE = "#checks li:first-child"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, f"{NAME}.py")
        work.write_text("".join(chunk.text for chunk in reference(find_course(ROOT).exercise(NAME)).chunks))
        env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}
        words = [sys.executable, "-u", "-m", "grader", "watch", "c3", "--browser", "--work", folder]
        with subprocess.Popen(
            words, cwd=ROOT, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        ) as it:
            assert it.stdout is not None
            address = next(found[1] for line in it.stdout if (found := re.match(r"page: (http\S+)$", line)))
            try:
                with sync_playwright() as driver:
                    browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                    measure(browser.new_page(), address, work)
                    browser.close()
            finally:
                it.send_signal(signal.SIGINT)


def measure(page: Page, address: str, work: Path) -> None:
    page.goto(address)
    page.wait_for_function(PAINT)
    print(f"first paint   {page.evaluate(PAINT):6.0f} ms after the address was opened")
    right = work.read_text()
    wrong = right.replace("import jax\n", "import jax\nraise SystemError\n", 1)
    page.wait_for_selector(f"{VALUE} .pill")
    took = []
    for number in range(2 * TIMES):
        text, word = (wrong, "failed") if number % 2 == 0 else (right, "passed")
        began = time.perf_counter()
        work.write_text(text)
        page.wait_for_selector(f"{VALUE} .pill.{word}")
        took.append(time.perf_counter() - began)
        page.wait_for_timeout(1000)  # let the pictures be drawn: a learner thinks between two saves
    for name, found in (("wrong", took[2::2]), ("right", took[3::2])):
        print(f"save, {name}   median {statistics.median(found):.3f} s, most {max(found):.3f} s, {len(found)} saves")


if __name__ == "__main__":
    main()
