"""An invented class: each student solves the same three tasks in a different way. Not a test file."""

from __future__ import annotations

import random
import re

from grader.wings.similar.comparing import Part, StudentCode

STUB = '''"""# A task

What to write."""
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def given_helper(rows, columns, devices):
    """Given to everybody."""
    sizes = [rows // devices for _ in range(devices)]
    return jnp.zeros((sum(sizes), columns)).reshape(devices, -1, columns)


def gather_rows(a, *, mesh):
    """Gather."""
    raise NotImplementedError("gather_rows")
'''
_SPECS = ['P("x", None)', 'P("x")', 'jax.sharding.PartitionSpec("x", None)']
_STEPS = [
    ["y = jax.lax.all_gather(a, 'x', axis=0, tiled=True)", "y = jnp.concatenate(list(jax.lax.all_gather(a, 'x')))",
     "n = jax.lax.axis_size('x'); y = jax.lax.all_gather(a, 'x').reshape(n * a.shape[0], -1)"],
    ["y = y @ w", "y = jnp.dot(y, w)", "y = jnp.einsum('ij,jk->ik', y, w)", "y = jax.lax.dot(y, w)", "y = jnp.matmul(y, w)"],
    ["i = jax.lax.axis_index('x')", "i = jax.lax.axis_index(('x',))", "i, _ = jax.lax.axis_index('x'), None"],
    ["b = y.shape[0] // 4", "b = len(y) // 4", "b, rest = divmod(y.shape[0], 4); assert rest == 0", "b = int(y.shape[0] / 4)"],
    ["z = jax.lax.dynamic_slice_in_dim(y, i * b, b, 0)", "z = jax.lax.dynamic_slice(y, (i * b, 0), (b, y.shape[1]))",
     "z = y.reshape(4, b, -1)[i]", "z = jnp.take(y, i * b + jnp.arange(b), axis=0)"],
    ["return jax.lax.psum(z, 'x')", "total = jax.lax.psum(z, 'x'); return total", "return jax.lax.pmean(z, 'x') * 4",
     "return jax.lax.psum_scatter(z, 'x', tiled=True)"],
]  # fmt: skip


def honest(seed: int | str) -> str:
    """Return three functions with equal steps. Each step is written in one of several ways, drawn from the seed."""
    rng = random.Random(seed)
    functions = []
    for name in ("gather_rows", "reduce_rows", "shift_rows"):
        body = []
        for choices in _STEPS:
            body += rng.choice(choices).split("; ")
            if rng.random() < 0.3:
                body.append(
                    f"k{rng.randrange(9)} = {rng.choice(['len', 'sum', 'max'])}({rng.choice(['y', 'a'])}.shape)"
                )
        lines = "\n".join(f"        {line}" for line in body)
        spec = rng.choice(_SPECS)
        functions.append(
            f"def {name}(a, w, *, mesh):\n    def local(a, w):\n{lines}\n\n"
            f"    return jax.shard_map(local, mesh=mesh, in_specs=({spec}, P()), out_specs={spec})(a, w)\n"
        )
    return "\n\n".join([STUB.split("def gather_rows")[0], *functions])


def disguised(text: str) -> str:
    """Return a copy with functions in another order, and other names, numbers, texts, comments and formatting."""
    head, *functions = re.split(r"^(?=def \w+_rows)", text, flags=re.MULTILINE)
    copied = head + "\n\n".join(reversed(functions))
    for old, new in {
        "a": "block",
        "w": "weights",
        "y": "whole",
        "z": "mine",
        "b": "step",
        "i": "me",
        "local": "per_device",
    }.items():
        copied = re.sub(rf"(?<![\w.'\"]){old}(?![\w'\"=])", new, copied)
    copied = (
        copied.replace("'x'", '"x"').replace("    ", "  ").replace(", mesh=mesh,", ",\n    mesh=mesh,  # the mesh\n")
    )
    return re.sub(r"^(def \w+\(.*\):)$", r'\1\n  """My own words."""', copied, flags=re.MULTILINE)


def work(student: str, *texts: str) -> StudentCode:
    return StudentCode(student, tuple(Part(f"cell {i}", text) for i, text in enumerate(texts, start=1)))
