"""The parts that a wing (an optional part of the grader) may offer, and the installed wings.

The core never imports a wing by name. The core finds the packages of ``grader.wings``, and imports a wing's function
when a command needs the function. Each package holds one ``WING`` in its ``__init__.py``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from grader import Mistake

WINGS = "grader.wings"
EXTRAS = {"browser": "[browser]", "chip": "[tpu]", "cluster": "[cluster]"}
"""The pip extra that installs each wing's optional dependencies."""


class WingError(Mistake):
    """A wing is not installed, or cannot do what the user asked for. The message is one line."""


@dataclass(frozen=True)
class Wing:
    """The functions and options that one wing offers, each as ``module.attribute`` in the wing's folder; "" for none.

    Attributes:
        commands: functions for the command line, by name.
        options: options that the wing adds to commands of the core, by name. Each attribute is an object that
            ``typer.Option`` returned.
        exports: functions for ``export --to``, by format, with arguments (course, path, exercises, isolation).
        notebook: functions that learners import from ``grader.notebook``, by name.
        browser: for ``watch --browser``, the ``WatchLoop`` that also serves a page.
        chip: for ``--backend tpu:SLICE``, a function that returns a ``batch.backends.Compiler``.
        devices: for ``--backend`` and ``--processes``, a function that returns ``batch.backends.Devices``.
        doctor: a function that returns lines for ``doctor``.
        predicted: for ``explain --on``, a function that returns a text with the learner's predictions of a step's time;
            '' if there are no predictions.
    """

    commands: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    exports: Mapping[str, str] = field(default_factory=dict)
    notebook: Mapping[str, str] = field(default_factory=dict)
    browser: str = ""
    chip: str = ""
    devices: str = ""
    doctor: str = ""
    predicted: str = ""


@cache
def wings() -> dict[str, Wing]:
    """Return the installed wings by name, sorted."""
    try:
        folders = list(importlib.import_module(WINGS).__path__)
    except ModuleNotFoundError:
        return {}
    names = sorted(found.name for found in pkgutil.iter_modules(folders) if found.ispkg)
    return {name: importlib.import_module(f"{WINGS}.{name}").WING for name in names}


def named(what: str) -> dict[str, str]:
    """Return, by name, the import paths (for ``load``) that the installed wings offer in one field of ``Wing``.

    ``what``: "commands", "options", "exports" or "notebook".
    """
    return {
        name: f"{wing}.{place}" for wing, offered in wings().items() for name, place in getattr(offered, what).items()
    }


def load(place: str) -> Any:
    """Return the attribute at ``wing.module.attribute``, or the module at ``wing.module``."""
    wing, module, *attribute = place.split(".")
    found = importlib.import_module(f"{WINGS}.{wing}.{module}")
    return getattr(found, attribute[0]) if attribute else found


def offered(what: str) -> list[Any]:
    """Import and return the functions that the installed wings offer in one field of ``Wing``.

    ``what``: the field's name, such as "doctor".
    """
    return [load(f"{name}.{place}") for name, wing in wings().items() if (place := getattr(wing, what))]


def install(extra: str = "") -> str:
    """Return text with the command that installs this checkout with an extra.

    The command names no package index, because the package ``shardlings`` of an index may be another project.
    """
    return f"in the checkout of shardlings, run: pip install --force-reinstall '.{extra}'"


def missing(asked: str, wing: str) -> WingError:
    """Return the error for a command or an option whose wing is not installed."""
    how = install(EXTRAS.get(wing, ""))
    return WingError(f"{asked} needs the wing grader/wings/{wing}, which is not installed; {how}")


def needed(what: str, option: str) -> Any:
    """Import and return the function that ``option`` needs from a wing.

    Raises WingError if no installed wing offers this function, or if a package that the wing imports is not installed.
    """
    try:
        found = offered(what)
    except ModuleNotFoundError as error:
        package = (error.name or "grader").split(".")[0]
        if package == "grader":
            raise
        raise WingError(f"{option} needs {package}; {install(EXTRAS.get(what, ''))}") from None
    if not found:
        raise missing(option, what)
    return found[0]
