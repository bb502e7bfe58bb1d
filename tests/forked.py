"""Run each command in a fork of a process that has imported the command's modules. Forking saves a third of the time.

``python -m tests.forked PROGRAM`` (``grader.cli`` or ``nbgrader``) reads one request per line, ``{"words", "cwd",
"env", "out", "err"}``, and prints the command's exit code. Forking is safe here, because this process starts no thread
and no backend of JAX.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# For each program, the modules that its commands import while they run. Courses import jax.
LATER = {
    "grader.cli": [
        "jax",
        "grader.cli.author",
        "grader.cli.checking",
        "grader.cli.grading",
        "grader.cli.listing",
        "grader.cli.staff",
        "grader.authoring.mutants.proving",
        "grader.integrations.nbgrader",
    ],
    "nbgrader": ["jax", "grader.integrations.nbgrader", "nbgrader.apps.nbgraderapp", "nbconvert.exporters"],
}


def main_of(program: str) -> Callable[[], Any]:
    """Return the command's main function, after importing its modules."""
    for name in LATER[program]:
        importlib.import_module(name)
    where = "nbgrader.apps.nbgraderapp" if program == "nbgrader" else program
    return importlib.import_module(where).main


def become(program: str, asked: dict[str, Any]) -> None:
    """Make this process like ``python -m grader`` or ``nbgrader``: set its folder, environment and streams."""
    os.setsid()
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    for number, (path, flags) in enumerate(
        [(os.devnull, os.O_RDONLY), (asked["out"], os.O_WRONLY), (asked["err"], os.O_WRONLY)]
    ):
        opened = os.open(path, flags)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115  kept open
    scripts = Path(sys.executable).parent
    sys.path[0] = str(scripts) if program == "nbgrader" else asked["cwd"]
    sys.argv = [str(scripts / "nbgrader") if program == "nbgrader" else "shardlings", *asked["words"]]


def main() -> None:
    program = sys.argv[1]
    command = main_of(program)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            become(program, json.loads(line))
            sys.exit(command())
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
