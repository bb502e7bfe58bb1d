"""Checks and misconceptions of G4."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P
from jax.sharding import reshard

from g4_accumulation import accumulate, accumulated_saving, accumulated_tokens, exercise, loss
from grader.exercise import Scenario, normal
from grader.expect import between, expect_close, expect_memory, expect_spec, expect_traffic, needed
from grader.hardware import all_gather_time, all_reduce_time, latency

call = exercise.call(
    accumulate,
    ws=normal("L", "D", "D"),
    xs=normal("M", "B", "D", spec=P(None, "dp")),
    dims={"L": 3, "M": 16, "B": 60, "D": 6},
    hidden_dims={"L": 2, "M": 18, "B": 84, "D": 5},
)


@exercise.helper
def gradient(ws, xs):
    """Return the gradient of the loss with respect to ws, for all rows at once."""
    made = [xs.reshape(-1, xs.shape[-1])]
    for w in ws:
        made.append(1 / (1 + np.exp(-(made[-1] @ w))))
    back, grads = made[-1], []
    for w, before, after in zip(ws[::-1], made[-2::-1], made[:0:-1], strict=True):
        back = back * after * (1 - after)
        grads.insert(0, before.T @ back)
        back = back @ w.T
    return np.stack(grads)


@exercise.check(call, points=1, public=True)
def accumulated_value(seen):
    """accumulate: the gradient of the loss over all rows of all micro-batches"""
    expect_close(seen.out, gradient(seen.ws, seen.xs))


@exercise.check(call, points=0.25, public=True, after=accumulated_value)
def accumulated_spec(seen):
    """accumulate: the gradient is whole on every device"""
    expect_spec(seen.out, P())


def expect_one_all_reduce(seen):
    """Require at most the bytes of one all-reduce of the gradient."""
    n = seen.mesh["dp"]
    right = 2 * (n - 1) / n * 4 * seen.ws.size
    # Wrong: an all-reduce in each micro-batch. In an unrolled loop the compiler joins a few of these all-reduces. So the
    # program may send a little less than M times as many bytes as needed: hence the factor 0.85.
    wrong = 0.85 * seen.dims["M"] * right
    expect_traffic(seen, at_most=needed(right, wrong))


@exercise.check(call, points=0.75, after=accumulated_value)
def accumulated_traffic(seen):
    """accumulate: a device sends at most the bytes of one all-reduce of the gradient"""
    expect_one_all_reduce(seen)


two_devices = exercise.call(
    accumulate,
    ws=normal("L", "D", "D"),
    xs=normal("M", "B", "D", spec=P(None, "dp")),
    meshes=[{"dp": 2}],
    # The grader follows a limited number of operations. All rounds of both loops of a program must stay below this limit.
    dims={"L": 4, "M": 8, "B": 60, "D": 6},
    hidden_dims={"L": 6, "M": 10, "B": 86, "D": 5},
)


@exercise.check(two_devices, points=0.5, after=[accumulated_value, accumulated_traffic])
def accumulated_memory(seen):
    """accumulate: a device holds the activations of one micro-batch at a time, and sends at most the bytes of one all-reduce"""
    expect_close(seen.out, gradient(seen.ws, seen.xs))
    expect_one_all_reduce(seen)
    sums = 2.4 * 4 * seen.ws.size  # room for gradients and their sum
    # Each layer keeps its input and the derivative of its sigmoid, in every version of JAX. (tanh keeps more in JAX 0.10.)
    micro = 4 * seen.dims["B"] * seen.dims["D"] / seen.mesh["dp"] * (2 * seen.dims["L"] + 2)
    budget = between(micro + sums, seen.dims["M"] * micro + sums)
    expect_memory(seen, at_most=budget, by="program", arguments=False)


def _of_own_rows(ws, xs):
    return jax.lax.scan(lambda total, x: (total + jax.grad(loss)(ws, x), None), jnp.zeros_like(ws), xs)[0]


def _mapped(local, ws, xs, mesh, check_vma):
    specs = (P(), P(None, "dp"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=check_vma)(ws, xs)


@exercise.alternative(of=accumulate)
def unrolled_types(ws, xs, *, mesh):
    """Use a Python loop over the micro-batches, with an unreduced sum."""
    weights = reshard(ws, P(reduced={"dp"}))
    total = jax.grad(loss)(weights, xs[0])
    for x in xs[1:]:
        total += jax.grad(loss)(weights, x)
    return reshard(total, P())


@exercise.alternative(of=accumulate)
def mapped_vma_off(ws, xs, *, mesh):
    """Use shard_map with check_vma=False: add up local gradients, then sum over dp once."""
    return _mapped(lambda ws, xs: jax.lax.psum(_of_own_rows(ws, xs), "dp"), ws, xs, mesh, False)


@exercise.alternative(of=accumulate)
def mapped_unrolled(ws, xs, *, mesh):
    """Use a Python loop in shard_map with check_vma=False."""

    def local(ws, xs):
        return jax.lax.psum(sum(jax.grad(loss)(ws, x) for x in xs), "dp")

    return _mapped(local, ws, xs, mesh, False)


@exercise.alternative(of=accumulate)
def mapped_cast(ws, xs, *, mesh):
    """Use shard_map with check_vma=True and a fori_loop: cast the weights to varying before the loop."""

    def local(ws, xs):
        weights = jax.lax.pcast(ws, "dp", to="varying")

        def add(m, total):
            return total + jax.grad(loss)(weights, xs[m])

        return jax.lax.psum(jax.lax.fori_loop(0, len(xs), add, jnp.zeros_like(weights)), "dp")

    return _mapped(local, ws, xs, mesh, True)


@exercise.alternative(of=accumulate)
def mapped_cast_of_old(ws, xs, *, mesh):
    """Use the older names: jax.experimental.shard_map, check_rep and pvary."""
    from jax.experimental.shard_map import shard_map

    def local(ws, xs):
        weights = jax.lax.pvary(ws, "dp")

        def add(total, x):
            return (total + jax.grad(loss)(weights, x), None)

        return jax.lax.psum(jax.lax.scan(add, jnp.zeros_like(weights), xs)[0], "dp")

    return shard_map(local, mesh=mesh, in_specs=(P(), P(None, "dp")), out_specs=P(), check_rep=True)(ws, xs)


@exercise.alternative(of=accumulate)
def summed_layer_by_layer(ws, xs, *, mesh):
    """Use one all-reduce per layer after the loop. L small all-reduces send as many bytes as one large all-reduce."""

    def local(ws, xs):
        return jnp.stack([jax.lax.psum(layer, "dp") for layer in _of_own_rows(ws, xs)])

    return _mapped(local, ws, xs, mesh, False)


@exercise.alternative(of=accumulate)
def checkpointed(ws, xs, *, mesh):
    """Differentiate the whole loop with one cast and one sum. The backward pass computes each micro-batch again."""

    def total(ws):
        weights = reshard(ws, P(reduced={"dp"}))
        again = jax.checkpoint(lambda sum, x: (sum + loss(weights, x), None))
        return jax.lax.scan(again, 0.0, xs)[0]

    return jax.grad(total)(ws)


@exercise.misconception(of=accumulate, fails=accumulated_traffic, breaks="for any M")
def accumulated_whole(ws, xs, *, mesh):
    """You took the gradient of whole weights. JAX then reduces it in the backward pass of each layer, in each micro-batch. Allow an unreduced gradient or cast the weights to varying, before the loop."""

    def add(total, x):
        return (total + jax.grad(loss)(ws, x), None)

    return jax.lax.scan(add, jnp.zeros_like(ws), xs)[0]


@exercise.misconception(form_of=accumulated_whole, breaks="for any M")
def accumulated_whole_in_shard_map(ws, xs, *, mesh):
    """Like `accumulated_whole`, in a shard_map with check_vma=True."""
    return _mapped(_of_own_rows, ws, xs, mesh, True)


@exercise.misconception(of=accumulate, fails=accumulated_traffic, breaks="for any M")
def accumulated_constrained(ws, xs, *, mesh):
    """You asked for a whole gradient inside the loop. The values are right, but your program sends M times the bytes. Keep the sum unreduced until the loop ends."""
    weights = reshard(ws, P(reduced={"dp"}))

    def add(total, x):
        return (total + reshard(jax.grad(loss)(weights, x), P()), None)

    return jax.lax.scan(add, jnp.zeros_like(ws), xs)[0]


@exercise.misconception(form_of=accumulated_constrained, breaks="for any M")
def accumulated_constrained_unrolled(ws, xs, *, mesh):
    """Like `accumulated_constrained`, without a scan."""
    weights = reshard(ws, P(reduced={"dp"}))
    return sum((reshard(jax.grad(loss)(weights, x), P()) for x in xs), jnp.zeros_like(ws))


@exercise.misconception(of=accumulate, fails=accumulated_traffic, breaks="for any M")
def accumulated_cast_in_the_loop(ws, xs, *, mesh):
    """You cast to varying inside the differentiated function, in the loop. The transpose of the cast is an all-reduce, which then runs in the loop too. Cast once, before the loop."""

    def local(ws, xs):
        def of(ws, x):
            return loss(jax.lax.pcast(ws, "dp", to="varying"), x)

        def add(total, x):
            return (total + jax.grad(lambda ws: jax.lax.psum(of(ws, x), "dp"))(ws), None)

        return jax.lax.scan(add, jnp.zeros_like(ws), xs)[0]

    return _mapped(local, ws, xs, mesh, True)


@exercise.misconception(of=accumulate, fails=accumulated_traffic, breaks="one all-reduce of the gradient")
def accumulated_psum_in_the_loop(ws, xs, *, mesh):
    """You all-reduce each micro-batch's gradient. Add locally and all-reduce once."""

    def local(ws, xs):
        def add(total, x):
            return (total + jax.lax.psum(jax.grad(loss)(ws, x), "dp"), None)

        return jax.lax.scan(add, jnp.zeros_like(ws), xs)[0]

    return _mapped(local, ws, xs, mesh, False)


@exercise.misconception(
    of=accumulate, fails=accumulated_value, breaks="the gradient of the loss over all rows of all micro-batches"
)
def accumulated_sum_fed_back(ws, xs, *, mesh):
    """You all-reduced the running sum. The running sum already contains earlier sums over the devices, and you sum these again. All-reduce once, after the loop."""

    def local(ws, xs):
        def add(total, x):
            return (jax.lax.psum(total + jax.grad(loss)(ws, x), "dp"), None)

        return jax.lax.scan(add, jnp.zeros_like(ws), xs)[0]

    return _mapped(local, ws, xs, mesh, False)


@exercise.misconception(
    of=accumulate, fails=accumulated_value, breaks="the gradient of the loss over all rows of all micro-batches"
)
def accumulated_first_only(ws, xs, *, mesh):
    """You all-reduced the first micro-batch's gradient only. The other micro-batches' gradients stayed on their devices. All-reduce the sum after the last micro-batch."""

    def local(ws, xs):
        first = jax.lax.psum(jax.grad(loss)(ws, xs[0]), "dp")
        return jax.lax.scan(lambda total, x: (total + jax.grad(loss)(ws, x), None), first, xs[1:])[0]

    return _mapped(local, ws, xs, mesh, False)


@exercise.misconception(
    of=accumulate, fails=accumulated_value, breaks="the gradient of the loss over all rows of all micro-batches"
)
def accumulated_last_reduced(ws, xs, *, mesh):
    """You all-reduced the last micro-batch's gradient only. The earlier micro-batches' gradients stayed on their devices. Add the gradients first, and all-reduce their sum."""

    def local(ws, xs):
        return _of_own_rows(ws, xs[:-1]) + jax.lax.psum(jax.grad(loss)(ws, xs[-1]), "dp")

    return _mapped(local, ws, xs, mesh, False)


@exercise.misconception(
    of=accumulate, fails=accumulated_value, breaks="the gradient of the loss over all rows of all micro-batches"
)
def accumulated_last_only(ws, xs, *, mesh):
    """You returned the gradient of the last micro-batch. Add each gradient to the earlier ones."""
    weights = reshard(ws, P(reduced={"dp"}))
    return reshard(jax.grad(loss)(weights, xs[-1]), P())


@exercise.misconception(
    of=accumulate, fails=accumulated_value, breaks="the gradient of the loss over all rows of all micro-batches"
)
def accumulated_never_summed(ws, xs, *, mesh):
    """Each device returned the gradient of its own rows. Your program never adds these gradients up. With check_vma=False JAX does not warn you."""
    return _mapped(_of_own_rows, ws, xs, mesh, False)


@exercise.misconception(
    of=accumulate, fails=accumulated_value, breaks="the gradient of the loss over all rows of all micro-batches"
)
def accumulated_summed_twice(ws, xs, *, mesh):
    """Your weights do not vary over the devices, so with check_vma=True jax.grad has already summed their gradient. Your psum adds N copies of this sum."""
    return _mapped(lambda ws, xs: jax.lax.psum(_of_own_rows(ws, xs), "dp"), ws, xs, mesh, True)


@exercise.misconception(
    of=accumulate, fails=accumulated_value, breaks="the gradient of the loss over all rows of all micro-batches"
)
def accumulated_mean(ws, xs, *, mesh):
    """You took a mean over the devices or over the micro-batches. The loss is a sum over rows, so its gradient is a sum too."""
    return _mapped(lambda ws, xs: jax.lax.pmean(_of_own_rows(ws, xs), "dp"), ws, xs, mesh, False)


@exercise.misconception(form_of=accumulated_mean)
def accumulated_mean_of_micro_batches(ws, xs, *, mesh):
    """Like `accumulated_mean`, over the micro-batches."""
    return _mapped(lambda ws, xs: jax.lax.psum(_of_own_rows(ws, xs) / len(xs), "dp"), ws, xs, mesh, False)


@exercise.misconception(form_of=accumulated_mean)
def accumulated_mean_of_all(ws, xs, *, mesh):
    """Like `accumulated_mean`, over the devices and the micro-batches."""
    return _mapped(lambda ws, xs: jax.lax.pmean(_of_own_rows(ws, xs) / len(xs), "dp"), ws, xs, mesh, False)


@exercise.misconception(of=accumulate, fails=accumulated_value)
def accumulated_in_bfloat16(ws, xs, *, mesh):
    """You sent the gradient in bfloat16. That halves the bytes, but keeps only 8 significant bits of each number. Send float32."""

    def sent(ws, xs):
        return jax.lax.psum(_of_own_rows(ws, xs).astype(jnp.bfloat16), "dp")

    return _mapped(lambda ws, xs: sent(ws, xs).astype(jnp.float32), ws, xs, mesh, False)


@exercise.misconception(of=accumulate, fails=accumulated_spec, breaks="the result has the spec `P()`")
def accumulated_scattered(ws, xs, *, mesh):
    """You left the gradient cut over dp, as ZeRO does. Here every device must hold the whole gradient."""
    total = accumulate(ws, xs, mesh=mesh)
    return reshard(total, P() if ws.shape[1] % mesh.shape["dp"] else P(None, "dp"))


@exercise.misconception(of=accumulate, fails=accumulated_memory, breaks="activations of one micro-batch at a time")
def accumulated_by_differentiating(ws, xs, *, mesh):
    """You differentiated the loop. JAX keeps every micro-batch's activations until the backward pass. Take the gradient of one micro-batch inside the loop, or put jax.checkpoint around the loss of each micro-batch."""

    def total(ws):
        weights = reshard(ws, P(reduced={"dp"}))
        return jax.lax.scan(lambda total, x: (total + loss(weights, x), None), 0.0, xs)[0]

    return jax.grad(total)(ws)


@exercise.misconception(of=accumulate, fails=accumulated_memory, breaks="activations of one micro-batch at a time")
def accumulated_all_at_once(ws, xs, *, mesh):
    """You sent all rows through the layers at once. A device then holds the activations of M micro-batches. Process one micro-batch at a time."""

    def local(ws, xs):
        return jax.lax.psum(jax.grad(loss)(ws, xs.reshape(-1, xs.shape[-1])), "dp")

    return _mapped(local, ws, xs, mesh, False)


@exercise.misconception(of=accumulated_saving)
def saving_counts_all(chip, G, X, M):
    """You counted M all-reduces. One all-reduce remains, so the step saves M - 1."""
    return M * all_reduce_time(4 * G * 1e6, X, chip)


@exercise.misconception(of=accumulated_saving)
def saving_is_what_is_left(chip, G, X, M):
    """Your answer is the time of the all-reduce that remains. The question asks for the saving: the time of M - 1 all-reduces."""
    return all_reduce_time(4 * G * 1e6, X, chip)


@exercise.misconception(of=accumulated_saving)
def saving_of_gathers(chip, G, X, M):
    """You counted one phase of the all-reduce. An all-reduce is a reduce-scatter and an all-gather, and takes 2 V / W."""
    return (M - 1) * all_gather_time(4 * G * 1e6, X, chip)


@exercise.misconception(of=accumulated_saving)
def saving_one_way(chip, G, X, M):
    """You used one direction of a link. On a ring data flows both ways: use W."""
    return 2 * (M - 1) * all_reduce_time(4 * G * 1e6, X, chip)


@exercise.misconception(of=accumulated_tokens)
def tokens_beside_arithmetic(chip, percent, X, width):
    """You computed the all-reduce as a share of the arithmetic alone. The step also includes the all-reduce."""
    return accumulated_tokens.fn(chip, percent, X, width) / (1 - percent / 100)


@exercise.misconception(of=accumulated_tokens)
def tokens_forward_only(chip, percent, X, width):
    """You counted 2 FLOPs per parameter and token, the forward pass alone. With the backward pass it is 6 FLOPs."""
    return 3 * accumulated_tokens.fn(chip, percent, X, width)


@exercise.misconception(of=accumulated_tokens)
def tokens_reduced_once(chip, percent, X, width):
    """You counted one phase of the all-reduce. An all-reduce is a reduce-scatter and an all-gather, and takes 2 V / W."""
    return accumulated_tokens.fn(chip, percent, X, width) / 2


@exercise.misconception(of=accumulated_tokens)
def tokens_one_way(chip, percent, X, width):
    """You used one direction of a link. On a ring data flows both ways: use W."""
    return 2 * accumulated_tokens.fn(chip, percent, X, width)


exercise.scenario(
    accumulated_saving,
    lambda chip, G, X, M: Scenario(
        chip=chip, rings=(X,), mesh={"x": X}, least=2 * (M - 1) * latency(X), holds=4 * G * 1e6
    ),
)
exercise.scenario(
    accumulated_tokens, lambda chip, percent, X, width: Scenario(chip=chip, rings=(X,), mesh={"x": X}, least=1)
)
