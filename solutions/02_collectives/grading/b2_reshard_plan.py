"""Checks and misconceptions of B2."""

import contextlib
import itertools
import math

from jax.sharding import PartitionSpec as P

from b2_reshard_plan import exercise, reshard_bytes, reshard_plan, run_plan
from grader.exercise import Scenario
from grader.expect import Failure


def drawn(rng, count, wanted):
    """Return pairs of layouts on meshes of three unequal axes. The plan of each pair has the wanted kinds of steps."""
    found = []
    while len(found) < count:
        mesh_shape = dict(zip("xyz", rng.permutation([2, 3, 4, 5]).tolist(), strict=False))
        src, dst = (tuple(rng.permutation(["x", "y", "z", None, None]).tolist()[:3]) for _ in "ab")
        unreduced = tuple(axis for axis in mesh_shape if axis not in src and rng.random() < 0.6)
        shape = tuple(60 * int(n) for n in rng.integers(1, 9, 3))
        case = {"src": src, "unreduced": unreduced, "dst": dst, "shape": shape, "mesh_shape": mesh_shape}
        try:
            kinds = [kind for kind, *_ in reshard_plan(**case)]
        except ValueError:  # no plan exists: two axes change places
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
    reshard_plan,
    public=[
        {"src": ("x", None, None), "unreduced": (), "dst": (None, "x", None), **START},
        {"src": ("x", "y", None), "unreduced": (), "dst": ("x", None, None), **START},
    ],
    hidden=lambda rng: drawn(rng, 40, lambda kinds: kinds in (["all_to_all"], ["all_gather"])),
)
sum_cases = exercise.cases(
    reshard_plan,
    public=[
        {"src": ("x", None, None), "unreduced": ("y",), "dst": ("x", "y", None), **START},
        {"src": ("x", None, None), "unreduced": ("z",), "dst": ("x", None, None), **START},
        {"src": ("x", None, None), "unreduced": (), "dst": ("x", None, "z"), **START},
    ],
    hidden=lambda rng: drawn(rng, 40, lambda kinds: kinds in (["reduce_scatter"], ["all_reduce"], ["slice"])),
)
order_cases = exercise.cases(
    reshard_plan,
    public=[
        {"src": ("x", None, "y"), "unreduced": (), "dst": (None, "z", "x"), **START},
        {"src": ("y", "z", None), "unreduced": ("x",), "dst": ("z", None, "x"), **START},
        {"src": ("z", None, None), "unreduced": ("y",), "dst": (None, "x", "y"), **START},
    ],
    hidden=lambda rng: drawn(rng, 60, lambda kinds: len(kinds) == 3),
)


@exercise.helper
def bytes_of(args, outcome):
    """Return the bytes that a plan sends, or infinity if the plan does not end in ``dst``."""
    start = {name: value for name, value in args.items() if name != "dst"}
    try:
        layout, unreduced, sent = run_plan(outcome.value, **start)
    except (ValueError, TypeError, KeyError, IndexError):
        return math.inf
    return sent if layout == args["dst"] and not unreduced else math.inf


@exercise.helper
def asked(args):
    """Return the arguments of a plan as text."""
    sizes = ", ".join(f"{axis}={size}" for axis, size in args["mesh_shape"].items())
    sums = f" unreduced over {args['unreduced']}" if args["unreduced"] else ""
    return f"from {args['src']}{sums} to {args['dst']}, shape {args['shape']}, {sizes}"


@exercise.helper
def expect_budget(seen):
    """Require that each plan ends in ``dst`` and sends at most the bytes of the reference's plan.

    Show the first plan that fails with the bytes that were counted and the bytes that are allowed.
    """
    sent = [(args, got, bytes_of(args, got), bytes_of(args, want)) for args, got, want in seen.outcomes]
    over = [plan for plan in sent if plan[2] > plan[3]]
    if not over:
        return
    args, got, spent, allowed = over[0]
    count = f"{len(over)} of {len(sent)} plans fail: a plan must end in dst within its budget of bytes"
    made = f"the plan {got.value} sends {spent:,} bytes from each device"
    if spent == math.inf:
        made = f"reshard_plan raised {got.error}" if got.error else f"the plan {got.value} does not end in dst"
    first = f"{asked(args)}: {made}, the budget is {allowed:,} bytes"
    raise Failure(f"{count}; {first}") if seen.public else Failure(count, staff=first)


@exercise.check(plan_cases, points=1, public=True)
def plan_arrives(seen):
    """reshard_plan: each plan can be carried out and ends in dst, with nothing left unreduced"""
    for args, got, _ in seen.outcomes:
        about = asked(args) if seen.public else "a hidden case"
        if got.error:
            raise Failure(
                f"{about}: reshard_plan raised {got.error}",
                where=f"line {got.line}" if got.line else "",
                staff=repr(args),
            )
        told = f"{about}: the plan {got.value}" if seen.public else "a hidden plan"
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


@exercise.check(move_cases, points=0.5, public=True)
def plan_moves(seen):
    """reshard_plan: plans within the budget, for an axis stops cutting a dimension"""
    expect_budget(seen)


@exercise.check(sum_cases, points=0.5, public=True)
def plan_sums(seen):
    """reshard_plan: plans within the budget, for an axis that newly cuts a dimension and for partial sums"""
    expect_budget(seen)


@exercise.check(order_cases, points=0.5, public=True)
def plan_order(seen):
    """reshard_plan: plans within the budget, for several axes"""
    expect_budget(seen)


@exercise.alternative(of=reshard_plan)
def plan_with_an_axis_twice(src, unreduced, dst, shape, mesh_shape):
    """Slice along an axis of copies before an all-reduce, and gather along this axis afterwards, if this sends fewer bytes."""
    best = plan = reshard_plan(src, unreduced, dst, shape, mesh_shape)
    for at, step in enumerate(plan):
        for axis, dim in itertools.product(mesh_shape, range(len(shape))) if step[0] == "all_reduce" else ():
            longer = [*plan[:at], ("slice", axis, dim), step, ("all_gather", axis, dim), *plan[at + 1 :]]
            with contextlib.suppress(ValueError):
                best = min(best, longer, key=lambda plan: run_plan(plan, src, unreduced, shape, mesh_shape)[2])
    return best


def by_gathers(plan):
    """Replace each all-to-all by an all-gather and a slice."""
    found = []
    for kind, axis, *dims in plan:
        by_hand = [("all_gather", axis, *dims[:1]), ("slice", axis, *dims[1:])]
        found += by_hand if kind == "all_to_all" else [(kind, axis, *dims)]
    return found


def by_all_reduces(plan):
    """Replace each reduce-scatter by an all-reduce and a slice."""
    found = []
    for kind, axis, *dims in plan:
        by_hand = [("all_reduce", axis), ("slice", axis, *dims)]
        found += by_hand if kind == "reduce_scatter" else [(kind, axis, *dims)]
    return found


def whole_first(src, unreduced, dst, keeps):
    """Gather and all-reduce, then slice. If ``keeps``, do not gather along an axis that cuts the same dimension in src and dst."""
    kept = [axis for axis, new in zip(src, dst, strict=True) if keeps and axis == new]
    steps = [("all_reduce", axis) for axis in unreduced]
    steps += [("all_gather", axis, dim) for dim, axis in enumerate(src) if axis and axis not in kept]
    return steps + [("slice", axis, dim) for dim, axis in enumerate(dst) if axis and axis not in kept]


def in_cheapest_order(steps, src, unreduced, shape, mesh_shape):
    """Return the steps in the order that sends the fewest bytes, or unchanged if no order can be carried out."""
    plans = []
    for order in itertools.permutations(steps):
        with contextlib.suppress(ValueError):
            plans.append((run_plan(order, src, unreduced, shape, mesh_shape)[2], list(order)))
    return min(plans, key=lambda plan: plan[0])[1] if plans else steps


@exercise.misconception(fails=[plan_moves, plan_order], breaks="an axis stops cutting a dimension")
def plan_gathers_to_move(src, unreduced, dst, shape, mesh_shape):
    """You moved an axis to a different dimension by all-gather and slice. An all-to-all sends 1/n of those bytes: each device gets only the part that it keeps."""
    return by_gathers(reshard_plan(src, unreduced, dst, shape, mesh_shape))


@exercise.misconception(form_of=plan_gathers_to_move, breaks="an axis stops cutting a dimension")
def plan_gathers_to_move_cheaply(src, unreduced, dst, shape, mesh_shape):
    """Like `plan_gathers_to_move`, with the steps in the cheapest order."""
    return in_cheapest_order(
        by_gathers(reshard_plan(src, unreduced, dst, shape, mesh_shape)), src, unreduced, shape, mesh_shape
    )


@exercise.misconception(fails=[plan_sums, plan_order], breaks="an axis starts cutting a dimension, partial sums")
def plan_reduces_everywhere(src, unreduced, dst, shape, mesh_shape):
    """You reduced by all-reduce and slice. A reduce-scatter sends half the bytes and leaves each device the part that it keeps."""
    return by_all_reduces(reshard_plan(src, unreduced, dst, shape, mesh_shape))


@exercise.misconception(form_of=plan_reduces_everywhere, breaks="an axis starts cutting a dimension, partial sums")
def plan_reduces_everywhere_cheaply(src, unreduced, dst, shape, mesh_shape):
    """Like `plan_reduces_everywhere`, with the steps in the cheapest order."""
    return in_cheapest_order(
        by_all_reduces(reshard_plan(src, unreduced, dst, shape, mesh_shape)), src, unreduced, shape, mesh_shape
    )


@exercise.misconception(fails=[plan_moves, plan_sums, plan_order], breaks="several axes")
def plan_through_the_whole_array(src, unreduced, dst, shape, mesh_shape):
    """You gathered and all-reduced before you sliced. An all-to-all moves an axis, and a reduce-scatter sums and cuts at once. Each sends fewer bytes than a gather or an all-reduce with a slice after it."""
    return whole_first(src, unreduced, dst, keeps=True)


@exercise.misconception(form_of=plan_through_the_whole_array, breaks="several axes")
def plan_through_the_whole_array_always(src, unreduced, dst, shape, mesh_shape):
    """Like `plan_through_the_whole_array`, but this program also gathers along axes that cut the same dimension in src and dst."""
    return whole_first(src, unreduced, dst, keeps=False)


@exercise.misconception(form_of=plan_through_the_whole_array, breaks="several axes")
def plan_through_the_whole_array_cheaply(src, unreduced, dst, shape, mesh_shape):
    """Like `plan_through_the_whole_array`, with the steps in the cheapest order."""
    return in_cheapest_order(whole_first(src, unreduced, dst, keeps=True), src, unreduced, shape, mesh_shape)


@exercise.misconception(fails=plan_order, breaks="several axes")
def plan_gathers_first(src, unreduced, dst, shape, mesh_shape):
    """You gathered first, so every later step moves larger blocks. Slice and scatter early and gather late, unless a dimension must become free first."""
    return sorted(reshard_plan(src, unreduced, dst, shape, mesh_shape), key=lambda step: step[0] != "all_gather")


@exercise.misconception(
    fails=[plan_arrives, plan_order],
    breaks=["each plan can be carried out", "a dimension must be uncut before another axis cuts it"],
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
    """You counted an all-reduce, or a reduce-scatter and an all-gather. The reduce-scatter alone gives every device its rows."""
    return 2 * 4 * I * J / Y * (X - 1) / X


@exercise.misconception(of=reshard_bytes)
def reshard_in_bfloat16(I, J, X, Y):
    """You counted 2 bytes for each number. C is float32: a number has 4 bytes."""
    return 2 * I * J / Y * (X - 1) / X


@exercise.misconception(of=reshard_bytes)
def reshard_own_chunk_too(I, J, X, Y):
    """You sent all X chunks of the block. A device keeps its own chunk and sends the other X - 1."""
    return 4 * I * J / Y


exercise.scenario(reshard_bytes, lambda I, J, X, Y: Scenario(mesh={"x": X, "y": Y}, arrays=[((I, J), P("x", "y"))]))
