"""The option ``--cluster`` of ``grade`` and ``nbgrader grade``. This module imports nothing that is slow to import."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from grader import wing
from grader.cli.console import tell
from grader.course.config import CourseError

if TYPE_CHECKING:
    from grader.wings.cluster.spread import OnCluster


def on_cluster(address: str) -> OnCluster:
    """Return the cluster whose scheduler is at ``address``. Raises CourseError if a package is not installed."""
    try:
        from grader.wings.cluster.spread import OnCluster
    except ModuleNotFoundError as missing:
        raise CourseError(
            f"--cluster needs {missing.name}, which is not installed; {wing.install('[cluster]')}"
        ) from None
    return OnCluster(address, lambda text: tell("cluster", text))


CLUSTER = typer.Option(
    "--cluster",
    metavar="ADDRESS",
    parser=on_cluster,
    help="grade on the workers of this Dask scheduler (docs/wings/cluster.md)",
)
