import jax
import jax.numpy as jnp

from grader.hardware import CHIPS


def routed(x, route, w, k, cap, gates=None, order="rank", room=None, weigh=None):
    """A layer with a dense mask of tokens, experts and slots. The arguments select wrong variants."""
    E = route.shape[1]
    probs = jax.nn.softmax(route)
    top, experts = jax.lax.top_k(probs, k)
    top = gates(route, top) if gates else top
    choices = jax.nn.one_hot(experts, E)  # [S, k, E]
    flat = choices.swapaxes(0, 1).reshape(-1, E) if order == "rank" else choices.reshape(-1, E)
    before = jnp.cumsum(flat, 0) - flat
    before = before.reshape(k, -1, E).swapaxes(0, 1) if order == "rank" else before.reshape(-1, k, E)
    if room == "each":
        before = jnp.cumsum(choices, 0) - choices
    slot = jax.nn.one_hot(jnp.where(choices > 0, before, -1).astype(int), cap)  # [S, k, E, cap]
    if weigh:
        top = weigh(top, slot)
    sent = jnp.einsum("skec,sd->ecd", slot, x)
    here = jax.lax.all_to_all(sent, "ep", 0, 1, tiled=True)
    made = jnp.tanh(jnp.einsum("ecd,edf->ecf", here, w))
    home = jax.lax.all_to_all(made, "ep", 1, 0, tiled=True)
    return jnp.einsum("skec,sk,ecf->sf", slot, top, home)


def renormalised_over_the_chosen(x, route, w, *, k, cap):
    """moe: gates_of_the_chosen"""
    return routed(x, route, w, k, cap, gates=lambda route, top: top / top.sum(-1, keepdims=True))


def renormalised_after_drops(x, route, w, *, k, cap):
    """moe: gates_renormalised_after_drops"""

    def weigh(top, slot):
        served = top * slot.sum((2, 3))
        return served / jnp.maximum(served.sum(-1, keepdims=True), 1e-9)

    return routed(x, route, w, k, cap, weigh=weigh)


def rescaled_after_drops(x, route, w, *, k, cap):
    """moe: gates_renormalised_after_drops"""

    def weigh(top, slot):
        served = top * slot.sum((2, 3))
        return served * top.sum(-1, keepdims=True) / jnp.maximum(served.sum(-1, keepdims=True), 1e-9)

    return routed(x, route, w, k, cap, weigh=weigh)


def each_token_first(x, route, w, *, k, cap):
    """moe: token_by_token"""
    return routed(x, route, w, k, cap, order="token")


def room_of_their_own(x, route, w, *, k, cap):
    """moe: room_for_each_rank"""
    return routed(x, route, w, k, cap, room="each")


def without_gates(x, route, w, *, k, cap):
    """moe: gates_left_out"""
    return routed(x, route, w, k, cap, gates=lambda route, top: jnp.ones_like(top))


def one_expert(x, route, w, *, k, cap):
    """moe: first_choice_only"""
    return routed(x, route, w, 1, cap)


def gates_stopped(x, route, w, *, k, cap):
    """moe: gates_taken_as_given"""
    return routed(x, jax.lax.stop_gradient(route), w, k, cap)


def tokens_stopped(x, route, w, *, k, cap):
    """moe: tokens_taken_as_given"""
    return routed(jax.lax.stop_gradient(x), route, w, k, cap)


def sigmoid_gates(x, route, w, *, k, cap):
    """moe: none"""
    return routed(x, route, w, k, cap, gates=lambda route, top: jax.nn.sigmoid(jax.lax.top_k(route, top.shape[1])[0]))


def one_hot_places(x, route, k, cap):
    E = route.shape[1]
    gate, expert = jax.lax.top_k(jax.nn.softmax(route), k)
    expert = expert.T.reshape(-1)
    hot = jax.nn.one_hot(expert, E, dtype=jnp.int32)
    place = (jnp.cumsum(hot, 0) * hot).sum(1) - 1
    sent = jnp.zeros((E, cap, x.shape[1])).at[expert, place].set(jnp.concatenate([x] * k), mode="drop")
    return gate.T.reshape(-1), expert, place, sent


def add_up(home, gate, expert, place, S):
    got = home.at[expert, place].get(mode="fill", fill_value=0)
    return (got * gate[:, None]).reshape(-1, S, home.shape[-1]).sum(0)


def slots_of_each_device(x, route, w, *, k, cap):
    """moe: none"""
    E, S = route.shape[1], len(x)
    gate, expert = jax.lax.top_k(jax.nn.softmax(route), k)
    gate, expert = gate.T.reshape(-1), expert.T.reshape(-1)
    n = jax.lax.axis_size("ep")
    per = E // n
    owner = jax.nn.one_hot(expert // per, n, dtype=jnp.int32)
    number = (jnp.cumsum(owner, 0) * owner).sum(1) - 1
    hot = jax.nn.one_hot(expert, E, dtype=jnp.int32)
    place = jnp.where(number < per * cap, (jnp.cumsum(hot, 0) * hot).sum(1) - 1, cap)
    sent = jnp.zeros((E, cap, x.shape[1])).at[expert, place].set(jnp.concatenate([x] * k), mode="drop")
    here = jax.lax.all_to_all(sent, "ep", 0, 1, tiled=True)
    made = jnp.tanh(jnp.einsum("ecd,edf->ecf", here, w))
    home = jax.lax.all_to_all(made, "ep", 1, 0, tiled=True)
    return add_up(home, gate, expert, place, S)


def device_wide_slots(x, route, w, *, k, cap):
    """moe: slots_of_the_whole_device"""
    E, S = route.shape[1], len(x)
    gate, expert = jax.lax.top_k(jax.nn.softmax(route), k)
    gate, expert = gate.T.reshape(-1), expert.T.reshape(-1)
    place = jnp.arange(k * S)
    sent = jnp.zeros((E, cap, x.shape[1])).at[expert, place].set(jnp.concatenate([x] * k), mode="drop")
    here = jax.lax.all_to_all(sent, "ep", 0, 1, tiled=True)
    made = jnp.tanh(jnp.einsum("ecd,edf->ecf", here, w))
    home = jax.lax.all_to_all(made, "ep", 1, 0, tiled=True)
    return add_up(home, gate, expert, place, S)


def wrong_way_back(x, route, w, *, k, cap):
    """moe: sent_on_instead_of_back"""
    gate, expert, place, sent = one_hot_places(x, route, k, cap)
    n = jax.lax.axis_size("ep")
    here = jax.lax.all_to_all(sent, "ep", 0, 1, tiled=True)
    made = jnp.tanh(jnp.einsum("ecd,edf->ecf", here, w))
    home = jax.lax.all_to_all(made.reshape(n, -1, cap, made.shape[-1]), "ep", 0, 0)
    return add_up(home.reshape(-1, cap, made.shape[-1]), gate, expert, place, len(x))


def in_the_order_of_arrival(x, route, w, *, k, cap):
    """moe: none"""
    gate, expert, place, sent = one_hot_places(x, route, k, cap)
    here = jax.lax.all_to_all(sent, "ep", 0, 1, tiled=True)
    made = jnp.tanh(jnp.einsum("ecd,edf->ecf", here, w))
    home = jax.lax.all_to_all(made[:, ::-1], "ep", 1, 0, tiled=True)
    return add_up(home, gate, expert, place, len(x))


def tokens_gathered(x, route, w, *, k, cap):
    """moe: gathered_tokens
    Row: an all-gather of the tokens; each device runs its experts on all slots, and a scatter brings results back."""
    gate, expert, place, sent = one_hot_places(x, route, k, cap)
    per, me, n = w.shape[0], jax.lax.axis_index("ep"), jax.lax.axis_size("ep")
    everyones = jax.lax.all_gather(sent, "ep")  # [N, E, cap, D]
    mine = jax.lax.dynamic_slice_in_dim(everyones, me * per, per, 1)
    made = jnp.tanh(jnp.einsum("necd,edf->necf", mine, w))
    wide = jax.lax.dynamic_update_slice_in_dim(jnp.zeros((n, n * per, *made.shape[2:])), made, me * per, 1)
    return add_up(jax.lax.psum_scatter(wide, "ep"), gate, expert, place, len(x))


def second_choice_overwrites(x, route, w, *, k, cap):
    """moe: second_choice_overwrites
    Row: the result of a later choice overwrites that of an earlier one."""
    gate, expert, place, sent = one_hot_places(x, route, k, cap)
    here = jax.lax.all_to_all(sent, "ep", 0, 1, tiled=True)
    home = jax.lax.all_to_all(jnp.tanh(jnp.einsum("ecd,edf->ecf", here, w)), "ep", 1, 0, tiled=True)
    out = jnp.zeros((len(x), w.shape[2]))
    for choice in range(k):
        of = slice(choice * len(x), (choice + 1) * len(x))
        served = (place[of] < cap)[:, None]
        out = jnp.where(served, gate[of][:, None] * home[expert[of], jnp.minimum(place[of], cap - 1)], out)
    return out


def global_id_of_an_expert(x, route, w, *, k, cap):
    """moe: expert_of_the_whole_numbering
    Row: the global id of an expert indexes the device's own weights, and JAX clamps the index."""
    gate, expert, place, sent = one_hot_places(x, route, k, cap)
    here = jax.lax.all_to_all(sent, "ep", 0, 1, tiled=True)
    ids = jax.lax.axis_index("ep") * len(w) + jnp.arange(len(w))
    made = jnp.tanh(jnp.einsum("ecd,edf->ecf", here, jnp.take(w, ids, axis=0, mode="clip")))
    home = jax.lax.all_to_all(made, "ep", 1, 0, tiled=True)
    return add_up(home, gate, expert, place, len(x))


def sent_again_and_reshaped(x, route, w, *, k, cap):
    """moe: slots_of_the_receiver
    Row: permutes again instead of back: the parts of the return are laid out as on the way to the experts."""
    gate, expert, place, sent = one_hot_places(x, route, k, cap)
    n, per = jax.lax.axis_size("ep"), len(w)
    here = jax.lax.all_to_all(sent.reshape(n, per, cap, -1), "ep", 0, 0)  # [N, per, cap, D]
    here = here.swapaxes(0, 1).reshape(per, n * cap, -1)
    made = jnp.tanh(jnp.einsum("ecd,edf->ecf", here, w))
    home = jax.lax.all_to_all(made.reshape(per, n, cap, -1).swapaxes(0, 1), "ep", 0, 0)
    home = home.swapaxes(0, 1).reshape(n * per, cap, -1)
    return add_up(home, gate, expert, place, len(x))


def read_at_the_senders_place(x, route, w, *, k, cap):
    """moe: local_number_on_return
    Row: return offsets of the sender: a result is read at the expert's local id, not at its block on return."""
    gate, expert, place, sent = one_hot_places(x, route, k, cap)
    here = jax.lax.all_to_all(sent, "ep", 0, 1, tiled=True)
    home = jax.lax.all_to_all(jnp.tanh(jnp.einsum("ecd,edf->ecf", here, w)), "ep", 1, 0, tiled=True)
    return add_up(home, gate, expert % len(w), place, len(x))


def gate_learns_twice(x, route, w, *, k, cap):
    """moe: gate_gradient_twice
    Row: an extra gate gradient: the gate has its right value, but twice its gradient."""
    gate, expert, place, sent = one_hot_places(x, route, k, cap)
    here = jax.lax.all_to_all(sent, "ep", 0, 1, tiled=True)
    home = jax.lax.all_to_all(jnp.tanh(jnp.einsum("ecd,edf->ecf", here, w)), "ep", 1, 0, tiled=True)
    extra = gate - jax.lax.stop_gradient(gate)
    return add_up(home, gate + extra, expert, place, len(x))


def bytes_one_way(S, D, k, room, N):
    """moe_bytes: bytes_one_way"""
    return 2 * S * k * room / 100 * D * (N - 1) / N


def bytes_of_all_slots(S, D, k, room, N):
    """moe_bytes: bytes_of_all_slots"""
    return 4 * S * k * room / 100 * D


def bytes_without_room(S, D, k, room, N):
    """moe_bytes: bytes_without_room"""
    return 4 * S * k * D * (N - 1) / N


def _slots(chosen, E, cap):
    hot = jax.nn.one_hot(chosen, E, dtype=jnp.int32)
    slot = jnp.sum(hot * (jnp.cumsum(hot, axis=0) - 1), axis=1)
    return slot, slot < cap


def _route(x, route, k, cap):
    gates, experts = jax.lax.top_k(jax.nn.softmax(route, axis=-1), k)
    return gates.T.reshape(-1), experts.T.reshape(-1), jnp.tile(jnp.arange(x.shape[0]), k)


def _through(buf, w, act):
    n, (E, cap, D) = jax.lax.axis_size("ep"), buf.shape
    sent = jax.lax.all_to_all(buf.reshape(n, E // n, cap, D), "ep", 0, 0)
    out = act(sent, w)
    return jax.lax.all_to_all(out, "ep", 0, 0).reshape(E, cap, -1)


def _experts(sent, w):
    return jnp.tanh(jnp.einsum("necd,edf->necf", sent, w))


def _from_experts(rows, w, experts, E, cap, act=_experts):
    slot, fits = _slots(experts, E, cap)
    slot = jnp.where(fits, slot, cap)
    buf = jnp.zeros((E, cap, rows.shape[1])).at[experts, slot].set(rows, mode="drop")
    back = _through(buf, w, act)
    return jnp.where(fits[:, None], back[experts, jnp.minimum(slot, cap - 1)], 0)


def gates_add_to_one(x, route, w, *, k, cap):
    """moe: gates_of_the_chosen"""
    S, E = route.shape
    values, experts = jax.lax.top_k(route, k)
    gates = jax.nn.softmax(values, axis=-1).T.reshape(-1)
    experts, token = experts.T.reshape(-1), jnp.tile(jnp.arange(S), k)
    rows = _from_experts(x[token], w, experts, E, cap) * gates[:, None]
    return rows.reshape(k, S, -1).sum(0)


def token_after_token(x, route, w, *, k, cap):
    """moe: token_by_token"""
    S, E = route.shape
    gates, experts = jax.lax.top_k(jax.nn.softmax(route, axis=-1), k)
    gates, experts, token = gates.reshape(-1), experts.reshape(-1), jnp.repeat(jnp.arange(S), k)
    rows = _from_experts(x[token], w, experts, E, cap) * gates[:, None]
    return rows.reshape(S, k, -1).sum(1)


def late_tokens_share_the_last_slot(x, route, w, *, k, cap):
    """moe: late_ones_in_the_last_slot"""
    S, E = route.shape
    gates, experts, token = _route(x, route, k, cap)
    slot, _ = _slots(experts, E, cap)
    slot = jnp.minimum(slot, cap - 1)
    buf = jnp.zeros((E, cap, x.shape[1])).at[experts, slot].set(x[token])
    back = _through(buf, w, _experts)
    return (back[experts, slot] * gates[:, None]).reshape(k, S, -1).sum(0)


def tokens_gathered_over_ep(x, route, w, *, k, cap):
    """moe: gathered_tokens"""
    S, E = route.shape
    n, me = jax.lax.axis_size("ep"), jax.lax.axis_index("ep")
    gates, experts, token = _route(x, route, k, cap)
    _, fits = _slots(experts, E, cap)
    weight = jnp.zeros((S, E)).at[token, experts].add(jnp.where(fits, gates, 0))
    xs = jax.lax.all_gather(x, "ep", tiled=True)
    ws = jax.lax.all_gather(weight, "ep", tiled=True)
    ws = jax.lax.dynamic_slice_in_dim(ws, me * (E // n), E // n, axis=1)
    ys = jnp.einsum("se,sef->sf", ws, jnp.tanh(jnp.einsum("sd,edf->sef", xs, w)))
    return jax.lax.psum_scatter(ys, "ep", tiled=True)


def every_expert_on_every_row(x, route, w, *, k, cap):
    """moe: all_experts_for_every_row"""
    S, E = route.shape
    gates, experts, token = _route(x, route, k, cap)

    def act(sent, w):
        all_ = jnp.tanh(jnp.einsum("necd,gdf->negcf", sent, w))
        return jnp.einsum("negcf,eg->necf", all_, jnp.eye(w.shape[0]))

    rows = _from_experts(x[token], w, experts, E, cap, act) * gates[:, None]
    return rows.reshape(k, S, -1).sum(0)


def gate_inside_tanh(x, route, w, *, k, cap):
    """moe: gate_on_the_way_in"""
    S, E = route.shape
    gates, experts, token = _route(x, route, k, cap)
    rows = _from_experts(x[token] * gates[:, None], w, experts, E, cap)
    return rows.reshape(k, S, -1).sum(0)


def not_the_way_back(S, D, k, room, N):
    """moe_bytes: bytes_one_way"""
    return S * k * room / 100 * D * 2 * (N - 1) / N


def own_slots_sent_too(S, D, k, room, N):
    """moe_bytes: bytes_of_all_slots"""
    return 2 * S * k * room / 100 * D * 2


def one_exchange(chip, N, matrices):
    """moe_overlaps_from: overlaps_one_of_the_two"""
    c = CHIPS[chip]
    return N * 2 / 4 / (2 * c.ici) * c.bf16 / (2 * matrices)


def divided_by_nothing_after_drops(x, route, w, *, k, cap):
    """moe: gates_renormalised_after_drops"""

    def weigh(top, slot):
        served = top * slot.sum((2, 3))
        return served / served.sum(-1, keepdims=True)

    return routed(x, route, w, k, cap, weigh=weigh)


def softmax_of_the_served(x, route, w, *, k, cap):
    """moe: gates_renormalised_after_drops"""

    def weigh(top, slot):
        scores = jax.lax.top_k(route, k)[0]
        return jnp.nan_to_num(jax.nn.softmax(jnp.where(slot.sum((2, 3)) > 0, scores, -jnp.inf)))

    return routed(x, route, w, k, cap, weigh=weigh)


def share_of_the_dropped_added(x, route, w, *, k, cap):
    """moe: gates_renormalised_after_drops"""

    def weigh(top, slot):
        served = slot.sum((2, 3))
        lost = (top * (1 - served)).sum(-1, keepdims=True)
        return served * (top + lost / jnp.maximum(served.sum(-1, keepdims=True), 1))

    return routed(x, route, w, k, cap, weigh=weigh)
