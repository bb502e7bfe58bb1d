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

## Going further

**In real systems.** Such a job looks busy and makes no progress until a watchdog ends it. With NCCL, PyTorch's
watchdog waits ten minutes by default.

**Read on.** CS336, lecture 8, on point-to-point operations; `torch.distributed` in the PyTorch documentation.
"""

import collections

from grader.exercise import Exercise
from grader.hardware import GPUS

exercise = Exercise(stars=2, extension=True)


@exercise.function(
    hints=[
        "What is the current operation of each rank, and what does it wait for? Go round the ranks until no rank can continue.",
        "Keep a queue of messages for every pair of a sender and a receiver. A send adds its message when it begins, not when it ends. A recv "
        "that takes the message of a send lets both ranks continue.",
        "For a recv: queue = queues[source, rank]; if queue: message = queue.pop(0), then end(rank), and end(source) if the "
        "source still waits at that message, because it was a send.",
    ]
)
def run_ranks(programs):
    """Run the programs of all ranks as far as possible.

    Args: programs: for each rank a list of operations, such as [("isend", 1, "a"), ("recv", 1, "b"), ("wait", "a")].
    Returns: (order, stuck): a list of (rank, number of an operation), and a list of ranks.
    """
    at, order, sent, received, last = [0] * len(programs), [], set(), set(), {}
    queues = collections.defaultdict(list)

    def now(rank):
        return programs[rank][at[rank]] if at[rank] < len(programs[rank]) else ("finished", None)

    def end(*ranks):
        for rank in ranks:
            order.append((rank, at[rank]))
            at[rank] += 1

    moved = True
    while moved:
        before = len(order) + len(sent)
        for rank in range(len(programs)):
            kind, what, *name = now(rank)
            message = (rank, at[rank])
            if kind.endswith("send") and message not in sent:
                sent.add(message)
                queues[rank, what].append(message)
                last[rank, *name] = message
            if kind == "isend" or (kind == "wait" and last.get((rank, what)) in received):
                end(rank)
            elif kind == "recv" and queues[what, rank]:
                source, number = taken = queues[what, rank].pop(0)
                received.add(taken)
                end(rank)
                if at[source] == number:
                    end(source)
            elif kind == "all_reduce" and all(now(other) == now(rank) for other in what):
                end(*what)
        moved = len(order) + len(sent) > before
    return order, [rank for rank, program in enumerate(programs) if at[rank] < len(program)]


@exercise.number(
    points=0.5,
    unit="ms",
    params={"gpu": ["A100", "H100", "B200"], "X": [5, 6, 7, 8], "V": [3, 7, 20]},
    model="A message takes V / W1, where W1 is the egress of a GPU. A rank takes part in one message at a time. 1 GB is 10^9 bytes",
    hints=[
        "Which ranks can receive at the start?",
        "Only rank 0 receives at the start, so only the last rank's message moves. Then the message of rank X − 2 moves, and so on: one message at a time.",
        "X messages move, one after the other. Each takes V / egress.",
    ],
)
def blocking_ring_time(gpu, X, V):
    """{{ X }} {{ gpu }} in one node send arrays of {{ V }} GB round a ring, each to the next rank, by `send` and `recv`. Rank 0 receives
    first, all others send first. How long does it take until all ranks are done?"""
    return X * V * 1e9 / GPUS[gpu].egress


@exercise.number(
    points=0.5,
    unit="ms",
    params={"gpu": ["A100", "H100", "B200"], "X": [4, 6, 8], "Y": [5, 7], "V": [3, 7, 20]},
    model="A message takes V / W1, where W1 is the egress of a GPU. A rank takes part in one message at a time. 1 GB is 10^9 bytes",
    hints=[
        "Which messages can be sent at the same time?",
        "With an even number of ranks, all messages take two rounds. With an odd number, the last rank and rank 0 both send first, so a third round is needed.",
        "(2 rounds + 3 rounds) · V / egress",
    ],
)
def alternating_ring_time(gpu, X, Y, V):
    """In a ring as in `blocking_ring_time` all even ranks send first, and all odd ranks receive first. {{ X }} {{ gpu }} do this, and
    then {{ Y }} {{ gpu }}, with arrays of {{ V }} GB each time. How long do the two rings take together?"""
    return (2 + 3) * V * 1e9 / GPUS[gpu].egress
