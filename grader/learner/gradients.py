"""What a task is called with and gives, as flat lists of arrays, and its gradients with respect to some of them.

Trees are put together and taken apart here, on the side of the one who wrote them: a program has arrays only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType

from grader.wire.frames import decode
from grader.wire.trees import Misfit, fitted, flat, is_tree, rebuilt


def on_leaves(task: Callable, ask: dict[str, Any]) -> Callable:
    """``task`` as a function of the leaves of its arguments, giving the leaves of its result in the order declared.

    Where no structure of the result is declared, it gives what the task returns. The function raises Misfit where the
    result has another structure.
    """
    takes, returns = [decode(tree) for tree in ask["takes"]], decode(ask["returns"])
    if returns is None and not any(map(is_tree, takes)):
        return task

    def called(*arrays: Any, **static: Any) -> Any:
        rest = iter(arrays)
        result = task(*(rebuilt(tree, rest) for tree in takes), **static)
        return result if returns is None else tuple(_as_declared(result, returns))

    return called


def _as_declared(result: Any, returns: Any) -> list[Any]:
    found = fitted(result, returns)
    for name, value in zip(flat(returns), found, strict=True):
        if value is None:
            raise Misfit(f"None{name and f' for {name}'}, expected one array; is a return missing?")
    return found


def with_gradients(fn: Callable, ask: dict[str, Any]) -> Callable:
    """``(*args, *cotangents) -> (*results, *gradients)``, all flat; results without a cotangent are auxiliary."""
    wrt = [i for i, a in enumerate(ask["args"]) if a["name"] in ask["wrt"]]
    count, of = len(ask["args"]), [c["of"] for c in ask["cotangents"]]

    def both(*args: Any) -> tuple:
        inputs, cotangents = args[:count], args[count:]

        def pulled(*chosen: Any) -> tuple[list[Any], Any]:
            full = list(inputs)
            for position, value in zip(wrt, chosen, strict=True):
                full[position] = value
            results = fn(*full)
            return [results[i] for i in of], results

        differentiated, pull, results = jax.vjp(pulled, *(inputs[i] for i in wrt), has_aux=True)
        return (*results, *pull([_as_of(out, c) for out, c in zip(differentiated, cotangents, strict=True)]))

    return both


def _as_of(result: Any, cotangent: Any) -> Any:
    """The cotangent of a result, in the type of the result: else JAX refuses it.

    Raises Misfit for a loss that is not one number.
    """
    if jnp.shape(cotangent) == () != jnp.shape(result):
        raise Misfit(f"an array of shape {jnp.shape(result)} for the loss, expected one number, shape ()")
    sharding = getattr(jax.typeof(result), "sharding", None)
    if sharding is not None and AxisType.Explicit in sharding.mesh.axis_types:
        cotangent = jax.sharding.reshard(cotangent, sharding)
    return cotangent if jnp.shape(cotangent) else cotangent.astype(jax.typeof(result).dtype)
