"""Parametrize a test so that ``make test`` runs a sample of its cases. ``make test-all`` runs all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(first: int, cases: Iterable[Any]) -> list[Any]:
    """Return the cases of ``pytest.mark.parametrize``. Cases after the first ``first`` cases are slow tests.

    Put cases first whose kinds differ.
    """
    every = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=[pytest.mark.slow] * (number >= first)) for number, case in enumerate(every)]
