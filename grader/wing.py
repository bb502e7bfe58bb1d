"""What a wing may offer, and which wings are installed.

The core never imports a wing. It finds the folders of ``grader.wings`` that have a ``wing.py``, and imports what a wing
offers when a command needs it. Each ``wing.py`` holds one ``WING``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

WINGS = "grader.wings"
WING_OF = {
    "chip": "chip",
    "leaderboard": "leaderboard",
    "predict": "predict",
    "profile": "predict",
    "publish": "publish",
    "similar": "similar",
}
"""The wing of each command. A wing that is not installed cannot name its commands itself."""
EXTRAS = {"chip": "[tpu]", "cluster": "[cluster]"}
"""The optional dependencies of a wing, as pip takes them."""


class WingError(Exception):
    """A wing is not installed, or cannot do what the user asked for; the message is one line."""


@dataclass(frozen=True)
class Wing:
    """What one wing offers, as ``module.attribute`` below its folder. A wing leaves empty what it does not offer.

    Attributes:
        commands: by name, functions for the command line.
        exports: by format, what ``export --to`` calls with the course, a path, exercises and the isolation.
        notebook: by name, functions that learners import from ``grader.notebook``.
        chip: for ``--backend tpu:SLICE``, a function that gives a ``batch.backends.Compiler``.
        cluster: for ``grade --cluster``, a module with a ``Spread`` to grade with.
        devices: for ``--backend`` and ``--processes``, a function that gives ``batch.backends.Devices``.
        doctor: a function that gives lines for ``doctor``.
        predicted: for ``explain --on``, the text of what a learner predicted of a program; '' for no prediction.
    """

    commands: Mapping[str, str] = field(default_factory=dict)
    exports: Mapping[str, str] = field(default_factory=dict)
    notebook: Mapping[str, str] = field(default_factory=dict)
    chip: str = ""
    cluster: str = ""
    devices: str = ""
    doctor: str = ""
    predicted: str = ""


@cache
def wings() -> dict[str, Wing]:
    """The installed wings by name, sorted."""
    try:
        folders = list(importlib.import_module(WINGS).__path__)
    except ModuleNotFoundError:
        return {}
    names = sorted(found.name for found in pkgutil.iter_modules(folders) if found.ispkg)
    return {name: importlib.import_module(f"{WINGS}.{name}.wing").WING for name in names}


def commands() -> dict[str, str]:
    """Where the command of each name is, as ``load`` takes it."""
    return {
        name: f"{wing}.{place}" for wing, offered in wings().items() for name, place in sorted(offered.commands.items())
    }


def load(place: str) -> Any:
    """What is at ``wing.module.attribute``, or the module at ``wing.module``."""
    wing, module, *attribute = place.split(".")
    found = importlib.import_module(f"{WINGS}.{wing}.{module}")
    return getattr(found, attribute[0]) if attribute else found


def offered(what: str) -> list[Any]:
    """What each wing offers under one of the attributes of ``Wing``, imported."""
    return [load(f"{name}.{place}") for name, wing in wings().items() if (place := getattr(wing, what))]


def exports() -> dict[str, str]:
    """Where the writer of each format is, as ``load`` takes it."""
    return {form: f"{name}.{place}" for name, wing in wings().items() for form, place in wing.exports.items()}


def for_notebooks() -> dict[str, str]:
    """Where the function of each name is that notebooks import, as ``load`` takes it."""
    return {name: f"{wing}.{place}" for wing, offered in wings().items() for name, place in offered.notebook.items()}


def missing(asked: str, wing: str) -> WingError:
    """Return the error for a command or an option whose wing is not installed."""
    install = f"pip install --force-reinstall 'shardlings{EXTRAS.get(wing, '')}'"
    return WingError(f"{asked} needs the wing grader/wings/{wing}, which is not installed; run: {install}")


def needed(what: str, option: str) -> Any:
    """What the one wing offers that ``option`` needs. Raises WingError."""
    found = offered(what)
    if not found:
        raise missing(option, what)
    return found[0]
