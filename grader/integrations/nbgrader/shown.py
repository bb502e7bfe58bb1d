"""Show students' text on nbgrader's pages: no script runs in a browser, and long cells do not hold up the pages.

nbgrader's pages run in the session of the person who opens them. So the HTML of a Markdown cell may contain only the
tags, attributes and kinds of links that are listed here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import bleach
from bleach.css_sanitizer import CSSSanitizer
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

MAX_SHOWN_CELL = 20_000
"""The largest number of characters of a submitted cell that nbgrader's pages show."""
MAX_SHOWN = 200_000
"""The largest number of characters of all submitted cells of a notebook that nbgrader's pages show."""
_ATTACHED = "attachment:"
# After this module has checked a link, nbgrader's pages remove one such prefix from the link.
_FILES = re.compile(r"(?:/?files/)+")
_TAGS = frozenset([
    "a", "blockquote", "br", "code", "dd", "del", "div", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr",
    "img", "input", "li", "ol", "p", "pre", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
])  # fmt: skip
_ATTRIBUTES = frozenset(["alt", "checked", "class", "disabled", "href", "id", "src", "start", "style", "title", "type"])


class _Renderer(IPythonRenderer):
    """Shows HTML tags, diagrams and names of attached pictures as text, and leaves out links to scripts."""

    def __init__(self) -> None:
        super().__init__(escape=True, allow_harmful_protocols=False)

    def block_mermaidjs(self, code: str) -> str:
        return self.block_code(code)

    def link(self, text: str, url: str, title: str | None = None) -> str:
        return super().link(text, _without_files(url), title)

    def image(self, text: str, url: str, title: str | None = None) -> str:
        # A rebuilt notebook has no attachments. nbconvert would raise an error for a missing attachment.
        if attached := [part for part in (text, url) if part.startswith(_ATTACHED)]:
            return f"({self.escape_html(attached[0].removeprefix(_ATTACHED))}: a picture in the submitted notebook)"
        return super().image(text, _without_files(url), title)


def _without_files(url: str) -> str:
    prefix = _FILES.match(url)
    return url[prefix.end() :] if prefix else url


def plain_markdown(source: str) -> str:
    """Convert Markdown to HTML, with HTML tags as text: a script in a student's cell must not run in a browser."""
    return bleach.clean(
        MarkdownWithMath(renderer=_Renderer()).render(source),
        tags=_TAGS,
        attributes=lambda tag, name, value: name in _ATTRIBUTES and not _FILES.match(value),
        protocols=["http", "https", "mailto"],
        css_sanitizer=CSSSanitizer(allowed_css_properties=["text-align"]),
    )


def shortened(texts: Sequence[str]) -> list[str]:
    """Return the texts of a notebook's submitted cells, cut to the lengths that nbgrader's pages show.

    nbgrader's pages take time that grows with the square of a cell's length. ``submitted/`` has the whole texts.
    """
    left, shown = MAX_SHOWN, []
    for text in texts:
        most = min(left, MAX_SHOWN_CELL)
        shown.append(
            text if len(text) <= most else f"{text[:most]}\n# The rest of this cell is in the submitted notebook."
        )
        left -= min(len(text), most)
    return shown
