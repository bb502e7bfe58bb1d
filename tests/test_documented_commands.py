"""The commands of the documentation exist with their options, and the blocks of a page run in their order."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from grader.cli import app
from tests.commands import ROOT

ROOTS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "solutions/README.md", "grader/authoring/new_course/README.md")
PAGES = [*ROOTS, *sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(shardlings [^`]+)`")
STARTS = ("$ ", "shardlings ", "nbgrader ", "make ", "pip ")

# Blocks that the tests do not run: (page, beginning of the block) and the reason.
NOT_RUN = {
    ("README.md", "make demo"): "makes an environment from a package index; .ci/run does",
    ("README.md", "shardlings list"): "docs/index.md runs them",
    ("README.md", "shardlings doctor"): "docs/index.md runs them",
    ("README.md", "shardlings new"): "tests/cli and tests/wings/publish run them in a small course",
    ("CONTRIBUTING.md", "shardlings build"): "docs/index.md runs them, and make test would run this test",
    ("SECURITY.md", "shardlings doctor"): "docs/index.md runs it; with --attack it is tests/test_hostile.py",
    ("grader/authoring/new_course/README.md", "shardlings new"): "tests/authoring/test_scaffold.py runs them",
    ("docs/wings/browser.md", "pip install"): "needs a package index; tests/wings/browser opens the page in Chromium",
    ("docs/wings/chip.md", "pip install"): "needs a package index; .ci/run installs it",
    ("docs/wings/chip.md", "shardlings check"): "needs the TPU's compiler; tests/wings/chip runs it",
    ("docs/index.md", "shardlings new"): "tests/cli runs them in a small course",
    ("docs/class-page.md", "shardlings grade"): "tests/test_examples.py grades the same submissions",
    ("docs/class-page.md", "shardlings pages"): "tests/cli/test_grading.py runs it",
    ("docs/own-course.md", ""): "tests/authoring/test_scaffold.py runs them in an empty folder, and looks at the grades",
    ("docs/wings/leaderboard.md", "$ shardlings grade"): "tests/wings/leaderboard has such a class",
    ("docs/wings/cluster.md", "pip install"): "needs several machines; tests/wings/cluster has a scheduler and workers on one",
    ("docs/wings/cluster-slurm.md", "pip install"): "needs a package index; tests/wings/cluster/test_pages.py makes the job",
    ("docs/nbgrader.md", "pip install"): "needs a package index; tests/integrations/test_nbgrader.py runs init",
    ("docs/nbgrader.md", "nbgrader generate"): "tests/integrations/test_nbgrader.py runs a week, test_nbgrader_page.py looks at each name",
    ("docs/nbgrader.md", "shardlings submit"): "docs/index.md runs it; tests/batch/test_submit.py has the exchange",
    ("docs/nbgrader.md", "shardlings export"): "tests/integrations/test_export.py runs them",
    ("docs/students.md", "$ shardlings"): "waits for what is typed and saved; tests/watching and tests/cli/test_learner.py do that",
    ("docs/term.md", "shardlings appeal"): "tests/cli/test_regrading.py has an appeal with its page",
    ("docs/term.md", "shardlings grade"): "tests/cli/test_grading.py and tests/batch/test_changes.py have a term's classes",
    ("docs/wings/devices.md", "shardlings doctor"): "needs an accelerator; tests/wings/devices/test_devices.py runs several processes",
    ("docs/wings/publish.md", "shardlings publish"): "tests/wings/publish makes the branches and the folder",
    ("docs/wings/publish.md", "make dist"): "tests/test_packaging.py makes the packages",
    ("docs/wings/publish.md", "pip install"): "needs a package index; tests/test_packaging.py installs the wheel",
    ("docs/wings/publish.md", "shardlings export"): "tests/wings/gradescope makes the zip",
    ("docs/wings/predict.md", "shardlings predict f1"): "needs a TPU; tests/wings/predict/test_command.py predicts a step",
    ("docs/wings/predict.md", "shardlings predict"): "measures this machine for a minute; tests/wings/predict/test_command.py runs small ones",
}  # fmt: skip
# Commands that the tests run before a block, because the page's prose asks for them.
BEFORE = {
    ("docs/index.md", "shardlings submit"): "cp examples/submissions/ada/c1_no_communication.py exercises/03_matmuls/",
}


def blocks(page: str) -> list[str]:
    """Return the page's blocks of commands: fenced blocks without a language that begin with a command."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [body for language, body in FENCED.findall(text) if not language and is_command(body)]


def is_command(body: str) -> bool:
    return body.startswith((*STARTS, "mkdir ", "cp ", "cd "))


def table_entry(table: dict[tuple[str, str], str], page: str, block: str) -> str:
    """Return the table's entry for a block, or '' if the table has no entry."""
    return next((text for (where, start), text in table.items() if where == page and block.startswith(start)), "")


def lines(page: str) -> Iterator[str]:
    """Yield every ``shardlings ...`` command of the page's blocks."""
    for block in blocks(page):
        for line in block.splitlines():
            if line.removeprefix("$ ").startswith("shardlings "):
                yield line.removeprefix("$ ")


class Wrong(Exception):
    """A mistake in a command of a page."""


def parsed(words: list[str], whole: bool) -> None:
    """Raise Wrong if a command or option does not exist; with ``whole``, also for missing values or too many words."""
    command: Any = typer.main.get_command(app)
    while words and words[0] in (inner := getattr(command, "commands", {})):
        command, words = inner[words[0]], words[1:]
    if words and hasattr(command, "commands") and not words[0].startswith("-"):
        raise Wrong(f"no command {words[0]}")
    takes_none = {o: getattr(p, "is_flag", False) for p in command.params for o in (*p.opts, *p.secondary_opts)}
    takes_none["--help"] = True
    free, rest = 0, iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        if not word.startswith("-"):
            free += 1
        elif name not in takes_none:
            raise Wrong(f"no option {name}")
        elif not takes_none[name] and not equals and next(rest, None) is None and whole:
            raise Wrong(f"{name} without its value")
    room = [p.nargs for p in command.params if p.param_type_name == "argument"]
    if whole and -1 not in room and free > sum(room):
        raise Wrong("too many words")


def problem(line: str, whole: bool) -> str:
    """Return the mistake in a command, or ''. ``whole`` is False for commands in sentences, which may be incomplete."""
    try:
        parsed(shlex.split(line, comments=True)[1:], whole)
    except Wrong as wrong:
        return f"{line}: {wrong}"
    return ""


def test_every_command_of_the_pages_exists_with_its_options() -> None:
    found = [(page, problem(line, True)) for page in PAGES for line in lines(page)]
    assert len(found) > 30
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
    found += [(page, problem(line, False)) for page, text in texts.items() for line in INLINE.findall(text)]
    assert [(page, wrong) for page, wrong in found if wrong] == []


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("shardlings gade", "no command gade"),
        ("shardlings nbgrader int .", "no command int"),
        ("shardlings grade x --iso none", "no option --iso"),
        ("shardlings show c3 c4  # twice", "too many words"),
        ("shardlings grade x --out", "--out without its value"),
    ],
)
def test_a_wrong_command_is_found(line: str, wrong: str) -> None:
    assert wrong in problem(line, True)


def test_every_block_of_commands_is_run_or_has_a_reason() -> None:
    stale = [key for key in [*NOT_RUN, *BEFORE] if not any(b.startswith(key[1]) for b in blocks(key[0]))]
    assert stale == [], "no block begins so any more"
    skipped = {page for page, _ in NOT_RUN}
    assert {"docs/index.md", "docs/explain.md"} <= {*RUN} and {"README.md", "docs/own-course.md"} <= skipped


RUN = [page for page in PAGES if any(not table_entry(NOT_RUN, page, block) for block in blocks(page))]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of the course in which commands run, with the ``shardlings`` of this checkout."""
    folder = tmp_path / "checkout"
    for name in ("solutions", "exercises", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "course.yaml", folder)
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "shardlings"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m grader "$@"\n')
    script.chmod(0o755)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_a_pages_commands_print_the_output_that_it_shows(page: str, checkout: Path) -> None:
    """One shell runs all blocks of the page. ``shardlings check`` may exit with code 1, because checks may fail."""
    script = ['shardlings() { command shardlings "$@" || [ $? = 1 ]; }']
    for block in blocks(page):
        if not table_entry(NOT_RUN, page, block):
            script += [table_entry(BEFORE, page, block), *commands(block)]
    env = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS", "SHARDLINGS_STUDENT")}
    env |= {"PATH": f"{checkout.parent / 'bin'}{os.pathsep}{env['PATH']}", "PYTHONPATH": str(ROOT), "COLUMNS": "77"}
    done = subprocess.run(
        ["bash", "-eu", "-c", "\n".join(script)], cwd=checkout, env=env, capture_output=True, text=True, check=False, timeout=600
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert "Traceback" not in done.stderr
    printed = " ".join(done.stdout.split())
    for block in blocks(page):
        shown = [] if table_entry(NOT_RUN, page, block) else outputs(block)
        assert [line for line in shown if " ".join(line.split()) not in printed] == [], done.stdout


def outputs(block: str) -> list[str]:
    """Return the output that a block shows below its commands."""
    return [line for line in block.splitlines() if not line.startswith("$ ")] if block.startswith("$ ") else []


def commands(block: str) -> list[str]:
    """Return the command lines: the lines with ``$`` if the block shows output, else all lines."""
    if block.startswith("$ "):
        return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    return block.splitlines()
