"""Find the student of each submitted file."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.common.text import printable
from grader.intake.reading import read
from grader.intake.students import find_submissions
from grader.intake.submission import NothingToGrade, Place, reasons_of
from grader.wire import limits
from tests.handed_in import EXERCISES, LOOKED_FOR, notebook, write, zipped

KINDS = "submissions are folders, .zip files, .py files and notebooks (.ipynb)"


def find(*paths: Path) -> tuple[list[tuple[str, Place]], list[str]]:
    found = find_submissions(paths, EXERCISES)
    assert found.cases == []
    return found.students, found.notes


def set_aside(*paths: Path) -> tuple[list[str], dict[str, str]]:
    """Return the students that are graded, and for each name that is set aside the reason."""
    found = find_submissions(paths, EXERCISES)
    return [student for student, _ in found.students], reasons_of(found.cases)


def test_each_sub_folder_zip_or_named_file_is_a_student(tmp_path: Path):
    write(tmp_path / "carol/hw1/c3_contracting.py")
    write(tmp_path / "alice/03_matmuls.ipynb", notebook())
    write(tmp_path / "bob.zip", zipped({"c3_contracting.py": ""}))
    write(tmp_path / "dan_c3_contracting.py")
    (tmp_path / "empty").mkdir()  # its report has zero points and a reason
    write(tmp_path / ".git/c3_contracting.py")
    write(tmp_path / "README.md")
    found, notes = find(tmp_path)
    assert found == [
        ("alice", tmp_path / "alice"),
        ("bob", tmp_path / "bob.zip"),
        ("carol", tmp_path / "carol"),
        ("dan", tmp_path / "dan_c3_contracting.py"),
        ("empty", tmp_path / "empty"),
    ]
    assert notes == [f"not read: README.md; {KINDS}"]


@pytest.mark.parametrize(
    "work",
    ["c3_contracting.py", "03_matmuls (2).ipynb", "c3_contracing.py", "03_matmuls/c3_contracting.py", "exercises/x.py"],
)
def test_a_folder_that_holds_exercises_is_one_student(tmp_path: Path, work: str):
    write(tmp_path / "alice" / work)
    write(tmp_path / "alice/other/x.py")
    assert find(tmp_path / "alice") == ([("alice", tmp_path / "alice")], [])


STRAY = (
    "{} is beside the submissions of several students and names no student; move it into a student's folder. "
    "If all of hw is one student's submission, put that folder into a new folder and grade the new folder"
)


@pytest.mark.parametrize("name", ["c3_contracting.py", "03_matmuls.ipynb", "c3.py", "c3_contracing (2).py"])
def test_a_file_without_a_name_beside_students_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    """Otherwise such a file turns the whole class into one student."""
    monkeypatch.chdir(tmp_path)
    for work in ("alice/c3_contracting.py", "bob/hw/c1_local.py", name):
        write(tmp_path / "hw" / work)
    (tmp_path / "hw/carol").mkdir()
    graded, aside = set_aside(Path("hw"))
    assert graded == ["alice", "bob", "carol"]
    assert aside == {"": STRAY.format(f"hw/{name}")}


@pytest.mark.parametrize("name", ["exercises", "03_matmuls"])
def test_a_folder_of_the_course_beside_students_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    """Otherwise such a folder, for example from an unpacked zip, turns the whole class into one student."""
    monkeypatch.chdir(tmp_path)
    for work in ("alice/c3_contracting.py", "bob/03_matmuls/c1_local.py", f"{name}/c3_contracting.py"):
        write(tmp_path / "hw" / work)
    write(tmp_path / "hw/carol_03_matmuls.ipynb")
    assert set_aside(Path("hw")) == (["alice", "bob", "carol"], {"": STRAY.format(f"hw/{name}")})


@pytest.mark.parametrize("kind", ["03_matmuls.zip", "c3_contracting.py", "03_matmuls.ipynb"])
@pytest.mark.parametrize("name", ["c3_contracting.py", "03_matmuls.ipynb"])
def test_a_file_without_a_name_beside_files_of_students_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
):
    """Otherwise such a file turns a class that submitted zips or single files into one student."""
    monkeypatch.chdir(tmp_path)
    for work in (f"alice_{kind}", f"bob_{kind}", name):
        write(tmp_path / "hw" / work)
    assert set_aside(Path("hw")) == (["alice", "bob"], {"": STRAY.format(f"hw/{name}")})


@pytest.mark.parametrize(
    "others", [("ada.zip", "bob.zip"), ("ada/c1_local.py", "bob.zip"), ("03_matmuls-ada.py", "03_matmuls-bob.py")]
)
@pytest.mark.parametrize("name", ["c3.py", "c3_v2.py", "c3_contracting_v2.py", "03_matmuls_final2.ipynb"])
def test_a_file_without_a_name_beside_two_students_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, others: tuple[str, ...]
) -> None:
    """Earlier, the grader read two zips and such a file as one student, or c3_v2.py as the file of a student named v2."""
    monkeypatch.chdir(tmp_path)
    for work in (*others, name):
        write(tmp_path / "hw" / work)
    assert set_aside(Path("hw")) == (["ada", "bob"], {"": STRAY.format(f"hw/{name}")})


@pytest.mark.parametrize("name", ["03_matmuls.zip", "old.zip", "submissions.zip", "final.tar.gz", "submission.py"])
def test_a_file_that_names_no_student_gets_no_row(tmp_path: Path, name: str) -> None:
    """Earlier, grades.csv had a row for such a file, with the file's name as the student."""
    for work in ("ada/c3_contracting.py", "bob/c3_contracting.py", name):
        write(tmp_path / "hw" / work)
    graded, aside = set_aside(tmp_path / "hw")
    assert graded == ["ada", "bob"] and list(aside) == [""]


@pytest.mark.parametrize("name", ["c3_contracting.py", "final.zip", "exercises/c3_contracting.py"])
def test_a_path_that_names_no_student_beside_other_paths_gets_no_row(tmp_path: Path, name: str) -> None:
    """``grade hw/*`` has the result of ``grade hw``."""
    for work in ("ada/c3_contracting.py", "bob/c3_contracting.py", name):
        write(tmp_path / "hw" / work)
    graded, aside = set_aside(*(tmp_path / "hw").iterdir())
    assert graded == ["ada", "bob"] and list(aside) == [""] and "names no student" in aside[""]
    assert set_aside(tmp_path / "hw" / name)[0], "a file alone"


def test_files_beside_one_students_exercises_belong_to_that_student(tmp_path: Path):
    for work in (
        "c3_contracting.py",
        "old/c3_contracting.py",
        "my backup/c3_contracting.py",
        "final/c3_contracting.py",
    ):
        write(tmp_path / "alice" / work)
    for name in ("alice_03_matmuls", "alice_03_matmuls-1", "old_03_matmuls", "03_matmuls", "more"):
        write(tmp_path / "alice" / f"{name}.zip")
    assert find(tmp_path / "alice") == ([("alice", tmp_path / "alice")], [])


@pytest.mark.parametrize("name", ["bob.zip.zip", "c3_contracting_bob.py.zip", "Bob.ZIP", "bob_c3_contracting.ipynb.py"])
def test_all_suffixes_are_no_parts_of_a_students_name(tmp_path: Path, name: str) -> None:
    """Browsers and file managers that hide suffixes write bob.zip.zip. Earlier, bob.zip was one more student."""
    for work in (name, "ada/c3_contracting.py", "eve/c3_contracting.py"):
        write(tmp_path / "hw" / work)
    assert sorted(map(str.lower, set_aside(tmp_path / "hw")[0])) == ["ada", "bob", "eve"]
    write(tmp_path / "hw/bob/c3_contracting.py")
    graded, aside = set_aside(tmp_path / "hw")
    assert graded == ["ada", "eve"] and "bob" in aside


@pytest.mark.parametrize("copy", ["{}_c3_contracting.py", "c3_contracting_{}.py", "c3_contracting_v{}.py"])
def test_versions_of_a_file_are_no_students(tmp_path: Path, copy: str):
    for work in ("c3_contracting.py", copy.format(1), copy.format(2)):
        write(tmp_path / "alice" / work)
    assert set_aside(tmp_path / "alice") == (["alice"], {})


def test_numbers_of_students_are_students(tmp_path: Path) -> None:
    for work in ("c3_contracting.py", "1234567_c3_contracting.py", "2345678_c3_contracting.py"):
        write(tmp_path / "hw" / work)
    graded, aside = set_aside(tmp_path / "hw")
    assert graded == ["1234567", "2345678"] and list(aside) == [""]


def test_a_students_folder_in_a_new_folder_is_one_submission(tmp_path: Path) -> None:
    """The message about files without a student's name says to make such a folder. The test follows this advice."""
    for work in ("exercises/c3_contracting.py", "notes/c3_contracting.py", "tries/c3_contracting.py"):
        write(tmp_path / "new" / "alice" / work)
    graded, aside = set_aside(tmp_path / "new" / "alice")
    assert graded == ["notes", "tries"] and "put that folder into a new folder and grade the new folder" in aside[""]
    assert set_aside(tmp_path / "new") == (["alice"], {})


def test_a_students_folder_with_as_many_modules_as_other_folders_is_one_submission(tmp_path: Path) -> None:
    for work in ("05_rings", "03_matmuls", "notes", "tries"):
        write(tmp_path / "alice" / work / "c3_contracting.py")
    assert set_aside(tmp_path / "alice") == (["alice"], {})


def test_one_students_signed_files_are_one_submission(tmp_path: Path):
    write(tmp_path / "hw/alice_c3_contracting.py")
    write(tmp_path / "hw/alice_c1_local.py")
    assert find(tmp_path / "hw") == ([("hw", tmp_path / "hw")], [])
    write(tmp_path / "hw/bob_e1_ring_gather.py")
    assert set_aside(tmp_path / "hw") == (["alice", "bob"], {})


def test_the_working_directory_gives_the_students_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(tmp_path / "alice/c3_contracting.py")
    monkeypatch.chdir(tmp_path / "alice")
    assert find(Path(".")) == ([("alice", Path("."))], [])


@pytest.mark.parametrize(
    ("name", "student"),
    [
        ("alice_c3_contracting.py", "alice"),
        ("alice-03_matmuls.ipynb", "alice"),
        ("03_matmuls-alice.ipynb", "alice"),
        ("alice-03_matmuls (1).ipynb", "alice"),
        ("ALICE_C3_Contracting.py", "ALICE"),
        ("alice_e1_ring_gather_both.py", "alice"),
        ("alice_03_matmuls_c3_contracting.py", "alice"),
        ("alice.zip", "alice"),
        ("alice b.zip", "alice b"),
        ("a.b@c.org_c1_local.py", "a.b@c.org"),
        ("c3_contracting.py", "c3_contracting"),
        ("c3_contracting (2).py", "c3_contracting"),
        ("liddellalice_12_34567_c3_contracting-1.py", "liddellalice_12"),
        ("liddellalice_LATE_12_34567_c3_contracting.py", "liddellalice_12"),
        ("team_1_2_c3_contracting.py", "team_1_2"),
        ("c3_contracting_lee_11_2026.py", "lee_11_2026"),
    ],
)
def test_a_files_name_gives_the_students_name(tmp_path: Path, name: str, student: str):
    path = write(tmp_path / name)
    assert find(path) == ([(student, path)], [])


def test_the_order_is_by_student_and_a_path_may_be_given_twice(tmp_path: Path):
    b, a = write(tmp_path / "b.zip"), write(tmp_path / "a.zip")
    assert find(b, a, b, tmp_path)[0] == [("a", a), ("b", b)]


def test_a_student_with_two_submissions_is_set_aside_and_the_others_are_graded(tmp_path: Path):
    one, two = write(tmp_path / "hw/alice/c3_contracting.py").parent, write(tmp_path / "hw/alice_c3_contracting.py")
    write(tmp_path / "hw/bob/c3_contracting.py")
    assert set_aside(tmp_path / "hw") == (
        ["bob"],
        {
            "alice": f"alice has several submissions: {shown(one)} and {shown(two)}; put the submissions into one folder, or rename one if they are from two students"
        },
    )


def test_files_of_one_student_are_one_submission(tmp_path: Path):
    """Canvas puts a different number into the name of each file."""
    files = [
        write(tmp_path / "hw" / name)
        for name in (
            "liddellalice_12_77341_c3_contracting.py", "liddellalice_12_77340_c1_local.py", "liddellalice_LATE_12_77399_c3_contracting-1.py"
        )
    ]  # fmt: skip
    bob = write(tmp_path / "hw/bob_c3_contracting.py")
    students, _ = find(tmp_path / "hw")
    assert [(s, set(p) if isinstance(p, tuple) else p) for s, p in students] == [
        ("bob", bob),
        ("liddellalice_12", set(files)),
    ]
    both = read(students[1][1], "alice", EXERCISES)
    assert {name: source.name for name, source in both.sources.items()} == {
        "c1_local": "liddellalice_12_77340_c1_local.py", "c3_contracting": "liddellalice_12_77341_c3_contracting.py"
    }  # fmt: skip
    assert "liddellalice_LATE_12_77399_c3_contracting-1.py" in "".join(both.notes)


def test_names_that_differ_only_in_case_are_set_aside(tmp_path: Path):
    for name in ("Alice", "alice", "bob"):
        write(tmp_path / "hw" / name / "c3_contracting.py")
    graded, aside = set_aside(tmp_path / "hw")
    assert graded == ["bob"] and list(aside) == ["Alice", "alice"]
    assert "Alice and alice (names that look alike) have several submissions" in aside["alice"]


@pytest.mark.parametrize(
    "other",
    ["ann  lee", "ann\u200d lee", "Ann Lee", "ann lee\u3164", "ann \u034flee", "ann lee\ufe0f\u2800", "\uff41nn lee"],
)
def test_names_that_look_alike_on_a_page_are_set_aside(tmp_path: Path, other: str) -> None:
    for name in ("ann lee", other, "bob"):
        write(tmp_path / "hw" / name / "c3_contracting.py")
    graded, aside = set_aside(tmp_path / "hw")
    assert graded == ["bob"] and set(aside) == {"ann lee", other}


def test_names_on_the_roster_are_no_versions(tmp_path: Path) -> None:
    """Earlier, Bak had no row, and the files of students with short numbers became one submission."""
    for name in (
        "bak_c3_contracting.py",
        "7_c3_contracting.py",
        "c3_contracting.py",
        "old_c3_contracting.py",
        "new.zip",
    ):
        write(tmp_path / "hw" / name)
    found = find_submissions([tmp_path / "hw"], EXERCISES, on_roster={"bak", "7", "new"}.__contains__)
    assert [student for student, _ in found.students] == ["7", "bak", "new"]
    assert [path.name for case in found.cases for path in case.paths] == ["c3_contracting.py", "old_c3_contracting.py"]
    for name in ("bak/c3_contracting.py", "ann_c3_contracting.py", "c3_contracting.py"):
        write(tmp_path / "both" / name)
    found = find_submissions([tmp_path / "both"], EXERCISES, on_roster={"bak"}.__contains__)
    assert [student for student, _ in found.students] == ["ann", "bak"]


@pytest.mark.parametrize(
    "name", ["nguyen_v2.zip", "nguyen_v2/c3_contracting.py", "nguyen_v2_c3_contracting.py", "c3_contracting_nguyen_v2.py",
             "nguyen_v2 (1).zip", "nguyen_v2.tar.gz"]
)  # fmt: skip
def test_a_login_on_the_roster_that_ends_like_a_copy_is_one_student(tmp_path: Path, name: str) -> None:
    """Earlier, nguyen got the points of nguyen_v2, or both students were set aside."""
    for path in (name, "ann/c3_contracting.py", "bob/c3_contracting.py", "c3_v2.py", "c3_contracting (2).py"):
        write(tmp_path / "hw" / path)
    on_roster = {"nguyen", "nguyen_v2", "ann", "bob", "2"}.__contains__
    for others in ([], ["nguyen"]):
        for other in others:
            write(tmp_path / "hw" / other / "c3_contracting.py")
        found = find_submissions([tmp_path / "hw"], EXERCISES, on_roster=on_roster)
        students = [student for student, _ in found.students] + [case.student for case in found.cases if case.student]
        assert sorted(students) == ["ann", "bob", *others, "nguyen_v2"]


def test_a_student_on_the_roster_may_have_the_name_of_a_module_or_exercise(tmp_path: Path) -> None:
    for name in (
        "final/c3_contracting.py",
        "bob/c3_contracting.py",
        "exercises/c3_contracting.py",
        "c3_contracting.zip",
    ):
        write(tmp_path / "hw" / name)
    on_roster = {"final", "c3_contracting"}.__contains__
    found = find_submissions([tmp_path / "hw"], {"c3_contracting": "final"}, on_roster=on_roster)
    assert [student for student, _ in found.students] == ["bob", "c3_contracting", "final"]
    assert [path.name for case in found.cases for path in case.paths] == ["exercises"]


def test_folders_in_a_students_folder_are_no_students(tmp_path: Path) -> None:
    """With ``grade hw/*``, a student could make a submission of a different student, or set a student aside."""
    for work in ("ann/bob", "ann/cyd", "cyd", "dan/final/v2", "eve", "flo"):
        write(tmp_path / "hw" / work / "c3_contracting.py")
    assert set_aside(*(tmp_path / "hw").iterdir()) == (["ann", "cyd", "dan", "eve", "flo"], {})
    found = find_submissions([tmp_path / "hw" / "ann"], EXERCISES, on_roster={"ann", "bob", "cyd"}.__contains__)
    assert [student for student, _ in found.students] == ["ann"]
    assert set_aside(tmp_path / "hw/ann", tmp_path / "hw/dan") == (["bob", "cyd", "final"], {}), "two sections"


def test_a_file_without_a_name_beside_one_student_on_the_roster_is_set_aside(tmp_path: Path) -> None:
    """Earlier, the folder's name got the only row, and ann had 0 points."""
    for work in ("hw/ann/c3_contracting.py", "hw/c3_contracting.py", "hw/zips/zed.zip"):
        write(tmp_path / work)
    found = find_submissions([tmp_path / "hw"], EXERCISES, on_roster={"ann", "bob"}.__contains__)
    assert [student for student, _ in found.students] == ["ann", "zips"]
    assert [path.name for case in found.cases for path in case.paths] == ["c3_contracting.py"]


def test_a_sharp_s_and_a_double_s_are_different_names(tmp_path: Path) -> None:
    for name in ("weiss", "wei\u00df"):
        write(tmp_path / "hw" / name / "c3_contracting.py")
    assert set_aside(tmp_path / "hw") == (["weiss", "wei\u00df"], {})


def test_a_name_set_aside_in_two_folders_is_reported_for_both(tmp_path: Path) -> None:
    for section in ("a", "b"):
        write(tmp_path / section / f"of {section}" / "c3_contracting.py")
        write(tmp_path / section / "bob\u202e" / "c3_contracting.py")
        (tmp_path / section / "zed").symlink_to(tmp_path)
    _, aside = set_aside(tmp_path / "a", tmp_path / "b", tmp_path / "b")
    for name in ("bob\u202e", "zed"):
        assert aside[name].count("rename it") + aside[name].count("is a link") == 2, aside[name]


def shown(path: Path) -> str:
    return printable(str(path))


def test_names_of_every_alphabet_are_graded(tmp_path: Path) -> None:
    names = [
        "=cmd()",
        "Zo\u00eb M\u00fcller-\u0141ukasz",
        "\u738b\u5c0f\u660e",
        "\u0645\u06cc\u200c\u0631\u0627",
        "O'Neill, Pat (2)",
    ]
    for name in names:
        write(tmp_path / "hw" / name / "c3_contracting.py")
    assert set_aside(tmp_path / "hw") == (sorted(names), {})


def test_composed_and_decomposed_unicode_names_are_one_student(tmp_path: Path) -> None:
    write(tmp_path / "hw" / "jose\u0301" / "c3_contracting.py")
    assert set_aside(tmp_path / "hw") == (["jos\u00e9"], {})
    write(tmp_path / "hw" / "jos\u00e9" / "c3_contracting.py")
    write(tmp_path / "hw" / "bob" / "c3_contracting.py")
    graded, aside = set_aside(tmp_path / "hw")
    assert graded == ["bob"] and "has several submissions" in aside["jos\u00e9"]


def test_names_that_no_person_can_read_are_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    odd = ["x" * 101, "bob ", "a\nb", "a\u202eb"]
    for name in ("alice", *odd):
        write(tmp_path / "hw" / name / "c3_contracting.py")
    graded, aside = set_aside(Path("hw"))
    assert graded == ["alice"] and set(aside) == set(odd)
    assert aside["a\nb"] == (
        "hw/a?b: this is no student's name; rename it to at most 100 visible characters "
        "that do not start with a dot or a blank"
    )


def test_links_among_submissions_are_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "hw/alice/c3_contracting.py")
    (tmp_path / "hw/mallory").symlink_to(tmp_path / "hw/alice")
    (tmp_path / "hw/loop").symlink_to("loop")
    (tmp_path / "hw/round").symlink_to("../hw")
    (tmp_path / "hw/zoe.smith").symlink_to(tmp_path / "hw/alice")
    (tmp_path / "hw/yan_03_matmuls.zip").symlink_to("nowhere")
    graded, aside = set_aside(Path("hw"))
    assert graded == ["alice"] and list(aside) == ["loop", "mallory", "round", "yan", "zoe.smith"]
    assert aside["loop"] == "hw/loop is a link and was not followed; put the files themselves there"


def test_a_link_that_names_no_student_gets_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier, the grader read a link named submitted.csv as a student with this name."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "hw/alice/c3_contracting.py")
    write(tmp_path / "times.csv")
    for name in ("submitted.csv", "README.md", "alice.pdf"):
        (tmp_path / "hw" / name).symlink_to("../times.csv")
    found = find_submissions([Path("hw")], EXERCISES)
    assert [(case.student, case.graded) for case in found.cases] == [("alice", True)]
    assert found.notes == [f"not read: README.md; {KINDS}"]


@pytest.mark.parametrize("name", ["Alice", "alice.zip", "alice_c3_contracting.py"])
def test_a_link_beside_a_students_folder_sets_the_student_aside(tmp_path: Path, name: str) -> None:
    """Earlier, the grader graded the folder, and set aside a second student with the name of the link."""
    write(tmp_path / "hw/alice/c3_contracting.py")
    (tmp_path / "hw" / name).symlink_to(tmp_path)
    graded, aside = set_aside(tmp_path / "hw")
    assert graded == [] and list(aside) == ["alice"] and f"{name} (a link)" in aside["alice"]


def test_files_that_may_be_submissions_beside_the_folders_are_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "hw/alice/c3_contracting.py")
    for name in ("bob", "carol.tar.gz", "dan_c3_contracting.RAR", "eve.py", "03_matmuls.7z"):
        write(tmp_path / "hw" / name)
    graded, aside = set_aside(Path("hw"))
    assert graded == ["alice"] and list(aside) == ["", "bob", "carol", "dan", "eve"], "03_matmuls.7z names no student"
    unpack = "unpack it into a folder named after the student, then remove this file"
    assert aside["bob"] == f"hw/bob is neither a folder nor a .zip; {unpack}"
    assert aside["eve"].startswith("hw/eve.py is not named after an exercise; rename it, or move it into a folder")


@pytest.mark.parametrize("name", ["bob.zip", "bob.tar.gz", "bob.7z", "Bob.ipynb", "bob_c3_contracting.tgz", "bob.py"])
def test_a_file_beside_a_students_folder_that_may_hold_another_submission_sets_the_student_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Otherwise the grader ignores each such file that is not a .zip, and grades the folder without it."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "hw/alice/c3_contracting.py")
    write(tmp_path / "hw/bob/c3_contracting.py")
    write(tmp_path / "hw" / name)
    reason = "put the submissions into one folder, or rename one if they are from two students"
    for paths in ([Path("hw")], [Path("hw", each) for each in ("alice", "bob", name)]):
        graded, aside = set_aside(*paths)
        assert graded == ["alice"] and aside["bob"].endswith(reason)
        assert {"hw/bob", f"hw/{name}"} <= {*aside["bob"].replace(";", "").split()}


@pytest.mark.parametrize("name", ["bob.pdf", "bob.docx", "bob_c3_contracting.rtf", "bob.zip.part"])
def test_a_file_beside_a_students_folder_that_is_not_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "hw/bob/c3_contracting.py")
    write(tmp_path / "hw" / name)
    found = find_submissions([Path("hw")], EXERCISES)
    assert [student for student, _ in found.students] == ["bob"] and found.notes == []
    (case,) = found.cases
    assert (case.student, case.graded, case.paths) == ("bob", True, (Path("hw", name),))
    assert case.reason.startswith(f"hw/{name} is beside the submission and was not read")


def nothing(*paths: Path) -> str:
    with pytest.raises(NothingToGrade) as error:
        find(*paths)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_path_without_submissions_gives_an_error_with_the_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "submissions/logs/run.txt")
    write(tmp_path / "notes.txt")
    assert nothing() == "nothing to grade: name a folder of submissions"
    assert nothing(Path("submisions")) == "no such file or folder: submisions; did you mean submissions?"
    assert nothing(Path("nowhere/at/all")) == "no such file or folder: nowhere/at/all"
    assert nothing(Path("a\0b")) == "no such file or folder: a?b"
    assert nothing(Path("submissions")) == (
        f"nothing to grade in submissions: {LOOKED_FOR}, as in submissions/alice/c1_local.py"
    )
    assert nothing(Path("notes.txt")) == f"not read: notes.txt; {KINDS}"


def test_one_useless_path_among_others_gives_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "README.md")
    write(tmp_path / "alice/c3_contracting.py")
    found, notes = find(Path("README.md"), Path("alice"))
    assert [student for student, _ in found] == ["alice"]
    assert notes == [f"not read: README.md; {KINDS}"]


def test_a_batch_in_which_all_submissions_are_set_aside_has_only_cases(tmp_path: Path) -> None:
    """An error in place of the cases would stop the run, and the class page and grades.csv would lack the cases."""
    write(tmp_path / "bob/c3_contracting.py")
    write(tmp_path / "bob.ipynb")
    found = find_submissions([tmp_path], EXERCISES)
    assert (found.students, [case.student for case in found.cases]) == ([], ["bob"])


@pytest.mark.parametrize("name", ["Exercises", next(iter(EXERCISES.values())).upper()])
def test_folders_of_the_course_are_recognised_in_any_case(tmp_path: Path, name: str) -> None:
    for folder in ("ada", "bo", name):
        write(tmp_path / folder / "c3_contracting.py")
    found = find_submissions([tmp_path], EXERCISES)
    assert [student for student, _ in found.students] == ["ada", "bo"]
    assert [case.paths for case in found.cases] == [(tmp_path / name,)]


def test_every_submission_that_is_found_can_be_read(tmp_path: Path):
    write(tmp_path / "alice/c3_contracting.py")
    write(tmp_path / "bob.zip", zipped({"c3_contracting.py": "a = 1"}))
    write(tmp_path / "c3_contracting-carol.py")
    found, _ = find(tmp_path)
    assert [sorted(read(path, student, EXERCISES).sources) for student, path in found] == [["c3_contracting"]] * 3


def test_only_a_limited_number_of_zip_member_names_is_matched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Otherwise a .zip with 10,000 names takes half a minute of the grader's own process."""
    monkeypatch.setattr(limits, "MAX_FILES", 3)
    write(tmp_path / "alice/work.zip", zipped({**{f"h{i}.py": "" for i in range(5)}, "hw/c3_contracting.py": ""}))
    with pytest.raises(NothingToGrade):
        find(tmp_path)
    write(tmp_path / "bob/c3_contracting.py")
    assert [student for student, _ in find(tmp_path)[0]] == ["alice", "bob"]
