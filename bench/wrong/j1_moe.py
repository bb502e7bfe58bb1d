import jax
import jax.numpy as jnp


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
    """moe: none"""

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
