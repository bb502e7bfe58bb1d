"""# I4 Ranks that wait for ever

In JAX all devices run one program, and the compiler sees to it that they meet. Pipelines on GPUs are often written
rank by rank, with sends, receives and collectives, and nobody sees to it. A rank that waits for what never comes is
no error: it hangs.

**Task.** Write `run_ranks(programs)`. `programs[r]` is the list of operations of rank r. Return `(order, stuck)`: the
operations that end, each as `(rank, number in its program)`, in an order in which they can; and the ranks that never
get to the end of their program, in ascending order. By these rules:

- A rank does its operations one after the other; the next begins when one has ended.
- `("send", to, name)` ends when its message is received.
- `("isend", to, name)` ends at once, and its message is on its way. `("wait", name)` ends when the message of this
  rank's last `isend` of that name is received.
- `("recv", source, name)` takes the oldest message from `source` that is not received yet, and waits for one. Names
  do not travel: what `source` calls it does not matter. The messages of a pair keep their order, whether by `send` or
  `isend`.
- `("all_reduce", group)` ends, on all ranks of the group together, when each of them is at an `all_reduce` of this
  group.

What ends together may stand in any order. So may whatever does not wait for each other.

```
   rank 0   send to 1   recv from 1        both wait for ever: each send
   rank 1   send to 0   recv from 0        ends when it is received

   rank 0   isend to 1  recv from 1  wait  nobody waits for long
   rank 1   isend to 0  recv from 0  wait
```

**Small case.** Ranks 0 and 1 begin with `("all_reduce", (0, 1, 2))`; rank 2 has nothing to do. Then `([], [0, 1])`.
If rank 2 sent to rank 0 instead, it would be stuck as well: rank 0 is not there to receive. A rank that waits for one
that is stuck is stuck.

**In real systems** this is a job that looks busy and makes no progress, until a watchdog ends it: with NCCL,
PyTorch's waits ten minutes unless told otherwise.

**Read on.** CS336, lecture 8, on point-to-point operations; `torch.distributed` in the PyTorch documentation.

Check your work: shardlings check i4_run_ranks
For all exercises of this module: README.md, or shardlings show 09_pipeline
"""

import math


def run_ranks(programs):
    """Run programs of ranks as far as they get.

    Args: programs: for each rank a list of operations, such as [("isend", 1, "a"), ("recv", 1, "b"), ("wait", "a")].
    Returns: (order, stuck): a list of (rank, number of an operation), and a list of ranks.
    """
    # TODO: write this function
    raise NotImplementedError("run_ranks")


# Question blocking_ring_time [ms]
# 6 B200 in one node pass arrays of 20 GB round a ring, each to the next rank, by `send` and
# `recv`. Rank 0 receives first, all others send first. How long does it take until everybody is
# done?
#
# Answer in ms (a bare number), or with a unit.
# Model: V / W1 for a message, W1 the egress of a GPU; a rank takes part in one message at a time;
# 1 GB is 10^9 bytes.
# Hardware: B200: 900 GB/s out of each GPU into the switch of its node of 8; 400 GB/s out of a
# node; HBM 192 GB at 8.0e12 B/s; bf16 2.3e15 FLOP/s dense; table 2026-11, from How To Scale Your
# Model of 2025-08-18.
blocking_ring_time = None  # TODO: your answer


# Question alternating_ring_time [ms]
# The same, but all even ranks send first and all odd ones receive first. It is done on 8 A100,
# and when they are through on 7 of them, with 3 GB each time. How long do the two take together?
#
# Answer in ms (a bare number), or with a unit.
# Model: as above.
# Hardware: A100: 300 GB/s out of each GPU into the switch of its node of 8; HBM 80 GB at 2.0e12
# B/s; bf16 3.1e14 FLOP/s dense; table 2026-11, from How To Scale Your Model of 2025-08-18.
alternating_ring_time = None  # TODO: your answer
