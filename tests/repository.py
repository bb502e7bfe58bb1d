"""Git repositories from which tests publish."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.made_up import made_up


def git(folder: Path, *words: str) -> str:
    """Run git, and return its output. Raises if git fails."""
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def repository(folder: Path) -> Path:
    """Make a course of one exercise, committed on the branch ``main``."""
    made_up(folder)
    (folder / "LICENSE").write_text("do as you like\n")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@x.edu")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "a course")
    return folder
