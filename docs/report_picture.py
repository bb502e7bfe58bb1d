"""Make the picture of a report in README.md and docs/index.md: python docs/report_picture.py [FILE]

The script grades one exercise of one example submission and photographs the whole page of the student with chromium.
Fonts differ between machines, so no test compares the picture's bytes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from grader.batch.grade import Grader
from grader.course.loading import load_course
from grader.intake.reading import read
from grader.reports.pages import render_html
from grader.sandbox.tiers import best_tier

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "report.png"
STUDENT, EXERCISE, WIDTH = "xavi", "c1_no_communication", 1000
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
MEASURE = "<script>document.title = 'height ' + document.documentElement.scrollHeight</script></body>"


def report() -> str:
    """Return the student's page."""
    course = load_course(ROOT / "course.yaml")
    submission = read(ROOT / "examples" / "submissions" / STUDENT, STUDENT, course.module_of, course.handed_out)
    with Grader(course, best_tier("auto")) as grader:
        return render_html(grader.grade(submission, [EXERCISE]))


def photograph(html: str, target: Path) -> None:
    """Write the whole page as a PNG file. Raises SystemExit if chromium is missing."""
    browser = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if browser is None:
        sys.exit("chromium is needed to photograph the page: install it, then run the same command again")
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        page, shot = Path(folder, "page.html"), Path(folder, "shot.png")
        command = [browser, "--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={folder}/profile"]
        page.write_text(POLICY.sub("", html).replace("</body>", MEASURE), encoding="utf-8")
        measured = ran([*command, f"--window-size={WIDTH},400", "--dump-dom", page.as_uri()])
        height = re.search(r"<title>height (\d+)</title>", measured)
        if height is None:
            sys.exit("chromium did not say how high the page is")
        page.write_text(html, encoding="utf-8")
        ran([*command, f"--window-size={WIDTH},{height[1]}", f"--screenshot={shot}", page.as_uri()])
        os.replace(shot, target)


def ran(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


if __name__ == "__main__":
    photograph(report(), Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)
