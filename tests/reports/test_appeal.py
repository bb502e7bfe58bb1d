"""The page of an appeal: for staff, self-contained, and safe with hostile code."""

from __future__ import annotations

from grader.reports.appeal import Appeal, CodePart, Run, ShownArray, render_appeal
from tests.reports.example_reports import EVIL, Nesting, evil_report, exercise, layout_failure


def test_an_appeal_page_draws_both_layouts_and_is_marked_for_staff() -> None:
    page = render_appeal(Appeal("alice", "c", "c3/layout", exercise([layout_failure(staff="SECRET")]), on_file=True))
    seen = Nesting(page)
    assert page.count("<svg") == 2 and "For staff only" in seen.text and "SECRET" in seen.text
    assert "as in the report on file" in seen.text
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & set(seen.tags)


def test_hostile_code_is_escaped_and_unprintable_characters_are_shown() -> None:
    code = CodePart(EVIL, 7, f"{EVIL}\n\tif x:  # \u202e\u2066 hidden\n</code></pre><script>alert(2)</script>")
    page = render_appeal(
        Appeal(
            EVIL, EVIL, EVIL, evil_report().exercises[0], functions=[code], whole=[code], failed_on=EVIL,
            inputs=[ShownArray(EVIL, EVIL, EVIL)], runs=[Run(EVIL, True, 1, EVIL)], lines=[EVIL], differs=[EVIL], on_file=True,
            versions={EVIL: EVIL},
        )
    )  # fmt: skip
    seen = Nesting(page)
    assert "script" not in seen.tags and "\u202e" not in page and "\x1b" not in page
    assert (
        r"   8      if x:  # \u{202e}\u{2066} hidden" in seen.text
        and "The verdict differs from the report on file" in seen.text
    )


def test_very_long_code_is_cut() -> None:
    code = CodePart("a.py", 1, "x\n" * 5000)
    assert "... and 3001 more lines" in render_appeal(Appeal("a", "c", "w", exercise([]), functions=[code]))
