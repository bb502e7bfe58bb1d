"""Write docs/reference.md from docstrings: the functions and classes of grader.hardware and of scenarios, for authors.

``python docs/make_reference.py`` writes the page; ``tests/test_reference_page.py`` proves that it is current.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from grader import hardware
from grader.exercise import Scenario
from grader.exercise.questions import larger

PAGE = Path(__file__).with_name("reference.md")
HEAD = """\
# Hardware and scenarios

This page is made by `docs/make_reference.py` from the docstrings of `grader.hardware` and `grader.exercise`.

"""


def page() -> str:
    """Return the page's text."""
    functions = [name for name in hardware.__all__ if inspect.isfunction(getattr(hardware, name))]
    classes = [name for name in hardware.__all__ if dataclasses.is_dataclass(getattr(hardware, name))]
    constants = [name for name in hardware.__all__ if name not in {*functions, *classes, "Model"}]
    parts = [
        "## Scenarios of questions\n",
        *_described("Scenario", Scenario),
        *_described("larger", larger),
        "## Times, rooflines and slices\n",
        f"{inspect.cleandoc(hardware.__doc__ or '')}\n",
        *(line for name in functions for line in _described(name, getattr(hardware, name))),
        "## Chips\n",
        *(line for name in classes for line in _described(name, getattr(hardware, name))),
        "Constants: " + ", ".join(f"`{name}`" for name in constants) + ".\n",
    ]
    return HEAD + "\n".join(parts)


def _described(name: str, thing: Any) -> Iterator[str]:
    """Yield a heading with the signature, and the docstring."""
    yield f"### {name}\n"
    yield f"```\n{name}{_signature(thing)}\n```\n"
    yield f"{_markdown(inspect.getdoc(thing) or '')}\n"


def _signature(thing: Any) -> str:
    """Return names and defaults: ``(bytes, n, *, topology='ring')``."""
    found = inspect.signature(thing)
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty)).replace("<factory>", "{}")


def _markdown(docstring: str) -> str:
    """Return a docstring as Markdown. Sections and paragraphs with a hanging indent become lists."""
    return "\n\n".join(map(_paragraph, re.split(r"\n\s*\n", docstring.replace("``", "`")))).strip()


def _paragraph(text: str) -> str:
    first, *rest = text.splitlines()
    if re.fullmatch(r"(Args|Returns|Raises|Attributes|Yields):", first):
        heading = "Arguments:" if first == "Args:" else first
        return f"{heading}\n\n{_list(inspect.cleandoc(chr(10).join(rest)).splitlines())}"
    return _list([first, *rest]) if any(line.startswith(" ") for line in rest) else text


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"  {line.strip()}" if line.startswith(" ") else f"- {line}" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
