"""Start the process that times programs, wait until it ends, and read its answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from grader.wing import WingError

PACKAGE = Path(__file__).parents[2]
COUNT = "xla_force_host_platform_device_count"
# The current folder must not be on the import path, because its files could replace modules.
FIND = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); import grader; del sys.path[0]"
START = f"{FIND}; from grader.wings.predict.measure import main; main()"


class NotMeasured(WingError):
    """Programs could not be timed. The message is one line."""


def ask(simulated: int, *words: str) -> dict[str, Any]:
    """Start the timing program and return its answer.

    The program uses accelerators if JAX finds any, else simulated devices.

    Args:
        simulated: the number of simulated devices.
        words: arguments of ``measure.main``.

    Raises:
        NotMeasured: the process ended without an answer.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if COUNT not in flags:
        flags = f"{flags} --{COUNT}={simulated}".strip()
    done = subprocess.run(
        [sys.executable, "-P", "-c", START, *words],
        env=os.environ | {"XLA_FLAGS": flags}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        last = [line for line in done.stderr.splitlines() if line.strip()][-1:] or [f"it ended with {done.returncode}"]
        raise NotMeasured(f"the programs could not be run: {last[0].strip()[:300]}") from None
