"""The documentation's site has every page, every link works, and the site fetches nothing from other servers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.commands import ROOT

FETCHED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//|<link\b[^>]*\bhref=["']?(?:https?:)?//|url\(["']?(?:https?:)?//""")  # fmt: skip
PLAYER = ROOT / "grader" / "reports" / "templates" / "player.js"
MERMAID = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def built(checkout: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build the site as ``make docs`` does. ``--strict`` would not count warnings that ``--quiet`` hides."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=checkout, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = built(ROOT, folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_there_and_in_the_menu(site: Path) -> None:
    pages = {p.relative_to(ROOT / "docs").with_suffix(".html") for p in (ROOT / "docs").rglob("*.md")}
    pages |= {Path(name).with_suffix(".html") for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")}
    menu = re.findall(r'<a href="([^"#]+)" class="md-nav__link"', (site / "index.html").read_text())
    assert {p for p in pages if not (site / p).is_file()} == set()
    assert pages - {Path(link) for link in menu} <= {Path("index.html")}


def test_pages_fetch_nothing_from_other_servers(site: Path) -> None:
    texts = {p: p.read_text(encoding="utf-8") for p in site.rglob("*") if p.suffix in {".html", ".css", ".svg"}}
    assert len(texts) > 15
    assert {str(p): found for p, text in texts.items() if (found := FETCHED.findall(text))} == {}
    for page, text in texts.items():
        assert page.suffix != ".html" or "default-src 'self'" in text, page
        assert 'class="mermaid"' not in text, page


def test_names_of_pages_are_links(site: Path) -> None:
    assert '<a href="clock.html"><code>docs/clock.md</code></a>' in (site / "explain.html").read_text()
    assert '<a href="../clock.html">' in (site / "checks" / "clock.html").read_text()


def test_an_empty_header_of_a_table_is_a_plain_cell(site: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert "<td></td>\n<th" in pages[site / "where-time-goes.html"]
    assert [path for path, text in pages.items() if re.search(r"<th\b[^>]*></th>", text)] == []


def test_the_site_has_no_programs_of_the_folder(site: Path) -> None:
    assert [p.name for p in site.rglob("*.py")] == [] and not (site / "_site").exists()


def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("mkdocs.yml", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs", dirs_exist_ok=True)
    for path in (PLAYER, *ROOT.glob("solutions/*/README.md")):
        (tmp_path / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    (tmp_path / "docs" / "more.md").write_text("See `docs/nowhere.md`, [this](clock.md#no-such-part) and [x](y.md).\n")
    done = built(tmp_path, tmp_path / "out")
    assert done.returncode != 0 and "Traceback" not in done.stderr
    for wrong in ("nowhere.md", "no-such-part", "y.md"):
        assert f"'{wrong}" in done.stderr or f"#{wrong}'" in done.stderr, done.stderr


def test_the_drawing_and_the_diagram_of_rooms_have_equal_labels() -> None:
    """GitHub shows a Mermaid diagram of the rooms, and the site shows a drawing. Both must have equal labels."""
    (diagram,) = MERMAID.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    labels = re.sub(r"</?b>|<br>", " ", " ".join(re.findall('"([^"]*)"', diagram)))
    drawing = ET.parse(ROOT / "docs" / "architecture.svg").getroot()
    drawn = " ".join("".join(t.itertext()) for t in drawing.iter("{http://www.w3.org/2000/svg}text"))
    assert sorted(labels.split()) == sorted(drawn.split())


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), reason="no chromium")
def test_the_picture_of_a_report_is_made_by_a_command(tmp_path: Path) -> None:
    target = tmp_path / "report.png"
    subprocess.run([sys.executable, "docs/report_picture.py", str(target)], cwd=ROOT, check=True, timeout=300)
    head = target.read_bytes()[:24]
    width, height = (int.from_bytes(head[i : i + 4], "big") for i in (16, 20))
    assert head.startswith(b"\x89PNG") and width == 1000 and height > 1000
    assert [p.name for p in tmp_path.iterdir()] == ["report.png"]
