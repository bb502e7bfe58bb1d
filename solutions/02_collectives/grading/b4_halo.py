"""Misconceptions of B4."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from b4_halo import (
    exercise,
    halo,
    halo_bytes,
    halo_traffic,
    halo_value,
    halo_wide,
    stencil,
    stencil_traffic,
    stencil_value,
    stencil_weighted,
)
from grader.exercise import Scenario


@exercise.misconception(
    of=halo,
    fails=halo_value,
    breaks=["`halo` | one element of each neighbour around every block", "The ring is closed"],
)
def halo_zeros_at_the_wrap(a, *, w):
    """Your ring is open: no pair sends to the first device, or none sends from the last. A device without a sender receives zeros. Close the ring with (i + 1) % n."""
    n = jax.lax.axis_size("x")
    left = jax.lax.ppermute(a[-w:], "x", [(i, i + 1) for i in range(n - 1)])
    right = jax.lax.ppermute(a[:w], "x", [(i + 1, i) for i in range(n - 1)])
    return jnp.concatenate([left, a, right])


@exercise.misconception(of=halo, fails=halo_value, breaks="one element of each neighbour around every block")
def halo_wrong_way(a, *, w):
    """You sent the edges in the wrong direction. The device to your right needs your last elements on its left: i sends them to i + 1."""
    n = jax.lax.axis_size("x")
    left = jax.lax.ppermute(a[-w:], "x", [(i, (i - 1) % n) for i in range(n)])
    right = jax.lax.ppermute(a[:w], "x", [(i, (i + 1) % n) for i in range(n)])
    return jnp.concatenate([left, a, right])


@exercise.misconception(of=halo, fails=halo_value, breaks="the last w elements of the left neighbour, the block")
def halo_on_the_wrong_side(a, *, w):
    """You put the left neighbour's elements on the right, and the right neighbour's on the left. Swap them when you join."""
    wide = halo(a, w=w)
    return jnp.concatenate([wide[-w:], a, wide[:w]])


@exercise.misconception(of=halo, fails=halo_value, breaks="the last w elements of the left neighbour, the block")
def halo_of_the_far_ends(a, *, w):
    """You sent your first elements to the right, or your last elements to the left. The right neighbour needs the elements next to it, your last w."""
    n = jax.lax.axis_size("x")
    left = jax.lax.ppermute(a[:w], "x", [(i, (i + 1) % n) for i in range(n)])
    right = jax.lax.ppermute(a[-w:], "x", [(i, (i - 1) % n) for i in range(n)])
    return jnp.concatenate([left, a, right])


@exercise.misconception(of=halo, fails=halo_wide, breaks="`halo` | three elements of each neighbour")
def halo_of_one(a, *, w):
    """You exchanged one element, whatever `w` is. Exchange `w` elements."""
    return halo(a, w=1)


@exercise.misconception(of=halo, fails=halo_traffic, breaks=["`halo` | two permutes over x", "and no other collective"])
def halo_by_all_gather(a, *, w):
    """You gathered the whole array. A device needs w elements from each of two neighbours, and nothing from the others."""
    n = jax.lax.axis_size("x")
    whole, start = jax.lax.all_gather(a, "x", tiled=True), jax.lax.axis_index("x") * a.size
    return whole[(start - w + jnp.arange(a.size + 2 * w)) % (n * a.size)]


@exercise.misconception(of=halo, fails=halo_traffic, breaks="with w elements each: 2 · w · 4 bytes")
def halo_of_whole_blocks(a, *, w):
    """You sent the whole block and cut off the edge on arrival. Cut first: only w elements need to travel."""
    n = jax.lax.axis_size("x")
    left = jax.lax.ppermute(a, "x", [(i, (i + 1) % n) for i in range(n)])
    right = jax.lax.ppermute(a, "x", [(i, (i - 1) % n) for i in range(n)])
    return jnp.concatenate([left[-w:], a, right[:w]])


@exercise.misconception(of=stencil, fails=stencil_value, breaks="`stencil` | the weights (-1, 0, 1)")
def stencil_of_blocks(a, *, mesh, weights):
    """You let each block wrap round into itself. Other devices hold the neighbouring elements: fetch them with halo."""

    def local(block):
        return sum(weight * jnp.roll(block, len(weights) // 2 - k) for k, weight in enumerate(weights))

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)


@exercise.misconception(of=stencil, fails=stencil_value, breaks="`stencil` | the weights (-1, 0, 1)")
def stencil_ahead(a, *, mesh, weights):
    """Your stencil begins at its own element. weights[k] belongs to a[i + k - w]: w elements before and w elements after."""

    def local(block):
        n, reach = jax.lax.axis_size("x"), len(weights) - 1
        after = jax.lax.ppermute(block[:reach], "x", [(i, (i - 1) % n) for i in range(n)])
        wide = jnp.concatenate([block, after])
        return sum(weight * wide[k : k + len(block)] for k, weight in enumerate(weights))

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(a)


@exercise.misconception(form_of=stencil_ahead)
def stencil_behind(a, *, mesh, weights):
    """Like `stencil_ahead`, but the stencil ends at its own element."""

    def local(block):
        n, reach = jax.lax.axis_size("x"), len(weights) - 1
        before = jax.lax.ppermute(block[-reach:], "x", [(i, (i + 1) % n) for i in range(n)])
        wide = jnp.concatenate([before, block])
        return sum(weight * wide[k : k + len(block)] for k, weight in enumerate(weights))

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(a)


@exercise.misconception(of=halo, fails=halo_wide, breaks="`halo` | three elements of each neighbour")
def halo_of_copies(a, *, w):
    """You sent one element of each neighbour and repeated it. Send the w elements at the edge."""
    n = jax.lax.axis_size("x")
    left = jax.lax.ppermute(a[-1:], "x", [(i, (i + 1) % n) for i in range(n)])
    right = jax.lax.ppermute(a[:1], "x", [(i, (i - 1) % n) for i in range(n)])
    return jnp.concatenate([jnp.repeat(left, w), a, jnp.repeat(right, w)])


@exercise.misconception(of=stencil, fails=stencil_value, breaks="`a[i + 1] − a[i − 1]`")
def stencil_mirrored(a, *, mesh, weights):
    """You reversed the weights. weights[0] belongs to a[i - w], the element w places to the left."""
    return stencil(a, mesh=mesh, weights=weights[::-1])


@exercise.misconception(of=stencil, fails=stencil_value, breaks="The ring is closed")
def stencil_between_zeros(a, *, mesh, weights):
    """You assumed zeros before the first element and after the last. The ring is closed: the first element's left neighbour is the last element."""

    def local(block):
        w, n = len(weights) // 2, jax.lax.axis_size("x")
        left = jax.lax.ppermute(block[-w:], "x", [(i, i + 1) for i in range(n - 1)])
        right = jax.lax.ppermute(block[:w], "x", [(i + 1, i) for i in range(n - 1)])
        padded = jnp.concatenate([left, block, right])
        return sum(weight * padded[k : k + block.size] for k, weight in enumerate(weights))

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)


@exercise.misconception(of=stencil, fails=stencil_weighted, breaks="five unequal weights")
def stencil_of_three(a, *, mesh, weights):
    """You used three weights and a halo of one element. With 2w + 1 weights an element needs w elements from each
    side."""
    return stencil(a, mesh=mesh, weights=weights[:3])


@exercise.misconception(of=stencil, fails=stencil_traffic, breaks="two permutes over x with w elements each |")
def stencil_halo_per_weight(a, *, mesh, weights):
    """You communicated once for each weight. Fetch the halo once: all shifts are slices of it."""

    def shifted(block):
        w = len(weights) // 2
        return sum(weight * halo(block, w=w)[k : k + block.size] for k, weight in enumerate(weights))

    return jax.shard_map(shifted, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)


@exercise.misconception(of=stencil, fails=stencil_traffic, breaks="two permutes over x with w elements each |")
def stencil_of_rolls(a, *, mesh, weights):
    """You rolled the whole array, so the compiler sends elements for each weight. Use shard_map, and fetch the halo once."""
    return sum(weight * jnp.roll(a, len(weights) // 2 - k) for k, weight in enumerate(weights))


@exercise.misconception(of=stencil, fails=stencil_traffic, breaks='`stencil` | the result is sharded `P("x")`')
def stencil_gathered(a, *, mesh, weights):
    """You gathered the result on every device. Each device keeps its own block: out_specs=P('x') joins the blocks without communication."""

    def local(block):
        padded = halo(block, w=len(weights) // 2)
        mine = sum(weight * padded[k : k + block.size] for k, weight in enumerate(weights))
        return jax.lax.all_gather(mine, "x", tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


@exercise.misconception(of=halo_bytes)
def halo_one_side(N, D, X, w):
    """You counted one neighbour. w rows go up and w rows go down."""
    return w * D * 4


@exercise.misconception(of=halo_bytes)
def halo_of_blocks(N, D, X, w):
    """You sent the whole block to both neighbours. Only the outermost w rows on each side travel."""
    return 2 * N / X * D * 4


@exercise.misconception(of=halo_bytes)
def halo_cut_columns(N, D, X, w):
    """You divided the row length by X. x cuts dimension 0 only, so a row at the edge has all D columns."""
    return 2 * w * D / X * 4


@exercise.misconception(of=halo_bytes)
def halo_of_all_devices(N, D, X, w):
    """You counted what all devices send together. The question asks for one device."""
    return 2 * w * D * 4 * X


@exercise.misconception(of=halo_bytes)
def halo_of_one_row(N, D, X, w):
    """You counted one row for each neighbour. Each neighbour needs w rows."""
    return 2 * D * 4


@exercise.misconception(of=halo_bytes)
def halo_elements(N, D, X, w):
    """You counted numbers, not bytes. A float32 takes 4 bytes."""
    return 2 * w * D


exercise.scenario(
    halo_bytes, lambda N, D, X, w: Scenario(mesh={"x": X}, arrays=[((N, D), P("x"))], most=2 * N / X * D * 4)
)
