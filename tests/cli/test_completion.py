"""What the shell offers when a user presses Tab."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.cli.completion import exercises, modules, modules_and_exercises
from grader.course import finding
from tests.commands import ROOT


def offered(typed: str) -> list[str]:
    """Return what bash offers after these letters."""
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_SHARDLINGS_COMPLETE": "complete_bash"}
    code = "import sys; sys.argv[0] = 'shardlings'; from grader.cli import app; app(prog_name='shardlings')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=os.environ | words, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("app", ["appeal"]),
        ("grade --verb", ["--verbose"]),
        ("check c1_n", ["c1_no_communication"]),
        ("check C1_N", ["C1_No_communication"]),
        ("show 05", ["05_rings"]),
        ("explain a1", ["a1_local_shape"]),
        ("submit 03", ["03_matmuls"]),
        ("predict l2", ["l2_predict_profile"]),
        ("chip c1_", ["c1_no_communication"]),
        ("docs checks/ans", ["checks/answers"]),
        ("grade --only 05", ["05_rings"]),
        ("check --isolation b", ["bwrap"]),
        ("check --backend t", ["tpu"]),
        ("export --to g", ["gradescope"]),
    ],
)
def test_the_shell_completes_the_words_of_a_command(typed: str, words: list[str]) -> None:
    assert offered(f"shardlings {typed}") == words


def test_a_name_keeps_the_typed_letters_and_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert exercises("C2") == ["C2_one_operand"] and modules("C2") == []
    assert modules("05") == ["05_rings"] == modules_and_exercises("05") and exercises("05") == []


def test_outside_of_a_course_no_names_are_offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(finding, "PACKAGED", tmp_path)
    assert modules_and_exercises("") == []
