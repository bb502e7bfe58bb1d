"""The modules that a command imports. Imports slow the start of a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from grader import wing
from grader.batch.folder import Folder
from grader.cli import COMMANDS, LONG, READERS, Imported, app, grading
from grader.cli.grading import grade_class
from grader.cli.staff import GradeOptions
from grader.course import exercises
from grader.course.finding import find_course
from tests.commands import ROOT

HEAVY = ("jax", "numpy", "pint", "jinja2", "nbformat", "pandas", "matplotlib", "dask", "rich.progress", "rich.markdown")


def imported(*words: str) -> set[str]:
    """Return the modules that a command has imported when it ends."""
    code = (
        "import json, sys\nfrom grader import __main__\nsys.argv = ['shardlings', *json.loads(sys.argv[1])]\n"
        "try: __main__.main()\nexcept SystemExit: pass\nprint('\\n' + json.dumps(list(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(words)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("words", [("list", "--help"), ("show", "--help"), ("check", "--help"), ("grade", "--help")])
def test_help_of_a_command_imports_no_heavy_module(words: tuple[str, ...]) -> None:
    found = imported(*words)
    assert found.isdisjoint(HEAVY)
    assert not {"grader.batch", "grader.judging", "grader.exercise", "grader.reports.pages"} & found


@pytest.mark.parametrize(("setting", "threads"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_a_command_gives_numpy_one_thread_unless_the_user_sets_another_number(
    setting: dict[str, str], threads: str
) -> None:
    code = (
        "import os, sys\nfrom grader import __main__, cli\nassert 'numpy' not in sys.modules\n"
        "cli.main = lambda: print(os.environ['OPENBLAS_NUM_THREADS'])\n__main__.main()"
    )
    without = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=without | setting, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{threads}\n"


def test_a_wrong_name_is_reported_before_heavy_modules_are_imported() -> None:
    assert imported("check", "no_such_exercise").isdisjoint(HEAVY)


def test_every_registered_command_is_in_the_command_table() -> None:
    import typer

    group: Any = typer.main.get_command(app)
    assert {name: command.name for name, command in group.commands.items()} == {
        name: name for name in (*COMMANDS, *wing.named("commands"))
    }


def test_grade_loads_only_the_exercises_that_it_grades(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loaded: list[str] = []
    load = exercises.load_exercise
    monkeypatch.setattr(
        exercises, "load_exercise", lambda path, name, *rest: loaded.append(name) or load(path, name, *rest)
    )

    def graded(grader: object, folder: Folder, *_: object) -> tuple[set[str], dict[str, Exception]]:
        folder.settle()
        return set(), {}

    monkeypatch.setattr(grading, "grade_batch", graded)
    course = find_course(ROOT)
    submission = ROOT / "examples" / "submissions" / "ada"
    options = GradeOptions(
        (submission,), tmp_path / "out", only=("03_matmuls",), isolation="none", as_json=True, remember=False
    )
    assert grade_class(course, options) == 0
    assert set(loaded) == set(course.module("03_matmuls").exercises)


def helped(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit):
        app([*words, "--help"])
    return capsys.readouterr().out


def test_help_groups_every_command_by_its_reader(capsys: pytest.CaptureFixture[str]) -> None:
    shown = helped(capsys)
    assert "Other:" not in shown
    for reader, names in READERS.items():
        section = shown.partition(f"\n{reader}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in section.splitlines()] == list(names)


@pytest.mark.parametrize("columns", ["80", "200"])
@pytest.mark.parametrize("group", ["", *(name for name in Imported() if hasattr(Imported()[name], "commands"))])
def test_help_shows_each_command_on_one_line_with_its_whole_summary(
    group: str, columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    commands = Imported()[group].commands if group else Imported()
    listed = helped(capsys, *group.split()).partition("Show this message and exit.\n")[2]
    rows = [line.split(maxsplit=1) for line in listed.splitlines() if line.startswith("  ")]
    assert sorted(rows) == sorted([n, one.get_short_help_str(limit=LONG)] for n, one in commands.items())


def test_version_prints_the_version_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        app(["--version"])
    assert capsys.readouterr().out == f"shardlings {version('shardlings')}\n"
