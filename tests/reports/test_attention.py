"""Cases that need review, with reasons."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from grader.common.text import A_DOCUMENT, IS_EMPTY
from grader.reports.anonymous import Anonymous, assign
from grader.reports.summary import summarise
from grader.reports.terminal import print_summary
from tests.handed_in import read_, write
from tests.reports.example_reports import class_page_html, exercise, make_report, result


def test_cases_that_need_review_are_first_on_the_page() -> None:
    nothing = exercise([result("a", "failed")], handed_in=False)
    lost = exercise([result("a", "broken", points=2, reason="XLA ended its process")], pending=2)
    reports = [
        make_report(nothing, student="ann", unread=["c3.rar is no .py file"]),
        make_report(exercise([result()]), nothing, student="bea", notes=["cell 3"], unread=["x.ipynb is no notebook"]),
        make_report(lost, student="cat", pending=2),
        make_report(exercise([result()]), student="dan", unread=["book.db is a link and was not followed", "a.py"]),
        make_report(exercise([result()]), student="eli", notes=["c3 (1).py is taken for c3.py"]),
        make_report(exercise([result()]), nothing, student="fay"),
        make_report(exercise([result()]), student="gus", notes=["c3 (1).py is not graded for c3: used c3.py"]),
    ]
    fits = [{"student": "eli", "question": "ring_time", "fits": ["ann", "bea"]}]
    summary = summarise(
        reports,
        not_graded={"zed": "zed has several submissions: <a> and b"},
        warnings=["the seed is known"],
        suspicions=fits,
    )
    found = {a.student: a.reason for a in summary.attention}
    assert found == {
        "zed": "not graded: zed has several submissions: <a> and b",
        "cat": "2 points pending in c3_contracting: XLA ended its process",
        "ann": "no file can be graded; c3.rar is no .py file",
        "bea": "nothing was handed in for c3_contracting; x.ipynb is no notebook",
        "dan": "book.db is a link and was not followed",
        "eli": "the answer to ring_time is wrong, but would be right for the numbers of ann, bea",
        "gus": "c3 (1).py is not graded for c3: used c3.py",
    }
    kinds = ["not graded", "pending", "suspicious", *["not found"] * 3, "handed in again"]
    assert [a.kind for a in summary.attention] == kinds
    page = class_page_html(summary, reports)
    assert "zed has several submissions: &lt;a&gt; and b" in page and "the seed is known" in page
    assert page.index("Needs review") < page.index("<h2>Students")
    console = Console(file=io.StringIO(), width=100)
    print_summary(summary, console)
    assert "Needs review" in console.file.getvalue().split("Misconceptions")[-1]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "note", ["c3 (1).py is graded as c3.py", "cell 3 of c3.ipynb: NameError: name 'x' is not defined"]
)
def test_a_missing_exercise_needs_review_only_if_a_file_may_hold_it(note: str) -> None:
    """Only an unread file may contain the missing exercise. A note about a graded file is no reason for a review."""
    nothing = exercise([result("a", "failed")], handed_in=False)
    for exercises in ([nothing], [exercise([result()]), nothing]):
        assert summarise([make_report(*exercises, notes=[note])]).attention == []
        assert len(summarise([make_report(*exercises, notes=[note], unread=["c3.rar is no .py file"])]).attention) == 1


@pytest.mark.parametrize(
    ("name", "listed"),
    [("notes.pdf", False), ("03_matmuls.pdf", False), ("c1_local.pdf", True), ("05_rings.docx", True)],
)
def test_a_document_beside_graded_files_needs_review_only_if_it_is_named_after_what_is_missing(
    name: str, listed: bool
) -> None:
    """Without this rule, every student with a document and a missing exercise would need review."""
    done, missing = exercise([result()]), exercise([result("a", "failed")], exercise="c1_local", handed_in=False)
    other = exercise([result("b", "failed")], exercise="e1_ring", module="05_rings", handed_in=False)
    unread = [f"{name} {A_DOCUMENT}; write your answers into a .py file"]
    assert len(summarise([make_report(done, missing, other, unread=unread)]).attention) == listed
    assert len(summarise([make_report(missing, other, unread=unread)]).attention) == 1


def test_a_student_with_an_empty_folder_needs_no_review(tmp_path: Path) -> None:
    """The class page already counts this student among the students who handed in nothing."""
    missing = exercise([result("a", "failed")], handed_in=False)
    empty = read_(tmp_path)
    assert len(empty.unread) == 1 and empty.unread[0].endswith(IS_EMPTY)
    assert summarise([make_report(missing, unread=list(empty.unread))]).attention == []
    write(tmp_path / "answers.txt")
    assert len(summarise([make_report(missing, unread=list(read_(tmp_path).unread))]).attention) == 1


def test_a_program_that_crashed_xla_twice_needs_review() -> None:
    """The submission fails, but honest code can crash XLA, too."""
    died = result(
        "value", "failed", reason="total: XLA ended the process twice while running this program: Check failed"
    )
    (named,) = summarise([make_report(exercise([died]), student="eve"), make_report(student="fay")]).attention
    reason = "XLA ended the process twice during c3_contracting: check whether the code is honest"
    assert (named.student, named.reason) == ("eve", reason)


@pytest.mark.parametrize("name", ["\u0639\u0644\u06cc\u200c\u0631\u0636\u0627", "a  b"])
def test_a_name_with_invisible_characters_has_one_link_and_one_pseudonym(name: str) -> None:
    report = make_report(exercise([result("a", "broken", points=2)], pending=2), student=name, pending=2)
    summary = summarise([report])
    assert [a.student for a in summary.attention] == [name]
    assert "<a href" in class_page_html(summary, [report]).split('id="attention"')[1].split("</tbody>")[0]
    names = assign([name, *(a.student for a in summary.attention)], {})
    assert [a.student for a in Anonymous(names).summary(summary).attention] == [names[name]]


def test_a_line_about_several_students_has_no_student_name() -> None:
    text = "28 of 34 have not handed in 06_overlap"
    summary = summarise([make_report()], also=[("", text)])
    assert Anonymous(assign([make_report().student], {})).summary(summary).attention == summary.attention
    console = Console(file=io.StringIO(), width=200)
    print_summary(summary, console)
    for shown in (console.file.getvalue(), class_page_html(summary, [make_report()])):  # type: ignore[attr-defined]
        assert text in shown and "several students" in shown


def test_no_reason_is_cut() -> None:
    notes = [f"{'deep/' * 40}{number}.py is not a notebook" for number in range(5)]
    nothing = exercise([result("a", "failed")], handed_in=False)
    report = make_report(nothing, unread=notes)
    summary = summarise([report])
    (one,) = summary.attention
    assert one.reason == "; ".join(["no file can be graded", *notes[:3], "and 2 more notes in the report"])
    assert notes[2] in class_page_html(summary, [report])
    console = Console(file=io.StringIO(), width=10_000)
    print_summary(summary, console)
    assert one.reason in console.file.getvalue()  # type: ignore[attr-defined]
