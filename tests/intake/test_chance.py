"""``repeatable`` decides from code whether its answers are equal in each run."""

from __future__ import annotations

import pytest

from grader.intake.facts import repeatable
from grader.intake.submission import Chunk, Source


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
