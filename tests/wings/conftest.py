"""Checkouts to run commands in."""

from tests.cli.conftest import small, with_bad

__all__ = ["small", "with_bad"]
