"""The packages for an index: they have all needed files, and they work without the rest of the project."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from grader.authoring.leaks import leaks
from grader.course.build import products
from grader.course.finding import find_course
from grader.course.reference import answers, reference_source
from tests.commands import ROOT
from tests.installing import needed_packages

pytestmark = pytest.mark.slow
C1 = "c1_no_communication"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sdist, and the wheel that was built from it."""
    place = tmp_path_factory.mktemp("dist")
    build = ["uv", "build", "--quiet", "--offline", "--no-build-isolation", "--python", sys.executable]
    run([sys.executable, "-m", *build, "--out-dir", str(place), str(ROOT)])
    return place


def run(command: list[str], **how) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **how)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def texts(built: Path) -> dict[str, dict[str, str]]:
    """Return the texts of the files in the sdist and in the wheel, by path."""
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        found = {"wheel": {name: archive.read(name).decode() for name in archive.namelist()}}
    with tarfile.open(sdist) as archive:
        files = {m.name.split("/", 1)[1]: archive.extractfile(m) for m in archive if m.isfile()}
        found["sdist"] = {name: file.read().decode() for name, file in files.items() if file}
    return found


def test_both_packages_pass_the_checks_of_twine(built: Path) -> None:
    said = run([sys.executable, "-m", "twine", "check", "--strict", *map(str, built.glob("shardlings-*"))])
    assert said.count("PASSED") == 2


def test_packages_hold_the_students_course_and_no_solution(built: Path) -> None:
    course = find_course(ROOT)
    made = products(course)
    for kind, folder in (("wheel", "grader/_course/"), ("sdist", "exercises/")):
        packed = texts(built)[kind]
        own = {name.removeprefix(folder): text for name, text in packed.items() if name.startswith(folder)}
        assert set(made) <= set(own) and not list(leaks(course, own))
        modules = {m.id for m in course.config.modules}
        assert {name.split("/")[0] for name in own} == modules | {"course.yaml", "compiled.json", ".built"}
        rest = [name for name in packed if not name.startswith(folder)]
        assert not [
            n for n in rest if n.startswith(("solutions", "course.yaml", "tests", ".git/")) or "__pycache__" in n
        ]
        with_solutions = {n.split("solutions/")[0] for n in packed if "solutions/" in n}
        assert with_solutions == {"grader/authoring/new_course/"}


def test_packages_hold_every_source_file(built: Path) -> None:
    ours = {p.relative_to(ROOT).as_posix() for p in (ROOT / "grader").rglob("*") if p.is_file()}
    added = ("grader/_course/", "grader/_docs/")
    ours = {p for p in ours if "__pycache__" not in p and not p.startswith(added)}
    for packed in texts(built).values():
        assert {p for p in packed if p.startswith("grader/") and not p.startswith(added)} == ours
    assert {"grader/reports/templates/class.html.j2", "grader/authoring/new_course/gitignore"} <= ours


def test_the_wheel_holds_every_page_of_the_documentation(built: Path) -> None:
    pages = {f"grader/_docs/{p.relative_to(ROOT / 'docs').as_posix()}": p for p in (ROOT / "docs").rglob("*.md")}
    pages |= {f"grader/_docs/{name}": ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")}
    packed = {name: text for name, text in texts(built)["wheel"].items() if name.startswith("grader/_docs/")}
    assert packed == {name: path.read_text(encoding="utf-8") for name, path in pages.items()}


def test_the_wheel_alone_gives_students_their_commands(built: Path, tmp_path: Path) -> None:
    run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")])
    python = tmp_path / "venv" / "bin" / "python"
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "here.pth").write_text(str(needed_packages(tmp_path / "packages")))
    wheel = next(built.glob("*.whl"))
    run(
        [
            sys.executable,
            "-m",
            "uv",
            "pip",
            "install",
            "-q",
            "--offline",
            "--no-deps",
            "--python",
            str(python),
            str(wheel),
        ]
    )
    shardlings = str(python.with_name("shardlings"))
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "XLA_FLAGS", "SHARDLINGS_STUDENT")}
    (tmp_path / "home").mkdir()
    listed = subprocess.run(
        [shardlings, "list"], cwd=tmp_path / "home", env=env, capture_output=True, text=True, check=True
    )
    assert C1 in listed.stdout
    assert (
        f"this is the packaged course, shardlings {version('shardlings')}. To work in this course: shardlings start"
        in listed.stderr
    )
    assert "case" in run([shardlings, "show", "c1"], cwd=tmp_path / "home", env=env).lower()
    run([shardlings, "start", "mine"], cwd=tmp_path / "home", env=env)
    mine = tmp_path / "home" / "mine"
    course = find_course(ROOT)
    exercise = course.exercise(C1)
    work = reference_source(exercise, answers(course, exercise, "me"))
    (mine / "exercises" / "03_matmuls" / f"{C1}.py").write_text(work)
    checked = " ".join(run([shardlings, "check", "c1"], cwd=mine, env=env).split())
    assert "3 of 3 checks pass; 1 answer read, not judged yet" in checked
    run([shardlings, "submit", "03_matmuls", "--student", "ada"], cwd=mine, env=env)
    assert (mine / "ada_03_matmuls.zip").is_file()
