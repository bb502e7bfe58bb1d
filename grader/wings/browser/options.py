"""The options of ``watch`` for the page. This module imports nothing that is slow to import."""

from __future__ import annotations

import typer

BROWSER = typer.Option("--browser", help="also show the exercise on a page in my browser")
PORT = typer.Option("--port", min=0, max=65535, help="the port of the page in my browser; default: a free port")
AT = typer.Option("--at", help="the page's address in my browser if a proxy serves the page")
