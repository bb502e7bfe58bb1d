"""``shardlings similar``: from folders of submissions to a page for the staff."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pygments.lexers.python import PythonLexer
from typer.testing import CliRunner

from grader import cli
from grader.batch.confined import OutOfTime, ParsingProcess
from grader.sandbox.worker import Worker
from grader.wings.similar.comparing import Part, StudentCode
from grader.wings.similar.confined import access, confined_words
from grader.wings.similar.inside.tokens import words
from tests.browser import CHROMIUM, CONTRAST, chromium
from tests.reports.example_reports import Nesting
from tests.sandbox.submissions import CONFINED, LIMITS
from tests.sandbox.test_calls import filters_at
from tests.wings.similar.programs import disguised, honest, work

NAME = "c1_no_communication"


def run(small: Path, *words: str):
    where = ["--course", str(small), "--file", str(small / "similar.html")]
    return CliRunner().invoke(cli.app, ["similar", str(small / "in"), *where, *words])


def hand_in(small: Path, **texts: str) -> None:
    for student, text in texts.items():
        place = small / "in" / student
        place.mkdir(parents=True)
        (place / f"{NAME}.py").write_text(text, encoding="utf-8")


def as_notebook(small: Path, student: str, text: str) -> None:
    cells = [{"cell_type": "code", "source": part, "metadata": {}, "outputs": []} for part in text.split("\n\n\n")]
    (small / "in" / student).mkdir(parents=True)
    (small / "in" / student / "03_matmuls.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}))


def test_a_copy_in_a_notebook_is_found_and_shown_beside_its_original(small: Path) -> None:
    hand_in(small, **{f"s{i}": honest(i) for i in range(8)})
    as_notebook(small, "copier", disguised(honest(3)))
    done = run(small)
    assert done.exit_code == 0, done.output
    heading, first, *_ = done.stdout.splitlines()
    assert " ".join(heading.split()) == (
        "passages share module students (passages: code that both have; share: part of the shorter code)"
    )
    assert first.startswith("*") and first.endswith("03_matmuls  copier, s3")
    assert "9 submissions compared; 1 pair unusually similar (marked *): " in done.stdout
    page = (small / "similar.html").read_text(encoding="utf-8")
    assert "copier and s3" in page and "<mark" in page and "affects no score" in page
    links = [value for name, value in Nesting(page).attributes if name == "href"]
    anchors = {value for name, value in Nesting(page).attributes if name == "id"}
    assert links and {link.removeprefix("#") for link in links} <= anchors
    assert "in one group" not in done.stdout  # the line about the pair is enough for a group of two students
    data = json.loads(run(small, "--json").stdout)["03_matmuls"]
    assert data["groups"] == [["copier", "s3"]]
    assert (data["works"], data["pairs"][0]["students"]) == (9, ["copier", "s3"])


def test_submissions_are_read_and_never_run(small: Path) -> None:
    trap = f"open({str(small / 'ran')!r}, 'w')\n"
    hand_in(small, a=trap + honest(1), b=trap + honest(1), c="def broken(:\n" + honest(2))
    assert run(small).exit_code == 0
    assert not (small / "ran").exists()


def test_a_student_without_a_readable_file_is_named(small: Path) -> None:
    hand_in(small, a=honest(1), b=honest(2))
    (small / "in" / "rich").mkdir()
    (small / "in" / "rich" / "03_matmuls.ipynb").write_text("{")
    done = run(small)
    assert done.exit_code == 0
    assert "1 student left out, because no file could be read: rich (03_matmuls.ipynb is not a notebook" in done.stderr


@pytest.mark.parametrize("students", [0, 1])
def test_a_class_of_no_or_one_student_has_no_pairs(small: Path, students: int) -> None:
    (small / "in").mkdir()
    hand_in(small, **{f"s{i}": honest(i) for i in range(students)})
    done = run(small)
    if students:
        assert done.exit_code == 0 and "1 submission compared; 0 pairs unusually similar: " in done.stdout
        assert "No two submissions share" in (small / "similar.html").read_text()
    else:
        assert "nothing to grade" in str(done.exception)
        assert not (small / "similar.html").exists()


def test_a_roster_gives_names_and_sections(small: Path) -> None:
    hand_in(small, **{f"s{i}": honest(i) for i in range(8)}, copier=disguised(honest(3)))
    (small / "r.csv").write_text("id,name,section\ncopier,Cora Mock,A\ns3,Sam Gryphon,B\n")
    done = run(small, "--roster", str(small / "r.csv"))
    assert "copier (Cora Mock, section A), s3 (Sam Gryphon, section B)" in done.stdout
    page = (small / "similar.html").read_text(encoding="utf-8")
    assert "copier (Cora Mock, section A) and s3 (Sam Gryphon, section B)" in page


def test_names_and_code_are_text_in_the_page(small: Path) -> None:
    evil = '"""</pre><script>alert(1)</script>\x1b[31m\u202e"""\n' + honest(1)
    hand_in(small, **{"a b": evil, "c": evil + "# \u202e</mark>"})
    assert run(small).exit_code == 0
    page = (small / "similar.html").read_text(encoding="utf-8")
    assert "<script" not in page and "\u202e" not in page and "&lt;script&gt;alert(1)" in page
    assert "script-src" not in page


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
@pytest.mark.slow
def test_the_page_fits_is_silent_and_fetches_nothing(small: Path) -> None:
    wide = "x = " + " + ".join(["unbroken" * 20] * 30)
    hand_in(small, a=honest(1) + wide, b=honest(1) + wide, **{"n" * 100: honest(1)})
    done = run(small)
    assert done.exit_code == 0 and f"03_matmuls: 3 students in one group: a, b, {'n' * 100}" in done.stdout
    path = small / "similar.html"
    with chromium() as page:
        for width in (400, 1440):
            page.open(path, width)
            page.value("document.querySelectorAll('details').forEach((d) => { d.open = true })")
            assert (page.overflow(), page.told, page.asked) == (0, [], [path.as_uri()])
            assert page.value(CONTRAST) == []
        page.open(path, 1440, dark=True)
        assert page.value(CONTRAST) == []


def test_tokens_come_from_a_confined_process(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    split: list[str] = []
    own = PythonLexer.get_tokens_unprocessed
    monkeypatch.setattr(
        PythonLexer, "get_tokens_unprocessed", lambda self, text: (split.append(text), own(self, text))[1]
    )
    hand_in(small, ada=honest(1) + "# MARKED\n", bo=honest(1) + "# MARKED\n")
    done = run(small)
    assert "2 submissions compared" in done.stdout and "<mark" in (small / "similar.html").read_text(encoding="utf-8")
    assert split and not any("MARKED" in text for text in split)


@pytest.mark.parametrize("tier", CONFINED)
def test_the_process_that_splits_into_tokens_has_the_filter_in_all_threads(tier: str) -> None:
    own = {"sandlock": 1, "bwrap": 0}[tier]
    with Worker("parse", tier, 1, LIMITS, access()) as one:
        one.await_ready()
        assert filters_at(one.scratch) == {own + 1}


def test_comments_are_no_tokens() -> None:
    assert [w.what for w in words("x = 1  # a\n# b\n")] == [w.what for w in words("x = 1\n")]


def test_lines_of_blanks_do_not_keep_code_from_being_compared(small: Path) -> None:
    """A lexer can take minutes for 90 kB of lines with one blank. The grader must not leave this code out."""
    hand_in(small, a=honest(1), b=honest(2), eve=disguised(honest(1)) + " \n" * 45_000)
    done = run(small)
    assert done.exit_code == 0 and "not compared" not in done.stderr
    assert "a, eve" in done.stdout


def test_code_that_takes_too_long_is_named_and_a_student_has_a_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[float] = []
    own = ParsingProcess.ask

    def ask(self: ParsingProcess, request, blobs, form, spend):
        seconds = request["seconds"]
        if b"SLOW" in blobs[0]:
            asked.append(seconds)
            spend(seconds)
            raise OutOfTime
        return own(self, request, blobs, form, spend)

    monkeypatch.setattr(ParsingProcess, "ask", ask)
    slow = [f"# {n}: SLOW\n" for n in range(5)]
    works = [StudentCode("eve", tuple(Part(f"{n}.py", text) for n, text in enumerate(slow))), work("ada", honest(1))]
    with confined_words(works) as words_of:
        for text in (*slow, *slow):
            assert words_of(text) == []
        assert words_of(works[1].parts[0].text)
    assert asked == [20, 20, 20]  # 60 s for all code of one student; no code is tried twice
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 5
    assert told[0] == "note: eve: code that begins with '# 0: SLOW' is not compared, because reading it takes too long"
