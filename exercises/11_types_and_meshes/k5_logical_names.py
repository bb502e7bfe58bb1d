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

Check your work: shardlings check k5_logical_names
Notes on all exercises of this module: see README.md, or run shardlings show 11_types_and_meshes
The text "Going further" is below the code.
"""

from jax.sharding import PartitionSpec as P


def axes_of(entry):
    """None -> (), "x" -> ("x",), ("x", "y") -> ("x", "y")."""
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def spec_of(names, rules, mesh):
    """Return the PartitionSpec of an array whose dimensions have these names.

    Args:
        names: a tuple with a name or None for each dimension.
        rules: a list of (name, axis or tuple of axes or None), tried from first to last.
        mesh: a dict from axis to size.
    Raises ValueError for a name that has no rule.
    """
    # TODO: write this function
    raise NotImplementedError("spec_of")


# Question bytes_by_rules [MB]
# The rules are, in this order: batch → (dp, fsdp), mlp → tp, seq → tp, embed → fsdp. The mesh has
# dp=2, fsdp=4, tp=8. `x` is bfloat16[48, 768, 3072], named (batch, seq, embed), and `w`
# bfloat16[3072, 49152], named (embed, mlp). How many MB of the two arrays does one device hold?
#
# Answer in MB (a bare number), or with a unit.
# Model: bfloat16, 2 bytes; 1 MB is 10^6 bytes.
bytes_by_rules = None  # TODO: your answer


# Question spec_by_rules [a PartitionSpec]
# On a mesh of dp and tp, the rules are, in this order: batch → (dp, fsdp), heads → tp, seq → tp,
# batch → dp, embed → fsdp, embed → dp. Which PartitionSpec does an array named (seq, batch,
# heads, embed) get?
#
# Answer with a PartitionSpec over dp, fsdp, tp, such as P('dp', None).
spec_by_rules = None  # TODO: your answer


# ## Going further
#
# **In real systems.** Flax and MaxText have such lists, with dozens of rules. The two libraries treat a rule with
# missing axes in different ways; see their documentation.
#
# **Read on.** The Flax guide to logical axis names; MaxText's `logical_axis_rules`.
