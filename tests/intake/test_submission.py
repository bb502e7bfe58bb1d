"""Reading what learners hand in: every kind of file, good, damaged and hostile."""

from __future__ import annotations

import ast
import errno
import io
import json
import os
import re
import stat
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from grader.intake import submission
from grader.intake.submission import (
    NothingToGrade,
    Submission,
    Unreadable,
    find_submissions,
    handed_out,
    neutralise,
    read,
)

EXERCISES = {
    "c1_local": "03_matmuls",
    "c3_contracting": "03_matmuls",
    "e1_ring_gather": "05_rings",
    "e1_ring_gather_both": "05_rings",
}
LOOKED_FOR = (
    "looked for c1_local.py, c3_contracting.py, e1_ring_gather.py and 1 more, or 03_matmuls.ipynb, 05_rings.ipynb"
)


def write(path: Path, content: str | bytes = "x = 1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def code(source: Any, **metadata: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": [], "execution_count": None}


def notebook(*cells: Any) -> str:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def zipped(members: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def read_(path: Path, **kwargs: Any) -> Submission:
    return read(path, "alice", EXERCISES, **kwargs)


def names(found: Submission) -> dict[str, str]:
    return {exercise: source.name for exercise, source in found.sources.items()}


def texts(found: Submission, exercise: str = "c3_contracting") -> list[str]:
    return [chunk.text for chunk in found.sources[exercise].chunks]


def read_cells(tmp_path: Path, *cells: Any) -> Submission:
    return read_(write(tmp_path / "03_matmuls.ipynb", notebook(*cells)))


# -- which file serves which exercise ----------------------------------------------------------


def test_a_folder_is_searched_by_name(tmp_path: Path):
    write(tmp_path / "hw/03_matmuls/c3_contracting.py", "a = 1\n")
    write(tmp_path / "05_rings.ipynb", notebook(code("b = 2")))
    found = read_(tmp_path)
    assert found.student == "alice"
    assert names(found) == {
        "c3_contracting": "hw/03_matmuls/c3_contracting.py",
        "e1_ring_gather": "05_rings.ipynb",
        "e1_ring_gather_both": "05_rings.ipynb",
    }
    chunk = found.sources["c3_contracting"].chunks[0]
    assert (chunk.name, chunk.text) == ("c3_contracting.py", "a = 1\n")
    assert found.sources["e1_ring_gather"] is found.sources["e1_ring_gather_both"]
    assert found.notes == ()


def test_a_py_file_comes_before_the_notebook_of_its_module(tmp_path: Path):
    write(tmp_path / "a/b/c3_contracting.py")
    write(tmp_path / "03_matmuls.ipynb", notebook(code("b = 2")))
    found = read_(tmp_path)
    assert names(found) == {"c1_local": "03_matmuls.ipynb", "c3_contracting": "a/b/c3_contracting.py"}
    assert found.notes == ("03_matmuls.ipynb is not graded for c3_contracting: used a/b/c3_contracting.py",)


def test_an_unchanged_file_gives_way_to_a_changed_one(tmp_path: Path):
    given_out = tmp_path / "exercises"
    write(given_out / "03_matmuls/c3_contracting.py", "TODO = 1\n")
    write(given_out / "03_matmuls/c1_local.py", "TODO = 2\n")
    write(given_out / "03_matmuls/03_matmuls.ipynb", notebook(code("TODO = 1")))
    stubs = handed_out(given_out, EXERCISES)
    assert len(stubs) == 2  # the notebook's code is c3_contracting.py's, trailing blanks aside

    work = tmp_path / "work"
    write(work / "c3_contracting.py", "TODO = 1  \r\n\r\n")
    write(work / "c1_local.py", "solved = 2\n")
    write(work / "03_matmuls.ipynb", notebook(code("solved = 1")))
    assert names(read_(work))["c3_contracting"] == "c3_contracting.py"
    found = read_(work, handed_out=stubs)
    assert names(found) == {"c1_local": "c1_local.py", "c3_contracting": "03_matmuls.ipynb"}
    assert found.notes == ("03_matmuls.ipynb is not graded for c1_local: used c1_local.py",)


def test_an_unchanged_file_is_graded_where_there_is_no_other(tmp_path: Path):
    write(tmp_path / "c3_contracting.py", "TODO = 1\n")
    found = read_(tmp_path, handed_out=handed_out(tmp_path, EXERCISES))
    assert names(found) == {"c3_contracting": "c3_contracting.py"}


def test_of_copies_the_exact_name_then_the_shortest_path(tmp_path: Path):
    write(tmp_path / "c3_contracting (1).py")
    write(tmp_path / "old/c3_contracting.py")
    write(tmp_path / "older/still/c3_contracting.py")
    found = read_(tmp_path)
    assert names(found) == {"c3_contracting": "old/c3_contracting.py"}
    assert found.notes == (
        "older/still/c3_contracting.py is not graded for c3_contracting: used old/c3_contracting.py",
        "c3_contracting (1).py is not graded for c3_contracting: used old/c3_contracting.py",
    )


@pytest.mark.parametrize(
    "name",
    [
        "03_matmuls (2).ipynb",
        "03_matmuls-alice.ipynb",
        "alice_03_matmuls.ipynb",
        "03_matmuls-Copy1.ipynb",
        "03_Matmuls.IPYNB",
        "liddellalice_123_456_03_matmuls-1.ipynb",
    ],
)
def test_a_name_may_contain_the_id(tmp_path: Path, name: str):
    write(tmp_path / name, notebook(code("b = 2")))
    assert names(read_(tmp_path)) == {"c1_local": name, "c3_contracting": name} == names(read_(tmp_path / name))


def test_of_two_ids_in_a_name_the_longer_counts(tmp_path: Path):
    write(tmp_path / "alice_e1_ring_gather_both.py")
    assert names(read_(tmp_path)) == {"e1_ring_gather_both": "alice_e1_ring_gather_both.py"}


def test_a_notebook_may_be_one_exercise_and_a_py_file_a_module(tmp_path: Path):
    write(tmp_path / "c3_contracting.ipynb", notebook(code("b = 2")))
    write(tmp_path / "05_rings.py")
    assert names(read_(tmp_path)) == {
        "c3_contracting": "c3_contracting.ipynb",
        "e1_ring_gather": "05_rings.py",
        "e1_ring_gather_both": "05_rings.py",
    }


def test_a_slip_of_the_keyboard_is_accepted_with_a_note(tmp_path: Path):
    write(tmp_path / "c3_contracing.py")
    write(tmp_path / "05_ring.ipynb", notebook(code("b = 2")))
    found = read_(tmp_path)
    assert names(found)["c3_contracting"] == "c3_contracing.py"
    assert found.notes == (
        "c3_contracing.py is taken for c3_contracting.py",
        "05_ring.ipynb is taken for 05_rings.ipynb",
    )
    assert names(read_(tmp_path / "c3_contracing.py")) == {"c3_contracting": "c3_contracing.py"}


def test_a_slip_does_not_beat_the_exact_name(tmp_path: Path):
    write(tmp_path / "c3_contracing.py")
    write(tmp_path / "deep/c3_contracting.py")
    found = read_(tmp_path)
    assert names(found) == {"c3_contracting": "deep/c3_contracting.py"}
    assert found.notes == ("c3_contracing.py is not graded for c3_contracting: used deep/c3_contracting.py",)


def test_a_wrong_digit_is_another_exercise(tmp_path: Path):
    write(tmp_path / "c2_contracting.py")
    found = read_(tmp_path)
    assert not found.sources
    assert found.notes == (
        "named after no exercise and not graded: c2_contracting.py",
        f"nothing to grade: {LOOKED_FOR}",
    )


def test_an_ambiguous_slip_is_not_graded(tmp_path: Path):
    write(tmp_path / "c3_gather_z.py")
    found = read(tmp_path, "alice", {"c3_gather_x": "m", "c3_gather_y": "m"})
    assert not found.sources
    assert found.notes[0] == "c3_gather_z.py could be c3_gather_x or c3_gather_y and is not graded; rename it"


def test_what_is_never_work_is_skipped_and_other_files_are_named(tmp_path: Path):
    for folder in (".hidden", "__pycache__", ".ipynb_checkpoints", "_public", "venv", "__MACOSX"):
        write(tmp_path / folder / "c3_contracting.py")
    write(tmp_path / "._c3_contracting.py")
    write(tmp_path / "c1_local.py")
    write(tmp_path / "notes.txt")
    for i in range(7):
        write(tmp_path / f"helper{i}.py")
    found = read_(tmp_path)
    assert names(found) == {"c1_local": "c1_local.py"}
    assert found.notes == (
        "named after no exercise and not graded: helper0.py, helper1.py, helper2.py, helper3.py, helper4.py and 2 more",
    )


def test_unusable_paths_are_notes(tmp_path: Path):
    assert read_(tmp_path / "no.py").notes[0] == "no.py does not exist"
    assert read_(write(tmp_path / "a.txt")).notes[0] == "a.txt is not a .py file, a notebook (.ipynb) or a .zip"
    assert read_(Path("a\0b")).notes[0] == "a?b cannot be read (valueerror)"
    assert read_(tmp_path / ("a" * 999)).notes[0].endswith("... cannot be read (file name too long)")


def test_control_characters_do_not_reach_notes_or_names(tmp_path: Path):
    name = "\x1b[2J c3_contracting\u202e.py"
    write(tmp_path / name)
    write(tmp_path / "\x1b]0;x\x07.py")
    found = read_(tmp_path)
    source = found.sources["c3_contracting"]
    assert source.name == source.chunks[0].name == "?[2J c3_contracting?.py"
    assert found.notes == ("named after no exercise and not graded: ?]0;x?.py",)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_file_name_that_is_not_utf8(tmp_path: Path):
    write(tmp_path / os.fsdecode(b"c3_contracting-\xff.py"))
    assert names(read_(tmp_path)) == {"c3_contracting": "c3_contracting-?.py"}


# -- links, devices, limits --------------------------------------------------------------------


def test_links_that_were_handed_in_are_not_followed(tmp_path: Path):
    write(tmp_path / "bob/c3_contracting.py", "secret = 1")
    (tmp_path / "alice").mkdir()
    (tmp_path / "alice/c3_contracting.py").symlink_to(tmp_path / "bob/c3_contracting.py")
    (tmp_path / "alice/more").symlink_to(tmp_path / "bob")
    found = read_(tmp_path / "alice")
    assert not found.sources
    assert found.notes[:2] == (
        "c3_contracting.py is a link and was not followed",
        "more is a link and was not followed",
    )


def test_a_link_that_was_typed_is_followed(tmp_path: Path):
    write(tmp_path / "bob/c3_contracting.py")
    (tmp_path / "current").symlink_to(tmp_path / "bob")
    assert names(read_(tmp_path / "current")) == {"c3_contracting": "c3_contracting.py"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "c3_contracting.py")
    found = read_(tmp_path)
    assert not found.sources
    assert found.notes == ("c3_contracting.py is not a plain file",)


def test_a_file_over_the_limit_is_refused(tmp_path: Path):
    write(tmp_path / "c1_local.py", b"#" * submission.MAX_FILE)
    write(tmp_path / "c3_contracting.py", b"#" * (submission.MAX_FILE + 1))
    write(tmp_path / "05_rings.ipynb", b" " * (submission.MAX_NOTEBOOK + 1))
    found = read_(tmp_path)
    assert names(found) == {"c1_local": "c1_local.py"}
    assert found.notes == (
        "c3_contracting.py is larger than 5 MiB and was not read; make it smaller and hand it in again",
        "05_rings.ipynb is larger than 64 MiB and was not read; clear its outputs and hand it in again",
    )


def test_the_total_is_limited_and_exact_names_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(submission, "MAX_TOTAL", 2**20)
    write(tmp_path / "a c3_contracting.py", b"#" * 2**20)
    write(tmp_path / "c3_contracting.py")
    found = read_(tmp_path)
    assert names(found) == {"c3_contracting": "c3_contracting.py"}
    assert found.notes == ("more than 1 MiB were handed in: a c3_contracting.py and what follows was not read",)


def test_the_number_of_files_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(submission, "MAX_FILES", 3)
    write(tmp_path / "c3_contracting.py")
    for i in range(5):
        write(tmp_path / "aaa" / f"h{i}.py")
    found = read_(tmp_path)
    assert names(found) == {"c3_contracting": "c3_contracting.py"}
    assert found.notes[0] == "more than 3 .py files and notebooks were handed in; the rest was not looked at"


def test_the_number_of_entries_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(submission, "MAX_ENTRIES", 3)
    for i in range(5):
        write(tmp_path / f"h{i}.txt")
    assert read_(tmp_path).notes[0] == "more than 3 files and folders were handed in; the rest was not looked at"


def test_the_depth_is_limited(tmp_path: Path):
    folder = tmp_path.joinpath(*"12345678")
    write(folder / "c1_local.py")
    write(folder / "9/c3_contracting.py")
    found = read_(tmp_path)
    assert names(found) == {"c1_local": "1/2/3/4/5/6/7/8/c1_local.py"}
    assert found.notes == ("folders deeper than 8 levels were not looked at",)


def test_the_number_of_notes_is_limited(tmp_path: Path):
    found = read_cells(tmp_path, *[code("%x")] * 150)
    assert len(found.notes) == 101
    assert found.notes[-1] == "and 50 more notes"


@pytest.mark.parametrize("fault", ["EACCES", "EPERM", "EIO", "ELOOP"])
@pytest.mark.parametrize("what", ["open", "scandir"])
def test_what_may_not_be_read_is_nobodys_zero(
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
        Unreadable, match=f"cannot be read: {re.escape(os.strerror(number))}; mend that and grade again"
    ):
        read_(tmp_path)


# -- bytes to text -----------------------------------------------------------------------------


def test_a_bom_and_foreign_line_ends_are_understood(tmp_path: Path):
    found = read_(write(tmp_path / "c3_contracting.py", b"\xef\xbb\xbfa = 1\r\nb = '\xc3\xa9'\rc = 3\n"))
    assert texts(found) == ["a = 1\nb = 'é'\nc = 3\n"]
    assert found.notes == ()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a = 1\nb = '\xe9'\n", "is not UTF-8 text (line 2); save it as UTF-8"),
        ("a = 1\n".encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
        (b"a = 1\n\0", "holds a NUL byte (line 2); save it as text"),
        (b" \n", "is empty"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes, reason: str):
    found = read_(write(tmp_path / "c3_contracting.py", content))
    assert not found.sources
    assert found.notes == (f"c3_contracting.py {reason}",)


def test_an_unreadable_file_gives_way_to_a_readable_one(tmp_path: Path):
    write(tmp_path / "c3_contracting.py", b"\xff\xff")
    write(tmp_path / "03_matmuls.ipynb", notebook(code("b = 2")))
    found = read_(tmp_path)
    assert names(found)["c3_contracting"] == "03_matmuls.ipynb"
    assert found.notes == ("c3_contracting.py is not UTF-8 text (line 1); save it as UTF-8",)


# -- notebooks ---------------------------------------------------------------------------------


def test_code_cells_are_counted_over_all_cells(tmp_path: Path):
    found = read_cells(
        tmp_path,
        {"cell_type": "markdown", "source": "# title"},
        code(["a = 1\n", "b = 2"]),
        {"cell_type": "raw", "source": "r"},
        {"cell_type": "code", "source": "c = 3"},  # no metadata, no outputs
    )
    chunks = found.sources["c3_contracting"].chunks
    assert [(c.name, c.text) for c in chunks] == [("cell 2", "a = 1\nb = 2"), ("cell 4", "c = 3")]
    assert found.notes == ()


def test_cells_of_tests_are_ours_and_left_out(tmp_path: Path):
    found = read_cells(
        tmp_path,
        code("given", nbgrader={"grade": False, "solution": False, "locked": True}),
        code("solution", nbgrader={"grade": False, "solution": True}),
        code("answer", nbgrader={"grade": True, "solution": True}),
        code("test", nbgrader={"grade": True, "solution": False, "locked": True}),
        code("odd", nbgrader=["grade"]),
    )
    assert texts(found) == ["given", "solution", "answer", "odd"]


def test_a_notebook_of_version_3_is_read(tmp_path: Path):
    cells = [{"cell_type": "heading", "source": "h"}, {"cell_type": "code", "input": ["a = 1\n", "b = 2"]}]
    document = {"nbformat": 3, "worksheets": [{"cells": cells}, {"cells": [{"cell_type": "code", "input": "c = 3"}]}]}
    found = read_(write(tmp_path / "03_matmuls.ipynb", json.dumps(document)))
    assert [c.name for c in found.sources["c1_local"].chunks] == ["cell 2", "cell 3"]
    assert texts(found) == ["a = 1\nb = 2", "c = 3"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("hello", "line 1 is not JSON"),
        ('{"cells": [\n<<<<<<< HEAD\n', "line 2 is not JSON"),
        (notebook(code("a"))[:-9], "line 1 is not JSON"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"cells": ' * 100_000, "it is nested too deeply"),
        ("[]", "it has no list of cells"),
        ('{"cells": {}}', "it has no list of cells"),
        ('{"worksheets": 3}', "it has no list of cells"),
    ],
)
def test_what_is_no_notebook_is_refused_in_one_line(tmp_path: Path, content: str, reason: str):
    found = read_(write(tmp_path / "03_matmuls.ipynb", content))
    assert not found.sources
    assert found.notes == (f"03_matmuls.ipynb is not a notebook: {reason}; export it again from Jupyter",)


def test_damaged_cells_are_left_out_and_the_rest_is_kept(tmp_path: Path):
    bad = [
        7,
        None,
        {},
        {"cell_type": []},
        {"cell_type": "quantum", "source": "a"},
        {"cell_type": "code"},
        code([1]),
        code("a\0"),
        code("'\ud800'"),
    ]
    found = read_cells(tmp_path, code("ok = 1"), *bad, {"cell_type": "code", "source": "ok = 2", "metadata": 3})
    assert [c.name for c in found.sources["c3_contracting"].chunks] == ["cell 1", "cell 11"]
    assert found.notes == ("damaged cells of 03_matmuls.ipynb were left out: 2, 3, 4, 5, 6 and 4 more",)


def test_huge_numbers_and_outputs_are_ignored(tmp_path: Path):
    cell = '{"cell_type": "code", "source": "a = 1", "execution_count": HUGE, "outputs": [{"x": 1e999999}]}'
    document = '{"nbformat": NaN, "cells": [CELL]}'.replace("CELL", cell).replace("HUGE", "9" * 9999)
    found = read_(write(tmp_path / "03_matmuls.ipynb", document))
    assert texts(found) == ["a = 1"]
    assert found.notes == ()


def test_what_ipython_alone_understands_is_noted_by_cell(tmp_path: Path):
    found = read_cells(tmp_path, code("%matplotlib inline\n!pip install x\njnp.sum?\na = 1"), code("%%bash\nls"))
    assert texts(found)[1] == ""
    assert found.notes == (
        "cell 1 of 03_matmuls.ipynb: left out %matplotlib inline, !pip install x and 1 more",
        "cell 2 of 03_matmuls.ipynb: left out %%bash",
    )


def test_notes_about_cells_of_an_ignored_notebook_are_not_given(tmp_path: Path):
    write(tmp_path / "03_matmuls.ipynb", notebook(code("%x")))
    write(tmp_path / "c1_local.py")
    write(tmp_path / "c3_contracting.py")
    assert read_(tmp_path).notes == (
        "03_matmuls.ipynb is not graded for c1_local, c3_contracting: used c1_local.py, c3_contracting.py",
    )


# -- IPython syntax ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%matplotlib inline\na = 1", "pass  # %matplotlib inline\na = 1"),
        ("if a:\n    !ls -l 'x\nb = 2", "if a:\n    pass  # !ls -l 'x\nb = 2"),
        ("jnp.sum?", "pass  # jnp.sum?"),
        ("?jnp\n%%time?", "pass  # ?jnp\npass  # %%time?"),
        ("a = !ls\nb = a", "a = None  # a = !ls\nb = a"),
        ("  x.y['k'] = %env HOME", "  x.y['k'] = None  # x.y['k'] = %env HOME"),
        ("a, b = !ls", "a = b = None  # a, b = !ls"),
        ("*a, = !ls", "a = None  # *a, = !ls"),
        ("!echo a \\\n  b\nc = 1", "pass  # !echo a \\\n#   b\nc = 1"),
        ("pip install jax\na = 1", "pass  # pip install jax\na = 1"),
        ("%time a = f(\n    1)\n!ls", "a = f(\n    1)\npass  # !ls"),
        ("%timeit f(1)", "pass  # %timeit f(1)"),
        ("%%time\na = 1", "# %%time\na = 1"),
        ("\n%%capture out\n%%timeit -n 1\n!ls\na = 1", "\n# %%capture out\n# %%timeit -n 1\npass  # !ls\na = 1"),
        ("%%bash\nrm -rf /", ""),
        ("%%writefile c3_contracting.py\na = 1", ""),
        ("%%time\n%%html\n<b>", ""),
    ],
)
def test_ipython_syntax_is_replaced(text: str, expected: str):
    assert neutralise(text)[0] == expected


@pytest.mark.parametrize(
    "kept",
    [
        's = """\n%matplotlib inline\n!ls\nwhat?\n"""',
        "s = '''it's\n%x\n'''",
        "a = (7\n%3\n)",
        "a = 7 \\\n%3",
        "s = 'a \\\n%b'",
        "a = [1,  # ( don't\n%x\n]",
        "b = 1 != 2",
        "f(a=1)\n# what?",
        "'a = %'",
        "a['x = %s']",
    ],
)
def test_only_statements_are_replaced(kept: str):
    text, left_out = neutralise(f"{kept}\n%magic")
    assert text == f"{kept}\npass  # %magic"
    assert left_out == ["%magic"]


def test_a_magic_in_brackets_that_never_close_is_left_for_python_to_report():
    assert neutralise("f(\n%x") == ("f(\n%x", [])


def test_warnings_in_learner_code_are_no_errors():
    assert neutralise(r"a = '\d'") == (r"a = '\d'", [])


# Pieces that make strings, brackets, continuations and magics meet.
TOKENS = ["%", "%%", "!", "?", "%time ", "%%time", "%%bash", "a", "a = ", "1", "b, ", "(", ")", "[", "{", "}", "'", '"']
LONGER = ['"""', "'''", "\\", "\n", "\n\n", "\n    ", " ", "#", "pip install x", "f'{", "if a:", "\t", "\f", "é"]
PIECES = st.lists(st.sampled_from(TOKENS) | st.sampled_from(LONGER), max_size=30).map("".join)
STATEMENTS = [
    "",
    "a = 7\\\n%3",
    "s = '''\n!ls\n?\n'''",
    "b = (1\n%2)",
    "x = 1 != 2",
    "# a?",
    "r = r'\\''",
    'f"{a!r}"',
    "if a:\n    s = '%x'\n    t = '\\\n!y'",
    "d = {'a':\n1}",
    "def f(): pass",
]
PYTHON = st.lists(st.sampled_from(STATEMENTS)).map("\n".join)


@hypothesis_settings(deadline=None, max_examples=500)
@given(PIECES | st.text(max_size=60))
def test_line_numbers_stay(text: str):
    changed, left_out = neutralise(text)
    assert changed.count("\n") == text.count("\n") or (changed == "" and left_out[-1].startswith("%%"))
    assert left_out or changed == text


@hypothesis_settings(deadline=None)
@given(PYTHON)
def test_python_is_not_changed(text: str):
    ast.parse(text)
    assert neutralise(text) == (text, [])
    assert submission._without_line_magics(text, []) == text  # nor by the second line of defence
    assert neutralise(f"{text}\n%x") == (f"{text}\npass  # %x", ["%x"])


LONG = {
    "magics": "%x\n" * 60_000,
    "cell magics": "%%time\n" * 25_000,
    "empty lines": "\n" * 190_000 + "%",
    "blanks": " \t" * 90_000 + "%",
    "strings": '"""' * 60_000 + "\n%x",
    "no end of a string": "'" * 190_001 + "\n%x\\",
    "assignments": "x = " * 40_000 + "%y",
    "names": "x, " * 60_000 + "\n%x",
    "brackets": "(" * 190_000 + "\n%",
    "minus": "-" * 190_000 + "?",
    "help": "?" * 190_000,
    "a name and blanks": "a" + " " * 190_000 + "\n%x",
    "a long name": "a" * 190_000 + "\n%x",
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_long_cells_take_no_long_time(text: str):
    neutralise(text)  # quadratic work would take minutes


def test_a_cell_that_is_far_too_long_is_not_touched():
    text = "%x\n" * 100_000
    assert neutralise(text) == (text, [])


# -- digest ------------------------------------------------------------------------------------


def test_the_digest_is_of_names_and_bytes(tmp_path: Path):
    write(tmp_path / "a/c3_contracting.py", "a = 1")
    write(tmp_path / "b/c3_contracting.py", "a = 1")
    write(tmp_path / "b/irrelevant.txt")
    write(tmp_path / "c/c3_contracting.py", "a = 2")
    write(tmp_path / "d/c1_local.py", "a = 1")
    write(tmp_path / "e.zip", zipped({"c3_contracting.py": "a = 1"}))
    a, b, c, d, e = (read_(tmp_path / name).digest for name in ("a", "b", "c", "d", "e.zip"))
    assert a == b == e
    assert len({a, c, d}) == 3
    assert read_(tmp_path / "a/c3_contracting.py").digest == a
    write(tmp_path / "a/c1_local.py", b"#" * (submission.MAX_FILE + 1))
    assert read_(tmp_path / "a").digest != a  # there is a note now


def test_the_digest_is_of_the_choice_too(tmp_path: Path):
    write(tmp_path / "c3_contracting.py", "TODO = 1")
    stubs = handed_out(tmp_path, EXERCISES)
    write(tmp_path / "03_matmuls.ipynb", notebook(code("solved = 1")))
    assert read_(tmp_path).digest != read_(tmp_path, handed_out=stubs).digest


# -- zip archives ------------------------------------------------------------------------------


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


def test_an_encrypted_member_is_refused(tmp_path: Path):
    data = bytearray(zipped({"c3_contracting.py": "a = 1"}))
    data[6] |= 1  # the flag in the local header and in the directory
    data[data.index(b"PK\x01\x02") + 8] |= 1
    found = read_(write(tmp_path / "a.zip", bytes(data)))
    assert found.notes[0] == ("c3_contracting.py in a.zip is encrypted and was not read; hand it in without a password")


def test_a_bomb_is_not_unpacked(tmp_path: Path):
    found = read_(write(tmp_path / "a.zip", zipped({"c3_contracting.py": "#" * (submission.MAX_FILE + 1)})))
    assert not found.sources
    assert found.notes == (
        "c3_contracting.py is larger than 5 MiB and was not read; make it smaller and hand it in again",
    )


def test_the_size_an_archive_states_is_not_believed(tmp_path: Path):
    data = bytearray(zipped({"c3_contracting.py": "#" * (submission.MAX_FILE + 1)}))
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = (10).to_bytes(4, "little")
    found = read_(write(tmp_path / "a.zip", bytes(data)))
    assert not found.sources
    assert found.notes == ("c3_contracting.py is damaged in the archive; make the .zip again",)


def test_a_zip_unpacks_to_no_more_than_the_total(tmp_path: Path):
    many = {f"{i}/c3_contracting.py": "#" * (submission.MAX_FILE) for i in range(6)}
    found = read_(write(tmp_path / "a.zip", zipped(many)))
    assert names(found) == {"c3_contracting": "0/c3_contracting.py"}
    assert "more than 20 MiB were handed in: 4/c3_contracting.py and what follows was not read" in found.notes


def test_the_number_of_members_is_limited(tmp_path: Path):
    many = {f"{i}.py": "" for i in range(600)} | {"c3_contracting.py": "a = 1"}
    note = read_(write(tmp_path / "a.zip", zipped(many))).notes[0]
    assert note == "more than 500 .py files and notebooks were handed in; the rest was not looked at"
    note = read_(write(tmp_path / "b.zip", b"PK\x01\x02" * 10_001)).notes[0]
    assert note == "b.zip holds more than 10000 files and was not read; hand in only your work"


def test_a_zip_that_is_none_or_damaged_is_noted(tmp_path: Path):
    note = "a.zip is not a .zip archive, or is damaged; make it again"
    assert read_(write(tmp_path / "a.zip", b"PK hello")).notes[0] == note
    data = bytearray(zipped({"c3_contracting.py": "a = 1\n" * 50}))
    data[50] ^= 0xFF
    found = read_(write(tmp_path / "a.zip", bytes(data)))
    assert found.notes == ("c3_contracting.py is damaged in the archive; make the .zip again",)


def test_a_member_that_is_there_twice(tmp_path: Path):
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("c3_contracting.py", "a = 1")
        archive.writestr("c3_contracting.py", "a = 2")
    found = read_(tmp_path / "a.zip")
    assert texts(found) == ["a = 2"]
    assert found.notes == ("c3_contracting.py is in a.zip twice; the last one counts",)


def test_few_archives_of_a_folder_are_opened(tmp_path: Path):
    for i in range(7):
        write(tmp_path / f"{i}.zip", zipped({"c3_contracting.py": "a = 1"}))
    found = read_(tmp_path)
    assert names(found) == {"c3_contracting": "0.zip/c3_contracting.py"}
    assert found.notes[0] == "7 .zip files were handed in; 5 were opened"


# -- anything at all ---------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
CELL = JSON | st.fixed_dictionaries(
    {},
    optional={
        "cell_type": st.sampled_from(["code", "markdown", "widget"]) | JSON,
        "source": PIECES | st.lists(PIECES, max_size=3) | JSON,
        "input": PIECES | JSON,
        "metadata": JSON | st.fixed_dictionaries({"nbgrader": JSON}),
    },
)
DOCUMENT = st.one_of(
    JSON,
    st.fixed_dictionaries({"cells": st.lists(CELL, max_size=5) | JSON}),
    st.fixed_dictionaries({"worksheets": JSON | st.lists(st.fixed_dictionaries({"cells": JSON | st.lists(CELL)}))}),
)
GOOD_ZIP = zipped({"c3_contracting.py": "a = 1\n" * 20, "hw/05_rings.ipynb": notebook(code("b"))})


@st.composite
def damaged_zip(draw: st.DrawFn) -> bytes:
    data = bytearray(GOOD_ZIP)
    for _ in range(draw(st.integers(1, 8))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


ANYTHING = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=100).map(lambda t: t.encode("utf-8", "surrogatepass")),
    DOCUMENT.map(lambda d: json.dumps(d).encode()),
    damaged_zip(),
)


@hypothesis_settings(deadline=None, max_examples=400)
@given(name=st.sampled_from(["c3_contracting.py", "03_matmuls.ipynb", "c3_contracting.zip"]), content=ANYTHING)
def test_any_bytes_are_read_or_noted(name: str, content: bytes, tmp_path_factory: pytest.TempPathFactory):
    path = write(tmp_path_factory.getbasetemp() / "any" / name, content)
    found = read_(path)
    assert found.sources or found.notes
    assert all("\n" not in note and note.isprintable() for note in found.notes)
    for source in found.sources.values():
        for chunk in source.chunks:
            assert "\0" not in chunk.text and "\r" not in chunk.text
            chunk.text.encode()
    assert read_(path) == found


# -- who handed in what ------------------------------------------------------------------------


def find(*paths: Path) -> tuple[list[tuple[str, submission.Place]], list[str]]:
    found = find_submissions(paths, EXERCISES)
    assert found.set_aside == {}
    return found.students, found.notes


def set_aside(*paths: Path) -> tuple[list[str], dict[str, str]]:
    """Who is graded, and who is not."""
    found = find_submissions(paths, EXERCISES)
    return [student for student, _ in found.students], found.set_aside


def test_every_sub_folder_is_a_student(tmp_path: Path):
    write(tmp_path / "carol/hw1/c3_contracting.py")
    write(tmp_path / "alice/03_matmuls.ipynb", notebook())
    write(tmp_path / "bob.zip", zipped({"c3_contracting.py": ""}))
    write(tmp_path / "dan_c3_contracting.py")
    (tmp_path / "empty").mkdir()  # graded too: zero with a reason
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
    assert notes == ["not looked at: README.md"]


@pytest.mark.parametrize(
    "work",
    ["c3_contracting.py", "03_matmuls (2).ipynb", "c3_contracing.py", "03_matmuls/c3_contracting.py", "exercises/x.py"],
)
def test_a_folder_that_holds_work_is_one_student(tmp_path: Path, work: str):
    write(tmp_path / "alice" / work)
    write(tmp_path / "alice/other/x.py")
    assert find(tmp_path / "alice") == ([("alice", tmp_path / "alice")], [])


@pytest.mark.parametrize("name", ["c3_contracting.py", "03_matmuls.ipynb", "c3.py", "c3_contracing (2).py"])
def test_a_file_without_a_name_beside_students_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    """It made one student of the whole class, and nobody was told."""
    monkeypatch.chdir(tmp_path)
    for work in ("alice/c3_contracting.py", "bob/hw/c1_local.py", name):
        write(tmp_path / "hw" / work)
    (tmp_path / "hw/carol").mkdir()
    graded, aside = set_aside(Path("hw"))
    assert graded == ["alice", "bob", "carol"]
    assert aside == {name: f"hw/{name} lies beside students' folders and is nobody's; put it into a folder of its own"}


def test_what_one_student_keeps_beside_the_work_is_nobody_elses(tmp_path: Path):
    for work in (
        "c3_contracting.py",
        "old/c3_contracting.py",
        "my backup/c3_contracting.py",
        "final/c3_contracting.py",
    ):
        write(tmp_path / "alice" / work)
    write(tmp_path / "alice/first try/c3_contracting.py")
    assert find(tmp_path / "alice") == ([("alice", tmp_path / "alice")], [])


def test_one_students_signed_files_are_one_submission(tmp_path: Path):
    write(tmp_path / "hw/alice_c3_contracting.py")
    write(tmp_path / "hw/alice_c1_local.py")
    assert find(tmp_path / "hw") == ([("hw", tmp_path / "hw")], [])
    write(tmp_path / "hw/bob_e1_ring_gather.py")
    assert set_aside(tmp_path / "hw") == (["alice", "bob"], {})


def test_the_folder_one_stands_in_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
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
        ("liddellalice_12_34_c3_contracting-1.py", "liddellalice_12"),
        ("liddellalice_LATE_12_34_c3_contracting.py", "liddellalice_12"),
    ],
)
def test_a_file_is_named_by_its_student(tmp_path: Path, name: str, student: str):
    path = write(tmp_path / name)
    assert find(path) == ([(student, path)], [])


def test_the_order_is_by_student_and_a_path_may_be_given_twice(tmp_path: Path):
    b, a = write(tmp_path / "b.zip"), write(tmp_path / "a.zip")
    assert find(b, a, b, tmp_path)[0] == [("a", a), ("b", b)]


def test_a_student_who_is_there_twice_is_set_aside_and_the_others_are_graded(tmp_path: Path):
    one, two = write(tmp_path / "hw/alice/c3_contracting.py").parent, write(tmp_path / "hw/alice_c3_contracting.py")
    write(tmp_path / "hw/bob/c3_contracting.py")
    assert set_aside(tmp_path / "hw") == (
        ["bob"],
        {"alice": f"alice is there twice: {shown(one)} and {shown(two)}; put them into one folder or rename one"},
    )


def test_files_of_one_student_are_one_submission(tmp_path: Path):
    """As Canvas gives them back, each with a number of its own."""
    files = [
        write(tmp_path / "hw" / name)
        for name in (
            "liddellalice_12_341_c3_contracting.py", "liddellalice_12_340_c1_local.py", "liddellalice_LATE_12_399_c3_contracting-1.py"
        )
    ]  # fmt: skip
    bob = write(tmp_path / "hw/bob_c3_contracting.py")
    students, _ = find(tmp_path / "hw")
    assert [(s, set(p) if isinstance(p, tuple) else p) for s, p in students] == [
        ("bob", bob),
        ("liddellalice_12", set(files)),
    ]
    both = submission.read(students[1][1], "alice", EXERCISES)
    assert {name: source.name for name, source in both.sources.items()} == {
        "c1_local": "liddellalice_12_340_c1_local.py", "c3_contracting": "liddellalice_12_341_c3_contracting.py"
    }  # fmt: skip
    assert "liddellalice_LATE_12_399_c3_contracting-1.py" in "".join(both.notes)


def test_names_that_are_one_on_other_disks_are_set_aside(tmp_path: Path):
    for name in ("Alice", "alice", "bob"):
        write(tmp_path / "hw" / name / "c3_contracting.py")
    graded, aside = set_aside(tmp_path / "hw")
    assert graded == ["bob"] and list(aside) == ["Alice", "alice"]
    assert "Alice and alice (one name in two cases) is there twice" in aside["alice"]


def shown(path: Path) -> str:
    return submission.printable(str(path))


def test_names_that_no_gradebook_takes_are_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    odd = ["=cmd()", "jos\u00e9", "jose\u0301", "x" * 101, "bob ", "a\nb", "a\u202eb"]
    for name in ("alice", *odd):
        write(tmp_path / "hw" / name / "c3_contracting.py")
    graded, aside = set_aside(Path("hw"))
    assert graded == ["alice"] and set(aside) == set(odd)
    assert aside["=cmd()"] == (
        "hw/=cmd(): a student's name may hold A-Z a-z 0-9 . _ @ + - and blanks, 100 at most, "
        "and starts with no dot; rename it"
    )


def test_links_among_submissions_are_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "hw/alice/c3_contracting.py")
    (tmp_path / "hw/mallory").symlink_to(tmp_path / "hw/alice")
    (tmp_path / "hw/loop").symlink_to("loop")
    (tmp_path / "hw/round").symlink_to("../hw")
    graded, aside = set_aside(Path("hw"))
    assert graded == ["alice"] and list(aside) == ["loop", "mallory", "round"]
    assert aside["loop"] == "hw/loop is a link and was not followed; put the work itself there"


def test_what_may_be_work_beside_the_folders_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "hw/alice/c3_contracting.py")
    for name in ("bob", "carol.tar.gz", "dan.RAR", "eve.py"):
        write(tmp_path / "hw" / name)
    graded, aside = set_aside(Path("hw"))
    assert graded == ["alice"] and list(aside) == ["bob", "carol.tar.gz", "dan.RAR", "eve.py"]
    assert aside["bob"] == "hw/bob is no folder and no .zip; unpack it into a folder of its own"
    assert aside["eve.py"].startswith("hw/eve.py is named after no exercise; looked for c1_local.py")


def nothing(*paths: Path) -> str:
    with pytest.raises(NothingToGrade) as error:
        find(*paths)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_nothing_to_grade_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
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
    assert nothing(Path("notes.txt")) == "skipped notes.txt: it is not a .py file, a notebook (.ipynb) or a .zip"


def test_one_useless_path_among_good_ones_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "README.md")
    write(tmp_path / "alice/c3_contracting.py")
    found, notes = find(Path("README.md"), Path("alice"))
    assert [student for student, _ in found] == ["alice"]
    assert notes == ["skipped README.md: it is not a .py file, a notebook (.ipynb) or a .zip"]


def test_every_submission_that_is_found_can_be_read(tmp_path: Path):
    write(tmp_path / "alice/c3_contracting.py")
    write(tmp_path / "bob.zip", zipped({"c3_contracting.py": "a = 1"}))
    write(tmp_path / "c3_contracting-carol.py")
    found, _ = find(tmp_path)
    assert [sorted(read(path, student, EXERCISES).sources) for student, path in found] == [["c3_contracting"]] * 3


# -- honest work that lost points --------------------------------------------------------------


def test_a_notebook_with_plots_is_read_without_its_outputs(tmp_path: Path):
    plot = {"output_type": "display_data", "data": {"image/png": 'A\\"[{' * 1_500_000, "x": [[{}], "outputs"]}}
    cells = [code('a = "outputs"\nb = {"outputs": [1]}') | {"outputs": [plot]}, code("c = 3")]
    cells[1]["outputs"], cells[1]["metadata"] = [plot], {"outputs": "a word"}
    text = json.dumps({"metadata": {"widgets": {"x": [plot]}}, "cells": cells})
    assert len(text) > 3 * submission.MAX_FILE
    found = read_(write(tmp_path / "03_matmuls.ipynb", text))
    assert texts(found) == ['a = "outputs"\nb = {"outputs": [1]}', "c = 3"]
    found = read_(write(tmp_path / "a.zip", zipped({"03_matmuls.ipynb": text})))
    assert texts(found) == ['a = "outputs"\nb = {"outputs": [1]}', "c = 3"]


def test_leaving_out_outputs_changes_nothing_else(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(submission, "MAX_FILE", 0)
    cell = code(["a\n", '"outputs": ["]'], tags=["outputs"]) | {"attachments": {"a": [1]}, "outputs": [[{}], "]"]}
    text = json.dumps({"cells": [cell], "metadata": {"outputs": "x"}}, indent=1)
    assert json.loads(submission.without_outputs(text)) == {
        "cells": [cell | {"attachments": {}, "outputs": []}],
        "metadata": {"outputs": "x"},
    }
    assert submission.without_outputs('{"outputs": [[') == '{"outputs": [['
    monkeypatch.setattr(submission, "MAX_BRACKETS", 100)
    with pytest.raises(submission.Refused, match="outputs that take too long to read; clear its outputs"):
        submission.without_outputs('{"outputs": [' + "[" * 1000)


def test_too_much_code_in_a_notebook_is_refused(tmp_path: Path):
    cells = [code("#" * 2**20) for _ in range(6)]
    found = read_(write(tmp_path / "03_matmuls.ipynb", notebook(*cells)))
    assert found.notes[0] == "03_matmuls.ipynb holds more than 5 MiB of code and was not read; hand in only your work"


@pytest.mark.parametrize("cookie", ["# -*- coding: latin-1 -*-", "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :"])
def test_a_file_is_read_in_the_encoding_it_names(tmp_path: Path, cookie: str):
    text = f"{cookie}\n# Universit\xe4t\na = 1\n"
    found = read_(write(tmp_path / "c3_contracting.py", text.encode("latin-1")))
    assert texts(found) == [text] and found.notes == ()


@pytest.mark.parametrize("cookie", ["unicode_escape", "utf-7", "nonsense", "rot13", "idna"])
def test_no_codec_that_does_more_than_read_letters(tmp_path: Path, cookie: str):
    found = read_(write(tmp_path / "c3_contracting.py", f"# coding: {cookie}\na = '\xe4'\n".encode("latin-1")))
    assert found.notes == ("c3_contracting.py is not UTF-8 text (line 2); save it as UTF-8",)


OLD_STUB = '''"""C3, as it was in another year."""
import jax


def matmul(a, b, *, mesh):
    """Multiply."""
    # TODO
    raise NotImplementedError("matmul")


scatter_time = None  # TODO: your answer
'''


def test_a_worked_on_copy_beats_a_stub_of_any_edition(tmp_path: Path):
    write(tmp_path / "c3_contracting.py", OLD_STUB)
    write(tmp_path / "c3_contracting (1).py", OLD_STUB.replace("None", "3"))
    found = read_(tmp_path, handed_out=frozenset({"another edition"}))
    assert names(found) == {"c3_contracting": "c3_contracting (1).py"}
    write(tmp_path / "c3_contracting (1).py", OLD_STUB.replace('raise NotImplementedError("matmul")', "return a @ b"))
    assert names(read_(tmp_path)) == {"c3_contracting": "c3_contracting (1).py"}
    write(tmp_path / "c3_contracting (1).py", OLD_STUB + "\n")
    assert names(read_(tmp_path)) == {"c3_contracting": "c3_contracting.py"}


def test_what_is_called_final_beats_what_is_called_old(tmp_path: Path):
    write(tmp_path / "code/old/c3_contracting.py", "a = 1")
    write(tmp_path / "code/final/c3_contracting.py", "a = 2")
    write(tmp_path / "code/c1_local_backup.py", "a = 1")
    write(tmp_path / "code/c1_local_mine_and_only_mine.py", "a = 2")
    found = read_(tmp_path)
    assert names(found)["c3_contracting"] == "code/final/c3_contracting.py"
    assert names(found)["c1_local"] == "code/c1_local_mine_and_only_mine.py"
    assert (
        "code/old/c3_contracting.py is not graded for c3_contracting: used code/final/c3_contracting.py" in found.notes
    )


def test_a_name_may_be_the_first_words_of_one_id(tmp_path: Path):
    """As on the command line: ``shardlings check c3``."""
    write(tmp_path / "c3.py", "a = 1")
    write(tmp_path / "05.ipynb", notebook(code("b = 2")))
    write(tmp_path / "e1.py")  # both e1_ring_gather and e1_ring_gather_both
    write(tmp_path / "c.py")
    found = read_(tmp_path)
    assert names(found) == {"c3_contracting": "c3.py", "e1_ring_gather": "05.ipynb", "e1_ring_gather_both": "05.ipynb"}
    assert found.notes == (
        "named after no exercise and not graded: c.py, e1.py",
        "c3.py is taken for c3_contracting.py",
        "05.ipynb is taken for 05_rings.ipynb",
    )
    write(tmp_path / "c3_contracting.py", "a = 3")
    assert names(read_(tmp_path))["c3_contracting"] == "c3_contracting.py"


def test_a_notebook_says_where_its_exercises_are_checked(tmp_path: Path):
    cells = [
        code("a = 1"),
        code('check("c1_local")', nbgrader={"grade": True, "solution": False}),
        {"cell_type": "markdown", "source": 'check("c3")'},
        code("b = 2\ncheck('c3')"),
        code('# check("e1")\nprint("check(\'c1\')")'),
        code('check("e1")\ncheck("nothing")'),
    ]
    source = read_cells(tmp_path, *cells).sources["c3_contracting"]
    assert source.ends == (("c1_local", "cell 1"), ("c3_contracting", "cell 4"))
