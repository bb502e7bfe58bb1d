"""# I4 Ranks that wait forever

In JAX all devices run one program, and the compiler matches their communication. Pipelines on GPUs are often
written rank by rank, and nothing matches sends with receives. A rank whose message never comes raises no error: it
hangs. Here you find such ranks.

```
   rank 0   send to 1   recv from 1        both wait for ever: each send
   rank 1   send to 0   recv from 0        ends when it is received

   rank 0   isend to 1  recv from 1  wait  all operations end
   rank 1   isend to 0  recv from 0  wait
```

**Write** `run_ranks(programs)`.

| | type |
|---|---|
| `programs` | one list of operations per rank; rank r runs `programs[r]` |
| returns: `order` | list of (rank, index in its program): all operations that end, in a possible order |
| `stuck` | ranks that never end their program, ascending |

A rank runs its operations one after the other. Each operation begins when the operation before it has ended.

| operation | ends |
|---|---|
| `("send", to, name)` | when its message is received |
| `("isend", to, name)` | immediately; the message is then on its way |
| `("wait", name)` | when the message of this rank's latest `isend` with this name is received |
| `("recv", source, name)` | when a message from `source` is there; it receives the oldest message that is not received yet |
| `("all_reduce", group)` | on all ranks of the group together, when each is at an `all_reduce` of this group |

**What is checked**

| check | rule: the order is possible and complete; `stuck` is exact |
|---|---|
| messages | programs with send and recv |
| isend | programs with isend and wait, too |
| groups | programs with all_reduce in groups |
| mixed | programs with all these operations |

A `recv` ignores names. Messages from one rank to another keep their order, whether `send` or `isend` sends them.
Operations that end together, or that do not wait for each other, have no fixed order.

**Symbols.** X and Y numbers of ranks in a ring, V GB in a message, W1 one-way bandwidth: a GPU's egress.

**Small case.** Ranks 0 and 1 begin with `("all_reduce", (0, 1, 2))`; rank 2 has an empty program. The result is
`([], [0, 1])`. If rank 2 sent to rank 0, rank 2 would be stuck too, because rank 0 never receives.

Check your work: shardlings check i4_run_ranks
Notes on all exercises of this module: see README.md, or run shardlings show 09_pipeline
The text "Going further" is below the code.
"""

import math


def run_ranks(programs):
    """Run the programs of all ranks as far as possible.

    Args: programs: for each rank a list of operations, such as [("isend", 1, "a"), ("recv", 1, "b"), ("wait", "a")].
    Returns: (order, stuck): a list of (rank, number of an operation), and a list of ranks.
    """
    # TODO: write this function
    raise NotImplementedError("run_ranks")


# Question blocking_ring_time [ms]
# 7 B200 in one node send arrays of 20 GB round a ring, each to the next rank, by `send` and
# `recv`. Rank 0 receives first, all others send first. How long does it take until all ranks are
# done?
#
# Answer in ms (a bare number), or with a unit.
# Model: A message takes V / W1, where W1 is the egress of a GPU. A rank takes part in one message
# at a time. 1 GB is 10^9 bytes.
# Hardware: B200: 900 GB/s out of each GPU into its node's switch (8 GPUs per node); table
# 2026-11, from How To Scale Your Model of 2025-08-18.
blocking_ring_time = None  # TODO: your answer


# Question alternating_ring_time [ms]
# In a ring as in `blocking_ring_time` all even ranks send first, and all odd ranks receive first.
# 8 B200 do this, and then 7 B200, with arrays of 3 GB each time. How long do the two rings take
# together?
#
# Answer in ms (a bare number), or with a unit.
# Model: A message takes V / W1, where W1 is the egress of a GPU. A rank takes part in one message
# at a time. 1 GB is 10^9 bytes.
# Hardware: B200: 900 GB/s out of each GPU into its node's switch (8 GPUs per node); table
# 2026-11, from How To Scale Your Model of 2025-08-18.
alternating_ring_time = None  # TODO: your answer


# ## Going further
#
# **In real systems.** Such a job looks busy and makes no progress until a watchdog ends it. With NCCL, PyTorch's
# watchdog waits ten minutes by default.
#
# **Read on.** CS336, lecture 8, on point-to-point operations; `torch.distributed` in the PyTorch documentation.
