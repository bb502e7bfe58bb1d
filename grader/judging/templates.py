"""Texts of questions and options with a learner's parameters filled in."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jinja2

_jinja = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)  # Markdown, not HTML


def filled_in(text: str, params: Mapping[str, Any]) -> str:
    """Raises jinja2.TemplateError where the text is no template or names a parameter that does not exist."""
    return _template(text).render(**params).strip()


@functools.cache
def _template(text: str) -> jinja2.Template:
    return _jinja.from_string(text)
