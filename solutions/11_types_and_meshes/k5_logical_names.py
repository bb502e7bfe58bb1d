"""# K5 Names for dimensions, rules for axes

One model runs on many meshes. So its arrays do not name mesh axes: each dimension has a *logical* name. A list of rules
maps names to mesh axes. For another mesh or strategy you change only the list, not the model.

```
   rules                        ("batch", "seq", "heads")     on dp=2, tp=4
   batch  ("dp", "fsdp")        skipped, the mesh has no fsdp
   heads  "tp"                                  -> tp
   seq    "tp"                         skipped, tp is taken
   batch  "dp"                   -> dp
                                P("dp", None, "tp")
```

**Write** `spec_of(names, rules, mesh)`. `axes_of` is given.

| | type |
|---|---|
| `names` | a tuple: a name or None (whole) for each dimension, no name twice |
| `rules` | list of (name, entry); an entry is an axis, a tuple of axes, or None |
| `mesh` | dict from axis to size |
| returns | the `PartitionSpec` of the array |

**What is checked**

| check | rule |
|---|---|
| names | among the rules for a dimension's name, the first rule that is not skipped applies; if all are skipped, the dimension stays whole |
| taken axes | an axis cuts at most one dimension; a rule with a taken axis is skipped completely |
| order | the rules are tried from first to last, whatever the order of the dimensions |
| missing axes | a rule with an axis that the mesh lacks is skipped completely |
| None | a rule with None can apply too: the dimension then stays whole, whatever rules follow |
| no rule | `ValueError` for a name that no rule has |

If a rule is skipped, a later rule for the same name may still apply.

**Symbols.** In the questions, → separates a rule's name from its axes. B, S, E, F are the sizes of batch, seq, embed,
mlp.

**Small case.** With the rules above, an array with only ("batch", "seq") is `P("dp", "tp")`, because no other dimension
has taken tp before. If the rule for seq comes before the rule for heads, all three names give `P("dp", "tp", None)`.
The order of the *rules* decides, not the order of the dimensions.

## Going further

**In real systems.** Flax and MaxText have such lists, with dozens of rules. The two libraries treat a rule with
missing axes in different ways; see their documentation.

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
        "Which order decides: the order of the dimensions, or the order of the rules? Write the outer loop in that order.",
        "While you go through the rules, remember which entry each name has got so far (also None), and which axes are taken.",
        "if name in names and name not in served and all(axis in mesh and axis not in taken for axis in axes_of(entry)): ...",
    ]
)
def spec_of(names, rules, mesh):
    """Return the PartitionSpec of an array whose dimensions have these names.

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
    hints=[
        "Which axes does each array get if no axis may cut two of its dimensions?",
        "In `x`, batch takes dp and fsdp, seq takes tp, and embed stays whole because fsdp is taken. In `w`, mlp takes tp and embed takes fsdp.",
        "2 bytes · B · S · E / (dp · fsdp · tp) + 2 bytes · E · F / (fsdp · tp)",
    ],
)  # fmt: skip
def bytes_by_rules(B, S, E, F, mesh):
    """The rules are, in this order: batch → (dp, fsdp), mlp → tp, seq → tp, embed → fsdp. The mesh has dp={{ mesh[0] }}, fsdp={{ mesh[1] }},
    tp={{ mesh[2] }}. `x` is bfloat16[{{ B }}, {{ S }}, {{ E }}], named (batch, seq, embed), and `w` bfloat16[{{ E }}, {{ F }}], named (embed, mlp). How many MB
    of the two arrays does one device hold?"""
    dp, fsdp, tp = mesh
    return 2 * B * S * E / (dp * fsdp * tp) + 2 * E * F / (fsdp * tp)


@exercise.spec(
    points=0.5,
    axes=["dp", "fsdp", "tp"],
    params={"first": ["heads", "seq"], "weight": ["embed", "mlp"], "mesh": ["dp and tp", "dp, fsdp and tp"]},
    hints=[
        "Which rules can no longer apply when an earlier rule has taken their axes?",
        "Go through the rules in their order. A rule counts only if the mesh has all its axes and the array has not used any of them.",
        "batch comes first. It takes (dp, fsdp) if the mesh has both axes. Otherwise, the later rule for batch gives it dp. No axis is left for the array's last dimension.",
    ],
)
def spec_by_rules(first, weight, mesh):
    """On a mesh of {{ mesh }}, the rules are, in this order: batch → (dp, fsdp), {{ first }} → tp, {{ "seq" if first == "heads" else "heads" }} → tp,
    batch → dp, {{ weight }} → fsdp, {{ weight }} → dp. Which PartitionSpec does an array named (seq, batch, heads, {{ weight }}) get?"""
    batch, last = (("dp", "fsdp"), None) if "fsdp" in mesh else ("dp", None)
    return P("tp" if first == "seq" else None, batch, "tp" if first == "heads" else None, last)
