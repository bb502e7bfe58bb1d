"""Make the picture of a class page in docs/class-page.md: python docs/class_picture.py GRADED [FILE]

GRADED is the folder that `shardlings grade` wrote. The script photographs the beginning of its index.html with
chromium. Fonts differ between machines, so no test compares the picture's bytes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PICTURE = Path(__file__).parent / "class-page.png"
WIDTH, HEIGHT = 1240, 1180


def photograph(page: Path, target: Path) -> None:
    """Write the page's beginning as a PNG file. Raises SystemExit if chromium or the page is missing."""
    browser = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
    if browser is None or not page.is_file():
        sys.exit("chromium is needed to photograph the page: install it" if page.is_file() else f"there is no {page}")
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        shot = Path(folder, "shot.png")
        flags = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={folder}/profile"]
        size = f"--window-size={WIDTH},{HEIGHT}"
        subprocess.run(
            [browser, *flags, size, f"--screenshot={shot}", page.resolve().as_uri()],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        os.replace(shot, target)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    photograph(Path(sys.argv[1], "index.html"), Path(sys.argv[2]) if len(sys.argv) > 2 else PICTURE)
