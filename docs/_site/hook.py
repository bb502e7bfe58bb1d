"""What the site has besides the files of ``docs/``: pages from the root, links, the picture of the rooms.

Texts are written for those who read them where they lie, too: there a page's name in backticks is enough, and
Mermaid is drawn. On the site the name is a link, so that the strict build proves it, and the drawing is
``architecture.svg``, since Mermaid would be fetched from elsewhere.
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
DRAWN = "![The way of a submission, from what was handed in to reports; what is confined is in boxes of its own](architecture.svg)"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Pages that are not written yet are no part of the menu; those that it does not name come last."""
    there = {p.relative_to(config.docs_dir).as_posix() for p in Path(config.docs_dir).rglob("*.md")}
    there |= {*FROM_ROOT, *_modules()}
    named: set[str] = set()
    menu = _kept(config.nav or [], there, named)
    more = sorted(there - named)
    config.nav = [*menu, {"More": more}] if more else menu
    return config


def _kept(entries: list[Any], there: set[str], named: set[str]) -> list[Any]:
    """The menu without files that are not there; ``named`` collects those that are."""
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
    """The pages that GitHub expects in the root, those of the modules, and the script that moves their pictures."""
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
    """Names of pages become links, outside of blocks of code."""
    here = PurePosixPath(page.file.src_uri).parent
    text = MERMAID.sub(lambda _: DRAWN, markdown)
    parts = re.split(f"({FENCED.pattern})", text, flags=FENCED.flags)
    return "".join(part if part.startswith("```") else _linked(part, here, page.file.src_uri, files) for part in parts)


def _linked(text: str, here: PurePosixPath, own: str, files: Files) -> str:
    """Prose with links for names. What lies beside the documentation keeps its name and loses its link."""

    def link(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name == own or (files.get_file_from_path(name) is None and not match[1]):
            return match[0]
        return f"[{match[0]}]({os.path.relpath(name, here)})"

    return NAMED.sub(link, OUTSIDE.sub(r"\1", text)).replace("](docs/", "](")
