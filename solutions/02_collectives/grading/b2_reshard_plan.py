"""Checks and misconceptions of B2."""

import contextlib
import itertools
import math

from jax.sharding import PartitionSpec as P

from b2_reshard_plan import exercise, reshard_bytes, reshard_plan, run_plan
from grader.exercise import Scenario
from grader.expect import Failure


def drawn(rng, count, wanted):
    """Return layouts on a mesh of three unequal axes. Each plan between them has the wanted kinds of steps."""
    found = []
    while len(found) < count:
        mesh_shape = dict(zip("xyz", rng.permutation([2, 3, 4, 5]).tolist(), strict=False))
        src, dst = (tuple(rng.permutation(["x", "y", "z", None, None]).tolist()[:3]) for _ in "ab")
        unreduced = tuple(axis for axis in mesh_shape if axis not in src and rng.random() < 0.6)
        shape = tuple(60 * int(n) for n in rng.integers(1, 9, 3))
        case = {"src": src, "unreduced": unreduced, "dst": dst, "shape": shape, "mesh_shape": mesh_shape}
        try:
            kinds = [kind for kind, *_ in reshard_plan(**case)]
        except ValueError:  # two axes change places
            continue
        if wanted(kinds):
            found.append(case)
    return found


START = {"shape": (120, 60, 180), "mesh_shape": {"x": 4, "y": 2, "z": 3}}
plan_cases = exercise.cases(
    reshard_plan,
    public=[
        {"src": ("x", None, None), "unreduced": (), "dst": (None, "x", None), **START},
        {"src": ("x", None, None), "unreduced": ("y",), "dst": (None, "y", None), **START},
        {"src": ("x", "z", None), "unreduced": (), "dst": ("z", None, None), **START},
    ],
    hidden=lambda rng: drawn(rng, 60, lambda kinds: True),
)
move_cases = exercise.cases(
    reshard_plan, public=[], hidden=lambda rng: drawn(rng, 40, lambda kinds: kinds in (["all_to_all"], ["all_gather"]))
)
sum_cases = exercise.cases(
    reshard_plan,
    public=[],
    hidden=lambda rng: drawn(rng, 40, lambda kinds: kinds in (["reduce_scatter"], ["all_reduce"], ["slice"])),
)
order_cases = exercise.cases(reshard_plan, public=[], hidden=lambda rng: drawn(rng, 60, lambda kinds: len(kinds) == 3))


def bytes_of(args, outcome):
    """Return the bytes that a plan sends, or infinity if it does not arrive."""
    start = {name: value for name, value in args.items() if name != "dst"}
    try:
        layout, unreduced, sent = run_plan(outcome.value, **start)
    except (ValueError, TypeError, KeyError, IndexError):
        return math.inf
    return sent if layout == args["dst"] and not unreduced else math.inf


def expect_budget(seen):
    """Require that each plan arrives and sends at most the bytes of the reference's plan."""
    over = [args for args, got, want in seen.outcomes if bytes_of(args, got) > bytes_of(args, want)]
    if over:
        first = f"from {over[0]['src']} unreduced over {over[0]['unreduced']} to {over[0]['dst']}"
        raise Failure(
            f"{len(over)} of {len(seen.outcomes)} plans do not arrive or send more bytes than they need, the first {first}"
        )


@exercise.check(plan_cases, points=1, public=True)
def plan_arrives(seen):
    """reshard_plan: each plan can be carried out and ends in dst, with nothing left unreduced"""
    for args, got, _ in seen.outcomes:
        told = "a hidden plan"
        if seen.public:
            told = f"from {args['src']} unreduced over {args['unreduced']} to {args['dst']}, the plan {got.value}"
        if got.error:
            raise Failure(f"{told}: raised {got.error}", where=f"line {got.line}" if got.line else "", staff=repr(args))
        start = {name: value for name, value in args.items() if name != "dst"}
        try:
            layout, unreduced, _ = run_plan(got.value, **start)
        except ValueError as error:
            raise Failure(f"{told} cannot be carried out: {error}", staff=repr((args, got.value))) from None
        except (TypeError, KeyError, IndexError):
            raise Failure(f"{told} is not a list of steps", staff=repr((args, got.value))) from None
        if layout != args["dst"] or unreduced:
            end = f"{layout}, unreduced over {sorted(unreduced)}" if seen.public else "another layout"
            raise Failure(f"{told} ends in {end}", staff=repr((args, got.value)))


@exercise.check(move_cases, points=0.5)
def plan_moves(seen):
    """reshard_plan: an axis that no longer cuts a dimension, within the budget"""
    expect_budget(seen)


@exercise.check(sum_cases, points=0.5)
def plan_sums(seen):
    """reshard_plan: an axis that newly cuts a dimension, or partial sums, within the budget"""
    expect_budget(seen)


@exercise.check(order_cases, points=0.5)
def plan_order(seen):
    """reshard_plan: several axes, in an order within the budget"""
    expect_budget(seen)


@exercise.alternative(of=reshard_plan)
def plan_with_an_axis_twice(src, unreduced, dst, shape, mesh_shape):
    """Slice along an axis of copies before an all-reduce, and gather along it afterwards, where that sends fewer bytes."""
    best = plan = reshard_plan(src, unreduced, dst, shape, mesh_shape)
    for at, step in enumerate(plan):
        for axis, dim in itertools.product(mesh_shape, range(len(shape))) if step[0] == "all_reduce" else ():
            longer = [*plan[:at], ("slice", axis, dim), step, ("all_gather", axis, dim), *plan[at + 1 :]]
            with contextlib.suppress(ValueError):
                best = min(best, longer, key=lambda plan: run_plan(plan, src, unreduced, shape, mesh_shape)[2])
    return best


@exercise.misconception(fails=[plan_moves, plan_order], breaks="an axis that no longer cuts a dimension")
def plan_gathers_to_move(src, unreduced, dst, shape, mesh_shape):
    """You moved an axis to a different dimension by all-gather and slice. An all-to-all sends 1/n of those bytes: only what each device keeps."""
    plan = []
    for kind, axis, *dims in reshard_plan(src, unreduced, dst, shape, mesh_shape):
        by_hand = [("all_gather", axis, *dims[:1]), ("slice", axis, *dims[1:])]
        plan += by_hand if kind == "all_to_all" else [(kind, axis, *dims)]
    return plan


@exercise.misconception(fails=[plan_sums, plan_order], breaks="an axis that newly cuts one, or partial sums")
def plan_reduces_everywhere(src, unreduced, dst, shape, mesh_shape):
    """You reduced by all-reduce and slice. A reduce-scatter sends half the bytes and leaves each device the part that it keeps."""
    plan = []
    for kind, axis, *dims in reshard_plan(src, unreduced, dst, shape, mesh_shape):
        by_hand = [("all_reduce", axis), ("slice", axis, *dims)]
        plan += by_hand if kind == "reduce_scatter" else [(kind, axis, *dims)]
    return plan


@exercise.misconception(fails=plan_order, breaks="several axes: each within the budget")
def plan_gathers_first(src, unreduced, dst, shape, mesh_shape):
    """You gathered first, so every later step moves larger blocks. Slice and scatter early and gather late, unless a dimension must become free first."""
    return sorted(reshard_plan(src, unreduced, dst, shape, mesh_shape), key=lambda step: step[0] != "all_gather")


@exercise.misconception(
    fails=[plan_arrives, plan_order],
    breaks=["each plan can be carried out", "a dimension must be free before another axis cuts it"],
)
def plan_axis_by_axis(src, unreduced, dst, shape, mesh_shape):
    """You took the axes in the order of the mesh. A dimension must be free before the next axis can cut it."""
    return sorted(
        reshard_plan(src, unreduced, dst, shape, mesh_shape), key=lambda step: list(mesh_shape).index(step[1])
    )


@exercise.misconception(
    fails=[plan_arrives, plan_sums, plan_order], breaks="ends in `dst`, with nothing left unreduced"
)
def plan_forgets_sums(src, unreduced, dst, shape, mesh_shape):
    """You looked only at src and dst. Devices along the axes in `unreduced` hold partial sums: add a step that sums
    them."""
    return reshard_plan(src, (), dst, shape, mesh_shape)


@exercise.misconception(of=reshard_bytes)
def reshard_scatter_first(I, J, X, Y):
    """You reduce-scattered all of C. Slice along y first: the slice sends nothing and leaves 1/Y of C to reduce."""
    return 4 * I * J * (X - 1) / X


@exercise.misconception(of=reshard_bytes)
def reshard_all_reduce(I, J, X, Y):
    """You counted an all-reduce, or both halves of one. The reduce-scatter alone gives every device its rows."""
    return 2 * 4 * I * J / Y * (X - 1) / X


@exercise.misconception(of=reshard_bytes)
def reshard_own_chunk_too(I, J, X, Y):
    """You sent all X chunks of the block. A device keeps its own chunk and sends X - 1."""
    return 4 * I * J / Y


exercise.scenario(reshard_bytes, lambda I, J, X, Y: Scenario(mesh={"x": X, "y": Y}, arrays=[((I, J), P("x", "y"))]))
