"""The summary of a class: counts, means and warnings."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from grader.common.result import ByHand, Evidence, HandIn, Report
from grader.common.text import A_DOCUMENT, IS_EMPTY
from grader.reports.anonymous import Anonymous, assign
from grader.reports.moved import Effect, Sums
from grader.reports.pages import render_html
from grader.reports.summary import summarise
from grader.reports.terminal import print_summary, print_warnings
from tests.handed_in import read_, write
from tests.reports.example_reports import (
    Nesting,
    a_class,
    class_page_html,
    exercise,
    make_report,
    mixed,
    printed,
    result,
)


def test_a_class_is_counted() -> None:
    summary = summarise(a_class())
    assert (summary.submissions, summary.mean, summary.median) == (4, 37.5, 25.0)
    assert (summary.minimum, summary.maximum) == (0.0, 100.0)
    value, layout = summary.checks
    assert (value.passed, value.failed, value.broken, value.rate) == (2, 1, 1, 66.67)  # three were judged
    assert (layout.passed, layout.failed, layout.blocked, layout.rate) == (1, 2, 1, 25.0)
    assert [(e.exercise, e.mean, e.full) for e in summary.exercises] == [("c3_contracting", 37.5, 1)]
    assert [(m.name, m.students) for m in summary.misconceptions] == [("wrong_dimension", 2)]
    assert [(b.student, b.name) for b in summary.broken] == [("dan", "value")]


def test_an_empty_class_has_no_mean() -> None:
    summary = summarise([])
    assert (summary.submissions, summary.mean, summary.checks) == (0, None, [])
    Nesting(class_page_html(summary, []))


def test_a_page_is_the_same_for_the_same_report() -> None:
    assert render_html(mixed()) == render_html(Report.loads(mixed().dumps()))
    assert printed(mixed()) == printed(Report.loads(mixed().dumps()))


def late(number: int, of: int, penalty: float, earned: float = 2) -> list[Report]:
    """Return a class of ``of`` students with ``earned`` of 4 points. The first ``number`` have a late penalty."""
    found = []
    for i in range(of):
        hand_in = HandIn(
            module="03_matmuls", submitted="2026-11-02T00:00:00+00:00", source="submitted.csv", penalty=penalty
        )
        part = exercise([result("value", "passed", points=4, earned=earned)], points=4, earned=earned)
        left = earned - penalty if i < number else earned
        report = make_report(part, hand_ins=[hand_in] if i < number else [], points=4, earned=left)
        found.append(report.model_copy(update={"student": f"s{i}"}))
    return found


def test_late_penalties_for_a_tenth_of_a_class_give_a_warning() -> None:
    assert summarise(late(1, 10, 0.5)).warnings == []
    summary = summarise(late(2, 10, 0.5))
    (line,) = summary.warnings
    assert line == (
        "Late penalties change the points of 2 of 10 students: the class mean is 47.5%, and 50% without this change. "
        "Check the record of submission times."
    )
    console = Console(record=True, width=200)
    print_warnings(summary, console)
    print_summary(summary, console)
    text = console.export_text()
    assert text.splitlines()[0] == line and text.count(line) == 1
    assert line in class_page_html(summary, late(2, 10, 0.5)).split("<main")[0]


def test_late_penalties_that_move_the_mean_far_give_a_warning() -> None:
    assert "Late penalties change the points of 1 of 10 students" in summarise(late(1, 10, 2.2, earned=4)).warnings[0]


def test_a_mean_moved_by_exactly_five_points_gives_no_warning() -> None:
    """The means differ by 5 points and a rounding error, which must not count as more than 5 points."""
    effect = Effect(students=20, changed=1, before=Sums(20, 1.1 * 575.7), after=Sums(20, 1.1 * 575.7 + 100.00000000001))
    assert not effect.is_large
    assert Effect(students=20, changed=1, before=Sums(20, 0.0), after=Sums(20, 100.01)).is_large


def test_points_by_hand_are_counted_in_exercises_and_checks() -> None:
    hand = ByHand(by="Bo", reason="r", graded=0, was=0)
    whole = make_report(exercise([result("value", "failed")], points=4, earned=3, by_hand=hand), points=4, earned=3)
    part = exercise([result("value", "failed", points=4, earned=1, by_hand=hand)], points=4, earned=1)
    (line,) = summarise([whole, make_report(part, points=4, earned=1).model_copy(update={"student": "bo"})]).warnings
    assert line == (
        "Points set by hand change the points of 2 of 2 students: the class mean is 50%, and 0% without this change. "
        "Check these points and their reasons."
    )


def test_points_by_hand_for_pending_answers_give_no_warning() -> None:
    """Without this rule, every course with a written question would warn that points by hand changed the mean."""
    hand = ByHand(by="Bo", reason="r", graded=0, was=0)
    read = exercise([result("essay", "waiting", points=4, earned=3, by_hand=hand)], points=4, earned=3)
    whole = exercise([result("essay", "waiting", points=4)], points=4, earned=3, by_hand=hand)
    assert summarise([make_report(part, points=4, earned=3) for part in (read, whole)]).warnings == []
    more = exercise([result("essay", "waiting", points=1), result("v", "failed")], points=4, earned=3, by_hand=hand)
    assert (
        "the class mean is 75%, and 25% without this change"
        in summarise([make_report(more, points=4, earned=3)]).warnings[0]
    )


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


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        ("XLA ended the process twice while running this program", "XLA ended the process twice"),
        ("it ended the process: the process was killed", "the process of a function ended twice on hidden inputs"),
    ],
)
def test_a_crash_on_hidden_inputs_needs_review(ended: str, reason: str) -> None:
    """The result for the student is the same as for wrong values, so that it tells nothing about hidden inputs."""
    hidden = Evidence(task="f", mesh={}, dims={}, secret=True, program="", inputs="", ended=ended)
    failed = exercise([result("value", "failed", reason="wrong")], evidence=[hidden])
    (named,) = summarise([make_report(failed, student="eve")]).attention
    assert named.reason == f"{reason} during c3_contracting: check whether the code is honest"
    assert summarise([make_report(failed.for_student(), student="eve")]).attention == []
    shown = failed.model_copy(update={"evidence": [hidden.model_copy(update={"secret": False}), hidden]})
    assert not any("hidden" in line.reason for line in summarise([make_report(shown)]).attention), "no hidden run"


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
