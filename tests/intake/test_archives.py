"""Archives are read like folders. The grader trusts no size, name or count that an archive states."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from grader.wire import limits
from tests.handed_in import EXERCISES, code, names, notebook, read_, texts, write, zipped


def test_a_zip_is_read_like_a_folder(tmp_path: Path):
    members = {
        "hw/c3_contracting.py": "a = 1",
        "hw\\05_rings.ipynb": notebook(code("b")),
        "./c1_local.py": "c = 1",
        "__MACOSX/hw/._c3_contracting.py": "",
        "hw/notes.txt": "",
        "hw/sub/": "",
    }
    path = write(tmp_path / "alice.zip", zipped(members))
    found = read_(path)
    assert found.sources["c3_contracting"].name == "hw/c3_contracting.py"
    assert set(found.sources) == set(EXERCISES)
    assert found.notes == ()
    assert read_(tmp_path).sources["c3_contracting"].name == "alice.zip/hw/c3_contracting.py"


def member(name: str, **fields: Any) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    for key, value in fields.items():
        setattr(info, key, value)
    return info


@pytest.mark.parametrize(
    ("info", "note"),
    [
        (member("../c3_contracting.py"), "../c3_contracting.py in a.zip points outside the archive and was not read"),
        (member("/c3_contracting.py"), "/c3_contracting.py in a.zip points outside the archive and was not read"),
        (member("C:/c3_contracting.py"), "C:/c3_contracting.py in a.zip points outside the archive and was not read"),
        (member("..\\c3_contracting.py"), "../c3_contracting.py in a.zip points outside the archive and was not read"),
        (
            member("c3_contracting.py", external_attr=(stat.S_IFLNK | 0o777) << 16),
            "c3_contracting.py in a.zip is not a plain file and was not read",
        ),
        (
            member("c3_contracting.py", compress_type=zipfile.ZIP_LZMA),
            "c3_contracting.py in a.zip is compressed in an unusual way and was not read; make a plain .zip",
        ),
        (
            member("1/2/3/4/5/6/7/8/9/c3_contracting.py"),
            "1/2/3/4/5/6/7/8/9/c3_contracting.py in a.zip is nested too deeply and was not read",
        ),
    ],
)
def test_unsafe_members_are_refused(tmp_path: Path, info: zipfile.ZipInfo, note: str):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
        archive.writestr("c1_local.py", "a = 1")
    found = read_(tmp_path / "a.zip")
    assert names(found) == {"c1_local": "c1_local.py"}
    assert found.notes == (note,)


def test_a_member_without_a_name_is_noted(tmp_path: Path):
    data = zipped({"nameless.py": "a = 1", "c1_local.py": "a = 1"}).replace(b"nameless.py", b"\0ameless.py")
    found = read_(write(tmp_path / "a.zip", data))
    assert names(found) == {"c1_local": "c1_local.py"}
    assert found.notes == ("a.zip holds a file without a name, which was not read",)


def test_an_encrypted_member_is_refused(tmp_path: Path):
    data = bytearray(zipped({"c3_contracting.py": "a = 1"}))
    data[6] |= 1  # set the "encrypted" flag in the file's header and in the zip's directory
    data[data.index(b"PK\x01\x02") + 8] |= 1
    found = read_(write(tmp_path / "a.zip", bytes(data)))
    assert found.notes[0] == ("c3_contracting.py in a.zip is encrypted and was not read; hand it in without a password")


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path):
    found = read_(write(tmp_path / "a.zip", zipped({"c3_contracting.py": "#" * (limits.MAX_FILE + 1)})))
    assert not found.sources
    assert found.notes == (
        "c3_contracting.py is larger than 5 MiB and was not read; make it smaller and hand it in again",
    )


def test_the_size_that_an_archive_states_is_not_trusted(tmp_path: Path):
    data = bytearray(zipped({"c3_contracting.py": "#" * (limits.MAX_FILE + 1)}))
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = (10).to_bytes(4, "little")
    found = read_(write(tmp_path / "a.zip", bytes(data)))
    assert not found.sources
    assert found.notes == ("c3_contracting.py is damaged in the archive; make the .zip again",)


def test_a_zip_unpacks_to_no_more_than_the_total(tmp_path: Path):
    many = {f"{i}/c3_contracting.py": "#" * (limits.MAX_FILE) for i in range(6)}
    found = read_(write(tmp_path / "a.zip", zipped(many)))
    assert names(found) == {"c3_contracting": "0/c3_contracting.py"}
    assert "more than 20 MiB were submitted: 4/c3_contracting.py and later files were not read" in found.notes


def test_the_number_of_members_is_limited(tmp_path: Path):
    many = {f"{i}.py": "" for i in range(600)} | {"c3_contracting.py": "a = 1"}
    note = read_(write(tmp_path / "a.zip", zipped(many))).notes[0]
    assert note == "more than 500 .py files and notebooks were submitted; the rest was not read"
    note = read_(write(tmp_path / "b.zip", b"PK\x01\x02" * 10_001)).notes[0]
    assert note == "b.zip holds more than 10000 files and was not read; hand in only your work"


def test_a_file_that_is_no_zip_or_damaged_is_noted(tmp_path: Path):
    note = "a.zip is not a .zip archive, or is damaged; make it again"
    assert read_(write(tmp_path / "a.zip", b"PK hello")).notes[0] == note
    data = bytearray(zipped({"c3_contracting.py": "a = 1\n" * 50}))
    data[50] ^= 0xFF
    found = read_(write(tmp_path / "a.zip", bytes(data)))
    assert found.notes == ("c3_contracting.py is damaged in the archive; make the .zip again",)


def test_the_last_of_two_members_with_one_name_counts(tmp_path: Path):
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("c3_contracting.py", "a = 1")
        archive.writestr("c3_contracting.py", "a = 2")
    found = read_(tmp_path / "a.zip")
    assert texts(found) == ["a = 2"]
    assert found.notes == ("c3_contracting.py is in a.zip twice; the grader reads the last copy",)


def test_a_zip_of_zips_is_not_opened_and_the_note_shows_how_to_unpack(tmp_path: Path):
    found = read_(write(tmp_path / "a class.zip", zipped({"ada.zip": "PK", "bo.ZIP": "PK", "__MACOSX/._ada.zip": ""})))
    assert found.notes[0] == (
        "a class.zip holds 2 .zip files, which were not opened; if a class.zip holds the submissions of a class, unpack it: "
        "unzip 'a class.zip' -d class, then grade the folder class"
    )
    found = read_(write(tmp_path / "one.zip", zipped({"old.zip": "PK", "c3_contracting.py": "a = 1"})))
    assert texts(found) == ["a = 1"] and "holds 1 .zip file, which was not opened" in found.notes[0]
