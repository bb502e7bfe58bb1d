"""Measure how well the fast tests protect the grader: change its code at random places, and count the tests that notice.

    python bench/protection.py [--mutants 12] [--seed 7] [--only batch]

Needs cosmic-ray (``pip install cosmic-ray``), which makes the changes (mutants) one at a time in a clone of the last
commit, and runs the tests of the changed package. The script prints the mutants that no test noticed. Read them: some
change nothing (``n > 0`` and ``n != 0`` for a number of bytes), some only speed, and the others need a test. In
November 2026, 50 of 66 mutants failed a test, 6 changed no behaviour, 3 only speed or the exact value of a limit, and
7 showed gaps, which tests close now.
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = {
    "judging": ("grader/judging", "tests/judging"),
    "expect": ("grader/expect", "tests/expect tests/test_expect_fuzz.py"),
    "facts": ("grader/runner/facts.py", "tests/runner"),
    "batch": ("grader/batch", "tests/batch"),
    "sandbox": ("grader/sandbox", "tests/sandbox"),
}
"""The code to change and the tests to run, by package."""
# Changes of annotations such as ``int | None`` and of decorators say little about the tests.
LEFT_OUT = "%BitOr%", "%RemoveDecorator%"
CONFIG = """\
[cosmic-ray]
module-path = "{code}"
timeout = 900.0
excluded-modules = []
test-command = "env PYTHONDONTWRITEBYTECODE=1 .venv/bin/python -m pytest -x -q -n 3 --dist loadgroup -m 'not slow' {tests}"

[cosmic-ray.distributor]
name = "local"
"""


def session(clone: Path, name: str, mutants: int) -> Path:
    """Choose mutants of one package at random, and return cosmic-ray's database of these mutants."""
    config, found = clone.parent / f"{name}.toml", clone.parent / f"{name}.sqlite"
    code, tests = TARGETS[name]
    config.write_text(CONFIG.format(code=code, tests=tests))
    subprocess.run(["cosmic-ray", "init", str(config), str(found)], cwd=clone, check=True)
    with sqlite3.connect(found) as database:
        where = " AND ".join("operator_name NOT LIKE ?" for _ in LEFT_OUT)
        every = [job for (job,) in database.execute(f"SELECT job_id FROM mutation_specs WHERE {where}", LEFT_OUT)]
        chosen = random.sample(sorted(every), min(mutants, len(every)))
        for table in ("mutation_specs", "work_items"):
            marks = ",".join("?" * len(chosen))
            database.execute(f"DELETE FROM {table} WHERE job_id NOT IN ({marks})", chosen)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=12, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", choices=TARGETS, help="one package; by default all")
    asked = parser.parse_args()
    random.seed(asked.seed)
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder, "clone")
        os.environ["XDG_CACHE_HOME"] = str(Path(folder, "cache"))
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        subprocess.run(["make", "install"], cwd=clone, check=True, stdout=subprocess.DEVNULL)
        for name in [asked.only] if asked.only else TARGETS:
            found = session(clone, name, asked.mutants)
            subprocess.run(["cosmic-ray", "exec", str(found.with_suffix(".toml")), str(found)], cwd=clone, check=True)
            shown = ["cr-report", "--surviving-only", "--show-diff", str(found)]
            print(name, subprocess.run(shown, cwd=clone, check=True, capture_output=True, text=True).stdout, sep="\n")


if __name__ == "__main__":
    main()
