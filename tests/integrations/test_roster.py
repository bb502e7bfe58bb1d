"""The students of the class, from a Canvas gradebook or from a plain CSV."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from grader.course.config import CourseError
from grader.integrations.roster import Roster
from grader.reports.people import Person

PLAIN = "id,name,email,section,extension\nalice,Alice L,al@u.edu,A,\nbob,Bob,bob@u.edu,B,01_m=2d\n"
CANVAS = "Student,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,\nAlice L,7,u7,alice,A\n"


def roster(folder: Path, text: str) -> Roster:
    (folder / "r.csv").write_text(text, encoding="utf-8-sig")
    return Roster(folder / "r.csv")


def test_a_plain_roster_finds_students_by_id_and_email(tmp_path: Path) -> None:
    found = roster(tmp_path, PLAIN)
    assert found.plain and found.without([]) == ["alice", "bob"] and found.without(["ALICE"]) == ["bob"]
    assert [found.login(name) for name in ("Alice", "al@u.edu", "al", "zoe")] == ["alice", "alice", "alice", "zoe"]
    assert found.row_of("zoe") is None
    names = ("Alice", "al@u.edu", "al", "zoe", "x_bob", "final_7")
    assert [found.lists(name) for name in names] == [True, True, False, False, False, False]
    extension = found.extensions(["01_m"])
    assert extension("Bob") == {"01_m": timedelta(days=2)} and extension("alice") == {} == extension("zoe")


def test_a_name_in_another_unicode_form_is_the_same_student(tmp_path: Path) -> None:
    """A macOS spreadsheet writes ë as two characters, and folders as one. The student's extension must still apply."""
    found = roster(tmp_path, "id,name,extension\nZoe\u0308,Zoe\u0308 M,2d\n")
    for name in ("Zo\u00eb", "Zoe\u0308", "zo\u00eb"):
        assert found.login(name) == "Zo\u00eb" and found.extensions([])(name) == {"*": timedelta(days=2)}
    assert found.without(["Zo\u00eb"]) == []


@pytest.mark.parametrize("name", ["Ann Lee", "ann\u00a0lee", "ann  lee", "\uff41nn lee"])
def test_names_that_look_alike_are_one_student(tmp_path: Path, name: str) -> None:
    """Spreadsheets write blanks that do not break. Earlier, such a student lost the extension and had 0 points."""
    for found in (roster(tmp_path, "id,extension\nann\u00a0lee,2d\n"), roster(tmp_path, "id,extension\nann lee,2d\n")):
        assert found.login(name) == "ann lee" and found.lists(name) and found.without([name]) == []
        assert found.extensions([])(name) == {"*": timedelta(days=2)}


def test_a_plain_roster_may_have_the_columns_student_and_id(tmp_path: Path) -> None:
    """Earlier, such a file counted as a gradebook of Canvas, and the extensions changed nothing."""
    found = roster(tmp_path, "Student,ID,Extension\nAnn,ann,2d\n")
    assert found.plain and found.extensions([])("ann") == {"*": timedelta(days=2)}


def test_only_canvas_writes_a_students_number_into_file_names(tmp_path: Path) -> None:
    """Earlier, the student with the id 2 got the points of the folder ann_2."""
    assert roster(tmp_path, "id,name\n2,Bob\n").row_of("ann_2") is None
    canvas = roster(tmp_path, CANVAS + "Bo,8,9,bo,A\n")
    assert [canvas.login(name) for name in ("alicel_7", "alicel_LATE_7_99", "alicel_u7", "bo_9")] == [
        "alice", "alice", "alicel_u7", "bo_9"
    ]  # fmt: skip


def test_a_student_id_takes_precedence_over_an_email_prefix(tmp_path: Path) -> None:
    """Bob's address begins with alice, but the id alice is unique, so her extension applies."""
    found = roster(tmp_path, "id,email,extension\nalice,al@u.edu,2d\nbob,alice@other.edu,\n")
    assert found.login("Alice") == "alice" and found.extensions([])("alice") == {"*": timedelta(days=2)}
    assert found.login("alice@other.edu") == "bob" and found.login("al") == "alice"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("al@u.edu", "id,email\nalice,Al@u.edu\n\nbob,al@U.EDU\n"),
        ("al@u.edu", "id,email\nal@u.edu,\n\nbob,al@u.edu\n"),
        ("bob", "id,email\nalice,Bob\n\nbob,bob@u.edu\n"),
    ],
)
def test_two_lines_with_one_address_are_refused(tmp_path: Path, name: str, text: str) -> None:
    """The submission al@u.edu could belong to both students."""
    found = rf"r\.csv:2 and 4: two lines have the id or e-mail address {re.escape(name)}; give"
    with pytest.raises(CourseError, match=found):
        roster(tmp_path, text)


@pytest.mark.parametrize("placeholder", ["", "n/a", "-", "@", "none"])
def test_a_placeholder_for_an_address_may_repeat(tmp_path: Path, placeholder: str) -> None:
    found = roster(tmp_path, f"id,email\nalice,{placeholder}\nbob,{placeholder}\n")
    assert [found.login(name) for name in ("alice", "bob")] == ["alice", "bob"]
    assert roster(tmp_path, "id,email\nAl@u.edu,al@u.edu\n").login("al") == "Al@u.edu"


def test_a_gradebook_of_canvas_is_distinguished_by_its_header(tmp_path: Path) -> None:
    found = roster(tmp_path, CANVAS)
    assert not found.plain and found.login("liddell_7_1_2_x") == "alice" and not found.has_extensions


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        PLAIN.replace("id,name", "ID,Name"),
        PLAIN.replace("\n", "\r\n"),
        PLAIN + "\n,,,,\n",
    ],
)
def test_rosters_saved_by_spreadsheets_are_read(text: str, tmp_path: Path) -> None:
    assert roster(tmp_path, text).without([]) == ["alice", "bob"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is neither a Canvas gradebook, which has the columns Student and ID"),
        ("name,mail\n", r"plain roster may have the columns id, name, email, section, extension$"),
        ("id\nada\nADA\n", r"r\.csv:2 and 3: the ids ada and ADA look alike; keep one line, or change an id"),
        ("id\nfinn\n\n\ufb01nn\n", r"r\.csv:2 and 4: the ids finn and \ufb01nn look alike"),
        ("id\nada\nbo\u200b\n", r"r\.csv:3: bo\\u200b cannot be an id; write at most 100 visible characters"),
        ("id,name\n,Ada\n", r"r\.csv:2: no id"),
        ('id,name\nada,"open\nbob,x\n', r"r\.csv:2: the line is not CSV \(unexpected end of data\); check its quotes"),
        ('id,name\nada,"open\nbob,x"\n', r"r\.csv:2: a cell in quotes continues until line 3; check the quotes"),
        ('id,name\nada,"A\nB"\n,\n,Bob\n', r"r\.csv:5: no id"),
        ("id,extension,extension\nada,1d,2d\n", "has two columns extension; keep one"),
        ("id,extensions\nada,2d\n", "has a column extensions, which the grader ignores; rename it to extension"),
        (
            "id,extention\nada,\nbob,2d; 36h\n",
            "has a column extention, which the grader ignores; rename it to extension",
        ),
        ("id,Extra time\nada,03_matmuls=2d\n", "has a column extra time, which the grader ignores; rename it"),
        (
            "id;extension\nada;01_m=2d; 02_n=12h\n",
            r"r\.csv:2: more cells than columns; put quotes around cells that contain a separator",
        ),
        ("id\n" + "x" * 200_000 + "\n", r"the line is not CSV \(field larger"),
    ],
)
def test_an_invalid_roster_gives_an_error_with_the_reason(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=said):
        roster(tmp_path, text)


def test_an_invalid_extension_is_reported_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=r"r\.csv:3: extension for '01_m', which is not a module"):
        roster(tmp_path, PLAIN).extensions(["02_n"])


def test_names_and_sections_come_from_both_kinds_of_roster(tmp_path: Path) -> None:
    for text in (PLAIN, CANVAS):
        assert roster(tmp_path, text).people(["Alice", "zoe"]) == {"Alice": Person("Alice L", "A")}
    assert roster(tmp_path, "id,email\nbob,bob@u.edu\n").person("bob") == Person()  # a login does not count as a name
