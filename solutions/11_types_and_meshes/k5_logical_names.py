"""# K5 Names for dimensions, rules for axes

A model is written once and run on many meshes. So its arrays do not name axes of a mesh: each dimension has a *logical* name, and a
list of rules says which axes cut it. Another mesh or another strategy is another list; the model stays as it is.

**Task.** Write `spec_of(names, rules, mesh)`, the PartitionSpec of an array. `names` has a name, or None (whole), for each dimension, no
name twice. `rules` is a list of pairs of a name and an axis, a tuple of axes, or None. The rules are tried from first to last:

- A rule serves the dimension of its name, unless a rule before it has served that dimension already.
- All its axes must be in the mesh, and free: an axis cuts one dimension of an array at most. Otherwise the rule is skipped as a whole,
  and a later one for the same name may serve instead.
- A rule with None serves, too: it leaves the dimension whole, whatever comes later.
- A name that has rules, but none that serves, leaves its dimension whole. A name without any rule is an error: `ValueError`.

`axes_of` is given.

```
   rules                        ("batch", "seq", "heads")     on dp=2, tp=4
   batch  ("dp", "fsdp")        skipped, the mesh has no fsdp
   heads  "tp"                                  -> tp
   seq    "tp"                         skipped, tp is taken
   batch  "dp"                   -> dp
                                P("dp", None, "tp")
```

**Small case.** With the rules above, ("batch", "seq") alone is `P("dp", "tp")`: here nobody takes tp before seq. With the rule for seq in front
of that for heads, all three are `P("dp", "tp", None)`: the order of the *rules* decides who is first, not that of the dimensions.

**In real systems** Flax and MaxText have lists of this kind, dozens of rules long. What becomes of a rule whose axes are not all there differs
from one to the other, so read it up.

**Read on.** The Flax guide to logical axis names; MaxText's `logical_axis_rules`.
"""

from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise

exercise = Exercise(stars=2, extension=True)


@exercise.given
def axes_of(entry):
    """None -> (), "x" -> ("x",), ("x", "y") -> ("x", "y")."""
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


@exercise.function(
    hints=[
        "Who goes first, dimensions or rules? Make the outer loop accordingly.",
        "Keep two things while you go through the rules: what each name has got (None counts), and which axes are taken.",
        "if name in names and name not in served and all(axis in mesh and axis not in taken for axis in axes_of(entry)): ...",
    ]
)
def spec_of(names, rules, mesh):
    """The PartitionSpec of an array whose dimensions have these names.

    Args:
        names: a tuple with a name or None for each dimension.
        rules: a list of (name, axis or tuple of axes or None), tried from first to last.
        mesh: a dict from axis to size.
    Raises ValueError for a name that has no rule.
    """
    if unknown := {name for name in names if name} - {name for name, _ in rules}:
        raise ValueError(f"no rule for {unknown}")
    served, taken = {}, set()
    for name, entry in rules:
        axes = axes_of(entry)
        if name in names and name not in served and all(axis in mesh and axis not in taken for axis in axes):
            served[name] = entry
            taken.update(axes)
    return P(*[served.get(name) for name in names])


@exercise.number(
    points=0.5,
    unit="MB",
    params={
        "B": [24, 48], "S": [768, 2048], "E": [3072, 6144], "F": [18432, 49152],
        "mesh": [(2, 3, 4), (3, 2, 8), (2, 4, 8), (4, 3, 2)],
    },
    model="bfloat16, 2 bytes; 1 MB is 10^6 bytes",
)  # fmt: skip
def bytes_by_rules(B, S, E, F, mesh):
    """The rules, in this order: batch → (dp, fsdp), mlp → tp, seq → tp, embed → fsdp. The mesh has dp={{ mesh[0] }}, fsdp={{ mesh[1] }},
    tp={{ mesh[2] }}. `x` is bfloat16[{{ B }}, {{ S }}, {{ E }}], named (batch, seq, embed), and `w` bfloat16[{{ E }}, {{ F }}], named (embed, mlp). How many MB
    of the two does one device hold?"""
    dp, fsdp, tp = mesh
    return 2 * B * S * E / (dp * fsdp * tp) + 2 * E * F / (fsdp * tp)


@exercise.spec(
    points=0.5,
    axes=["dp", "fsdp", "tp"],
    params={"first": ["heads", "seq"], "weight": ["embed", "mlp"], "mesh": ["dp and tp", "dp, fsdp and tp"]},
)
def spec_by_rules(first, weight, mesh):
    """On a mesh of {{ mesh }}, the rules are, in this order: batch → (dp, fsdp), {{ first }} → tp, {{ "seq" if first == "heads" else "heads" }} → tp,
    batch → dp, {{ weight }} → fsdp, {{ weight }} → dp. Which PartitionSpec has an array named (seq, batch, heads, {{ weight }})?"""
    batch, last = (("dp", "fsdp"), None) if "fsdp" in mesh else ("dp", None)
    return P("tp" if first == "seq" else None, batch, "tp" if first == "heads" else None, last)
