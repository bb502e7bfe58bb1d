"""Texts of helpers that replace JAX functions and operators by other JAX code with equal results.

Each entry has three texts: replaced functions as "name=helper", replaced operators as "class in ``ast``=helper", and
the definition of the helper.
"""

from __future__ import annotations

MATMULS = {
    "matmul": "jnp.matmul(a, b)",
    "dot": "jnp.dot(a, b)",
    "einsum": "jnp.einsum({1: 'k', 2: 'ik'}[a.ndim] + ',' + {1: 'k', 2: 'kj'}[b.ndim] + '->' + 'i' * (a.ndim - 1) + 'j' * (b.ndim - 1), a, b)",
    "tensordot": "jnp.tensordot(a, b, 1)",
    "dot_general": "lax.dot_general(a, b, (((a.ndim - 1,), (0,)), ((), ())))",
    "turned round": "(b.T @ a.T).T",
    "rows by vmap": "jax.vmap(lambda row: row @ b)(a)",
    "other axes": "lax.dot_general(a.T, b, (((0,), (0,)), ((), ())))",
    "in float32": "jnp.matmul(a, b, preferred_element_type=jnp.promote_types(a.dtype, jnp.float32)).astype(jnp.result_type(a, b))",
    "highest": "jnp.matmul(a, b, precision=lax.Precision.HIGHEST)",
    "behind a barrier": "jnp.matmul(*lax.optimization_barrier((a, b)))",
    "jitted": "jax.jit(jnp.matmul)(a, b)",
}

EINSUM = """
def again_einsum(spec, *arrays, **options):
    if len(arrays) != 2 or "..." in spec:
        return jnp.einsum(spec, *arrays, **options)
    takes, gives = spec.replace(" ", "").split("->")
    one, two = takes.split(",")
    both = [c for c in one if c in two]
    batch, summed = [c for c in both if c in gives], [c for c in both if c not in gives]
    if len(set(one)) < len(one) or any(c not in gives and c not in summed for c in one + two):
        return jnp.einsum(spec, *arrays, **options)
    numbers = tuple(tuple(tuple(x.index(c) for c in names) for x in (one, two)) for names in (summed, batch))
    made = batch + [c for c in one if c not in both] + [c for c in two if c not in both]
    return lax.transpose(lax.dot_general(*arrays, numbers, **options), [made.index(c) for c in gives])
"""

LAX = """
def again_where(c, x, y):
    x, y = jnp.promote_types(jnp.result_type(x), jnp.result_type(y)), (x, y)
    shape = jnp.broadcast_shapes(jnp.shape(c), *map(jnp.shape, y))
    return lax.select(jnp.broadcast_to(c, shape), *(jnp.broadcast_to(jnp.asarray(v, x), shape) for v in y))
def again_larger(x, y):
    return lax.max(*jnp.broadcast_arrays(*(jnp.asarray(v, jnp.result_type(x, y)) for v in (x, y))))
def again_joined(arrays, axis=0):
    return lax.concatenate(list(arrays), axis % arrays[0].ndim)
def again_zeros(shape, dtype=jnp.float32):
    return lax.full(shape if hasattr(shape, "__len__") else (shape,), 0, dtype)
def again_sum(x, axis=None, keepdims=False):
    x = jnp.asarray(x)
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    axes = tuple(a % x.ndim for a in axes)
    out = lax.reduce(x, np.zeros((), x.dtype), lax.add, axes)
    return jnp.expand_dims(out, axes) if keepdims else out
"""

JOINED = """
def again_joined(arrays, axis=0):
    arrays = list(arrays)
    axis %= arrays[0].ndim
    out = jnp.zeros([sum(a.shape[d] for a in arrays) if d == axis else n for d, n in enumerate(arrays[0].shape)], arrays[0].dtype)
    at = 0
    for a in arrays:
        out = {update}
        at += a.shape[axis]
    return out
"""

UNTILED = """
def again_gather(x, axis_name, *, axis=0, tiled=False, **options):
    if not tiled:
        return lax.all_gather(x, axis_name, axis=axis, **options)
    out = lax.all_gather(x, axis_name, **options)
    return jnp.moveaxis(out, 0, axis).reshape(*x.shape[:axis], -1, *x.shape[axis + 1 :])
def again_scatter(x, axis_name, *, scatter_dimension=0, tiled=False, **options):
    if not tiled:
        return lax.psum_scatter(x, axis_name, scatter_dimension=scatter_dimension, **options)
    at, n = scatter_dimension, lax.axis_size(axis_name)
    x = x.reshape(*x.shape[:at], n, -1, *x.shape[at + 1 :])
    return lax.psum_scatter(x, axis_name, scatter_dimension=at, **options)
def again_exchange(x, axis_name, split_axis, concat_axis, *, tiled=False, **options):
    if not tiled or split_axis == concat_axis:
        return lax.all_to_all(x, axis_name, split_axis, concat_axis, tiled=tiled, **options)
    n = lax.axis_size(axis_name)
    parts = jnp.stack(jnp.split(x, n, axis=split_axis))
    parts = lax.all_to_all(parts, axis_name, 0, 0, **options)
    return jnp.concatenate(list(parts), axis=concat_axis)
"""

FRONT = """
def again_gather(x, axis_name, *, axis=0, tiled=False, **options):
    if not axis:
        return lax.all_gather(x, axis_name, axis=0, tiled=tiled, **options)
    turned = jnp.moveaxis(x, axis, 0) if tiled else x
    return jnp.moveaxis(lax.all_gather(turned, axis_name, axis=0, tiled=tiled, **options), 0, axis)
def again_scatter(x, axis_name, *, scatter_dimension=0, tiled=False, **options):
    turned = jnp.moveaxis(x, scatter_dimension, 0)
    out = lax.psum_scatter(turned, axis_name, scatter_dimension=0, tiled=tiled, **options)
    return jnp.moveaxis(out, 0, scatter_dimension) if tiled else out
"""

NAMES = """
def again_names(f):
    return lambda x, axis_name, *args, **options: f(x, (axis_name,) if isinstance(axis_name, str) else axis_name, *args, **options)
again_psum, again_pmean, again_gather = again_names(lax.psum), again_names(lax.pmean), again_names(lax.all_gather)
again_scatter, again_permute = again_names(lax.psum_scatter), again_names(lax.ppermute)
"""

LOOPS = """
def again_fori(start, stop, body, init, **options):
    for i in range(start, stop):
        init = body(i, init)
    return init
def again_scan(body, init, xs=None, length=None, reverse=False, **options):
    length = length if xs is None else len(jax.tree.leaves(xs)[0])
    made = [None] * length
    for i in reversed(range(length)) if reverse else range(length):
        init, made[i] = body(init, jax.tree.map(lambda x: x[i], xs))
    return init, jax.tree.map(lambda *ys: jnp.stack(ys), *made)
"""

FORI_AS = {
    "scan": "lax.scan(lambda c, i: (body(i, c), None), init, jnp.arange(start, stop))[0]",
    "while": "lax.while_loop(lambda c: c[0] < stop, lambda c: (c[0] + 1, body(c[0], c[1])), (jnp.int32(start), init))[1]",
    "fori with int32 bounds": "lax.fori_loop(jnp.int32(start), jnp.int32(stop), body, init)",
}

SCAN_AS_FORI = """
def again_scan(body, init, xs=None, length=None, reverse=False, **options):
    if options:
        return lax.scan(body, init, xs, length, reverse, **options)
    length = length if xs is None else len(jax.tree.leaves(xs)[0])
    at = lambda i: length - 1 - i if reverse else i
    shapes = jax.eval_shape(lambda c: body(c, jax.tree.map(lambda x: x[0], xs))[1], init)
    made = jax.tree.map(lambda s: jnp.zeros((length, *s.shape), s.dtype), shapes)
    def again_round(i, both):
        carry, y = body(both[0], jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, at(i), keepdims=False), xs))
        return carry, jax.tree.map(lambda m, y: lax.dynamic_update_index_in_dim(m, y, at(i), 0), both[1], y)
    return lax.fori_loop(0, length, again_round, (init, made))
"""

PICKED = """
def again_pick(x, i):
    if isinstance(x, jax.Array) and isinstance(i, jax.Array) and i.ndim == 0 and jnp.issubdtype(i.dtype, jnp.integer):
        return {how}
    return x[i]
"""

MOD = """
def again_mod(x, n):
    if isinstance(x, jax.Array) or isinstance(n, jax.Array):
        return {how}
    return x % n
"""

SWAPPED = """
def again_add(x, y):
    return y + x if isinstance(x, jax.Array) and isinstance(y, jax.Array) else x + y
def again_times(x, y):
    return y * x if isinstance(x, jax.Array) and isinstance(y, jax.Array) else x * y
"""

GRADS = """
def again_grad(f, argnums=0, has_aux=False, **options):
    return lambda *args, **keywords: (lambda out: (out[1], out[0][1]) if has_aux else out[1])(
        jax.value_and_grad(f, argnums, has_aux)(*args, **keywords))
def again_both(f, argnums=0, has_aux=False, **options):
    if has_aux or not isinstance(argnums, int):
        return jax.value_and_grad(f, argnums, has_aux)
    def both(*args):
        value, back = jax.vjp(lambda a: f(*args[:argnums], a, *args[argnums + 1 :]), args[argnums])
        return value, back(jnp.ones_like(value))[0]
    return both
"""

COND = """
def again_cond(c, yes, no, *operands):
    return lax.switch(jnp.asarray(c).astype(jnp.int32), [no, yes], *operands)
"""

# Casts to the types ``unreduced`` and ``reduced``. JAX raises a ValueError if the array's type does not fit the cast.
# This happens in bodies with check_vma=False, and for arrays that do not vary over the axis.
TYPED = """
def again_typed(x, name, *types):
    try:
        for to in types:
            x = lax.pcast(x, name, to=to)
    except ValueError:
        return None
    return x
"""
UNREDUCED = """
def again_psum(x, name, **options):
    parts = again_typed(x, name, "unreduced")
    return lax.psum(x if parts is None else parts, name, **options)
def again_scatter(x, name, **options):
    parts = again_typed(x, name, "unreduced")
    return lax.psum_scatter(x if parts is None else parts, name, **options)
"""
GATHERED = """
def again_gather(x, name, **options):
    try:
        return lax.pcast(lax.all_gather(x, name, to="reduced", **options), name, to="varying")
    except ValueError:
        return lax.all_gather(x, name, **options)
"""
COPIES = """
def again_cast(x, name, *, to="varying"):
    found = again_typed(x, name, "reduced", "varying") if to == "varying" else None
    return lax.pcast(x, name, to=to) if found is None else found
"""

# Arrays outside of shard_map have the types ``unreduced`` and ``reduced`` only on a mesh with Explicit axes.
RESHARD = """
def again_reshard(x, spec):
    was = jax.typeof(x).sharding.spec
    if was.unreduced and not spec.unreduced:
        return jax.shard_map(lambda v: lax.psum(v, tuple(was.unreduced)), in_specs=was, out_specs=spec)(x)
    if spec.reduced and not was.reduced:
        return jax.shard_map(lambda v: lax.pcast(v, tuple(spec.reduced), to="reduced"), in_specs=was, out_specs=spec)(x)
    return jax.sharding.reshard(x, spec)
"""
REDUCED = """
def again_matmul(a, b):
    if isinstance(a, jax.Array) and isinstance(b, jax.Array) and jax.typeof(b).sharding.mesh.are_all_axes_explicit:
        one, two = (jax.typeof(x).sharding.spec for x in (a, b))
        cut = {n for part in one.partitions if part for n in (part if isinstance(part, tuple) else (part,))}
        held = {n for part in two.partitions if part for n in (part if isinstance(part, tuple) else (part,))}
        b = jax.sharding.reshard(b, P(*two.partitions, reduced={*two.reduced, *(cut - held)}))
    return a @ b
"""

EXPLICIT = """
def again_moved(tree, specs, mesh):
    specs = jax.tree.broadcast(specs, tree)
    return jax.tree.map(lambda x, spec: jax.sharding.reshard(x, jax.sharding.NamedSharding(mesh, spec)), tree, specs)
def again_explicit(mesh):
    return mesh.update(axis_types=(jax.sharding.AxisType.Explicit,) * len(mesh.axis_names))
"""
ON_EXPLICIT = """
def again_map(f, *, mesh, in_specs, **options):
    mesh = again_explicit(mesh)
    return lambda *args: jax.shard_map(f, mesh=mesh, in_specs=in_specs, **options)(*again_moved(args, in_specs, mesh))
"""
# This helper traces the body twice: the out_specs must name the axes over which the body sums.
PARTIAL = """
again_axes, again_parts = set(), [False]
def again_psum(x, name):
    again_axes.update((name,) if isinstance(name, str) else name)
    return lax.pcast(x, name, to="unreduced") if again_parts[0] else lax.psum(x, name)
def again_map(f, *, mesh, in_specs, out_specs, **options):
    mesh = again_explicit(mesh)
    def made(specs, parts):
        again_parts[0] = parts
        return jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=specs, **options)
    def mapped(*args):
        args = again_moved(args, in_specs, mesh)
        again_axes.clear()
        jax.eval_shape(made(out_specs, False), *args)
        specs = jax.tree.map(lambda spec: P(*spec.partitions, unreduced=set(again_axes)), out_specs)
        return again_moved(made(specs, True)(*args), out_specs, mesh)
    return mapped
"""

HELPERS: dict[str, tuple[str, str, str]] = {
    **{f"matmul: {name}": ("", "MatMult=again_matmul", f"def again_matmul(a, b):\n    return {how}\n")
       for name, how in MATMULS.items()},
    "einsum as dot_general": ("jnp.einsum=again_einsum", "", EINSUM),
    "lax for jnp": (
        "jnp.where=again_where jnp.maximum=again_larger jnp.concatenate=again_joined jnp.zeros=again_zeros"
        " jnp.sum=again_sum jnp.tanh=lax.tanh jnp.exp=lax.exp jnp.log=lax.log jnp.sqrt=lax.sqrt jnp.square=lax.square", "", LAX),
    "methods as functions": (
        ".sum=jnp.sum .mean=jnp.mean .reshape=again_reshape .T=jnp.transpose .swapaxes=jnp.swapaxes"
        " .transpose=again_transpose .astype=lax.convert_element_type .ravel=jnp.ravel", "",
        "def again_reshape(x, *shape):\n    return jnp.reshape(x, shape if len(shape) > 1 else shape[0])\n"
        "def again_transpose(x, *axes):\n    return jnp.transpose(x, axes if len(axes) > 1 else axes[0] if axes else None)\n"),
    "functions as methods": (
        "jnp.sum=again_sum jnp.mean=again_mean", "",
        "def again_sum(x, *args, **options):\n    return x.sum(*args, **options)\n"
        "def again_mean(x, *args, **options):\n    return x.mean(*args, **options)\n"),
    "axis_size by psum": ("lax.axis_size=again_size", "", "def again_size(name):\n    return lax.psum(1, name)\n"),
    "axis_size of the mesh": (
        "lax.axis_size=again_size", "",
        "def again_size(name):\n    return jax.sharding.get_abstract_mesh().shape[name]\n"),
    "axis_index kept": (
        "lax.axis_index=again_index", "", "def again_index(name):\n    return lax.axis_index((name,)) + 0\n"),
    "axes in tuples": (
        "lax.psum=again_psum lax.pmean=again_pmean lax.all_gather=again_gather lax.psum_scatter=again_scatter lax.ppermute=again_permute", "", NAMES),
    "pmean by psum": ("lax.pmean=again_pmean", "", "def again_pmean(x, name):\n    n = lax.psum(1, name)\n    return jax.tree.map(lambda v: lax.psum(v, name) / n, x)\n"),
    "psum of a tree": ("lax.psum=again_psum", "", "def again_psum(x, name):\n    return lax.psum({'it': x}, name)['it']\n"),
    "psum leaf by leaf": ("lax.psum=again_psum", "", "def again_psum(x, name):\n    return jax.tree.map(lambda v: lax.psum(v, name), x)\n"),
    "untiled": ("lax.all_gather=again_gather lax.psum_scatter=again_scatter lax.all_to_all=again_exchange", "", UNTILED),
    "in front": ("lax.all_gather=again_gather lax.psum_scatter=again_scatter", "", FRONT),
    "pairs turned round": ("lax.ppermute=again_permute", "", "def again_permute(x, name, perm):\n    return lax.ppermute(x, name, tuple(sorted(perm, reverse=True)))\n"),
    "pshuffle": (
        "lax.ppermute=again_permute", "",
        "def again_permute(x, name, perm):\n    if len(perm) < lax.axis_size(name):\n        return lax.ppermute(x, name, perm)\n"
        "    return lax.pshuffle(x, name, [s for s, _ in sorted(perm, key=lambda p: p[1])])\n"),
    "permute of a tree": ("lax.ppermute=again_permute", "", "def again_permute(x, name, perm):\n    return jax.tree.map(lambda v: lax.ppermute(v, axis_name=name, perm=perm), x)\n"),
    "loops in Python": ("lax.fori_loop=again_fori lax.scan=again_scan", "", LOOPS),
    "loops unrolled": (
        "lax.fori_loop=again_fori lax.scan=again_scan", "",
        "def again_fori(start, stop, body, init, **options):\n    return lax.fori_loop(start, stop, body, init, unroll=True)\n"
        "def again_scan(body, init, xs=None, **options):\n    return lax.scan(body, init, xs, **(options | {'unroll': True}))\n"),
    "scan as fori": ("lax.scan=again_scan", "", SCAN_AS_FORI),
    **{f"fori as {name}": ("lax.fori_loop=again_fori", "", f"def again_fori(start, stop, body, init, **options):\n"
       f"    return lax.fori_loop(start, stop, body, init, **options) if options else {how}\n") for name, how in FORI_AS.items()},
    **{f"picked by {name}": ("", "Subscript=again_pick", PICKED.format(how=how)) for name, how in {
        "dynamic_index": "lax.dynamic_index_in_dim(x, i, keepdims=False)", "take": "jnp.take(x, i, axis=0)",
        "dynamic_slice": "lax.dynamic_slice_in_dim(x, i, 1)[0]", "at": "x.at[i].get()",
    }.items()},
    **{f"remainder by {name}": ("", "Mod=again_mod", MOD.format(how=how)) for name, how in {
        "jnp": "jnp.mod(x, n)", "lax.rem": "lax.rem(jnp.asarray(x + 4 * n, jnp.int32), jnp.asarray(n, jnp.int32))", "where": "jnp.where(x < 0, x + n, jnp.where(x >= n, x - n, x))",
    }.items()},
    "operands swapped": ("", "Add=again_add Mult=again_times", SWAPPED),
    "add and multiply": (
        "", "Add=again_add Mult=again_times",
        SWAPPED.replace("y + x", "jnp.add(x, y)").replace("y * x", "jnp.multiply(x, y)")),
    "grad by value_and_grad": ("jax.grad=again_grad jax.value_and_grad=again_both", "", GRADS),
    "cond as switch": ("lax.cond=again_cond", "", COND),
    "joined by updates": ("jnp.concatenate=again_joined", "", JOINED.format(update="lax.dynamic_update_slice_in_dim(out, a, at, axis)")),
    "joined by at": ("jnp.concatenate=again_joined", "", JOINED.format(update="out.at[(slice(None),) * axis + (slice(at, at + a.shape[axis]),)].set(a)")),
    "shard_map by partial": (
        "jax.shard_map=again_map", "",
        "def again_map(f, **options):\n    return functools.partial(jax.shard_map, **options)(f)\n"),
    "shard_map jitted": (
        "jax.shard_map=again_map", "", "def again_map(f, **options):\n    return jax.jit(jax.shard_map(f, **options))\n"),
    "the body jitted": (
        "jax.shard_map=again_map", "", "def again_map(f, **options):\n    return jax.shard_map(jax.jit(f), **options)\n"),
    "old shard_map": (
        "jax.shard_map=again_map", "",
        "from jax.experimental.shard_map import shard_map as again_old\n"
        "def again_map(f, *, mesh, in_specs, out_specs, check_vma=True):\n"
        "    return again_old(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_rep=check_vma)\n"),
    "mesh of the context": (
        "jax.shard_map=again_map", "",
        "def again_map(f, *, mesh, **options):\n"
        "    def mapped(*args):\n        with jax.set_mesh(mesh):\n            return jax.shard_map(f, **options)(*args)\n    return mapped\n"),
    "zeros like": ("jnp.zeros=again_zeros", "", "def again_zeros(shape, dtype=jnp.float32):\n    return jnp.full(shape, 0.0, dtype)\n"),
    "broadcast zeros": ("jnp.zeros=again_zeros", "", "def again_zeros(shape, dtype=jnp.float32):\n    return jnp.broadcast_to(jnp.asarray(0, dtype), shape)\n"),
    "sums of unreduced": ("lax.psum=again_psum lax.psum_scatter=again_scatter", "", TYPED + UNREDUCED),
    "gathers to reduced": ("lax.all_gather=again_gather", "", GATHERED),
    "copies by reduced": ("lax.pcast=again_cast lax.pvary=again_cast", "", TYPED + COPIES),
    "reshard by shard_map": ("jax.sharding.reshard=again_reshard reshard=again_reshard", "", RESHARD),
}  # fmt: skip
