"""The commands of nbgrader and Jupyter in docs/nbgrader.md exist in the installed versions, with their options."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from functools import cache
from typing import Any, cast

import pytest

from tests.commands import ROOT

pytest.importorskip("nbgrader")

from nbgrader.apps.nbgraderapp import NbGraderApp

SUBCOMMANDS: dict[str, Any] = dict(cast(Any, NbGraderApp.subcommands))
PAGE = (ROOT / "docs" / "nbgrader.md").read_text(encoding="utf-8")
FENCED = [text for _, text in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)]
INLINE = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL))
# A line of a block may name a second command in its comment: "# or nbgrader zip_collect 03_matmuls".
LINES = [part for block in FENCED for line in block.splitlines() for part in re.split(r" # (?:or )?", line)]
COMMANDS = sorted({line for line in (*LINES, *INLINE) if line.startswith(("nbgrader ", "jupyter "))})


@cache
def of_jupyter() -> set[str]:
    done = subprocess.run([sys.executable, "-m", "jupyter_core", "--help"], capture_output=True, text=True, check=True)
    return set(done.stdout.partition("Available subcommands:")[2].split())


def problem(line: str) -> str:
    """Return the mistake in a command of nbgrader or Jupyter, or ''."""
    program, name, *words = shlex.split(line, comments=True)
    if program == "jupyter":
        return "" if name in of_jupyter() else f"no command {name}"
    if name not in SUBCOMMANDS:
        return f"no command {name}"
    command, about = SUBCOMMANDS[name]
    if "DEPRECATED" in about:
        return f"{name} is deprecated"
    made = command()
    while words and words[0] in made.subcommands:  # as in `nbgrader db student remove`
        made = made.subcommands[words.pop(0)][0]()
    known = {
        f"--{key}" for keys in (*made.flags, *made.aliases) for key in (keys if isinstance(keys, tuple) else [keys])
    }
    unknown = [word for word in words if word.startswith("-") and word.partition("=")[0] not in known]
    return f"no option {unknown[0]}" if unknown else ""


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page_exists(line: str) -> None:
    assert problem(line) == ""


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("nbgrader formgrader", "no command formgrader"),
        ("nbgrader feedback 03_matmuls", "feedback is deprecated"),
        ("nbgrader collect 03_matmuls --forse", "no option --forse"),
        ("jupyter formgrader", "no command formgrader"),
    ],
)
def test_a_wrong_command_is_found(line: str, wrong: str) -> None:
    assert problem(line) == wrong


def test_the_page_names_a_week_of_commands() -> None:
    names = {line.split()[1] for line in COMMANDS}
    assert {"generate_assignment", "zip_collect", "release_feedback", "export", "lab", "validate"} <= names
