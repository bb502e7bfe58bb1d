"""``watch`` in a real terminal, with real keys and with saves as editors make them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT, shardlings
from tests.watching.person import Person

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="keys are read from a terminal of POSIX"),
]
NAMES = ("c1_no_communication", "c2_one_operand")
EMPTY = 'raise NotImplementedError("matmul_local")'
BY_COMPILER = "return a @ b"
RIGHT = (
    "return jax.shard_map(lambda a, b: a @ b, mesh=mesh, in_specs=(P('x', None), P(None, 'y')),"
    " out_specs=P('x', 'y'))(a, b)"
)


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a clone of a course of two exercises, with its solutions."""
    clone = tmp_path_factory.mktemp("clone")
    for name in NAMES:
        for part in ("", "grading"):
            path = Path("solutions", "03_matmuls", part, f"{name}.py")
            (clone / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, clone / path)
    (clone / "course.yaml").write_text(
        "name: small\nseed: a-secret-seed\nlimits: {trace_seconds: 600, total_seconds: 6000}\nmodules:\n"
        f"  - id: 03_matmuls\n    title: Matmuls\n    exercises: [{', '.join(NAMES)}]\n"
    )
    assert shardlings("build", cwd=clone).returncode == 0
    return clone


@pytest.fixture
def clone(handed_out: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(handed_out, tmp_path / "clone"))


def work(clone: Path) -> Path:
    return clone / "exercises" / "03_matmuls" / "c1_no_communication.py"


def test_watch_checks_saved_files_and_obeys_its_keys(clone: Path) -> None:
    file = work(clone)
    stub = file.read_text()
    with Person("watch", cwd=clone) as person:
        person.sees("(1 of 2)", "c1_no_communication, matmul_local:", "not written yet", "0 of 5 pass", "q quit")
        file.write_text(stub.replace(EMPTY, BY_COMPILER))
        person.sees("✓ matmul_local: C equals A @ B", "hint: You multiplied whole arrays", "3 of 5 pass")
        file.write_text(stub.replace(EMPTY, "return (a @ b"))
        person.sees("SyntaxError: '(' was never closed", "0 of 5 pass")
        person.types("h")
        person.sees("hint 1 for matmul_local: Which row of A")
        person.types("hhh")
        shown = person.sees("hint 3 for matmul_local:", "that was the last hint for matmul_local")
        assert "flops_per_device: how" not in shown.lower().split("hint 1")[1]  # only the first failure shows hints
        person.types("\x1b[Cz")  # an arrow key and the letter z do nothing
        person.types("n")
        person.sees("(2 of 2)", "c2_one_operand, matmul_gather_first:", "not written yet")
        person.types("n")
        person.sees("this is the last exercise")
        person.types("l")
        person.sees("03_matmuls Matmuls: ", "0 done, ", "any key goes back; h hint, n next,")
        person.types("n")  # messages appear below the exercise, not below the list
        person.sees("(2 of 2)", "this is the last exercise")
        person.types("p")
        person.sees("(1 of 2)", "was never closed")
        file.write_text(stub.replace(EMPTY, BY_COMPILER))
        person.sees("3 of 5 pass")
        person.types("x")
        person.sees("what your functions in c1_no_communication do:", "collective none: devices", "any key goes back")
        person.types("b")
        person.sees("3 of 5 pass", "c1_no_communication, matmul_local:")
        person.types("r")
        person.sees("will be kept. y/n")
        person.types("n")
        person.misses("y/n")
        person.sees("3 of 5 pass")
        assert BY_COMPILER in file.read_text()
        person.types("r")
        person.sees(
            "reset exercises/03_matmuls/c1_no_communication.py to the handed-out file? a backup of your file will be kept. y/n"
        )
        person.types("y")
        person.sees("reset; your file is kept as", "c1_no_communication.py.1.backup", "not written yet")
        assert file.read_text() == stub
        assert BY_COMPILER in file.with_name("c1_no_communication.py.1.backup").read_text()
        file.write_text(stub.replace(EMPTY, RIGHT))
        person.sees("4 of 5 pass", "c1_no_communication, flops_per_device:")
        person.types("q")
        assert person.leaves() == 0 and person.modes == person.before


def test_watch_begins_with_the_exercise_on_the_command_line(clone: Path) -> None:
    with Person("watch", "c1", cwd=clone) as person:
        person.sees("(1 of 2)", "c1_no_communication, matmul_local: exercises/03_matmuls/c1_no_communication.py")
        person.types("n")
        person.sees("(2 of 2)", "c2_one_operand, matmul_gather_first:", "q quit")
        person.types("q")
        assert person.leaves() == 0


def test_saves_by_rename_and_in_quick_succession_are_checked(clone: Path) -> None:
    file = work(clone)
    stub = file.read_text()
    with Person("watch", "c1", cwd=clone) as person:
        person.sees("0 of 5 pass", "q quit")
        beside = file.with_name("4913.tmp")
        beside.write_text(stub.replace(EMPTY, BY_COMPILER))
        file.rename(file.with_name("c1_no_communication.py~"))  # vim and emacs also rename the old file when they save
        beside.rename(file)
        person.sees("3 of 5 pass")
        file.unlink()
        shutil.rmtree(clone / "exercises" / "03_matmuls" / "_public")
        (clone / "exercises" / "03_matmuls" / "03_matmuls.ipynb").unlink()
        person.sees("c1_no_communication: no file yet", "waiting for c1_no_communication.py or 03_matmuls.ipynb in")
        for number in range(30):
            file.write_text(stub.replace(EMPTY, f"return a @ b + {number}"))
        file.write_text(stub.replace(EMPTY, RIGHT))
        person.sees("4 of 5 pass")


def test_a_loop_without_end_is_stopped_by_saving_again(clone: Path) -> None:
    """The time limit is ten minutes, so only the next save ends the loop."""
    file = work(clone)
    stub = file.read_text()
    with Person("watch", "c1", cwd=clone) as person:
        person.sees("0 of 5 pass", "q quit")
        file.write_text(stub.replace(EMPTY, "while True: pass"))
        person.sees("still running; an endless loop is stopped after 600 s, or when you save again")
        file.write_text(stub.replace(EMPTY, RIGHT))
        person.sees("4 of 5 pass")
        file.write_text(stub.replace(EMPTY, "while 1: pass"))
        person.sees("still running")
        person.types("\x03")
        assert person.leaves() == 130 and person.modes == person.before
        assert person.shown.splitlines()[-1] == "shardlings: stopped; run the same command again to go on"
        assert b"Traceback" not in person.raw


def test_watch_works_on_a_narrow_resized_terminal_without_colours(clone: Path) -> None:
    work(clone).write_text(work(clone).read_text().replace(EMPTY, BY_COMPILER))
    with Person("watch", "c1", cwd=clone, columns=40, lines=50, NO_COLOR="1") as person:
        shown = person.sees(
            "3 of 5 pass", "c1_no_communication, matmul_local:", "You multiplied whole arrays", "q quit"
        )
        assert "…" not in shown and max(map(len, shown.splitlines())) <= 40
        assert not re.search(rb"\x1b\[[0-9;]*[34][0-7][;m]", person.raw)
        person.resizes(100, 40)
        os.killpg(person.command.pid, signal.SIGWINCH)
        person.sees_line("✗ matmul_local: inside shard_map each device computes only its own block of C  0/0.5")
        person.command.terminate()
        assert person.leaves() == 130 and person.modes == person.before and b"Traceback" not in person.raw


def test_watch_checks_a_notebook(clone: Path) -> None:
    notebook = clone / "exercises" / "03_matmuls" / "03_matmuls.ipynb"
    cells = json.loads(notebook.read_text())
    mine = clone / "mine"
    mine.mkdir()
    (mine / notebook.name).write_text(json.dumps(cells))
    with Person("watch", "c1", "--work", str(mine), cwd=clone) as person:
        person.sees("c1_no_communication, matmul_local: mine/03_matmuls.ipynb", "0 of 5 pass", "q quit")
        text = json.dumps(cells).replace(json.dumps(EMPTY)[1:-1], json.dumps(BY_COMPILER)[1:-1])
        (mine / notebook.name).write_text(text)
        person.sees("3 of 5 pass")
        person.types("ry")
        person.sees("03_matmuls.ipynb holds more than c1_no_communication, so it is not reset")
        assert (mine / notebook.name).read_text() == text


def test_watch_prints_line_by_line_without_a_terminal(clone: Path) -> None:
    file = work(clone)
    command = [sys.executable, "-m", "grader", "watch", "c1"]
    with subprocess.Popen(
        command, cwd=clone, env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as watching:  # fmt: skip
        assert watching.stdout is not None and watching.stderr is not None
        seen = until(watching.stdout, "checked at")
        file.write_text(file.read_text().replace(EMPTY, BY_COMPILER))
        seen += until(watching.stdout, "3 of 5 pass") + until(watching.stdout, "checked at")
        watching.send_signal(signal.SIGINT)
        assert watching.wait(60) == 130
        assert watching.stderr.read() == "shardlings: stopped; run the same command again to go on\n"
    assert "0 of 5 pass" in seen and "3 of 5 pass" in seen and "\x1b" not in seen and "q quit" not in seen


def until(lines: object, text: str) -> str:
    seen = ""
    for line in lines:  # pyright: ignore[reportGeneralTypeIssues]
        seen += line
        if text in line:
            break
    return seen
