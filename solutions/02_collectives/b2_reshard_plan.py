"""# B2 From one layout to another

A reshard is a short program of collectives. Which ones, and in what order?

**Task.** Write `reshard_plan(src, unreduced, dst, shape, mesh_shape)`. An array has the layout `src`, one axis or `None`
per dimension, and is unreduced over the axes in `unreduced`: along them devices hold partial sums. Return the list of
steps that brings it to the layout `dst`, with nothing left unreduced. n is the size of the axis:

| step | before | after | bytes each device sends |
|---|---|---|---|
| `("slice", axis, dim)` | whole along the axis | `axis` cuts `dim` | 0 |
| `("all_gather", axis, dim)` | `axis` cuts `dim` | whole along the axis | block · (n - 1) |
| `("all_to_all", axis, old, new)` | `axis` cuts `old` | `axis` cuts `new` | block · (n - 1) / n |
| `("reduce_scatter", axis, dim)` | unreduced over the axis | `axis` cuts `dim` | block · (n - 1) / n |
| `("all_reduce", axis)` | unreduced over the axis | whole along the axis | 2 · block · (n - 1) / n |

`block` is what a device holds when the step begins, so the order matters: cut early, gather late. A dimension is cut by
one axis at a time, so it must be free before another axis can cut it. `run_plan` is given; it carries out a plan on paper.

**Budget.** Each device sends no more than in the cheapest plan that takes every axis up at most once. (Some layouts have
a still cheaper one, which cuts along an idle axis and gathers again; it passes as well.) In all cases there is such a
plan, and all dimensions divide evenly.

```
    A[I_X, J]{U_Y}  →  A[I, J_Y]       x=4, y=2; b bytes in a block at first
      reduce_scatter y, then all_gather x    b · 1/2  +  b/2 · 3  =  2 b
      all_gather x, then reduce_scatter y    b · 3  + 4b · 1/2    =  5 b
```

**Small case.** `A[I_X, J] → A[I, J_X]` of 1 MB on x=4: the block has 0.25 MB. An all-to-all sends 3/4 of it, 0.19 MB; an
all-gather and a slice send 0.75 MB and throw three quarters away.

**In real systems** every partitioner does this for you, not always in the cheapest order.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; *Memory-efficient array
redistribution through portable collective communication*.
"""

import contextlib
import itertools
import math

from grader.exercise import Exercise
from grader.expect import Failure

exercise = Exercise(stars=2)


@exercise.given
def run_plan(plan, src, unreduced, shape, mesh_shape):
    """The layout a plan ends in, what is still unreduced, and the bytes each device sends (float32).

    Raises ValueError where a step cannot be taken.
    """
    layout, unreduced, sent = list(src), set(unreduced), 0
    block = 4 * math.prod(shape) // math.prod(mesh_shape[axis] for axis in layout if axis)
    for kind, axis, *dims in plan:
        n = mesh_shape[axis]
        if kind in ("all_gather", "all_to_all"):
            if layout[dims[0]] != axis:
                raise ValueError(f"{kind}: {axis} does not cut dimension {dims[0]}")
            layout[dims[0]] = None
        elif kind in ("reduce_scatter", "all_reduce"):
            if axis not in unreduced:
                raise ValueError(f"{kind}: nothing is unreduced over {axis}")
            unreduced.remove(axis)
        elif axis in layout or axis in unreduced:
            raise ValueError(f"{kind}: the array is not whole along {axis}")
        if kind in ("slice", "all_to_all", "reduce_scatter"):
            if layout[dims[-1]]:
                raise ValueError(f"{kind}: dimension {dims[-1]} is already cut by {layout[dims[-1]]}")
            layout[dims[-1]] = axis
        parts = {"slice": 0, "all_to_all": 1, "reduce_scatter": 1, "all_reduce": 2, "all_gather": n}[kind]
        sent += parts * block * (n - 1) // n
        block = block * n if kind == "all_gather" else block // n if kind in ("slice", "reduce_scatter") else block
    return tuple(layout), unreduced, sent


@exercise.function(
    hints=[
        "Take one axis of the mesh at a time: where is it before, where is it after? Then think about the order.",
        "What an axis does decides its step: five kinds. Of the orders that work, run_plan tells you the cheapest.",
        "min over itertools.permutations(steps) by the bytes of run_plan, leaving out the orders that raise ValueError.",
    ]
)
def reshard_plan(src, unreduced, dst, shape, mesh_shape):
    """The steps from one layout to another.

    Args:
        src, dst: a tuple with one axis or None per dimension.
        unreduced: a tuple of the axes along which devices hold partial sums; no axis of src.
        shape: the whole array's dimensions. mesh_shape: the size of every axis.
    Returns: a list of tuples, such as [("slice", "y", 1), ("all_reduce", "x")].
    """
    steps = []
    for axis in mesh_shape:
        old = src.index(axis) if axis in src else None
        new = dst.index(axis) if axis in dst else None
        if axis in unreduced:
            steps.append(("all_reduce", axis) if new is None else ("reduce_scatter", axis, new))
        elif old is None and new is not None:
            steps.append(("slice", axis, new))
        elif old is not None and new is None:
            steps.append(("all_gather", axis, old))
        elif old != new:
            steps.append(("all_to_all", axis, old, new))
    plans = []
    for order in itertools.permutations(steps):
        with contextlib.suppress(ValueError):
            plans.append((run_plan(order, src, unreduced, shape, mesh_shape)[2], list(order)))
    return min(plans, key=lambda plan: plan[0])[1]


def drawn(rng, count, wanted):
    """Layouts on a mesh of three unequal axes between which there is a plan whose kinds of steps are wanted."""
    found = []
    while len(found) < count:
        mesh_shape = dict(zip("xyz", rng.permutation([2, 3, 4, 5]).tolist(), strict=False))
        src, dst = (tuple(rng.permutation(["x", "y", "z", None, None]).tolist()[:3]) for _ in "ab")
        unreduced = tuple(axis for axis in mesh_shape if axis not in src and rng.random() < 0.6)
        shape = tuple(60 * int(n) for n in rng.integers(1, 9, 3))
        case = {"src": src, "unreduced": unreduced, "dst": dst, "shape": shape, "mesh_shape": mesh_shape}
        try:
            kinds = [kind for kind, *_ in reshard_plan(**case)]
        except ValueError:  # two axes want each other's places
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
    """What a plan sends; infinity when it does not arrive."""
    start = {name: value for name, value in args.items() if name != "dst"}
    try:
        layout, unreduced, sent = run_plan(outcome.value, **start)
    except (ValueError, TypeError, KeyError, IndexError):
        return math.inf
    return sent if layout == args["dst"] and not unreduced else math.inf


def expect_budget(seen):
    """No plan sends more than the reference's."""
    over = [args for args, got, want in seen.outcomes if bytes_of(args, got) > bytes_of(args, want)]
    if over:
        told = f"{len(over)} of {len(seen.outcomes)} hidden plans send more bytes than they need"
        raise Failure(told, staff=f"the first: {over[0]}")


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
            raise Failure(f"{told} is no list of steps", staff=repr((args, got.value))) from None
        if layout != args["dst"] or unreduced:
            end = f"{layout}, unreduced over {sorted(unreduced)}" if seen.public else "another layout"
            raise Failure(f"{told} ends in {end}", staff=repr((args, got.value)))


@exercise.check(move_cases, points=0.5, after=plan_arrives)
def plan_moves(seen):
    """reshard_plan: an axis that leaves a dimension, within the budget"""
    expect_budget(seen)


@exercise.check(sum_cases, points=0.5, after=plan_arrives)
def plan_sums(seen):
    """reshard_plan: an axis that comes to a dimension, or partial sums, within the budget"""
    expect_budget(seen)


@exercise.check(order_cases, points=0.5, after=plan_arrives)
def plan_order(seen):
    """reshard_plan: several axes, in an order within the budget"""
    expect_budget(seen)


@exercise.number(
    points=0.5,
    unit="MB",
    params={"I": [6144, 12288], "J": [8192, 20480], "X": [3, 6, 8], "Y": [4, 16]},
    model="bytes as in the table of steps; 1 MB is 10^6 bytes",
)
def reshard_bytes(I, J, X, Y):
    """`C[I, J]{U_X}` is float32[{{ I }}, {{ J }}] on the mesh x={{ X }}, y={{ Y }}: every device holds a partial sum of all of `C`,
    copies along y. It shall become `C[I_X, J_Y]`. How many MB does each device send in the cheapest plan?"""
    return 4 * I * J / Y * (X - 1) / X
