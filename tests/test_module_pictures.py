"""The pictures of the modules are up to date and complete without scripts. The reports' script animates them."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from grader.course.loading import load_course
from grader.reports.pages import TEMPLATES
from tests.commands import ROOT
from tests.test_site import built

PLAYER = TEMPLATES / "player.js"

pytestmark = pytest.mark.slow  # to draw everything again takes long


@pytest.fixture(scope="module")
def pictures() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "docs"))
    spec = importlib.util.spec_from_file_location("module_pictures", ROOT / "docs" / "module_pictures.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(ROOT / "docs"))


def test_every_module_has_a_current_picture(pictures: ModuleType) -> None:
    made = pictures.made()
    modules = [module.id for module in load_course(ROOT / "course.yaml").config.modules]
    assert [path.stem for path in made] == modules
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run python docs/module_pictures.py"


def test_every_picture_is_stepped_through_and_each_drawing_has_a_text() -> None:
    for path in (ROOT / "docs" / "_site" / "modules").glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert len(re.findall(r"<div[^>]* data-(?:steps|rounds)", text)) == 1, path
        drawings = re.findall(r"<svg[^>]*>", text)
        assert drawings and all('role="img" aria-label="' in drawing for drawing in drawings), path
        assert "<script" not in text and "http" not in "".join(drawings)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no Chromium here")
def test_pictures_move_in_local_files_and_are_complete_without_scripts(tmp_path: Path) -> None:
    from playwright.sync_api import expect, sync_playwright

    done: subprocess.CompletedProcess[str] = built(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / PLAYER.name).read_bytes() == PLAYER.read_bytes()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_context(offline=True).new_page()
        page.goto((tmp_path / "modules" / "01_layout.html").as_uri())
        parts = page.locator("[data-steps] section")
        expect(parts.locator("visible=true").first).to_be_visible()
        assert [part.is_visible() for part in parts.all()] == [True] + [False] * 5
        page.get_by_role("button", name="Picture forward").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".player output")).to_have_text('2 of 6: P("x", None)')
        assert [part.is_visible() for part in parts.all()] == [False, True] + [False] * 4
        page.goto((tmp_path / "modules" / "05_rings.html").as_uri())
        page.get_by_role("slider", name="Round").focus()
        page.keyboard.press("End")
        expect(page.locator(".player output")).to_contain_text("round 7: 0 holds the data of 1")
        still = browser.new_context(java_script_enabled=False).new_page()
        still.goto((tmp_path / "modules" / "01_layout.html").as_uri())
        assert still.locator("[data-steps] section:visible svg").count() == 6 and still.locator(".player").count() == 0
        still.goto((tmp_path / "modules" / "05_rings.html").as_uri())
        assert still.locator("[data-rounds] svg:visible").count() == 1
        browser.close()
