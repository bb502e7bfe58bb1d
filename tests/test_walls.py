"""The walls between rooms (packages) are import contracts. A forbidden import fails, and a picture shows the walls."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# For each contract of import-linter, an import that the contract forbids.
BROKEN = {
    "layers": ("grader/course/reference.py", "from grader.batch import grade"),
    "wire": ("grader/wire/text.py", "from grader.common import result"),
    "learner": ("grader/learner/child.py", "from grader.common import layout"),
    "sandbox": ("grader/sandbox/keeper.py", "from grader.learner import child"),
    "runner": ("grader/runner/serve.py", "from grader import exercise"),
    "intake": ("grader/intake/submission.py", "import jax"),
    "clock": ("grader/clock/order.py", "from grader.common import layout"),
    "judging": ("grader/judging/judge.py", "import jax"),
    "reports": ("grader/reports/__init__.py", "from grader.course import loading"),
    "profiling": ("grader/wings/predict/journal.py", "from grader.judging import units"),
    "similarity": ("grader/wings/similar/inside/tokens.py", "from grader.common import result"),
    "nbgrader": ("grader/batch/folder.py", "import nbgrader"),
    "core": ("grader/cli/staff.py", "from grader.wings.similar import comparing"),
    "wings": ("grader/wings/similar/inside/tokens.py", "from grader.wings.predict import cases"),
    "chip": ("grader/wings/chip/inside/tpu.py", "from grader.judging import units"),
    "dask": ("grader/wings/cluster/there.py", "import distributed"),
}


def linted(root: Path, *contracts: str) -> subprocess.CompletedProcess[str]:
    chosen = [word for contract in contracts for word in ("--contract", contract)]
    lint = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", *chosen]
    return subprocess.run(lint, cwd=root, capture_output=True, text=True)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "grader", tmp_path / "grader", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.parametrize("contract", BROKEN)
def test_each_contract_fails_when_it_is_broken(copy: Path, contract: str) -> None:
    name, line = BROKEN[contract]
    path = copy / name
    path.write_text(path.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    done = linted(copy, contract)
    assert done.returncode == 1 and "0 kept, 1 broken" in done.stdout, done.stdout + done.stderr


def test_every_contract_is_kept_and_tried() -> None:
    done = linted(ROOT)
    assert done.returncode == 0 and f"{len(BROKEN)} kept, 0 broken" in done.stdout, done.stdout + done.stderr


def drawn(root: Path, target: Path) -> str:
    script = [sys.executable, str(ROOT / "docs" / "import_pictures.py"), str(target)]
    subprocess.run(script, env=os.environ | {"PYTHONPATH": str(root)}, check=True)
    return target.read_text(encoding="utf-8")


def test_the_picture_of_imports_is_current(tmp_path: Path) -> None:
    current = (ROOT / "docs" / "imports.svg").read_text(encoding="utf-8")
    assert current == drawn(ROOT, tmp_path / "imports.svg"), "run python docs/import_pictures.py"


def test_the_picture_shows_a_core_that_imports_a_wing(copy: Path) -> None:
    path = copy / "grader" / "cli" / "staff.py"
    path.write_text(
        path.read_text(encoding="utf-8") + "\nfrom grader.wings.similar import comparing\n", encoding="utf-8"
    )
    found = drawn(copy, copy / "imports.svg")
    assert "<title>cli imports wings.similar</title>" in found and "the core imports no wing" not in found
