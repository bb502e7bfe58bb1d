"""Fakes: programs that do less work than they seem to do, and ways to submit them.

A fake keeps the matmuls and collectives of an honest program but computes them on smaller or simpler arrays. A
condition selects the fake if a call looks like the timed call, and the honest program for all other calls.
"""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass

from tests.rewriting import HEAD, Rewrite

WAS = """
class was:
    matmul, einsum, permute, psum = staticmethod(jnp.matmul), staticmethod(jnp.einsum), staticmethod(lax.ppermute), staticmethod(lax.psum)
    gather, scatter, softmax = staticmethod(lax.all_gather), staticmethod(lax.psum_scatter), staticmethod(jax.nn.softmax)
def corner(x):
    return x[(slice(0, 1),) * x.ndim]
def spread(x, shape):
    return jnp.broadcast_to(x.reshape((1,) * len(shape)) if x.size == 1 else jnp.resize(x, shape), shape)
first = {}
"""
# Replacements for a matmul ``f(*arrays)``. ``due`` has the shape and dtype of the matmul's result.
MATMULS = {
    "1x1 matmuls": "spread(f(*map(corner, arrays)), due.shape)",
    "matmuls of a slice": "spread(f(*(x[(slice(0, 8),) * x.ndim] for x in arrays)), due.shape)",
    "matmuls of zeros": "f(*(jnp.zeros_like(x) for x in arrays))",
    "matmuls in int8": "f(*(x.astype(jnp.int8) for x in arrays))",
    "matmuls in float8": "f(*(x.astype(jnp.float8_e4m3fn) for x in arrays))",
    "matmuls in bfloat16": "f(*(x.astype(jnp.bfloat16) for x in arrays))",
    "matmuls in float16": "f(*(x.astype(jnp.float16) for x in arrays))",
    "the first matmul again": "first.setdefault((due.shape, due.dtype.name), f(*arrays)) + 0 * spread(f(*map(corner, arrays)), due.shape)",
    "junk for matmuls": "spread(f(*map(corner, arrays)), due.shape) + sum(x.ravel()[0] for x in arrays)",
    "matmuls in a branch": "lax.cond(jnp.isnan(corner(arrays[0])).all(), lambda: f(*arrays), lambda: jnp.zeros(due.shape, due.dtype))",
    "matmuls of halves": "spread(f(*(x[..., : x.shape[-1] // 2] if i else x for i, x in enumerate(arrays))), due.shape) if len(arrays) == 2 and f is was.matmul else f(*arrays)",
    "1x1 matmuls beside dead ones": "(f(*arrays), spread(f(*map(corner, arrays)), due.shape))[1]",
    "1x1 matmuls and others times zero": "spread(f(*map(corner, arrays)), due.shape) + 0 * f(*arrays)",
    "matmuls of constants": "f(*(jnp.full_like(x, 2) for x in arrays))",
}  # fmt: skip
# Replacements for a collective ``f(x)``. ``due`` has the shape of its result.
COLLECTIVES = {
    "collectives of 1x1": "spread(corner(f(tiny)), due.shape)",
    "1x1 collectives beside dead ones": "(f(x), spread(corner(f(tiny)), due.shape))[1]",
    "collectives in int8": "f(x.astype(jnp.int8)).astype(x.dtype)",
    "collectives in bfloat16": "f(x.astype(jnp.bfloat16)).astype(x.dtype)",
    "collectives of zeros": "f(jnp.zeros_like(x))",
    "collectives of what came first": "f(first.setdefault((x.shape, x.dtype.name), x))",
    "collectives in a branch": "lax.cond(jnp.isnan(corner(x)).all(), lambda: f(x), lambda: jnp.zeros(due.shape, due.dtype))",
}  # fmt: skip
OTHERS = {
    "always the same part": Rewrite("", {}, {"Subscript": "again_pick"}, None, """
def again_pick(x, i):
    return x[0] if isinstance(i, jax.Array) and getattr(i, "ndim", 1) == 0 else x[i]
"""),
    "always this device": Rewrite("", {"lax.axis_index": "again_index"}, {}, None, "def again_index(name):\n    return 0\n"),
    "elementwise work left out": Rewrite(
        "", dict.fromkeys(["jnp.tanh", "jax.nn.silu", "jax.nn.softmax", "jnp.exp", "lax.rsqrt"], "again_same"), {}, None,
        "def again_same(x, *args, **options):\n    return x\n"),
}  # fmt: skip

MATMUL_TEXT = """
def again_seem(f, arrays):
    due = jax.eval_shape(f, *arrays)
    return ({how}).astype(due.dtype)
def again_matmul(a, b):
    return again_seem(was.matmul, (a, b)) if min(a.ndim, b.ndim) > 1 else was.matmul(a, b)
def again_einsum(spec, *arrays, **options):
    return again_seem(functools.partial(was.einsum, spec), arrays) if len(arrays) > 1 else was.einsum(spec, *arrays)
def again_dot(a, b, **options):
    return again_matmul(a, b)
"""
COLLECTIVE_TEXT = """
def again_send(send):
    def sent(tree, name, *args, **options):
        f = lambda x: send(x, name, *args, **options)
        def one(x):
            tiny = x[(slice(0, lax.axis_size(name) if send is was.scatter else 1),) * x.ndim]
            due = jax.eval_shape(f, x)
            return ({how}).astype(due.dtype)
        return jax.tree.map(lambda x: one(x) if getattr(x, "ndim", 0) > 1 or getattr(x, "size", 0) > 64 else f(x), tree)
    return sent
again_permute, again_psum = again_send(was.permute), again_send(was.psum)
again_gather, again_scatter = again_send(was.gather), again_send(was.scatter)
"""
MATMUL_CALLS = {"jnp.einsum": "again_einsum", "jnp.dot": "again_dot", "jnp.matmul": "again_dot"}
COLLECTIVE_CALLS = {
    "lax.ppermute": "again_permute", "lax.psum": "again_psum", "lax.all_gather": "again_gather", "lax.psum_scatter": "again_scatter",
}  # fmt: skip


def fakes() -> list[Rewrite]:
    """Return a rewrite for every kind of fake."""
    return [
        *(Rewrite(name, MATMUL_CALLS, {"MatMult": "again_matmul"}, None, MATMUL_TEXT.replace("{how}", how)) for name, how in MATMULS.items()),
        *(Rewrite(name, COLLECTIVE_CALLS, {}, None, COLLECTIVE_TEXT.replace("{how}", how)) for name, how in COLLECTIVES.items()),
        *(Rewrite(name, one.calls, one.operators, None, one.helpers) for name, one in OTHERS.items()),
    ]  # fmt: skip


# -- branches ----------------------------------------------------------------------------------

LOOKS = """
counted = [0]
def leaves(args):
    return [x for x in jax.tree.leaves(args) if hasattr(x, "shape") and x.ndim]
def concrete(args):
    try:
        np.asarray(leaves(args)[0])
    except BaseException:
        return False
    return True
def frames():
    import sys
    frame = sys._getframe(1)
    while frame is not None:
        yield from frame.f_locals.values()
        frame = frame.f_back
def axes(options):
    mesh = options.get("mesh")
    found = dict(mesh.shape) if mesh is not None else dict(jax.sharding.get_abstract_mesh().shape)
    return found
def looks_timed(args, options):
    counted[0] += 1
    return bool({test})
"""
# Conditions on ``args`` and ``options``, by the property of a call that they examine. ``{sizes}`` stands for the block
# sizes of the public timing call.
BRANCHES = {
    "dtype": ["leaves(args)[0].dtype == jnp.bfloat16", "any(x.dtype == jnp.bfloat16 for x in leaves(args))"],
    "size": ["max(x.size for x in leaves(args)) > 100_000", "max(max(x.shape) for x in leaves(args)) >= 1024"],
    "exact sizes": ["tuple(leaves(args)[0].shape) in {shapes}"],
    "divisible": ["all(n % 64 == 0 for n in leaves(args)[0].shape)", "all(n % 2 == 0 for x in leaves(args) for n in x.shape)"],
    "mesh": ["8 in axes(options).values()", "axes(options) in {meshes}"],
    "kind of mesh": ["type(options.get('mesh')).__name__ == 'AbstractMesh'", "not hasattr(options.get('mesh'), 'devices')"],
    "static": ["repr({k: v for k, v in options.items() if k != 'mesh'}) in {statics}"],
    "count": ["counted[0] > 2", "counted[0] > 3", "counted[0] > 4", "counted[0] > 5", "counted[0] > 6", "counted[0] > 8"],
    "values": ["not concrete(args)"],
    "frames": ["any(isinstance(v, dict) and 'timing' in v for v in frames())", "any(isinstance(v, dict) and max([0, *(n for a in v.get('args', []) if isinstance(a, dict) for n in a.get('shape', []))]) > 999 for v in frames())"],
    "names": ["any('time' in str(k).lower() for v in frames() if isinstance(v, dict) for k in v)"],
    "environment": ["__import__('os').environ.get('JAX_PLATFORMS') != 'cpu'", "jax.device_count() > 8"],
    "clock": ["__import__('time').process_time() > 2"],
    "memory": ["sum(x.nbytes for x in leaves(args)) > 1 << 20 if all(hasattr(x, 'nbytes') for x in leaves(args)) else False"],
}  # fmt: skip

PATCHED = """
def again_patched(f):
    places = [(jax.lax, "ppermute", "again_permute"), (jax.lax, "psum", "again_psum"), (jax.lax, "all_gather", "again_gather"),
              (jax.lax, "psum_scatter", "again_scatter"), (jnp, "einsum", "again_einsum"), (jnp, "dot", "again_dot"), (jnp, "matmul", "again_dot"),
              (jax.core.Tracer, "__matmul__", "again_matmul"), (jax.nn, "softmax", "again_same"), (jnp, "tanh", "again_same"),
              (jax.lax, "axis_index", "again_index")]
    def patched(*args, **options):
        kept = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
        for owner, name, helper in places:
            if helper in globals():
                setattr(owner, name, globals()[helper])
        try:
            return f(*args, **options)
        finally:
            for owner, name, value in kept:
                setattr(owner, name, value)
    return patched
"""


@dataclass(frozen=True)
class Shown:
    """A fake and the condition that selects it.

    Attributes:
        fakes: rewrites that make the fake from the honest program.
        by: the property of a call that the condition examines.
        test: the text of the condition.
        patched: whether the fake replaces functions of JAX, and keeps the text of the honest program.
    """

    fakes: tuple[Rewrite, ...]
    by: str
    test: str
    patched: bool = False

    @property
    def kind(self) -> str:
        return " + ".join(fake.name for fake in self.fakes)


def shown(honest: ast.Module, task: str, how: Shown) -> str | None:
    """Return one text with the honest program, the fake and the condition; None if the rewrites change nothing."""
    fake = honest
    for one in how.fakes:
        was, fake = ast.unparse(fake), one(fake, random.Random(0))
        if ast.unparse(fake) == was:
            return None
    helpers = "\n".join(one.helpers for one in how.fakes)
    looks = LOOKS.replace("{test}", how.test)
    parts = [
        HEAD,
        *_imports(honest),
        WAS,
        helpers,
        looks,
        _made("honest", honest),
        _made("fake", honest if how.patched else fake),
    ]
    return "\n".join([*parts, PATCHED if how.patched else "", _dispatched(honest, task, how.patched)])


def _made(name: str, module: ast.Module) -> str:
    """Return the text of a function ``name`` that defines all names of a module and returns them."""
    body = [ast.unparse(s) for s in module.body if not isinstance(s, ast.Import | ast.ImportFrom)]
    lines = "\n".join(body).split("\n")
    return f"def made_{name}():\n" + "\n".join(f"    {line}" for line in [*lines, "return dict(locals())"]) + "\n"


def _imports(module: ast.Module) -> list[str]:
    return [ast.unparse(s) for s in module.body if isinstance(s, ast.Import | ast.ImportFrom)]


def _dispatched(module: ast.Module, task: str, patched: bool) -> str:
    names = [n for s in module.body if isinstance(s, ast.FunctionDef) for n in [s.name] if n != task]
    others = "".join(f"{name} = honest_ones[{name!r}]\n" for name in names)
    fake = f"made_fake()[{task!r}]"
    return f"""
honest_ones = made_honest()
{others}honest_one, fake_one = honest_ones[{task!r}], {f"again_patched({fake})" if patched else fake}
def {task}(*args, **options):
    first.clear()
    return (fake_one if looks_timed(args, options) else honest_one)(*args, **options)
"""
