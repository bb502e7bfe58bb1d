"""H2: checks, misconceptions and alternatives."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import PartitionSpec as P

from grader.exercise import Scenario, axis, like, normal
from grader.expect import (
    Failure,
    between,
    expect_close,
    expect_collectives,
    expect_flops,
    expect_overlap,
    expect_step_time,
    expect_traffic,
)
from grader.hardware import CHIPS, all_reduce_time, matmul_time
from h2_buckets import best_bucket, bucketed_grads, buckets, exercise


def models(rng):
    """Draw lists of tensors of uneven sizes. Some tensors are frozen or tied."""
    for number in range(30):
        names = [f"t{i}" for i in rng.permutation(24)]
        tensors = [[name, int(rng.integers(3, 60)), bool(rng.random() < 0.6)] for name in names]
        tensors[0][2] = tensors[-1][2] = True
        tensors[int(rng.integers(1, 23)) if number % 3 else -1][1] = 150
        tied = [tensors[i] for i in rng.choice(12, 3, replace=False)]
        yield {"tensors": [*tensors, tensors[0], *tied], "cap": int(rng.integers(80, 130))}


cases = exercise.cases(
    buckets,
    public=[
        {"tensors": [["embed", 40, True], ["norm", 8, False], ["w1", 30, True], ["w2", 20, True], ["embed", 40, True]], "cap": 50},
        {"tensors": [["a", 90, True], ["b", 30, True], ["c", 25, True], ["d", 30, True], ["e", 20, True]], "cap": 60},
        {"tensors": [["a", 30, True], ["b", 20, True], ["c", 90, True]], "cap": 60},
        {"tensors": [["e", 7, True], *[[f"l{i}", 20, i % 4 == 1] for i in range(20)], ["e", 7, True]], "cap": 40},
    ],
    hidden=models,
)  # fmt: skip


@exercise.helper
def in_order(tensors):
    """Return each trainable tensor's bytes by name, in the order in which gradients become ready."""
    placed = dict([name, size] for name, size, trainable in tensors if trainable)
    return {name: placed[name] for name in reversed(placed)}


@exercise.helper
def problem_of_order(tensors, found):
    """Return what is wrong with the names or their order in these buckets; '' if they are right."""
    ready = list(in_order(tensors))
    if not isinstance(found, list | tuple) or not all(isinstance(b, list | tuple) for b in found):
        return "the result is not a list of lists of names"
    if not all(found):
        return "a bucket is empty"
    for bucket in found:
        due, ready = ready[: len(bucket)], ready[len(bucket) :]
        if sorted(map(str, bucket)) != sorted(due):
            return f"the bucket {list(bucket)} is sent in place of {due}: send gradients in the order in which they become ready"
    return f"{ready} are never sent" if ready else ""


@exercise.helper
def problem_of_size(tensors, cap, found, least):
    """Return what is wrong with the sizes of these buckets; '' if they are right."""
    size = in_order(tensors)
    for bucket in found:
        held = sum(size[name] for name in bucket)
        if held > cap and len(bucket) > 1:
            return f"{list(bucket)} holds {held} bytes, the cap is {cap}"
    return f"there are {len(found)} buckets, {least} are enough" if len(found) > least + 1 else ""


@exercise.helper
def complain(seen, problem_of):
    """Fail with the first problem; for hidden cases, show only that a problem exists."""
    for args, got, want in seen.outcomes:
        where = f"line {got.line}" if got.error and got.line else ""
        problem = f"raised {got.error}" if got.error else problem_of(args, got.value, want.value)
        if problem:
            told = f"for tensors={args['tensors']}, cap={args['cap']}: {problem}"
            text = told if seen.public else "the result is wrong for hidden arguments"
            raise Failure(text, where=where, staff="" if seen.public else told)


@exercise.check(cases, points=1, public=True)
def buckets_order(seen):
    """buckets: every gradient once, in the order in which gradients become ready"""
    complain(seen, lambda args, got, want: problem_of_order(args["tensors"], got))


@exercise.check(cases, points=0.5, public=True, after=buckets_order)
def buckets_size(seen):
    """buckets: each bucket is within the cap, and there is at most one bucket more than the fewest possible"""
    complain(seen, lambda args, got, want: problem_of_size(**args, found=got, least=len(want)))


arrays = {
    "ws": [normal("D", "E"), normal("E", "F"), normal("F", "G"), normal("G", "K")],
    "x": normal("B", "D", spec=P("dp")),
    "y": normal("B", "K", spec=P("dp")),
}
bf16 = {
    "ws": [normal(*pair, dtype="bfloat16") for pair in ("DE", "EF", "FG", "GK")],
    "x": normal("B", "D", spec=P("dp"), dtype="bfloat16"),
    "y": normal("B", "K", spec=P("dp"), dtype="bfloat16"),
}
values = exercise.call(
    bucketed_grads, **arrays, static={"plan": [[3], [2, 1], [0]]}, hidden_static={"plan": [[3, 2], [1], [0]]},
    returns=like("ws", "grads"),
    dims={"D": 4, "E": 7, "F": 5, "G": 6, "K": 3, "B": 3 * axis("dp")},
    hidden_dims={"D": 7, "E": 5, "F": 9, "G": 6, "K": 4, "B": 5 * axis("dp")},
)  # fmt: skip
narrow = exercise.call(
    bucketed_grads, **bf16, static={"plan": [[3], [2, 1], [0]]}, hidden_static={"plan": [[3, 2], [1], [0]]},
    returns=like("ws", "grads"), meshes=[{"dp": 8}],
    dims={"D": 11, "E": 13, "F": 17, "G": 19, "K": 23, "B": 29 * axis("dp")},
    hidden_dims={"D": 23, "E": 19, "F": 13, "G": 11, "K": 17, "B": 31 * axis("dp")},
)  # fmt: skip
time = exercise.timing(
    narrow, on="v5e:2x4",
    dims={"D": 4096, "E": 5120, "F": 4608, "G": 6144, "K": 3072, "B": 4096 * axis("dp")},
    hidden_dims={"D": 3072, "E": 6144, "F": 5120, "G": 4096, "K": 4608, "B": 6144 * axis("dp")},
)  # fmt: skip


@exercise.helper
def grads_on_one_device(ws, x, y):
    """Return the gradients of the sum of squares over all rows."""
    hs = [x]
    for w in ws:
        hs.append(np.tanh(hs[-1] @ w))
    back, grads = 2 * (hs[-1] - y), []
    for w, before, after in zip(ws[::-1], hs[-2::-1], hs[:0:-1], strict=True):
        back = back * (1 - after**2)
        grads.insert(0, before.T @ back)
        back = back @ w.T
    return grads


@exercise.helper
def sizes_of(seen):
    """Return the number of elements of each layer."""
    names = "DEFGK"
    return [seen.dims[a] * seen.dims[b] for a, b in itertools.pairwise(names)]


@exercise.check(values, points=0.5, public=True)
def bucketed_value(seen):
    """bucketed_grads: every device holds the gradients of all rows"""
    expect_close(seen.out, grads_on_one_device(seen.ws, seen.x, seen.y))


@exercise.helper
def expect_buckets(seen, each):
    """Require one all-reduce for each bucket, of the bucket's gradients. A number has ``each`` bytes."""
    expect_collectives(seen, all_reduce={"dp": len(seen.plan)})  # fewer would sum several buckets at once
    size = sizes_of(seen)
    due = sorted(each * sum(size[i] for i in bucket) for bucket in seen.plan)
    found = sorted(one.bytes for one in seen.collectives)
    if found != due:
        raise Failure(f"the all-reduces sum {found} bytes, the buckets have {due} bytes", expected=due, actual=found)


@exercise.check(values, points=0.5, public=True, after=bucketed_value)
def bucketed_budget(seen):
    """bucketed_grads: one all-reduce for each bucket, and no byte is sent twice"""
    expect_buckets(seen, 4)


@exercise.check(narrow, points=0.25, public=True, after=bucketed_budget)
def bucketed_narrow(seen):
    """bucketed_grads in bfloat16 (the timed dtype): every device holds the gradients of all rows, and sends bfloat16 in
    the same buckets"""
    expect_close(seen.out, grads_on_one_device(seen.ws, seen.x, seen.y))
    n, size = seen.mesh["dp"], sum(sizes_of(seen))
    expect_traffic(seen, at_most=between(2 * (n - 1) / n * 2 * size, 2 * (n - 1) / n * 4 * size))
    expect_buckets(seen, 2)


@exercise.check([narrow, time], points=0.25, after=bucketed_narrow)
def bucketed_overlap(small, large):
    """bucketed_grads: all buckets but the last overlap matmuls, and the step takes at most 1.2 times as long as its
    matmuls and the last all-reduce together"""
    for seen in (small, large):
        n, size = seen.mesh["dp"], sizes_of(seen)
        rows = seen.dims["B"] / n
        expect_flops(seen, at_least=(6 * sum(size) - 2 * size[0]) * rows)
        expect_traffic(seen.only(kind="all_reduce"), at_least=0.99 * 2 * (n - 1) / n * 2 * sum(size))
    last = sum(size[i] for i in large.plan[-1])
    matmuls = matmul_time((6 * sum(size) - 2 * size[0]) * rows, "v5e")
    right = matmuls + all_reduce_time(2 * last, large.mesh["dp"], "v5e")
    expect_step_time(large, at_most=between(right, 1.6 * right, at=1.2 * right))
    # 1.05: room for tanh and its gradient. 0.7: the last bucket overlaps nothing, and copies take time.
    expect_overlap(large, "all_reduce", at_least=0.7 * (1 - last / sum(size)), work=1.05 * matmuls)


# -- right in other ways -----------------------------------------------------------------------


@exercise.alternative(of=buckets)
def buckets_small_one_first(tensors, cap):
    """The first bucket has one tensor, so it starts early. Names within a bucket are in the order of the forward pass."""
    names, size, found = [], {}, []
    for name, n, trainable in tensors:
        if trainable and name not in size:
            size[name] = n
            names.append(name)
    found, bucket = [[names.pop()]], []
    while names:
        if bucket and sum(size[name] for name in bucket) + size[names[-1]] > cap:
            found.append(bucket)
            bucket = []
        bucket.insert(0, names.pop())
    return [*found, bucket] if bucket else found


@exercise.alternative(of=buckets)
def buckets_from_the_end(tensors, cap):
    """The program fills the last bucket first, so the first bucket may be smaller than the others."""
    size = {}
    for name, n, trainable in tensors:
        if trainable:
            size.setdefault(name, n)
    found = [[]]
    for name in size:
        if found[0] and sum(size[other] for other in found[0]) + size[name] > cap:
            found.insert(0, [])
        found[0].insert(0, name)
    return found


@exercise.alternative(of=bucketed_grads)
def bucketed_by_raveling(ws, x, y, *, plan):
    """Each bucket is a pytree, raveled and unraveled. The backward pass is written by hand."""
    hs = [x]
    for w in ws:
        hs.append(jnp.tanh(hs[-1] @ w))
    back, grads = 2 * (hs[-1] - y), dict.fromkeys(range(len(ws)))
    for i in reversed(range(len(ws))):
        back = back * (1 - hs[i + 1] ** 2)
        grads[i] = hs[i].T @ back
        back = back @ ws[i].T
    for bucket in plan:
        flat, unravel = ravel_pytree({i: grads[i] for i in bucket})
        grads |= unravel(jax.lax.psum(flat, "dp"))
    return [grads[i] for i in range(len(ws))]


@exercise.alternative(of=bucketed_grads)
def bucketed_in_a_buffer(ws, x, y, *, plan):
    """Each bucket is a buffer that is filled and read tensor by tensor."""

    def loss(ws):
        h = x
        for w in ws:
            h = jnp.tanh(h @ w)
        return jnp.sum((h - y) ** 2)

    grads = list(jax.grad(loss)(tuple(ws)))
    for bucket in plan:
        ends = np.cumsum([ws[i].size for i in bucket])
        places = [slice(int(end) - ws[i].size, int(end)) for i, end in zip(bucket, ends, strict=True)]
        buffer = jnp.zeros(int(ends[-1]), x.dtype)
        for i, place in zip(bucket, places, strict=True):
            buffer = buffer.at[place].set(grads[i].reshape(-1))
        buffer = jax.lax.psum(buffer, "dp")
        for i, place in zip(bucket, places, strict=True):
            grads[i] = buffer[place].reshape(ws[i].shape)
    return grads


# -- what goes wrong ---------------------------------------------------------------------------


def filled(sized, cap):
    """Fill buckets greedily with these (name, bytes), in the given order, and return their names."""
    found, room = [], 0
    for name, size in sized:
        if not found or size > room:
            found.append([])
            room = cap
        found[-1].append(name)
        room -= size
    return found


def ready(tensors):
    return list({name: size for name, size, trainable in tensors if trainable}.items())[::-1]


@exercise.misconception(
    of=buckets, fails=buckets_order, breaks="every gradient once, in the order in which they become ready"
)
def buckets_forward(tensors, cap):
    """You filled buckets in the order of the forward pass, so the first bucket waits for the end of the backward pass. Which gradient is ready first?"""
    return filled(ready(tensors)[::-1], cap)


@exercise.misconception(of=buckets, fails=buckets_order, breaks="every gradient once")
def buckets_tied_twice(tensors, cap):
    """You sent a tied tensor once for each of its uses. It is one tensor with one gradient: put it into one bucket."""
    return filled([(name, size) for name, size, trainable in tensors[::-1] if trainable], cap)


@exercise.misconception(
    of=buckets, fails=buckets_order, breaks="every gradient once, in the order in which they become ready"
)
def buckets_tied_too_early(tensors, cap):
    """You sent a tied tensor as soon as the backward pass reached one of its uses. Its other uses
    still add to the gradient. Wait for the use that comes first in the forward pass."""
    return filled({name: size for name, size, trainable in tensors[::-1] if trainable}.items(), cap)


@exercise.misconception(of=buckets, fails=buckets_order, breaks="A *frozen* tensor has no gradient")
def buckets_frozen_too(tensors, cap):
    """You put frozen tensors into buckets. Frozen tensors get no gradient, so their bucket waits forever. Leave them out."""
    return filled(ready([[name, size, True] for name, size, _ in tensors]), cap)


@exercise.misconception(of=buckets, fails=buckets_size, breaks="at most one bucket more than the fewest possible")
def buckets_room_for_frozen(tensors, cap):
    """You kept room for frozen tensors, so buckets are sent half empty. Count only tensors that get a gradient."""
    trainable = {name for name, _, trains in tensors if trains}
    every = filled(ready([[name, size, True] for name, size, _ in tensors]), cap)
    return [kept for bucket in every if (kept := [name for name in bucket if name in trainable])]


@exercise.misconception(of=buckets, fails=buckets_order, breaks="every gradient once")
def buckets_begin_empty(tensors, cap):
    """Your first bucket is empty if the first gradient is larger than the cap. Begin a new bucket only if the newest bucket holds a tensor."""
    found, held = [[]], 0
    for name, size in ready(tensors):
        if held + size > cap:
            found.append([])
            held = 0
        found[-1].append(name)
        held += size
    return found


@exercise.misconception(of=buckets, fails=buckets_order, breaks="every gradient once")
def buckets_last_not_sent(tensors, cap):
    """You never send the bucket that is still open after the last tensor. Send this bucket too."""
    return filled(ready(tensors), cap)[:-1]


@exercise.misconception(of=buckets, fails=buckets_order, breaks="every gradient once")
def buckets_without_large_ones(tensors, cap):
    """You left out tensors that are larger than the cap. Send each of them alone in a bucket."""
    return filled([(name, size) for name, size in ready(tensors) if size <= cap], cap)


@exercise.misconception(
    of=buckets, fails=buckets_order, breaks="every gradient once, in the order in which they become ready"
)
def buckets_by_name(tensors, cap):
    """You took the names from a set, or sorted them. All devices need one order: the order in which gradients become ready."""
    return filled(sorted(ready(tensors)), cap)


def first_fit(named, cap):
    """Return buckets of (name, size). Each tensor is in the first bucket with room."""
    found = []
    for name, size in named:
        bucket = next((b for b in found if sum(n for _, n in b) + size <= cap), None)
        if bucket is None:
            found.append(bucket := [])
        bucket.append((name, size))
    return found


def packed(tensors, cap):
    """Return buckets of (name, size), with the largest tensor first."""
    return first_fit(sorted(ready(tensors), key=lambda one: -one[1]), cap)


def packed_sizes(seen):
    """For `gives`: require the sizes of tightly packed buckets. Tensors of equal size may be in any order."""
    for args, got, _ in seen.outcomes:
        sizes = {name: size for name, size, *_ in args["tensors"]}
        due = [[size for _, size in bucket] for bucket in packed(args["tensors"], args["cap"])]
        if [[sizes.get(name) for name in bucket] for bucket in got.value] != due:
            raise Failure("these buckets are not packed by size")


@exercise.misconception(
    of=buckets,
    fails=buckets_order,
    gives=packed_sizes,
    breaks="every gradient once, in the order in which they become ready",
)
def buckets_packed_tightly(tensors, cap):
    """You packed by size, into any bucket with room. A bucket waits for the last of its gradients: put gradients together that become ready one after the other."""
    return [[name for name, _ in bucket] for bucket in packed(tensors, cap)]


@exercise.misconception(
    of=buckets, fails=buckets_order, breaks="every gradient once, in the order in which they become ready"
)
def buckets_first_fit(tensors, cap):
    """You put a tensor into the first bucket with room. An older bucket then waits for a later gradient: fill only the newest bucket."""
    return [[name for name, _ in bucket] for bucket in first_fit(ready(tensors), cap)]


@exercise.misconception(of=buckets, fails=buckets_size, breaks="at most `cap` bytes per bucket")
def buckets_overfull(tensors, cap):
    """You closed a bucket only after its size had passed the cap. Compare sizes before you add a tensor: a tensor that does not fit begins the next bucket."""
    found, held = [[]], 0
    for name, size in ready(tensors):
        if held > cap:
            found.append([])
            held = 0
        found[-1].append(name)
        held += size
    return found


@exercise.misconception(form_of=buckets_overfull, breaks="at most `cap` bytes per bucket")
def buckets_full_or_overfull(tensors, cap):
    """Like `buckets_overfull`, but a bucket is also closed when it is exactly full."""
    found, held = [], cap
    for name, size in ready(tensors):
        if held >= cap:
            found.append([])
            held = 0
        found[-1].append(name)
        held += size
    return found


@exercise.misconception(of=buckets, fails=buckets_size, breaks="a tensor above `cap` is alone")
def buckets_larger_one_joined(tensors, cap):
    """You put a tensor that is larger than the cap into the bucket that was open. Such a tensor must be alone in a bucket."""
    found, held = [[]], 0
    for name, size in ready(tensors):
        if held > cap or held + size > cap >= size:
            found.append([])
            held = 0
        found[-1].append(name)
        held += size
    return found


@exercise.misconception(of=buckets, fails=buckets_size, breaks="at most one bucket more than the fewest possible")
def buckets_tied_counted_twice(tensors, cap):
    """You counted the bytes of a tied tensor once for each of its uses. It is sent once: count its bytes once."""
    size = {}
    for name, n, trainable in tensors:
        if trainable:
            size[name] = size.get(name, 0) + n
    return filled(list(size.items())[::-1], cap)


@exercise.misconception(of=buckets, fails=buckets_size, breaks="a tensor above `cap` is alone")
def buckets_larger_one_with_others(tensors, cap):
    """You put more tensors into the bucket of a tensor that is larger than the cap. Such a tensor must be alone in a bucket."""
    found, held = [], cap
    for name, size in ready(tensors):
        if held + size > cap:
            found.append([])
            held = 0
        found[-1].append(name)
        held += size if size <= cap else 0
    return found


@exercise.misconception(of=buckets, fails=buckets_size, breaks="at most one bucket more than the fewest possible")
def buckets_never_full(tensors, cap):
    """You begin a new bucket if the next tensor makes a bucket exactly full. A bucket may hold exactly `cap` bytes."""
    return filled(ready(tensors), cap - 1)


@exercise.misconception(of=buckets, fails=buckets_size, breaks="at most one bucket more than the fewest possible")
def buckets_of_one(tensors, cap):
    """You sent each tensor alone, so each tensor has its own overhead. Fill the buckets."""
    return [[name] for name, _ in ready(tensors)]


@exercise.misconception(of=buckets, fails=buckets_size, breaks="at most `cap` bytes per bucket")
def buckets_all_in_one(tensors, cap):
    """You sent everything at once, so no transfer begins before the backward pass ends. Begin a new bucket at the cap."""
    return [[name for name, _ in ready(tensors)]]


def own_grads(ws, x, y):
    def loss(ws):
        h = x
        for w in ws:
            h = jnp.tanh(h @ w)
        return jnp.sum((h - y) ** 2)

    return jax.grad(loss)(ws)


def flat_of(grads, bucket):
    return jnp.concatenate([grads[i].ravel() for i in bucket])


def back_into(grads, bucket, flat):
    for i in bucket:
        size = grads[i].size
        grads[i], flat = flat[:size].reshape(grads[i].shape), flat[size:]


@exercise.misconception(of=bucketed_grads, fails=bucketed_narrow, breaks="for float32 and bfloat16 inputs")
def bucketed_in_float32(ws, x, y, *, plan):
    """You send and return the gradients in float32. Gradients must have the dtype of ws. float32 sends twice as many bytes and gains nothing."""
    return [g.astype(jnp.float32) for g in bucketed_grads(ws, x, y, plan=plan)]


@exercise.misconception(
    of=bucketed_grads, fails=bucketed_narrow, breaks="at most 2 (N−1)/N bytes for each byte of gradient"
)
def bucketed_sent_in_float32(ws, x, y, *, plan):
    """You send the gradients in float32 and cast the sum back, so twice as many bytes travel. Send them in the dtype of ws."""
    grads = own_grads(ws, x, y)
    for bucket in plan:
        flat = jax.lax.psum(flat_of(grads, bucket).astype(jnp.float32), "dp")
        back_into(grads, bucket, flat.astype(x.dtype))
    return grads


@exercise.misconception(of=bucketed_grads, fails=bucketed_value, breaks="gradients over all rows")
def bucketed_not_written_back(ws, x, y, *, plan):
    """You reduced a flat copy but returned the original gradients. Cut the reduced array and return its pieces."""
    grads, sent = own_grads(ws, x, y), 0
    for bucket in plan:
        sent += jnp.sum(jax.lax.psum(flat_of(grads, bucket), "dp"))
    grads[0] = grads[0] + 0 * sent
    return grads


@exercise.misconception(of=bucketed_grads, fails=bucketed_value, breaks="gradients over all rows")
def bucketed_last_not_sent(ws, x, y, *, plan):
    """You never send the last bucket. Send the gradients that remain at the end."""
    grads = own_grads(ws, x, y)
    for bucket in plan[:-1]:
        back_into(grads, bucket, jax.lax.psum(flat_of(grads, bucket), "dp"))
    return grads


@exercise.misconception(of=bucketed_grads, fails=bucketed_value, breaks="gradients over all rows")
def bucketed_in_another_order(ws, x, y, *, plan):
    """You cut a bucket in a different order than you joined it. Use one order for both."""
    grads = own_grads(ws, x, y)
    for bucket in plan:
        back_into(grads, sorted(bucket), jax.lax.psum(flat_of(grads, bucket), "dp"))
    return grads


@exercise.misconception(of=bucketed_grads, fails=bucketed_value, breaks="gradients over all rows")
def bucketed_mean(ws, x, y, *, plan):
    """You took the mean over devices or rows. The loss is a sum over all rows, so its gradient is a sum too."""
    grads = own_grads(ws, x, y)
    for bucket in plan:
        back_into(grads, bucket, jax.lax.pmean(flat_of(grads, bucket), "dp"))
    return grads


@exercise.misconception(form_of=bucketed_mean)
def bucketed_mean_over_rows(ws, x, y, *, plan):
    """Like `bucketed_mean`, over all rows."""
    rows = len(x) * jax.lax.axis_size("dp")
    return [g / rows for g in bucketed_grads(ws, x, y, plan=plan)]


@exercise.misconception(of=bucketed_grads, fails=bucketed_value, breaks="gradients over all rows")
def bucketed_as_planned(ws, x, y, *, plan):
    """You returned the gradients in the order of the plan. Return them in the order of ws."""
    grads = bucketed_grads(ws, x, y, plan=plan)
    return [grads[i] for bucket in plan for i in bucket]


@exercise.misconception(of=bucketed_grads, fails=bucketed_budget, breaks="one all-reduce per bucket")
def bucketed_by_tensor(ws, x, y, *, plan):
    """You sent the tensors of a bucket one by one, so each tensor has its own overhead. Join them into one flat array first."""
    return [jax.lax.psum(g, "dp") for g in own_grads(ws, x, y)]


@exercise.misconception(of=bucketed_grads, fails=bucketed_budget, breaks="one all-reduce per bucket")
def bucketed_all_in_one(ws, x, y, *, plan):
    """You sent all gradients in one array, after the whole backward pass. Send each bucket of the plan on its own."""
    flat, unravel = ravel_pytree(own_grads(ws, x, y))
    return unravel(jax.lax.psum(flat, "dp"))


@exercise.misconception(
    of=bucketed_grads,
    fails=bucketed_budget,
    breaks="at most 2 (N−1)/N bytes for each byte of gradient",
)
def bucketed_in_whole_arrays(ws, x, y, *, plan):
    """You send each bucket in an array that holds all gradients, with zeros for the gradients outside the bucket. Send only the gradients of the bucket."""
    grads, total = own_grads(ws, x, y), 0
    for bucket in plan:
        kept = [g if i in bucket else jnp.zeros_like(g) for i, g in enumerate(grads)]
        total += jax.lax.psum(ravel_pytree(kept)[0], "dp")
    return ravel_pytree(grads)[1](total)


@exercise.misconception(of=bucketed_grads, fails=bucketed_overlap, breaks="all buckets but the last overlap matmuls")
def bucketed_cut_from_one(ws, x, y, *, plan):
    """You joined all gradients, or put a barrier after them, before you cut buckets. Each bucket then waits for the whole backward pass. Join only the gradients of one bucket."""
    grads = own_grads(ws, x, y)
    everything = flat_of(grads, [i for bucket in plan for i in bucket])
    for bucket in plan:
        size = sum(ws[i].size for i in bucket)
        back_into(grads, bucket, jax.lax.psum(everything[:size], "dp"))
        everything = everything[size:]
    return grads


@exercise.misconception(form_of=bucketed_cut_from_one, breaks="all buckets but the last overlap matmuls")
def bucketed_behind_a_barrier(ws, x, y, *, plan):
    """Like `bucketed_cut_from_one`, with a barrier after the backward pass."""
    grads = jax.lax.optimization_barrier(own_grads(ws, x, y))
    for bucket in plan:
        back_into(grads, bucket, jax.lax.psum(flat_of(grads, bucket), "dp"))
    return grads


@exercise.misconception(
    of=bucketed_grads,
    fails=bucketed_overlap,
    breaks="a step takes at most 1.2 times as long as its matmuls and the last all-reduce together",
)
def bucketed_under_idle_work(ws, x, y, *, plan):
    """Your buckets are sent beside operations that no gradient needs. Send each bucket as soon as its gradients are ready, so that it overlaps the backward pass of the layers below."""
    grads = own_grads(ws, x, y)
    sums = [jax.lax.psum(flat_of(grads, bucket), "dp") for bucket in plan]
    idle, _ = jax.lax.optimization_barrier((x, grads[0]))
    for _ in range(4):
        idle = jnp.tanh(idle @ ws[0] @ ws[0].T)
    for bucket, flat in zip(plan, sums, strict=True):
        back_into(grads, bucket, flat)
    grads[0] += 0 * idle.sum()
    return grads


# -- questions ---------------------------------------------------------------------------------


@exercise.misconception(of=best_bucket)
def best_bucket_both_ways(chip, M, o):
    """Either you counted V / W for an all-reduce, or 4 bytes for a gradient. An all-reduce is a reduce-scatter and an all-gather and takes 2 V / W. A bfloat16 gradient has 2 bytes."""
    return 2**0.5 * best_bucket.fn(chip, M, o)


@exercise.misconception(of=best_bucket)
def best_bucket_in_numbers(chip, M, o):
    """Either you counted gradients and not their bytes, or you used one direction of a link. A bfloat16 has two bytes, and on a ring data flows both ways."""
    return best_bucket.fn(chip, M, o) / 2**0.5


@exercise.misconception(of=best_bucket)
def best_bucket_of_overhead(chip, M, o):
    """You made one bucket's transfer as long as its overhead. But the overheads of all buckets are exposed, and only one transfer is exposed. Choose n so that n overheads and one transfer together are smallest."""
    return CHIPS[chip].ici * o * 1e-6


@exercise.misconception(of=best_bucket)
def best_bucket_of_everything(chip, M, o):
    """You put all gradients into one bucket. Nothing overlaps the transfer of this bucket, so the whole transfer is exposed."""
    return 2e6 * M


@exercise.misconception(of=best_bucket)
def best_bucket_for_their_number(chip, M, o):
    """You gave the best number of buckets. Divide the bytes of all gradients by this number."""
    return 1e6 * 2e6 * M / best_bucket.fn(chip, M, o)


exercise.scenario(best_bucket, lambda chip, M, o: Scenario(chip=chip, rings=(16,), mesh={"dp": 16}, holds=4e6 * M))
