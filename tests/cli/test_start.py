"""``start`` copies the packaged course into a folder to work in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader.cli import app, start
from tests.commands import shardlings
from tests.made_up import made_up


def test_start_copies_the_packaged_course_and_prints_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "PACKAGED", tmp_path / "none")
    assert (
        "this installation of shardlings has no course to copy: go to the folder that you were given, or to your clone"
        in str(CliRunner().invoke(app, ["start", "x"]).exception)
    )
    made_up(tmp_path / "course")
    assert shardlings("build", cwd=tmp_path / "course").returncode == 0
    monkeypatch.setattr(start, "PACKAGED", tmp_path / "course" / "exercises")
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(app, ["start", "mine"]).output
    assert re.match(
        r"wrote the packaged course, small \d+\.\d+\S*, to mine/exercises\nnext: cd mine && shardlings show x1_g", said
    )
    assert "\nnext: cd 'my own' && shardlings show" in CliRunner().invoke(app, ["start", "my own"]).output
    listed = shardlings("list", cwd=tmp_path / "mine")
    assert "x1_gather" in listed.stdout and listed.stderr == ""
