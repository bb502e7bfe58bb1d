"""Fills of pictures: text on them has enough contrast, and readers with any colour vision can distinguish them."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from grader.reports.pages import TEMPLATES
from grader.reports.pictures import CHIP, FILL, TINTS

# Machado, Oliveira and Fernandes, 2009: matrices for linear RGB, severity 1.
VISION = {
    "usual": np.eye(3),
    "protanope": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranope": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanope": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
LMS = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
LAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]
PAGES = {"light": ("#ffffff", "#1c2330"), "dark": ("#1a2029", "#e5e9f0")}  # background and text
APART = 0.045  # in OKLab; a just noticeable difference is about 0.02


def rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def linear(colours: np.ndarray) -> np.ndarray:
    return np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)


def filled(ground: str, opacity: float) -> np.ndarray:
    """Return, in linear RGB, the colours of all fills with this opacity on a background."""
    return linear(np.array([opacity * rgb(tint) + (1 - opacity) * rgb(ground) for tint in TINTS]))


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("page", PAGES)
def test_no_two_fills_look_alike(page: str, vision: str) -> None:
    seen = np.clip(filled(PAGES[page][0], FILL) @ np.array(VISION[vision]).T, 0, 1)
    lab = np.cbrt(seen @ np.array(LMS).T) @ np.array(LAB).T
    pairs = {(a, b): float(np.linalg.norm(lab[a] - lab[b])) for a, b in itertools.combinations(range(len(TINTS)), 2)}
    assert len(set(TINTS)) == 8 and min(pairs.values()) >= APART, min(pairs, key=pairs.__getitem__)


@pytest.mark.parametrize("opacity", [FILL, CHIP])
@pytest.mark.parametrize("page", PAGES)
def test_text_on_a_fill_has_the_contrast_of_level_aa(page: str, opacity: float) -> None:
    weights, (ground, ink) = np.array([0.2126, 0.7152, 0.0722]), PAGES[page]
    text = linear(rgb(ink)) @ weights
    for below in filled(ground, opacity) @ weights:
        dark, light = sorted((text, below))
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_pages_and_pictures_have_these_grounds_and_opacities() -> None:
    style = (TEMPLATES / "style.css").read_text()
    assert list(zip(*[re.findall(rf"--{name}: (#\w+)", style)[:2] for name in ("card", "ink")], strict=True)) == [
        *PAGES.values()
    ]
    for name in ("held", "picture", "arrows", "rounds"):
        assert f'fill-opacity="{FILL}"' in (TEMPLATES / f"{name}.html.j2").read_text()
    assert f'"fill-opacity", {CHIP}' in (TEMPLATES / "player.js").read_text()
