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

Check your work: shardlings check k5_logical_names
"""

from jax.sharding import PartitionSpec as P


def axes_of(entry):
    """None -> (), "x" -> ("x",), ("x", "y") -> ("x", "y")."""
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def spec_of(names, rules, mesh):
    """The PartitionSpec of an array whose dimensions have these names.

    Args:
        names: a tuple with a name or None for each dimension.
        rules: a list of (name, axis or tuple of axes or None), tried from first to last.
        mesh: a dict from axis to size.
    Raises ValueError for a name that has no rule.
    """
    # TODO: write this function
    raise NotImplementedError("spec_of")


# Question bytes_by_rules [MB]
# The rules, in this order: batch → (dp, fsdp), mlp → tp, seq → tp, embed → fsdp. The mesh has
# dp=2, fsdp=4, tp=8. `x` is bfloat16[48, 768, 3072], named (batch, seq, embed), and `w`
# bfloat16[3072, 49152], named (embed, mlp). How many MB of the two does one device hold?
#
# Answer in MB (a bare number), or with a unit.
# Model: bfloat16, 2 bytes; 1 MB is 10^6 bytes.
bytes_by_rules = None  # TODO: your answer


# Question spec_by_rules [a PartitionSpec]
# On a mesh of dp and tp, the rules are, in this order: batch → (dp, fsdp), heads → tp, seq → tp,
# batch → dp, embed → fsdp, embed → dp. Which PartitionSpec has an array named (seq, batch, heads,
# embed)?
#
# Answer with a PartitionSpec over dp, fsdp, tp, such as P('dp', None).
spec_by_rules = None  # TODO: your answer
