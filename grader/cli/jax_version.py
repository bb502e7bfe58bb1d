"""The required versions of JAX."""

from __future__ import annotations

import importlib.metadata
import re

# Both versions must agree with pyproject.toml.
# The script .ci/run tests the oldest JAX, and the newest JAX for each Python version.
OLDEST_JAX, UNTESTED_JAX = (0, 10, 2), (0, 13)


def jax_problem(version: str | None = None) -> str:
    """Return a line that says that JAX is missing or too old; '' for a usable version."""
    oldest = ".".join(map(str, OLDEST_JAX))
    try:
        version = version or importlib.metadata.version("jax")
    except importlib.metadata.PackageNotFoundError:
        return f"JAX is not installed; pip install 'jax>={oldest}'"
    return "" if numbers(version) >= OLDEST_JAX else f"JAX {version} is too old; pip install 'jax>={oldest}'"


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version: ``(0, 10, 2)`` for ``0.10.2``."""
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])
