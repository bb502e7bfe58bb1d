"""Find words that make a sentence hard to read, as ``[tool.words]`` in pyproject.toml lists them.

    python docs/words.py            # tracked files; prints file:line: words, and exits with 1 if there are any

Code in Markdown and quoted words (`` `whoever` ``) are not text.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
QUOTED = re.compile(r"`[^`]*`")


def found(text: str, patterns: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield line numbers, from 1, with the words that one of the patterns matches."""
    pattern = re.compile("|".join(patterns), re.IGNORECASE)
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= line.startswith("```")
        match = pattern.search(QUOTED.sub("", line))
        if match and not fenced:
            yield number, match.group()


def main() -> int:
    """Print each place with words of ``[tool.words]`` in the tracked files, and return the exit code."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["words"]
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *options["files"]], cwd=ROOT, capture_output=True, text=True, check=True
    )
    places = [
        f"{name}:{number}: {words.strip()}"
        for name in listed.stdout.split("\0")[:-1]
        for number, words in found((ROOT / name).read_text(encoding="utf-8"), options["avoid"])
    ]
    print(
        "\n".join([*places, f"{len(places)} places to write anew; see docs/style-guide.md"]) if places else "words: ok"
    )
    return bool(places)


if __name__ == "__main__":
    sys.exit(main())
