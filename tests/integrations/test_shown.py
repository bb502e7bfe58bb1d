"""Students' text on nbgrader's pages: no tag, attribute or link can run a script, and long cells are cut."""

from __future__ import annotations

import pytest

pytest.importorskip("nbgrader")

from nbconvert.filters.strings import strip_files_prefix

from grader.integrations.nbgrader.plugin import plain_markdown
from grader.integrations.nbgrader.repair import MAX_SHOWN, MAX_SHOWN_CELL, shortened
from tests.reports.example_reports import Nesting

TRAP = '<img src=x onerror="steal()">'
LINKS = [
    "[x](javascript:steal())",
    "[x](<JavaScript:steal()>)",
    "<javascript:steal()>",
    "[x][1]\n\n[1]: javascript:steal()",
    "[x](javascript&colon;steal())",
    "[x](&#1;javascript:steal())",
    "# [x](javascript:steal())",
    "[x](vbscript:steal())",
    "[x](data:text/html,<script>steal()</script>)",
    "[x](files/javascript:steal())",
    "[x](/files/files//files/javascript:steal())",
    "![x](files/javascript:steal())",
]
TEXTS = [
    TRAP,
    f"```mermaid\n</pre>{TRAP}\n```",
    "~~~mermaid x\n<script>steal()</script>\n~~~",
    f"```{TRAP}\ncode\n```",
    f"# a {TRAP}",
    f'![{TRAP}](x "{TRAP}")',
    '[x](http://a.b "\\" onmouseover=\\"steal()")',
    f"$${TRAP}$$",
    f"\\begin{{{TRAP}}}a\\end{{{TRAP}}}",
    f"|a|b|\n|-|-|\n|{TRAP}|c|\n",
    f"- [ ] {TRAP}",
    f"![{TRAP}](attachment:{TRAP})",
]


@pytest.mark.parametrize("source", [*LINKS, *TEXTS])
def test_no_cell_can_run_a_script(source: str) -> None:
    shown = Nesting(strip_files_prefix(plain_markdown(source)))  # nbgrader's pages call strip_files_prefix last
    assert not [name for name, _ in shown.attributes if name.startswith("on")]
    links = [(value or "").lower() for name, value in shown.attributes if name in ("href", "src")]
    assert not [link for link in links if link.split(":")[0] in ("javascript", "vbscript", "data")]
    assert "<script" not in plain_markdown(source)


def test_markdown_looks_as_written() -> None:
    text = "**b** $a<b$ [l](http://x.y/?a=1&b=2) `<c>` [f](files/f.txt)\n\n|a|\n|-:|\n|1|\n\n```python\nx = 1\n```\n"
    page = plain_markdown(text)
    assert '<strong>b</strong> $a&lt;b$ <a href="http://x.y/?a=1&amp;b=2">l</a> <code>&lt;c&gt;</code>' in page
    assert '<a href="f.txt">f</a>' in page and "text-align:right" in page and '<span class="n">x</span>' in page


def test_an_attached_picture_is_named_and_is_no_error() -> None:
    assert "(image.png: a picture in the submitted notebook)" in plain_markdown("![my plot](attachment:image.png)")


def test_long_cells_are_cut() -> None:
    short, *long = shortened(["x", *["y" * MAX_SHOWN] * 20])
    assert short == "x" and long[0].startswith("y" * MAX_SHOWN_CELL)
    assert len(long[0]) < MAX_SHOWN_CELL + 100 and long[-1].count("y") < 5
    assert sum(map(len, long)) < MAX_SHOWN + 20 * 100
