"""Statements as HTML."""

from __future__ import annotations

import pytest

from grader.wings.browser.statements import as_html


def test_a_table_scrolls_in_its_own_box() -> None:
    made = as_html("| a | b |\n|---|---|\n| `P('x')` | 2 |\n")
    assert made.startswith('<div class="wide"><table>') and made.endswith("</table></div>\n")
    assert "<code>P('x')</code>" in made


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ('a <img src=x onerror="alert(1)">', "&lt;img src=x onerror=&quot;alert(1)&quot;&gt;"),
        ("[here](javascript:alert(1))", "[here](javascript:alert(1))"),
        ("![far](https://far.example/a.png)", '!<a href="https://far.example/a.png">far</a>'),
    ],
    ids=["a script", "an attribute", "a link that is a script", "a picture from elsewhere"],
)
def test_scripts_and_links_in_statements_are_only_text(text: str, shown: str) -> None:
    assert shown in as_html(text)
