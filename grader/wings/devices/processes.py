"""The option ``--processes`` of commands that run programs. This module imports nothing that is slow to import."""

from __future__ import annotations

import typer

PROCESSES = typer.Option(
    "--processes",
    min=1,
    max=64,
    help="split the devices among this many processes; each mesh uses the devices of all processes",
)
