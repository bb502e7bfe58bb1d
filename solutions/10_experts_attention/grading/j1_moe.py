"""J1: calls, checks, misconceptions and alternatives."""

import jax
import jax.numpy as jnp
import numpy as np

from grader.exercise import Scenario, array, axis, normal
from grader.expect import between, expect_close, expect_flops, expect_only, expect_traffic, needed
from j1_moe import EXPERTS, TOKENS, exercise, moe, moe_bytes, moe_overlaps_from


@exercise.helper
def uneven(rng, shape):
    """Scores that differ from token to token and favour some experts."""
    return 1.5 * rng.standard_normal(shape) + rng.standard_normal(shape[1])


@exercise.helper
def small(rng, shape):
    """Weights so small that tanh is not saturated."""
    return rng.standard_normal(shape) / np.sqrt(shape[1])


call = exercise.call(
    moe,
    x=normal("S", "D", spec=TOKENS),
    route=array("S", "E", draw=uneven, spec=TOKENS),
    w=array("E", "D", "F", draw=small, spec=EXPERTS),
    wrt=("x", "route", "w"),
    cotangent=normal("S", "F", spec=TOKENS),
    dims={"S": 6 * axis("dp") * axis("ep"), "E": 2 * axis("ep"), "D": 5, "F": 4},
    hidden_dims={"S": 11 * axis("dp") * axis("ep"), "E": 3 * axis("ep"), "D": 6, "F": 7},
    static={"k": 2, "cap": 2},
    hidden_static={"k": 3, "cap": 1},
)


many = exercise.call(  # six experts on each device, so that a matmul with all of them costs six times as much
    moe,
    x=normal("S", "D", spec=TOKENS),
    route=array("S", "E", draw=uneven, spec=TOKENS),
    w=array("E", "D", "F", draw=small, spec=EXPERTS),
    dims={"S": 6 * axis("dp") * axis("ep"), "E": 6 * axis("ep"), "D": 20, "F": 28},
    hidden_dims={"S": 13 * axis("dp") * axis("ep"), "E": 7 * axis("ep"), "D": 40, "F": 34},
    static={"k": 2, "cap": 2},
    hidden_static={"k": 3, "cap": 1},
)


@exercise.helper
def kept(seen):
    """An array [S, E]: 1 for each choice that is served, else 0."""
    devices = seen.mesh["dp"] * seen.mesh["ep"]
    order = np.argsort(-seen.route.astype(np.float64), axis=1, kind="stable")[:, : seen.k]
    served = np.zeros(seen.route.shape)
    for tokens in np.split(np.arange(len(order)), devices):
        room = np.full(seen.route.shape[1], seen.cap)
        for rank in range(seen.k):
            for token in tokens:
                expert = order[token, rank]
                served[token, expert] = room[expert] > 0
                room[expert] -= 1
    return served


@exercise.helper
def parts_of(seen):
    """The gates [S, E], an array [S, E] with 1 for each served choice, and the experts' results [S, E, F]. All three
    are whole arrays in float64."""
    x, route, w = (a.astype(np.float64) for a in (seen.x, seen.route, seen.w))
    gates = np.exp(route - route.max(1, keepdims=True))
    return gates / gates.sum(1, keepdims=True), kept(seen), np.tanh(np.einsum("sd,edf->sef", x, w))


@exercise.helper
def value_of(seen):
    """The result for whole arrays, in float64."""
    gates, served, made = parts_of(seen)
    return np.einsum("se,sef->sf", gates * served, made)


@exercise.helper
def gradients_of(seen):
    """The gradients for whole arrays, in float64."""
    gates, served, made = parts_of(seen)
    x, w, ct = (a.astype(np.float64) for a in (seen.x, seen.w, seen.cotangent))
    back = (gates * served)[..., None] * ct[:, None] * (1 - made**2)
    d_gates = served * np.einsum("sf,sef->se", ct, made)
    return {
        "x": np.einsum("sef,edf->sd", back, w),
        "w": np.einsum("sd,sef->edf", x, back),
        "route": gates * (d_gates - (gates * d_gates).sum(1, keepdims=True)),
    }


@exercise.check(call, points=1.5, public=True)
def moe_value(seen):
    """moe: the sum over each token's choices that have a slot"""
    expect_close(seen.out, value_of(seen))


@exercise.check(call, points=1, public=True, after=moe_value)
def moe_gradients(seen):
    """moe: the gradients of tokens and weights"""
    for name in ("x", "w"):
        expect_close(seen.grads[name], gradients_of(seen)[name])


@exercise.check(call, points=1, public=True, after=moe_value)
def moe_router(seen):
    """moe: the gradient of the router's scores"""
    expect_close(seen.grads["route"], gradients_of(seen)["route"])


@exercise.helper
def expect_rows_sent(one_pass):
    """Require that this pass sends at most E · cap rows to the experts and back, by all-to-alls."""
    dims, n = one_pass.dims, one_pass.mesh["ep"]
    expect_only(one_pass.only(axis="ep"), "all_to_all")
    numbers = dims["E"] * one_pass.cap * (dims["D"] + dims["F"] + 2)
    row = 4 * dims["E"] * (dims["D"] + dims["F"]) * (n - 1) / n  # to each expert and back
    right, wrong = one_pass.cap * row, (one_pass.cap + 1) * row  # wrong / right is at least 1.5: cap is at most 2
    expect_traffic(one_pass, at_most=needed(right, wrong, at=4 * numbers * (n - 1) / n), axis="ep")


@exercise.check(call, points=1, public=True, after=moe_value)
def moe_traffic(seen):
    """moe: each pass sends at most E · cap rows to the experts and back, by all-to-alls only"""
    forward = seen.only(backward=False)
    expect_traffic(forward, at_most=0, axis="dp")
    expect_rows_sent(forward)
    expect_rows_sent(seen.only(backward=True))


@exercise.check(many, points=0.5, public=True, after=[moe_value, moe_traffic])
def moe_work(seen):
    """moe: in the forward pass, each row is sent to its own expert, and multiplied by that expert's weights only"""
    expect_close(seen.out, value_of(seen))
    expect_rows_sent(seen)
    work = 2 * seen.dims["E"] * seen.cap * seen.dims["D"] * seen.dims["F"]
    everything = seen.dims["E"] // seen.mesh["ep"] * work  # every row times the weights of all experts of a device
    expect_flops(seen, at_most=between(work, everything, at=2.4 * work))


# -- right, in other styles --------------------------------------------------------------------


def there(slots):
    """Send [E, cap, ...] of a device's own tokens; return [E/N, N cap, ...] of its own experts."""
    return jax.lax.all_to_all(slots, "ep", split_axis=0, concat_axis=1, tiled=True)


def back(made):
    """Undo `there`."""
    return jax.lax.all_to_all(made, "ep", split_axis=1, concat_axis=0, tiled=True)


def chosen(route, k):
    """Gates and experts of all choices as flat arrays, all first choices first."""
    gates, experts = jax.lax.top_k(jax.nn.softmax(route), k)
    return gates.T.ravel(), experts.T.ravel()


def slots_of(expert, E):
    """For each choice, the number of earlier choices of its expert."""
    ones = jax.nn.one_hot(expert, E, dtype=int)
    return (jnp.cumsum(ones, axis=0) * ones).sum(-1) - 1


def placed(x, expert, slot, E, cap):
    """An array with the rows of x, once for each choice, at (expert, slot)."""
    rows = jnp.tile(x, (len(expert) // len(x), 1))
    return jnp.zeros((E, cap, x.shape[1]), x.dtype).at[expert, slot].set(rows, mode="drop")


def through(here, w):
    """Multiply each expert's rows by its weights."""
    return jnp.tanh(jnp.einsum("ecd,edf->ecf", here, w))


def joined(home, gate, expert, slot, tokens):
    """Sum each token's choices; a choice without a slot adds nothing."""
    results = home.at[expert, slot].get(mode="fill", fill_value=0)
    return (gate[:, None] * results).reshape(-1, tokens, home.shape[-1]).sum(0)


@exercise.alternative()
def one_hot_matmuls(x, route, w, *, k, cap):
    """Matmuls with a dense mask [tokens, E, cap] dispatch tokens and combine results."""
    E, left = route.shape[1], jax.nn.softmax(route)
    used, mask, weight = jnp.zeros(E), 0, 0
    for _ in range(k):
        choice = jax.nn.one_hot(jnp.argmax(left, -1), E)
        before = used + jnp.cumsum(choice, 0) - choice
        slot = jax.nn.one_hot(jnp.where(choice > 0, before, -1).astype(int), cap)
        mask = mask + slot
        weight = weight + slot * jnp.where(choice > 0, jax.nn.softmax(route), 0)[..., None]
        used, left = used + choice.sum(0), jnp.where(choice > 0, -1, left)
    home = back(through(there(jnp.einsum("sec,sd->ecd", mask, x)), w))
    return jnp.einsum("sec,ecf->sf", weight, home)


@exercise.alternative()
def sorted_by_expert(x, route, w, *, k, cap):
    """Sort choices by expert, in a stable sort; a choice's slot is its distance from the first choice of its expert."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    order = jnp.argsort(expert, stable=True)
    ranked = expert[order]
    slot = jnp.arange(len(order)) - jnp.searchsorted(ranked, ranked)
    token = order % len(x)
    slots = jnp.zeros((E, cap, x.shape[1])).at[ranked, slot].set(x[token], mode="drop")
    home = back(through(there(slots), w))
    fits = (slot < cap)[:, None]
    rows = jnp.where(fits, home[ranked, jnp.minimum(slot, cap - 1)], 0) * gate[order][:, None]
    return jnp.zeros((len(x), w.shape[2])).at[token].add(rows)


@exercise.alternative()
def choice_by_choice(x, route, w, *, k, cap):
    """Loop over the choices and count used slots; add results one choice after the other."""
    gates, experts = jax.lax.top_k(jax.nn.softmax(route), k)
    E, used = route.shape[1], jnp.zeros(route.shape[1], int)
    slots, places = jnp.zeros((E, cap + 1, x.shape[1])), []
    for rank in range(k):
        expert = experts[:, rank]
        slot = jnp.minimum(used[expert] + slots_of(expert, E), cap)  # slot number `cap` holds dropped choices
        slots = slots.at[expert, slot].add(x)
        places.append((expert, slot))
        used = used + jnp.bincount(expert, length=E)
    home = jnp.pad(back(through(there(slots[:, :cap]), w)), ((0, 0), (0, 1), (0, 0)))
    out = 0
    for rank, place in enumerate(places):
        out = out + gates[:, rank, None] * home[place]
    return out


@exercise.alternative()
def chunks_of_devices(x, route, w, *, k, cap):
    """Split the slots [N, E/N, cap, D] in two along cap, and send each half by its own all_to_all, without tiled=True."""
    (gate, expert), n = chosen(route, k), jax.lax.axis_size("ep")
    E, slot = route.shape[1], slots_of(expert, route.shape[1])
    slots = placed(x, expert, slot, E, cap).reshape(n, E // n, cap, -1)
    halves = []
    for part in (slots[:, :, : cap // 2], slots[:, :, cap // 2 :]):
        here = jax.lax.all_to_all(part, "ep", split_axis=0, concat_axis=0)
        made = jnp.stack([jnp.tanh(here[:, e] @ w[e]) for e in range(E // n)], 1)
        halves.append(jax.lax.all_to_all(made, "ep", split_axis=0, concat_axis=0))
    return joined(jnp.concatenate(halves, 2).reshape(E, cap, -1), gate, expert, slot, len(x))


@exercise.alternative()
def weighted_where_the_experts_are(x, route, w, *, k, cap):
    """Each token is sent with its gate, and each result returns multiplied by its gate."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = slots_of(expert, E)
    rows = jnp.concatenate([jnp.tile(x, (k, 1)), gate[:, None]], 1)
    here = there(jnp.zeros((E, cap, rows.shape[1])).at[expert, slot].set(rows, mode="drop"))
    home = back(through(here[..., :-1], w) * here[..., -1:])
    return joined(home, jnp.ones_like(gate), expert, slot, len(x))


# -- what goes wrong ---------------------------------------------------------------------------


@exercise.misconception(fails=moe_value, breaks="the sum over each token's choices")
def second_choice_overwrites(x, route, w, *, k, cap):
    """You overwrote each choice's result with the result of the next choice. A token's result is the sum over all its choices."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = slots_of(expert, E)
    home = back(through(there(placed(x, expert, slot, E, cap)), w))
    results = gate[:, None] * home.at[expert, slot].get(mode="fill", fill_value=0)
    return results.reshape(k, len(x), -1)[-1]


@exercise.misconception(form_of=second_choice_overwrites, breaks="the sum over each token's choices")
def second_choice_overwrites_if_served(x, route, w, *, k, cap):
    """Like `second_choice_overwrites`, but a choice without a slot overwrites nothing."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = slots_of(expert, E)
    home = back(through(there(placed(x, expert, slot, E, cap)), w))
    out, results = 0, gate[:, None] * home.at[expert, slot].get(mode="fill", fill_value=0)
    for served, result in zip((slot < cap).reshape(k, -1, 1), results.reshape(k, len(x), -1), strict=True):
        out = jnp.where(served, result, out)
    return out


@exercise.misconception(fails=moe_value, breaks="the sum over each token's choices")
def first_choice_only(x, route, w, *, k, cap):
    """You sent each token to one expert. Each token chooses k experts."""
    (gate, expert), E = chosen(route, 1), route.shape[1]
    slot = slots_of(expert, E)
    return joined(back(through(there(placed(x, expert, slot, E, cap)), w)), gate, expert, slot, len(x))


@exercise.misconception(fails=moe_value, breaks="the sum of gate")
def gates_left_out(x, route, w, *, k, cap):
    """You added results without their gates."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = slots_of(expert, E)
    home = back(through(there(placed(x, expert, slot, E, cap)), w))
    return joined(home, jnp.ones_like(gate), expert, slot, len(x))


@exercise.misconception(fails=moe_value, breaks="the softmax of its row of `route` over all E experts")
def gates_of_the_chosen(x, route, w, *, k, cap):
    """You took the softmax over the chosen experts. Take the softmax over all experts, and do not rescale the gates of
    the chosen experts."""
    scores, experts = jax.lax.top_k(route, k)
    gate, expert, E = jax.nn.softmax(scores).T.ravel(), experts.T.ravel(), route.shape[1]
    slot = slots_of(expert, E)
    return joined(back(through(there(placed(x, expert, slot, E, cap)), w)), gate, expert, slot, len(x))


@exercise.misconception(fails=moe_value, breaks="A token's gates are the softmax of its row of `route`")
def raw_logits(x, route, w, *, k, cap):
    """You used the scores in `route` as gates. A token's gates are the softmax of its scores over all experts."""
    (scores, experts), E = jax.lax.top_k(route, k), route.shape[1]
    gate, expert = scores.T.ravel(), experts.T.ravel()
    slot = slots_of(expert, E)
    return joined(back(through(there(placed(x, expert, slot, E, cap)), w)), gate, expert, slot, len(x))


@exercise.misconception(fails=moe_value, breaks="tanh(token · `w` of the expert)")
def no_tanh(x, route, w, *, k, cap):
    """You left out the tanh. An expert's result is tanh(token · W)."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = slots_of(expert, E)
    made = jnp.einsum("ecd,edf->ecf", there(placed(x, expert, slot, E, cap)), w)
    return joined(back(made), gate, expert, slot, len(x))


@exercise.misconception(fails=moe_value, breaks="A device has `cap` slots for each expert")
def first_slot_left_empty(x, route, w, *, k, cap):
    """You counted a choice itself among the choices before it, so slot 0 stays empty and the last slot is lost. Slots
    start at 0: subtract 1 from the running count."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = slots_of(expert, E) + 1
    return joined(back(through(there(placed(x, expert, slot, E, cap)), w)), gate, expert, slot, len(x))


@exercise.misconception(fails=moe_value, breaks="in the order of tokens")
def largest_gates_first(x, route, w, *, k, cap):
    """You served the tokens in the order of their gates. Serve them in the order of their rows."""
    order = jnp.argsort(-jax.nn.softmax(route).max(-1))
    (gate, expert), E = chosen(route[order], k), route.shape[1]
    slot = slots_of(expert, E)
    home = back(through(there(placed(x[order], expert, slot, E, cap)), w))
    return joined(home, gate, expert, slot, len(x))[jnp.argsort(order)]


@exercise.misconception(fails=moe_value, breaks="the sum over each token's choices")
def sent_untiled(x, route, w, *, k, cap):
    """Without tiled=True, jax.lax.all_to_all needs one row for each device along split_axis, and removes this
    dimension. Set tiled=True to cut a dimension of any size that N divides."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = slots_of(expert, E)
    here = jax.lax.all_to_all(placed(x, expert, slot, E, cap), "ep", split_axis=0, concat_axis=1)
    home = jax.lax.all_to_all(through(here, w), "ep", split_axis=1, concat_axis=0)
    return joined(home, gate, expert, slot, len(x))


def rescaled_after_drops(x, route, w, k, cap, scale):
    """Run the layer with the gates ``scale(gates, gates of served choices)``, both [k, tokens]."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot, gates = slots_of(expert, E), gate.reshape(k, len(x))
    gate = scale(gates, jnp.where(slot.reshape(gates.shape) < cap, gates, 0)).ravel()
    return joined(back(through(there(placed(x, expert, slot, E, cap)), w)), gate, expert, slot, len(x))


@exercise.misconception(fails=moe_value, breaks="the other gates do not change")
def gates_renormalised_after_drops(x, route, w, *, k, cap):
    """You scaled the gates of a token's served choices so that they make up for its dropped choices. A choice without a
    slot adds nothing, and the other gates do not change."""
    return rescaled_after_drops(x, route, w, k, cap, lambda gates, served: served / jnp.maximum(served.sum(0), 1e-9))


@exercise.misconception(form_of=gates_renormalised_after_drops)
def gates_divided_by_nothing(x, route, w, *, k, cap):
    """Like `gates_renormalised_after_drops`, but a token without a served choice gets 0/0."""
    return rescaled_after_drops(x, route, w, k, cap, lambda gates, served: served / served.sum(0))


@exercise.misconception(form_of=gates_renormalised_after_drops)
def gates_of_the_dropped_shared(x, route, w, *, k, cap):
    """Like `gates_renormalised_after_drops`, but the gates of a token sum to what they summed to before."""

    def scale(gates, served):
        return served * gates.sum(0) / jnp.maximum(served.sum(0), 1e-9)

    return rescaled_after_drops(x, route, w, k, cap, scale)


@exercise.misconception(fails=moe_value, breaks="The device serves all first choices in the order of tokens")
def token_by_token(x, route, w, *, k, cap):
    """You served all choices of a token before the next token. Serve the first choices of all tokens first."""
    gates, experts = jax.lax.top_k(jax.nn.softmax(route), k)
    E, rows = route.shape[1], jnp.repeat(x, k, axis=0)
    slot = slots_of(experts.ravel(), E)
    slots = jnp.zeros((E, cap, x.shape[1])).at[experts.ravel(), slot].set(rows, mode="drop")
    results = back(through(there(slots), w)).at[experts.ravel(), slot].get(mode="fill", fill_value=0)
    return (gates.ravel()[:, None] * results).reshape(len(x), k, -1).sum(1)


@exercise.misconception(fails=moe_value, breaks="A device has `cap` slots for each expert")
def room_for_each_rank(x, route, w, *, k, cap):
    """You started the second choices at slot 0 again, as if they had their own slots. Put the second choices
    after the first choices of their expert."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = jnp.concatenate([slots_of(e, E) for e in jnp.split(expert, k)])
    return joined(back(through(there(placed(x, expert, slot, E, cap)), w)), gate, expert, slot, len(x))


@exercise.misconception(form_of=room_for_each_rank, breaks="A device has `cap` slots for each expert")
def room_for_each_rank_added(x, route, w, *, k, cap):
    """Like `room_for_each_rank`, but rows that share a slot are added."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = jnp.concatenate([slots_of(e, E) for e in jnp.split(expert, k)])
    slots = jnp.zeros((E, cap, x.shape[1])).at[expert, slot].add(jnp.tile(x, (k, 1)), mode="drop")
    return joined(back(through(there(slots), w)), gate, expert, slot, len(x))


@exercise.misconception(fails=moe_value, breaks="that have a slot")
def late_ones_in_the_last_slot(x, route, w, *, k, cap):
    """You put choices without a slot into the last slot, and overwrote the choice that was there. Drop these choices."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = jnp.minimum(slots_of(expert, E), cap - 1)
    return joined(back(through(there(placed(x, expert, slot, E, cap)), w)), gate, expert, slot, len(x))


@exercise.misconception(form_of=late_ones_in_the_last_slot, breaks="that have a slot")
def late_ones_in_the_last_slot_unread(x, route, w, *, k, cap):
    """Like `late_ones_in_the_last_slot`, but nothing is read for choices without a slot."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = slots_of(expert, E)
    home = back(through(there(placed(x, expert, jnp.minimum(slot, cap - 1), E, cap)), w))
    return joined(home, gate, expert, slot, len(x))


@exercise.misconception(fails=moe_value, breaks="that have a slot")
def late_ones_read_the_last_slot(x, route, w, *, k, cap):
    """You dropped tokens before sending, but later read the results of other tokens in their place. JAX moves an index beyond the end to the last slot. Read nothing for dropped choices."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = slots_of(expert, E)
    home = back(through(there(placed(x, expert, slot, E, cap)), w))
    return joined(home, gate, expert, jnp.minimum(slot, cap - 1), len(x))


@exercise.misconception(fails=moe_value, breaks="the sum over each token's choices")
def sent_on_instead_of_back(x, route, w, *, k, cap):
    """You repeated the first all-to-all instead of undoing it. The sizes fit, but the rows do not return to their
    places. Split the dimension that you joined, and join the dimension that you split."""
    (gate, expert), E, n = chosen(route, k), route.shape[1], jax.lax.axis_size("ep")
    slot = slots_of(expert, E)
    made = through(there(placed(x, expert, slot, E, cap)), w).reshape(E, cap, -1)
    home = there(made).reshape(E // n, n, cap, -1).reshape(E, cap, -1)
    return joined(home, gate, expert, slot, len(x))


@exercise.misconception(form_of=sent_on_instead_of_back, breaks="the sum over each token's choices")
def sent_on_untiled(x, route, w, *, k, cap):
    """Like `sent_on_instead_of_back`, without tiled=True."""
    (gate, expert), E, n = chosen(route, k), route.shape[1], jax.lax.axis_size("ep")
    slot = slots_of(expert, E)
    made = through(there(placed(x, expert, slot, E, cap)), w).reshape(n, E // n, cap, -1)
    home = jax.lax.all_to_all(made, "ep", split_axis=0, concat_axis=0).reshape(E, cap, -1)
    return joined(home, gate, expert, slot, len(x))


@exercise.misconception(fails=moe_value, breaks="the sum over each token's choices")
def local_number_on_return(x, route, w, *, k, cap):
    """You looked up returned results by the expert's number on its device. Results return in the order of all E
    experts: use the expert's number among all E."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = slots_of(expert, E)
    home = back(through(there(placed(x, expert, slot, E, cap)), w))
    return joined(home, gate, expert % len(w), slot, len(x))


@exercise.misconception(fails=moe_value, breaks="A device has `cap` slots for each expert")
def slots_of_the_whole_device(x, route, w, *, k, cap):
    """You numbered the slots over all experts together, so a device serves only its first `cap` choices. Each expert
    has `cap` slots of its own: start at 0 for each expert."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = jnp.arange(len(expert))
    return joined(back(through(there(placed(x, expert, slot, E, cap)), w)), gate, expert, slot, len(x))


@exercise.misconception(fails=moe_value, breaks="the sum over each token's choices")
def expert_of_the_whole_numbering(x, route, w, *, k, cap):
    """You looked up local weights by the expert's number among all E. A device's weights start at 0: subtract the number of its first expert."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = slots_of(expert, E)
    number = jax.lax.axis_index("ep") * len(w) + jnp.arange(len(w))
    made = through(there(placed(x, expert, slot, E, cap)), w[jnp.minimum(number, len(w) - 1)])
    return joined(back(made), gate, expert, slot, len(x))


@exercise.misconception(fails=moe_value, breaks="the sum over each token's choices")
def experts_dealt_out(x, route, w, *, k, cap):
    """You sent expert e to device e mod N. Device i has E/N experts: the experts from i · E/N on."""
    (gate, expert), E, n = chosen(route, k), route.shape[1], jax.lax.axis_size("ep")
    slot, place = slots_of(expert, E), expert % n * (E // n) + expert // n
    return joined(back(through(there(placed(x, place, slot, E, cap)), w)), gate, place, slot, len(x))


@exercise.misconception(fails=moe_value, breaks="the sum over each token's choices")
def slots_of_the_receiver(x, route, w, *, k, cap):
    """You read results in the order of the experts' rows, device by device. Each result comes back to the slot from which its token was sent."""
    (gate, expert), E, n = chosen(route, k), route.shape[1], jax.lax.axis_size("ep")
    slot = slots_of(expert, E)
    home = back(through(there(placed(x, expert, slot, E, cap)), w))
    return joined(home.reshape(n, E // n, cap, -1).swapaxes(0, 1).reshape(E, cap, -1), gate, expert, slot, len(x))


@exercise.misconception(fails=moe_value, breaks="the sum of gate")
def gate_on_the_way_in(x, route, w, *, k, cap):
    """You multiplied the tokens by their gates. Experts are not linear, so multiply their results instead."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = slots_of(expert, E)
    rows = gate[:, None] * jnp.tile(x, (k, 1))
    slots = jnp.zeros((E, cap, x.shape[1])).at[expert, slot].set(rows, mode="drop")
    return joined(back(through(there(slots), w)), jnp.ones_like(gate), expert, slot, len(x))


@exercise.misconception(fails=moe_router, breaks="`x`, `w` and `route`")
def gates_taken_as_given(x, route, w, *, k, cap):
    """You stopped the gradient of the gates. The router learns only from this gradient, because the choice of an expert
    has no gradient."""
    (gate, expert), E = chosen(jax.lax.stop_gradient(route), k), route.shape[1]
    slot = slots_of(expert, E)
    return joined(back(through(there(placed(x, expert, slot, E, cap)), w)), gate, expert, slot, len(x))


@exercise.misconception(fails=moe_router, breaks="`x`, `w` and `route`")
def gate_gradient_twice(x, route, w, *, k, cap):
    """Your gates have the right values, but twice the gradient. Multiply by the gate once."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = slots_of(expert, E)
    home = back(through(there(placed(x, expert, slot, E, cap)), w))
    return joined(home, gate * gate / jax.lax.stop_gradient(gate), expert, slot, len(x))


@exercise.misconception(fails=moe_gradients, breaks="gradients of `x`")
def tokens_taken_as_given(x, route, w, *, k, cap):
    """You stopped the gradient of the sent tokens. Earlier layers learn through the tokens, so let the gradients of the
    tokens travel back."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = slots_of(expert, E)
    slots = jax.lax.stop_gradient(placed(x, expert, slot, E, cap))
    return joined(back(through(there(slots), w)), gate, expert, slot, len(x))


@exercise.misconception(fails=moe_traffic, breaks="over ep only all-to-alls")
def gathered_tokens(x, route, w, *, k, cap):
    """You gathered the tokens of all devices. Send each token to the devices of its experts only, by an all-to-all."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot, n, me = slots_of(expert, E), jax.lax.axis_size("ep"), jax.lax.axis_index("ep")
    every = jax.lax.all_gather(placed(x, expert, slot, E, cap), "ep")  # [N, E, cap, D]
    mine = jax.lax.dynamic_slice_in_dim(every, me * (E // n), E // n, axis=1)
    made = jnp.tanh(jnp.einsum("necd,edf->necf", mine, w))
    home = jax.lax.all_gather(made, "ep", axis=1, tiled=True)[me]
    return joined(home, gate, expert, slot, len(x))


@exercise.misconception(form_of=gathered_tokens, breaks="over ep only all-to-alls")
def gathered_tokens_there(x, route, w, *, k, cap):
    """Like `gathered_tokens`, but the results return by an all-to-all."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot, n, me = slots_of(expert, E), jax.lax.axis_size("ep"), jax.lax.axis_index("ep")
    every = jax.lax.all_gather(placed(x, expert, slot, E, cap), "ep", axis=1, tiled=True)  # [E, N cap, D]
    here = jax.lax.dynamic_slice_in_dim(every, me * (E // n), E // n, axis=0)
    return joined(back(through(here, w)), gate, expert, slot, len(x))


@exercise.misconception(form_of=gathered_tokens, breaks="over ep only all-to-alls")
def gathered_tokens_and_gates(x, route, w, *, k, cap):
    """Like `gathered_tokens`, but a reduce-scatter adds the devices' sums of results."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    n, me, token = jax.lax.axis_size("ep"), jax.lax.axis_index("ep"), jnp.tile(jnp.arange(len(x)), k)
    gates = jnp.zeros((len(x), E)).at[token, expert].add(jnp.where(slots_of(expert, E) < cap, gate, 0))
    rows, gates = jax.lax.all_gather(x, "ep", tiled=True), jax.lax.all_gather(gates, "ep", tiled=True)
    mine = jax.lax.dynamic_slice_in_dim(gates, me * (E // n), E // n, axis=1)
    made = jnp.tanh(jnp.einsum("sd,edf->sef", rows, w))
    return jax.lax.psum_scatter(jnp.einsum("se,sef->sf", mine, made), "ep", tiled=True)


@exercise.misconception(fails=moe_traffic, breaks="nothing over dp")
def tokens_sent_over_dp(x, route, w, *, k, cap):
    """You sent tokens over dp. Devices along dp have copies of the experts, so tokens find all experts along ep."""
    results = []
    for rows, scores in zip(*jax.lax.all_gather((x, route), "dp"), strict=True):
        (gate, expert), E = chosen(scores, k), scores.shape[1]
        slot = slots_of(expert, E)
        home = back(through(there(placed(rows, expert, slot, E, cap)), w))
        results.append(joined(home, gate, expert, slot, len(rows)))
    return jnp.stack(results)[jax.lax.axis_index("dp")]


@exercise.misconception(fails=moe_traffic, breaks="each pass sends (N−1)/N")
def sent_again_in_the_backward_pass(x, route, w, *, k, cap):
    """You put one checkpoint around everything, so the backward pass runs the forward all-to-alls again. Keep the
    all-to-alls outside the checkpoint."""

    @jax.checkpoint
    def all_of_it(x, route, w):
        (gate, expert), E = chosen(route, k), route.shape[1]
        slot = slots_of(expert, E)
        return joined(back(through(there(placed(x, expert, slot, E, cap)), w)), gate, expert, slot, len(x))

    return all_of_it(x, route, w)


@exercise.misconception(fails=moe_traffic, breaks="over ep only all-to-alls")
def gathered_experts(x, route, w, *, k, cap):
    """You gathered the weights of all experts, so cutting them gains nothing. Send tokens instead."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = slots_of(expert, E)
    home = through(placed(x, expert, slot, E, cap), jax.lax.all_gather(w, "ep", tiled=True))
    return joined(home, gate, expert, slot, len(x))


@exercise.misconception(fails=moe_traffic, breaks="E · cap · (D + F + 2) numbers")
def room_for_all_tokens(x, route, w, *, k, cap):
    """You sent a row for every token to every expert, and most rows were empty. Send `cap` rows for each expert."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = slots_of(expert, E)
    slot = jnp.where(slot < cap, slot, k * len(x))
    home = back(through(there(placed(x, expert, slot, E, k * len(x))), w))
    return joined(home, gate, expert, slot, len(x))


@exercise.misconception(fails=moe_traffic, breaks="E · cap · (D + F + 2) numbers")
def room_for_more_than_cap(x, route, w, *, k, cap):
    """You sent more than `cap` rows for each expert, and the rows beyond `cap` are empty. Cut the array to `cap` rows
    for each expert before you send it."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = slots_of(expert, E)
    slot = jnp.where(slot < cap, slot, 2 * cap)
    return joined(back(through(there(placed(x, expert, slot, E, 2 * cap)), w)), gate, expert, slot, len(x))


@exercise.misconception(form_of=room_for_more_than_cap, breaks="E · cap · (D + F + 2) numbers")
def room_for_the_dropped(x, route, w, *, k, cap):
    """Like `room_for_more_than_cap`, but with one more row for each expert, which holds dropped choices."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot = jnp.minimum(slots_of(expert, E), cap)
    home = back(through(there(placed(x, expert, slot, E, cap + 1)), w))
    return joined(jnp.where(jnp.arange(cap + 1)[:, None] < cap, home, 0), gate, expert, slot, len(x))


@exercise.misconception(fails=moe_work, breaks="by the weights of its own expert only")
def all_experts_for_every_row(x, route, w, *, k, cap):
    """You multiplied every row by the weights of all experts of its device and kept one result. Multiply each expert's
    rows by that expert's weights only: jnp.einsum('ecd,edf->ecf', rows, w)."""
    (gate, expert), E = chosen(route, k), route.shape[1]
    slot, own = slots_of(expert, E), jnp.arange(len(w))
    made = jnp.tanh(jnp.einsum("ecd,gdf->egcf", there(placed(x, expert, slot, E, cap)), w))[own, own]
    return joined(back(made), gate, expert, slot, len(x))


@exercise.misconception(of=moe_bytes)
def bytes_one_way(S, D, k, room, N):
    """You left out the all-to-all that returns the results."""
    return moe_bytes(S=S, D=D, k=k, room=room, N=N) / 2


@exercise.misconception(of=moe_bytes)
def bytes_of_one_choice(S, D, k, room, N):
    """You sent each token once. Each token goes to k experts."""
    return moe_bytes(S=S, D=D, k=k, room=room, N=N) / k


@exercise.misconception(of=moe_bytes)
def bytes_without_room(S, D, k, room, N):
    """You counted the choices. A device sends all its slots, filled or not, and the number of its slots is larger than
    the number of its choices."""
    return moe_bytes(S=S, D=D, k=k, room=100, N=N)


@exercise.misconception(of=moe_bytes)
def bytes_of_all_slots(S, D, k, room, N):
    """You counted the part that a device keeps for its own experts. A device sends N − 1 of its N parts."""
    return moe_bytes(S=S, D=D, k=k, room=room, N=N) * N / (N - 1)


@exercise.misconception(of=moe_bytes)
def bytes_of_a_gather(S, D, k, room, N):
    """You counted an all-gather of the slots. Each device receives only the slots of its own experts, 1/N of a sender's
    slots."""
    return moe_bytes(S=S, D=D, k=k, room=room, N=N) * N


@exercise.misconception(of=moe_overlaps_from)
def overlaps_a_gather(chip, N, matrices):
    """You took V / W, the time of an all-gather. An all-to-all on a ring takes a quarter of that time."""
    return moe_overlaps_from(chip=chip, N=N, matrices=matrices) * 4


@exercise.misconception(of=moe_overlaps_from)
def overlaps_one_of_the_two(chip, N, matrices):
    """You counted one all-to-all. A second all-to-all returns the results."""
    return moe_overlaps_from(chip=chip, N=N, matrices=matrices) / 2


@exercise.misconception(of=moe_overlaps_from)
def overlaps_in_one_direction(chip, N, matrices):
    """You counted one direction of each link. On a ring, an all-to-all sends in both directions."""
    return moe_overlaps_from(chip=chip, N=N, matrices=matrices) * 2


@exercise.misconception(of=moe_overlaps_from)
def overlaps_a_devices_part(chip, N, matrices):
    """You used the bytes of one device as V. V is the bytes of all devices of the ring."""
    return moe_overlaps_from(chip=chip, N=N, matrices=matrices) / N


@exercise.misconception(of=moe_overlaps_from)
def overlaps_with_one_matrix(chip, N, matrices):
    """You counted one matrix. An expert multiplies each row by all its matrices."""
    return moe_overlaps_from(chip=chip, N=N, matrices=matrices) * matrices


exercise.scenario(
    moe_bytes, lambda S, D, k, room, N: Scenario(mesh={"ep": N}, arrays=[((N * S, D), ("ep",)), ((128, D), ("ep",))])
)
exercise.scenario(moe_overlaps_from, lambda chip, N, matrices: Scenario(chip=chip, rings=(N,)))
