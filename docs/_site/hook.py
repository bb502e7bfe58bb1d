"""Hooks that change the pages of ``docs/`` for the site, and add pages from other folders.

People read the pages on the site and on GitHub, which draws Mermaid diagrams. The pages name each other in backticks,
without links. On the site, each such name becomes a link, so that the strict build checks that the page exists. Mermaid
diagrams become ``architecture.svg``, because a page with Mermaid would load it from another server.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
PLAYER = ROOT / "grader" / "reports" / "templates" / "player.js"
FROM_ROOT = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md")
NAMED = re.compile(rf"(?<!\[)`(?:docs/([\w/-]+\.md)|({'|'.join(map(re.escape, FROM_ROOT))}))`")
MERMAID = re.compile(r"^```mermaid\n.*?^```$", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(?:examples|solutions|exercises)/[^)]*\)")
EMPTY_HEADER = re.compile(r"<th\b([^>]*)></th>")
DRAWN = "![The way of a submission, from what was handed in to reports; what is confined is in boxes of its own](architecture.svg)"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Remove missing pages from the menu, and append the pages that the menu does not name."""
    there = {p.relative_to(config.docs_dir).as_posix() for p in Path(config.docs_dir).rglob("*.md")}
    there |= {*FROM_ROOT, *_modules()}
    named: set[str] = set()
    menu = _kept(config.nav or [], there, named)
    more = sorted(there - named)
    config.nav = [*menu, {"More": more}] if more else menu
    return config


def _kept(entries: list[Any], there: set[str], named: set[str]) -> list[Any]:
    """Return the menu's entries for files in ``there``, and add these files to ``named``."""
    kept = []
    for entry in entries:
        ((title, target),) = entry.items()
        if isinstance(target, list):
            target = _kept(target, there, named)
        elif target in there:
            named.add(target)
        else:
            continue
        if target:
            kept.append({title: target})
    return kept


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from the root folder, a page for each module, and the script that animates pictures."""
    for name in FROM_ROOT:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    for name, text in _modules().items():
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, PLAYER.name, abs_src_path=str(PLAYER)))
    return files


def _modules() -> dict[str, str]:
    """Return the page of each module: its README, and the picture that docs/module_pictures.py made."""
    return {
        f"modules/{picture.stem}.md": "\n".join(
            path.read_text(encoding="utf-8") for path in (ROOT / "solutions" / picture.stem / "README.md", picture)
        )
        for picture in sorted((ROOT / "docs" / "_site" / "modules").glob("*.html"))
    }


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn Mermaid diagrams into a picture, and names of pages outside of blocks of code into links."""
    here = PurePosixPath(page.file.src_uri).parent
    text = MERMAID.sub(lambda _: DRAWN, markdown)
    parts = re.split(f"({FENCED.pattern})", text, flags=FENCED.flags)
    return "".join(part if part.startswith("```") else _linked(part, here, page.file.src_uri, files) for part in parts)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make empty headers of tables plain cells: a screen reader would announce a header without a name."""
    return EMPTY_HEADER.sub(r"<td\1></td>", html)


def _linked(text: str, here: PurePosixPath, own: str, files: Files) -> str:
    """Return text in which names of pages are links. A link to a file that is not on the site becomes plain text."""

    def link(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name == own or (files.get_file_from_path(name) is None and not match[1]):
            return match[0]
        return f"[{match[0]}]({os.path.relpath(name, here)})"

    return NAMED.sub(link, OUTSIDE.sub(r"\1", text)).replace("](docs/", "](")
