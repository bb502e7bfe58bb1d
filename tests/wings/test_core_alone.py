"""The core works without any wing, and without any single wing. A message names the missing wing."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader import wing
from grader.cli import WING_OF
from tests.commands import ROOT

ADA = ROOT / "examples" / "submissions" / "ada"
EVERY_MODULE = """
import importlib, pkgutil, grader
for found in pkgutil.walk_packages(grader.__path__, "grader."):
    if not found.name.startswith(("grader.integrations.nbgrader", "grader.__main__", "grader._course", "grader.authoring.new_course")):
        importlib.import_module(found.name)
"""
# Tests of the core that grade, judge and write reports, in less than a minute.
CORE_TESTS = ("batch/test_grade.py", "batch/test_database.py", "judging/test_judge.py", "reports/test_pages.py")
CHECKOUT = ("solutions", "exercises", "examples", "docs", "course.yaml", "pyproject.toml", "CHANGELOG.md")
MISSING = {
    "chip": ["--backend", "tpu:v5e:2x4"],
    "devices": ["--processes", "2"],
    "cluster": ["--cluster", "tcp://127.0.0.1:1"],
}


def without(folder: Path, *missing: str) -> Path:
    """Copy the package without these wings, or without the whole folder of wings if no wing is named."""
    skipped = shutil.ignore_patterns("__pycache__", "_course")
    shutil.copytree(ROOT / "grader", folder / "grader", ignore=skipped)
    for name in missing or ("",):
        shutil.rmtree(folder / "grader" / "wings" / name)
    return folder


def python(place: Path, *words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run Python with the copy of the package in place of the installed one."""
    env = os.environ | {"PYTHONPATH": str(place), "SHARDLINGS_CACHE": str(place / "cache")}
    return subprocess.run([sys.executable, "-P", *words], cwd=cwd, env=env, capture_output=True, text=True, check=False)


def missing(asked: str, name: str, extra: str) -> str:
    return (
        f"shardlings: {asked} needs the wing grader/wings/{name}, which is not installed; "
        f"in the checkout of shardlings, run: pip install --force-reinstall '.{extra}'\n"
    )


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return without(tmp_path_factory.mktemp("core"))


def test_without_wings_every_module_of_the_core_is_imported_and_the_help_names_its_commands(core: Path) -> None:
    done = python(core, "-c", EVERY_MODULE + "print(grader.__file__)")
    assert done.returncode == 0 and done.stdout.startswith(str(core)), done.stdout + done.stderr
    helped = python(core, "-m", "grader", "--help").stdout
    assert all(f" {name} " in helped for name in ("check", "grade", "explain", "start"))
    assert not any(f" {name} " in helped for name in wing.named("commands"))
    for command in ("grade", "watch"):
        helped = python(core, "-m", "grader", command, "--help").stdout
        assert "--backend" in helped
        assert not any(f"{name} " in helped for name in wing.named("options"))


def assert_grades_a_submission(place: Path, out: Path) -> None:
    done = python(place, "-m", "grader", "grade", str(ADA), "--out", str(out), "--only", "c1", "--isolation", "none")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (out / "grades.csv").is_file() and (out / "index.html").is_file()


def test_without_wings_a_submission_is_graded(core: Path, tmp_path: Path) -> None:
    assert_grades_a_submission(core, tmp_path / "out")


@pytest.mark.parametrize(
    ("command", "extra"), [("similar", ""), ("profile", ""), ("chip", "[tpu]")], ids=["similar", "profile", "chip"]
)
def test_without_its_wing_a_command_says_which_one_it_needs(core: Path, command: str, extra: str) -> None:
    done = python(core, "-m", "grader", command, str(ADA))
    assert (done.returncode, done.stderr) == (2, missing(f"shardlings {command}", WING_OF[command], extra))


def test_the_table_of_commands_is_what_the_wings_offer() -> None:
    assert {name: place.split(".")[0] for name, place in wing.named("commands").items()} == WING_OF
    assert wing.EXTRAS.keys() <= wing.wings().keys()


def test_a_command_that_no_wing_has_is_unknown(core: Path) -> None:
    done = python(core, "-m", "grader", "similarly", str(ADA))
    assert done.returncode == 2 and "No such command 'similarly'." in done.stderr


def test_without_wings_their_format_and_their_functions_are_unknown(core: Path) -> None:
    done = python(core, "-m", "grader", "export", str(core / "x.zip"), "--to", "gradescope")
    assert (
        done.returncode == 2
        and done.stderr == "shardlings: no export format 'gradescope'; the formats are csv, canvas\n"
    )
    done = python(core, "-c", "from grader.notebook import chip")
    assert "cannot import name 'chip'" in done.stderr


@pytest.mark.parametrize("name", MISSING)
def test_without_a_wing_its_option_says_which_one_it_needs(core: Path, tmp_path: Path, name: str) -> None:
    words = ["grade", str(ADA), "--out", str(tmp_path / "out"), "--only", "c1", "--isolation", "none", *MISSING[name]]
    done = python(core, "-m", "grader", *words)
    option = " ".join(MISSING[name]) if name != "cluster" else "--cluster"
    assert done.returncode == 2
    assert done.stderr == missing(option, name, {"chip": "[tpu]", "cluster": "[cluster]"}.get(name, ""))


def test_without_its_wing_a_page_says_which_one_it_needs(core: Path) -> None:
    done = python(core, "-m", "grader", "watch", "c1", "--browser", "--work", str(ADA))
    assert (done.returncode, done.stderr) == (2, missing("--browser", "browser", "[browser]"))
    done = python(core, "-m", "grader", "watch", "c1", "--port", "8642", "--work", str(ADA))
    assert done.stderr == "shardlings: --port and --at are options of the page in the browser: add --browser\n"


def imports_of_wings(text: str) -> list[str]:
    """Return the modules of wings, and of the tests of wings, that a Python file imports."""
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in found if name.startswith(("grader.wings", "tests.wings"))]


def test_no_test_of_the_core_imports_a_wing() -> None:
    others = {"wings", "submissions", "mistakes"}  # some files in submissions and mistakes are not valid Python
    files = [path for path in (ROOT / "tests").rglob("*.py") if not others & set(path.parts)]
    assert len(files) > 150
    found = {str(path.relative_to(ROOT)): imports_of_wings(path.read_text(encoding="utf-8")) for path in files}
    assert {name: modules for name, modules in found.items() if modules} == {}


@pytest.mark.parametrize(
    "line",
    [
        "import grader.wings.chip.chips",
        "from grader.wings import chip",
        "from grader import wings",
        "def test() -> None:\n    from tests.wings.similar.programs import work",
    ],
)
def test_an_import_of_a_wing_is_found(line: str) -> None:
    assert imports_of_wings(line)


@pytest.mark.slow
def test_without_wings_tests_of_the_core_pass(tmp_path: Path) -> None:
    place = without(tmp_path)
    shutil.copytree(ROOT / "tests", place / "tests", ignore=shutil.ignore_patterns("__pycache__", "wings"))
    for name in CHECKOUT:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, place / name)
    files = [f"tests/{name}" for name in CORE_TESTS]
    done = python(place, "-m", "pytest", "-q", "-n", "0", "-m", "not slow", *files, cwd=place)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", wing.wings())
def test_without_one_wing_the_core_and_the_other_wings_work(tmp_path: Path, name: str) -> None:
    place = without(tmp_path, name)
    done = python(place, "-c", EVERY_MODULE)
    assert done.returncode == 0, done.stderr
    helped = python(place, "-m", "grader", "--help").stdout
    missing = {command for command in wing.named("commands") if f" {command} " not in helped}
    assert missing == set(wing.wings()[name].commands)
    assert_grades_a_submission(place, tmp_path / "out")
