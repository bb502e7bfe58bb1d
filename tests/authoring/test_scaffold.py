"""``shardlings new`` adds exercises to a course.yaml in any style of YAML, and makes whole courses."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from grader.authoring import scaffold
from grader.course.config import CourseError
from grader.course.loading import Course, load_course

ROOT = Path(__file__).resolve().parents[2]

CONFIG = """\
---
# A course in many styles.
name: 'many'   # quoted
seed: "0123"
devices: 0x8
limits:
    trace_seconds: 20.0
modules:
# first
- id: 01_block
  title: "A: b"   # why
  deadline: 2030-09-01T23:59:00+02:00
  exercises:
  - a1   # hard
  -   'a2'

  # the second
- id: 02_flow
  title: Flow
  exercises: [b1,  "b2"]  # tail
- {id: 03_no_list, title: None}
- id: 04_null
  title: Nothing

  # above
  exercises:   # below
- id: 05_empty
  exercises: [ ]   # soon
  title: >-
    A folded
    title
- exercises: [
    f1,  # one
    f2,  # two
  ]
  id: 06_wide
  title: Wide
- {id: 07_inline, title: Inline, exercises: [g1]}
- id: 08_tilde
  exercises: ~
  title: Tilde
- title: No list
  id: 09_missing  # yet

# the end
variants: {mode: shared}
"""


def course_of(folder: Path, text: str) -> Course:
    (folder / "solutions").mkdir(exist_ok=True)
    (folder / "course.yaml").write_text(text)
    return load_course(folder / "course.yaml")


def changes(folder: Path, text: str, name: str) -> list[str]:
    """Return the lines of course.yaml that a new exercise removes and adds."""
    scaffold.new(course_of(folder, text), name)
    after = (folder / "course.yaml").read_text()
    module, exercise = name.split("/")
    listed = {m["id"]: m.get("exercises") or [] for m in yaml.safe_load(text)["modules"]}
    listed[module] = [*listed.get(module, []), exercise]
    assert {m["id"]: m.get("exercises") or [] for m in yaml.safe_load(after)["modules"]} == listed
    assert exercise in load_course(folder / "course.yaml").module_of
    found = difflib.ndiff(text.splitlines(), after.splitlines())
    return [f"{line[0]}{line[2:]}" for line in found if line[0] in "+-"]


@pytest.mark.parametrize(
    ("module", "changed"),
    [
        ("01_block", ["+  - new"]),
        ("02_flow", ['-  exercises: [b1,  "b2"]  # tail', '+  exercises: [b1,  "b2", new]  # tail']),
        ("03_no_list", ["-- {id: 03_no_list, title: None}", "+- {id: 03_no_list, title: None, exercises: [new]}"]),
        ("04_null", ["-  exercises:   # below", "+  exercises: [new]   # below"]),
        ("05_empty", ["-  exercises: [ ]   # soon", "+  exercises: [new]   # soon"]),
        ("06_wide", ["-    f2,  # two", "+    f2, new,  # two"]),
        ("07_inline", ["-- {id: 07_inline, title: Inline, exercises: [g1]}",
                       "+- {id: 07_inline, title: Inline, exercises: [g1, new]}"]),
        ("08_tilde", ["-  exercises: ~", "+  exercises: [new]"]),
        ("09_missing", ["+  exercises: [new]"]),
        ("10_added", ["+- id: 10_added", "+  title: Added", "+  exercises: [new]"]),
    ],
)  # fmt: skip
def test_one_more_exercise_changes_only_its_own_line(module: str, changed: list[str], tmp_path: Path) -> None:
    assert changes(tmp_path, CONFIG, f"{module}/new") == changed


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("name: a\nmodules:\n  - id: 01_a\n    title: A\n    exercises:\n      - a\n\n\n# end\ndevices: 8\n",
         ["+  - id: 02_b", "+    title: B", "+    exercises: [new]"]),
        ("name: a\nmodules:\n- exercises: [a]\n  id: 01_a\n  title: >\n    A long\n    title\n\n# end\n",
         ["+- id: 02_b", "+  title: B", "+  exercises: [new]"]),
        ("name: a\nmodules: [{id: 01_a, title: A}]", ["-modules: [{id: 01_a, title: A}]",
         "+modules: [{id: 01_a, title: A}, {id: 02_b, title: B, exercises: [new]}]"]),
        ("name: a\nmodules:\n- id: 01_a\n  title: A\n  exercises:  # none\n\n# end\n", ["+- id: 02_b", "+  title: B", "+  exercises: [new]"]),
    ],
)  # fmt: skip
def test_a_new_module_is_added_as_the_last(text: str, changed: list[str], tmp_path: Path) -> None:
    assert changes(tmp_path, text, "02_b/new") == changed
    lines = (tmp_path / "course.yaml").read_text().splitlines()
    assert lines.index(changed[-1][1:]) < (lines.index("# end") if "# end" in lines else len(lines))


def test_a_module_with_a_used_number_is_refused_as_misspelt(tmp_path: Path) -> None:
    course = course_of(tmp_path, CONFIG)
    with pytest.raises(CourseError, match=r"^no module '02_flows'; did you mean '02_flow'\?$"):
        scaffold.new(course, "02_flows/b3")
    assert (tmp_path / "course.yaml").read_text() == CONFIG


def test_a_learners_release_refuses_new_exercises(tmp_path: Path) -> None:
    (tmp_path / "course.yaml").write_text(CONFIG)
    with pytest.raises(CourseError) as error:
        scaffold.new(load_course(tmp_path / "course.yaml"), "02_flow/b3")
    assert str(error.value) == (
        f"new exercises are written to {tmp_path / 'solutions'}; make that folder if the course is yours"
    )


# -- a course ----------------------------------------------------------------------------------

FILES = {
    ".gitignore", "Makefile", "README.md", "course.yaml", "solutions/equivalent_mutants.yaml",
    *(f"solutions/01_examples/{name}.py" for name in ("a1_column_means", "a2_shift", "a3_block", "a4_times")),
}  # fmt: skip


def files_in(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("there", [True, False])
def test_a_new_course_has_a_name_and_a_seed_of_its_own(there: bool, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / '2026 "öwn"'
    if there:
        folder.mkdir(parents=True)
    scaffold.new_course(folder)
    scaffold.new_course(tmp_path / "other")
    course, other = load_course(folder / "course.yaml"), load_course(tmp_path / "other" / "course.yaml")
    assert files_in(folder) == FILES
    assert course.config.name == folder.name and course.solved
    assert 'name: "2026 \\"öwn\\""' in (folder / "course.yaml").read_text(encoding="utf-8")
    assert course.seed_problem == "" and len(course.config.seed) == 32 and course.config.seed != other.config.seed
    kinds = {name: {t.kind for t in exercise.tasks.values()} for name, exercise in course.exercises.items()}
    assert kinds == {"a1_column_means": {"array"}, "a2_shift": {"body"}, "a3_block": {"function"}, "a4_times": set()}
    assert len(course.exercise("a4_times").questions) == 2
    assert (folder / "README.md").read_text().startswith(f"# {folder.name}\n")


def test_limits_and_tolerances_of_a_new_course_are_the_defaults(tmp_path: Path) -> None:
    scaffold.new_course(tmp_path / "own")
    config = load_course(tmp_path / "own" / "course.yaml").config
    fresh = type(config)(name="own", modules=config.modules)
    assert (config.limits, config.tolerances, config.devices) == (fresh.limits, fresh.tolerances, fresh.devices)


def test_a_new_course_is_refused_where_files_exist(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for place in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(CourseError) as error:
            scaffold.new_course(place)
        assert str(error.value) == f"{place} exists and is not an empty folder; name a new folder"
    assert files_in(tmp_path) == {"notes.txt"}


def test_a_new_course_inside_a_course_is_refused(tmp_path: Path) -> None:
    """No command would use the inner course."""
    (tmp_path / "course.yaml").write_text(CONFIG)
    with pytest.raises(CourseError) as error:
        scaffold.new_course(tmp_path / "own")
    assert str(error.value) == (
        f"{tmp_path / 'own'} is inside another course, {tmp_path}; name a folder outside of that course"
    )
    assert files_in(tmp_path) == {"course.yaml"}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None or sys.platform != "linux", reason="the page's commands are a shell's")
def test_the_commands_of_the_own_course_page_grade_a_submission(tmp_path: Path) -> None:
    """The test runs the page's commands unchanged, in an empty folder outside of the checkout."""
    page = (ROOT / "docs" / "own-course.md").read_text(encoding="utf-8")
    commands = "\n".join(re.findall(r"^```\n(.*?)^```", page, re.DOTALL | re.MULTILINE))
    command = tmp_path / "bin" / "shardlings"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m grader "$@"\n')
    command.chmod(0o755)
    (tmp_path / "empty").mkdir()
    clean = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS")}
    clean |= {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-ec", commands], cwd=tmp_path / "empty", env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 exercises, 10 misconceptions: nothing to mend\n" in done.stdout
    assert "1 exercise, 3 misconceptions: nothing to mend\n" in done.stdout
    assert "15 mutants, 15 killed (100.0%)\n" in done.stdout
    grades = (tmp_path / "empty" / "mycourse" / "graded" / "grades.csv").read_text().splitlines()
    assert grades[1].startswith("ada,2,2,2,100,")
