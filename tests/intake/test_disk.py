"""Files with odd names, special files, large files and files that raise errors."""

from __future__ import annotations

import errno
import os
import re
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from grader.intake.submission import Unreadable
from grader.wire import limits
from tests.handed_in import names, read_, write


def test_control_characters_do_not_reach_notes_or_names(tmp_path: Path):
    name = "\x1b[2J c3_contracting\u202e.py"
    write(tmp_path / name)
    write(tmp_path / "\x1b]0;x\x07.py")
    found = read_(tmp_path)
    source = found.sources["c3_contracting"]
    assert source.name == source.chunks[0].name == "?[2J c3_contracting?.py"
    assert found.notes == ("these files are not named after an exercise, so they are not graded: ?]0;x?.py",)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_file_name_that_is_not_utf8(tmp_path: Path):
    write(tmp_path / os.fsdecode(b"c3_contracting-\xff.py"))
    assert names(read_(tmp_path)) == {"c3_contracting": "c3_contracting-?.py"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_refused_without_waiting(tmp_path: Path):
    os.mkfifo(tmp_path / "c3_contracting.py")
    found = read_(tmp_path)
    assert not found.sources
    assert found.notes == ("c3_contracting.py is not a plain file",)


def test_a_file_over_the_limit_is_refused(tmp_path: Path):
    write(tmp_path / "c1_local.py", b"#" * limits.MAX_FILE)
    write(tmp_path / "c3_contracting.py", b"#" * (limits.MAX_FILE + 1))
    write(tmp_path / "05_rings.ipynb", b" " * (limits.MAX_NOTEBOOK + 1))
    found = read_(tmp_path)
    assert names(found) == {"c1_local": "c1_local.py"}
    assert found.notes == (
        "c3_contracting.py is larger than 5 MiB and was not read; make it smaller and hand it in again",
        "05_rings.ipynb is larger than 64 MiB and was not read; clear its outputs and hand it in again",
    )


def test_no_byte_of_a_file_over_the_limit_is_read(tmp_path: Path):
    """Otherwise a submission of 500 notebooks over the limit delays the class while the grader reads 64 MiB of each."""
    path = write(tmp_path / "05_rings.ipynb")
    os.truncate(path, limits.MAX_NOTEBOOK + 1)
    tracemalloc.start()
    assert not read_(tmp_path).sources
    assert tracemalloc.get_traced_memory()[1] < limits.MIB
    tracemalloc.stop()


@pytest.mark.parametrize("fault", ["EACCES", "EPERM", "EIO", "ELOOP"])
@pytest.mark.parametrize("what", ["open", "scandir"])
def test_an_unreadable_file_costs_no_points(
    what: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "c3_contracting.py")
    write(tmp_path / "c1_local.py")
    (tmp_path / "sub").mkdir()
    number, real = getattr(errno, fault), getattr(os, what)

    def fails(path: Any, *rest: Any) -> Any:
        if Path(path).name in ("c3_contracting.py", "sub"):
            raise OSError(number, os.strerror(number), str(path))
        return real(path, *rest)

    monkeypatch.setattr(os, what, fails)
    with pytest.raises(
        Unreadable, match=f"cannot be read: {re.escape(os.strerror(number))}; mend the cause and grade again"
    ):
        read_(tmp_path)
