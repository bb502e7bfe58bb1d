"""The grader reads the submission time from the submission itself. No content of a submission raises an error."""

from __future__ import annotations

import json
import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.intake.archives import MANIFEST
from grader.intake.parsers import Parsers
from grader.intake.times import DATED, STAMP, ZIPPED, handed_in_at
from tests.handed_in import write

AT = datetime(2026, 11, 2, 12, tzinfo=UTC)


def dated(path: Path, time: datetime) -> Path:
    os.utime(path, (time.timestamp(), time.timestamp()))
    return path


def zipped(path: Path, year: int = 2026, **manifest: object) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a/c3.py", (year, 11, 1, 10, 0, 0)), "x = 1")
        archive.writestr(zipfile.ZipInfo("a/c4.py", (year, 11, 1, 11, 0, 0)), "x = 1")
        if manifest:
            archive.writestr(MANIFEST, json.dumps(manifest))
    return dated(path, AT)


def test_the_newest_date_of_the_graded_files_counts(tmp_path: Path) -> None:
    dated(write(tmp_path / "sub" / "c3.py"), AT)
    dated(write(tmp_path / "c4.py"), AT.replace(hour=13))
    assert handed_in_at(tmp_path, ["sub/c3.py"]) == (AT, DATED)
    assert handed_in_at(tmp_path, ["sub/c3.py", "c4.py"]) == (AT.replace(hour=13), DATED)
    assert handed_in_at((tmp_path / "c4.py", tmp_path / "sub" / "c3.py"), ["c3.py"]) == (AT, DATED)
    assert handed_in_at(tmp_path, ["gone.py"]) is None and handed_in_at(tmp_path, []) is None


def test_a_stamp_in_a_zip_overrides_the_zips_own_times(tmp_path: Path) -> None:
    plain = zipped(tmp_path / "a.zip")
    own = datetime(2026, 11, 1, 11).astimezone()
    assert handed_in_at(plain, ["a/c3.py", "a/c4.py"]) == (own, ZIPPED)
    assert handed_in_at(tmp_path, ["a.zip/a/c4.py"]) == (own, ZIPPED)  # a zip in the student's folder
    assert handed_in_at(zipped(tmp_path / "b.zip", 1980), ["a/c3.py"]) == (
        AT,
        DATED,
    )  # 1980 means that a zip's member has no time
    stamped = zipped(tmp_path / "c.zip", submitted="2026-11-01T09:00:00+01:00")
    assert handed_in_at(stamped, ["a/c3.py"]) == (datetime(2026, 11, 1, 8, tzinfo=UTC), STAMP)


def test_a_stamp_beside_unpacked_files_counts(tmp_path: Path) -> None:
    write(tmp_path / "c3.py")
    write(tmp_path / MANIFEST, json.dumps({"submitted": AT.isoformat()}))
    assert handed_in_at(tmp_path, ["c3.py"]) == (AT, STAMP)


@pytest.mark.parametrize(
    "manifest",
    [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"submitted": 1}', b'{"submitted": "2026-11-01"}',
     b'{"submitted": "0001-01-01T00:00:00+14:00"}', b'{"submitted": "9999-12-31T23:59:59-14:00"}'],
)  # fmt: skip
def test_an_unreadable_stamp_is_ignored(manifest: bytes) -> None:
    assert Parsers().stamp(manifest).time is None


@given(st.binary(max_size=200), st.text(max_size=20))
def test_finding_a_submission_time_raises_no_error_for_any_bytes(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str
) -> None:
    place = tmp_path_factory.mktemp("t")
    (place / "a.zip").write_bytes(b"PK\x03\x04" + data)
    (place / MANIFEST).write_bytes(data)
    handed_in_at(place / "a.zip", [name])
    handed_in_at(place, [f"a.zip/{name}", name])


def test_links_and_devices_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "c3.py").symlink_to("/dev/zero")
    (tmp_path / MANIFEST).symlink_to("/dev/zero")
    assert handed_in_at(tmp_path, ["c3.py"]) is None
