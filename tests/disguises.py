"""Programs with work that a check looks for, in plain and in disguised form. Checks refuse or require such work.

A disguise is two rewrites of one program. ``plain`` does the work that a check looks for. ``disguised`` does the same
work, or pretends to, in a form that the check may overlook. A disguise succeeds if the disguised program passes a
check that the plain program fails.
"""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass

from tests.rewriting import Rewrite

# -- work that no result needs -----------------------------------------------------------------

JUNK = {
    "all_gather": "lax.all_gather(x, name)",
    "psum": "lax.psum(x, name)",
    "psum_scatter": "lax.psum_scatter(jnp.broadcast_to(x, (lax.axis_size(name), *x.shape)), name)",
    "permute": "lax.ppermute(x, name, [(i, (i + 1) % lax.axis_size(name)) for i in range(lax.axis_size(name))])",
    "all_to_all": "lax.all_to_all(jnp.broadcast_to(x, (lax.axis_size(name), *x.shape)), name, 0, 0)",
    "matmul": "x.reshape(-1, x.shape[-1]) @ x.reshape(-1, x.shape[-1]).T",
    "random numbers": "jax.random.uniform(jax.random.key(0), x.shape)",
}
# Expressions that add ``number``, the result of useless work, to a result ``v`` without changing ``v``.
INTO = {
    "unused": "v",
    "select": "jnp.where(jnp.zeros(v.shape, bool), number.astype(v.dtype), v)",
    "select of data": "jnp.where(v != v, number.astype(v.dtype), v)",
    "times zero": "v + (0 * number).astype(v.dtype)",
    "times little": "v + (1e-9 * number).astype(v.dtype)",
    "times nothing": "v + (1e-38 * number).astype(v.dtype)",
    "a barrier": "lax.optimization_barrier((v, number))[0]",
    "the larger": "jnp.maximum(v, (number * 0 - 1e30).astype(v.dtype))",
}
JUNK_TEXT = """
def again_junk(f):
    def junked(*args, **options):
        found = f(*args, **options)
        x = next((a for a in jax.tree.leaves(args) if getattr(a, "ndim", 0) and jnp.issubdtype(a.dtype, jnp.floating)), None)
        if x is None:
            return found
        names = tuple(jax.sharding.get_abstract_mesh().shape)
        name = names[{axis} % len(names)]
        number = jnp.float32(0)
        for turn in range({times}):
            x = x + turn
            number = number + ({junk}).astype(jnp.float32).sum()
        leaves, tree = jax.tree.flatten(found)
        floats = [v for v in leaves if hasattr(v, "dtype") and jnp.issubdtype(v.dtype, jnp.floating)]
        return jax.tree.unflatten(tree, [({into}) if v is floats[0] else v for v in leaves] if floats else leaves)
    return junked
def again_map(f, **options):
    return jax.shard_map(again_junk(f), **options)
"""


# -- all-reduces by pairs of devices -----------------------------------------------------------

PAIRS_TEXT = """
def again_pairs(n, turn):
    ring = [*range(1, n)]
    ring = [0, *ring[turn:], *ring[:turn]]
    return [[ring[i], ring[n - 1 - i]] for i in range(n // 2)]
def again_psum(x, name):
    n = lax.axis_size(name)
    if n % 2 or n < 4:
        return lax.psum(x, name)
    def added(x):
        total = x
        for turn in range(n - 1):
            total = total + lax.psum(x, name, axis_index_groups=again_pairs(n, turn)) - x
        return total
    return jax.tree.map(added, x)
def again_gather(x, name, *, axis=0, tiled=False):
    if not isinstance(name, str) or lax.axis_size(name) % 2 or lax.axis_size(name) < 4:
        return lax.all_gather(x, name, axis=axis, tiled=tiled)
    n, me = lax.axis_size(name), lax.axis_index(name)
    own = jnp.zeros((n, *x.shape), x.dtype).at[me].set(x)
    every = again_psum(own, name)
    if not tiled:
        return jnp.moveaxis(every, 0, axis)
    return jnp.moveaxis(every, 0, axis).reshape(*x.shape[:axis], -1, *x.shape[axis + 1 :])
"""
# An additional sum over an axis. The sum does not change the program's results.
MORE_TEXT = """
def again_more(f):
    def more(*args, **options):
        def once_more(v):
            if not hasattr(v, "dtype") or not jnp.issubdtype(v.dtype, jnp.floating):
                return v
            names = tuple(jax.sharding.get_abstract_mesh().shape)
            name = [*names, names][{axis} % (len(names) + 1)]
            n = lax.axis_size(name)
            every = {sum}(jnp.zeros((n, *v.shape), v.dtype).at[lax.axis_index(name)].set(v), name)
            return every[lax.axis_index(name)]
        return jax.tree.map(once_more, f(*args, **options))
    return more
def again_map(f, **options):
    return jax.shard_map(again_more(f), **(options | dict(check_vma=False)))
"""

# -- matmuls that are done twice ----------------------------------------------------------------

MATMULS = {"jnp.matmul": "again_matmul", "jnp.dot": "again_matmul"}
TWICE_TEXT = """
def again_given(x):
    return {given}
def again_matmul(a, b, **options):
    if getattr(a, "ndim", 0) < 2 or getattr(b, "ndim", 0) < 2:
        return a @ b
    again = again_times(again_given(a), again_given(b)).astype(jnp.result_type(a, b))
    return lax.optimization_barrier((jnp.matmul(a, b, **options), again))[0]
"""
BITS_TEXT = """
def again_bits(x):
    width = {2: jnp.uint16, 4: jnp.uint32}[x.dtype.itemsize]
    bits, found = lax.bitcast_convert_type(x, width), lax.full(x.shape, 0, width)
    for i in range(8 * x.dtype.itemsize):
        one = lax.full(x.shape, 1 << i, width)
        is_set = lax.ne(lax.bitwise_and(bits, one), lax.full(x.shape, 0, width))
        found = lax.bitwise_or(found, lax.select(is_set, one, lax.full(x.shape, 0, width)))
    return lax.bitcast_convert_type(found, x.dtype)
"""
# A matmul of two matrices, written as multiplications and a sum.
TIMES_TEXT = """
def again_times(a, b):
    if a.ndim != 2 or b.ndim != 2:
        return jnp.matmul(a, b)
    shape = *a.shape, b.shape[1]
    every = lax.mul(lax.broadcast_in_dim(a, shape, (0, 1)), lax.broadcast_in_dim(b, shape, (1, 2)))
    return lax.reduce(every, np.zeros((), a.dtype), lax.add, (1,))
"""
COPIED_TEXT = """
def again_matmul(a, b, preferred_element_type=None, **options):
    dtype = preferred_element_type or jnp.result_type(a, b)
    return again_times(again_bits(a).astype(dtype), again_bits(b).astype(dtype))
"""

# Substitutes for random numbers. Both ignore the key.
NUMBERS = {
    "plain": "jnp.arange(size, dtype=jnp.float32) * 0.618 % 1",
    "disguised": "(jnp.sin(jnp.arange(size, dtype=jnp.float32) * 12.99) * 43758.55) % 1",
}
"""A hash of the key would be a generator of random numbers, and right."""
NUMBERS_TEXT = """
def again_uniform(key, shape=(), *args, **options):
    size = int(np.prod(shape))
    return ({how}).reshape(shape)
def again_bernoulli(key, p=0.5, shape=()):
    return again_uniform(key, shape) < p
"""


@dataclass(frozen=True)
class Disguise:
    """Two rewrites of a program: with plain and with disguised work. ``plain`` may be None: no rewrite."""

    kind: str
    by: str
    plain: Rewrite | None
    disguised: Rewrite
    of_wrong: bool


def around(helper: str, text: str, *, body: bool) -> Rewrite:
    """Return a rewrite: the helper decorates each function if ``body``; else it replaces ``jax.shard_map``."""

    def change(module: ast.Module, pick: random.Random) -> None:
        for function in [s for s in module.body if isinstance(s, ast.FunctionDef)]:
            function.decorator_list.append(ast.Name(helper, ast.Load()))

    return Rewrite("", {}, {}, change, text) if body else Rewrite("", {"jax.shard_map": "again_map"}, {}, None, text)


def disguises(pick: random.Random, *, body: bool) -> Disguise:
    """Draw a random disguise."""
    axis = pick.randrange(12)
    kind = pick.choice(["junk", "junk", "junk", "pairs", "more by pairs", "twice by compare", "by compare", "numbers"])
    if kind == "junk":
        name, into, times = pick.choice(sorted(JUNK)), pick.choice(sorted(INTO)), pick.choice([1, 1, 2, 3, 4, 6, 7])
        text = JUNK_TEXT.replace("{axis}", str(axis)).replace("{times}", str(times))
        text = text.replace("{junk}", JUNK[name]).replace("{into}", INTO[into])
        return Disguise(f"{name} as junk", into, None, around("again_junk", text, body=body), True)
    if kind == "pairs":
        calls = {"lax.psum": "again_psum", "lax.all_gather": "again_gather"}
        return Disguise("sums by pairs", "groups", None, Rewrite("pairs", calls, {}, None, PAIRS_TEXT), True)
    if kind == "more by pairs":
        texts = [
            (PAIRS_TEXT if sum_ == "again_psum" else "") + MORE_TEXT.replace("{axis}", str(axis)).replace("{sum}", sum_)
            for sum_ in ("lax.psum", "again_psum")
        ]
        plain, pairs = (around("again_more", text, body=body) for text in texts)
        return Disguise("one more sum by pairs", "groups", plain, pairs, False)
    if kind == "numbers":
        calls = {"jax.random.uniform": "again_uniform", "jax.random.bernoulli": "again_bernoulli"}
        plain, made = (Rewrite("", calls, {}, None, NUMBERS_TEXT.replace("{how}", how)) for how in NUMBERS.values())
        return Disguise("numbers that are not random", "a hash", plain, made, False)
    if kind == "by compare":
        text = BITS_TEXT + TIMES_TEXT + COPIED_TEXT
        return Disguise(
            "matmuls of copies by compare",
            "compare",
            None,
            Rewrite("bits", MATMULS, {"MatMult": "again_matmul"}, None, text),
            True,
        )
    twice = TIMES_TEXT + TWICE_TEXT  # operations on bits stop gradients, so the plain program uses stop_gradient
    texts = [twice.replace("{given}", "lax.stop_gradient(x)"), BITS_TEXT + twice.replace("{given}", "again_bits(x)")]
    plain, bits = (Rewrite("twice", MATMULS, {"MatMult": "again_matmul"}, None, text) for text in texts)
    return Disguise("matmuls twice by compare", "compare", plain, bits, False)
