"""Commands, each in a fresh fork of a process that has imported what a command imports: a third of their time is that.

``python -m tests.forked`` reads one request a line, ``{"words", "cwd", "env", "out", "err"}``, and answers with the exit
code. A fork is sound because nothing here starts a thread or a backend of JAX's, as in the process that traces.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import jax  # noqa: F401  courses import it

import grader.authoring.mutants.proving
import grader.integrations.nbgrader  # noqa: F401
from grader import cli


def become(asked: dict[str, Any]) -> None:
    """Be the process that ``python -m grader.cli`` would be: its folder, its surroundings, its streams."""
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
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115  theirs to close
    sys.path[0] = asked["cwd"]
    sys.argv = ["shardlings", *asked["words"]]


def main() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            become(json.loads(line))
            return cli.main()
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    return None


if __name__ == "__main__":
    main()
