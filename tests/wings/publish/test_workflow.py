"""Run every shell step of the student branch's GitHub workflow, in a student's repository."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from grader.course.folders import write_folder
from grader.course.reference import answers, reference_source
from grader.intake.students import find_submissions
from grader.wings.publish.student import student_files
from tests.commands import ROOT
from tests.made_up import made_up


@pytest.mark.slow
def test_the_workflow_checks_reports_points_and_keeps_the_work(tmp_path: Path) -> None:
    course = made_up(tmp_path / "course")
    exercise, repository, commands = course.exercise("x1_gather"), tmp_path / "repository", tmp_path / "bin"
    write_folder(repository, student_files(course))
    work = reference_source(exercise, answers(course, exercise, "ada"))
    (repository / "exercises" / "01_gather" / "x1_gather.py").write_text(work)
    commands.mkdir()
    for name, words in (("shardlings", "-m grader"), ("python", "")):
        (commands / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (commands / name).chmod(0o755)
    flow = yaml.safe_load((repository / ".github" / "workflows" / "classroom.yml").read_text())
    env = os.environ | {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "MODULES": flow["env"]["MODULES"],
        "SHARDLINGS_STUDENT": "ada",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    steps = {s.get("name", s["run"]): s["run"] for s in flow["jobs"]["run-autograding-tests"]["steps"] if "run" in s}
    assert steps.pop("pip install ./tool")  # the test of the READMEs runs this step
    said = {
        name: subprocess.run(["bash", "-e", "-c", text], cwd=repository, env=env, capture_output=True, text=True, check=True)
        for name, text in steps.items()
    }  # fmt: skip
    assert "✓ it is whole" in said["Public checks"].stdout
    name, _, encoded = (tmp_path / "output").read_text().partition("=")
    results = json.loads(base64.b64decode(encoded))
    assert (name, results["status"], results["max_score"], results["tests"][0]["score"]) == ("result", "pass", 1, 1)
    (found,) = find_submissions([repository / "handed-in"], course.module_of).students
    assert found == ("ada", repository / "handed-in" / "ada_01_gather.zip")
