"""The grader recognises the stubs of each edition of the course."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.intake.facts import nothing_written
from grader.intake.submission import Chunk, Source
from tests.handed_in import names, read_, write

OLD_STUB = '''"""C3, as it was in another year."""
import jax


def matmul(a, b, *, mesh):
    """Multiply."""
    # TODO
    raise NotImplementedError("matmul")


scatter_time = None  # TODO: your answer
'''


def test_an_edited_copy_takes_precedence_over_a_stub_of_any_edition(tmp_path: Path):
    write(tmp_path / "c3_contracting.py", OLD_STUB)
    write(tmp_path / "c3_contracting (1).py", OLD_STUB.replace("None", "3"))
    found = read_(tmp_path, handed_out=frozenset({"another edition"}))
    assert names(found) == {"c3_contracting": "c3_contracting (1).py"}
    write(tmp_path / "c3_contracting (1).py", OLD_STUB.replace('raise NotImplementedError("matmul")', "return a @ b"))
    assert names(read_(tmp_path)) == {"c3_contracting": "c3_contracting (1).py"}
    write(tmp_path / "c3_contracting (1).py", OLD_STUB + "\n")
    assert names(read_(tmp_path)) == {"c3_contracting": "c3_contracting.py"}


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("scatter_time = None", False),
        ("scatter_time: float", False),
        ("scatter_time: float | None = None", False),
        ("scatter_time: float = 12.5", True),
        ("scatter_time = 12.5", True),
        ("if True:\n    import jax.numpy as jnp", False),
    ],
)
def test_a_value_counts_as_written_with_or_without_an_annotation(line: str, written: bool) -> None:
    text = OLD_STUB.replace("scatter_time = None  # TODO: your answer", line)
    assert nothing_written(Source("c3.py", (Chunk("c3.py", text),))) is not written


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("pass", False),
        ("...", False),
        ('"""Only words."""', False),
        ("pass\n    raise NotImplementedError", False),
        ("return None", True),
        ("raise ValueError", True),
        ("raise", True),
    ],
)
def test_a_function_without_code_is_empty_in_each_way_to_write_it(body: str, written: bool) -> None:
    text = OLD_STUB.replace('# TODO\n    raise NotImplementedError("matmul")', body)
    assert body in text and nothing_written(Source("c3.py", (Chunk("c3.py", text),))) is not written


@pytest.mark.parametrize("text", ["class MyError(Exception): pass", "class Ring:\n    ..."])
def test_a_class_is_written_by_the_student(text: str) -> None:
    source = Source("c3.py", (Chunk("c3.py", f"{OLD_STUB}\n\n{text}"),))
    assert not nothing_written(source)
