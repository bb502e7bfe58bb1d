"""Facts about the syntax of submitted code: chance, stubs, names for the leaderboard."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course.finding import find_course
from grader.intake.facts import LONGEST, has_leaderboard, nothing_written, pseudonym_of, repeatable
from grader.intake.submission import Chunk, Source
from tests.commands import ROOT
from tests.handed_in import names, read_, write


def source(*texts: str) -> Source:
    return Source("a.py", tuple(Chunk(f"cell {i}", text) for i, text in enumerate(texts, 1)))


@pytest.mark.parametrize(
    "text",
    [
        "import jax\nfrom jax.sharding import PartitionSpec as P\ndef f(a, *, mesh):\n    return jax.lax.psum(a, 'x')",
        "import jax.numpy as jnp\ndef times(n):\n    '''the time that random data takes'''\n    return n  # time.time()",
        "import jax, numpy as np, math, functools\nk = jax.random.key(0)\nx = np.ones(3).sum()",
        "from jax import random\nfrom jax import lax\nclass A:\n    def __init__(self): self.value = 1",
        "",
    ],
)
def test_typical_submissions_are_repeatable(text: str) -> None:
    assert repeatable(source(text))


@pytest.mark.parametrize(
    "text",
    [
        "import random",
        "t = __builtins__['__imp' + 'ort__']('ti' + 'me')",
        "import time as t\nx = t",
        "from time import perf_counter as p",
        "import numpy as np\nx = np.random.rand()",
        "from numpy import random",
        "from numpy import *\nx = random",
        "import numpy.random",
        "import os",
        "x = id(x)",
        "x = hash('a')",
        "x = getattr(np, 'ran' + 'dom')",
        "x = f'{time.time()}'",
        "x = ().__class__.__mro__",
        "x = jax._src",
        "match np:\n    case object(random=r): pass",
        "x = open('/dev/urandom')",
        "exec('import random')",
        "import threading",
        "def f(:",
        "x = 1\0",
    ],
)
def test_code_that_may_differ_or_cannot_be_parsed_is_not_repeatable(text: str) -> None:
    assert not repeatable(source("x = 1", text))


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
    "answers", ["scatter_time, bytes_ = 3, 4", "[scatter_time, bytes_] = 3, 4", "scatter_time = b = 3"]
)
def test_answers_assigned_together_are_written(answers: str):
    assert nothing_written(source(OLD_STUB)) and not nothing_written(
        source(OLD_STUB.replace("scatter_time = None", answers))
    )


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


def read(*texts: str) -> str:
    return pseudonym_of(Source("m1.py", tuple(Chunk(f"cell {i}", text) for i, text in enumerate(texts))))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('leaderboard_name = "quiet otter"', "quiet otter"),
        ('leaderboard_name: str = "quiet otter"', "quiet otter"),
        ('a = leaderboard_name = "quiet otter"', "quiet otter"),
        ('leaderboard_name = "one"\nleaderboard_name = "two"', "two"),
        ('leaderboard_name = "one"\nleaderboard_name = ""', ""),
        ("", ""),
        ("leaderboard_name = None", ""),
        ("leaderboard_name = 7", ""),
        ('leaderboard_name = "a" + "b"', ""),
        ("leaderboard_name = open('/etc/passwd').read()", ""),
        ('def f():\n    leaderboard_name = "inside"', ""),
        ('leaderboard_name += "more"', "more"),
        ("leaderboard_name: str", ""),
        (f'leaderboard_name = "{"x" * 1000}"', "x" * LONGEST),
    ],
)
def test_the_last_plain_text_pseudonym_counts(text: str, name: str) -> None:
    assert read(text) == name


def test_a_cell_that_cannot_be_parsed_hides_no_pseudonym() -> None:
    assert read('leaderboard_name = "otter"', "%matplotlib inline\n!ls", "(" * 10_000, "\0") == "otter"


def test_only_an_exercise_that_gives_the_variable_has_a_leaderboard() -> None:
    """If a student sets the name in a different exercise, the grader must not make a second leaderboard."""
    course = find_course(ROOT)
    names = ["c1_no_communication", "m1_block", "m2_train_step"]
    assert [name for name in names if has_leaderboard(course.exercise(name).source)] == ["m2_train_step"]
