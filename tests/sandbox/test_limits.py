"""Limits of course.yaml are positive."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from grader.sandbox.limits import Limits


@pytest.mark.parametrize(
    ("name", "least"),
    [("memory_mib", 1024), ("file_mib", 1), *((n, 1e-9) for n in Limits.model_fields if "seconds" in n)],
)
def test_a_limit_has_a_least_value(name: str, least: Any) -> None:
    assert getattr(Limits(**{name: least}), name) == least
    with pytest.raises(ValidationError, match=name):
        Limits(**{name: least - 1})
