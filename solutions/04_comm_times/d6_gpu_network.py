"""# D6 Collectives on GPUs: nodes, switches, and the network between nodes

GPUs have no torus, where a chip sends along an axis to its neighbours only, but any number of chips needs no switch.
Inside a node every GPU hangs on switches and sends to *any* other at its full egress bandwidth; nodes hang on more
switches, and each GPU has its own network card to them. Two levels, each with its bandwidth.

```
   leaf and spine switches: a fat tree, every node has its full egress
         |                   |
         | 400 GB/s          | 400 GB/s = 8 cards of 400 Gb/s, one per GPU
   +- node 0 -+        +- node 1 -+
   | switches |        | switches |   450 GB/s out of each GPU (18 links
   | g g .. g |        | g g .. g |   of 25 GB/s) and as much in:
   +----------+        +----------+   "900 GB/s of NVLink" counts both
```

Levels work at the same time (a pipeline), so the slower one sets the time. For an array of V bytes over N GPUs in M
nodes of d GPUs, with W_gpu out of a GPU and W_node out of a node:

| | one node (N GPUs) | M nodes |
|---|---|---|
| all-gather, reduce-scatter | V·(N−1)/(N·W_gpu) | V · max((d−1)/(d·W_gpu), (M−1)/(M·W_node)) |
| all-reduce | twice that | twice that |
| all-reduce in the switches (SHARP) | V / W_gpu | V / min(W_gpu, W_node) |
| all-to-all | V·(N−1)/(N²·W_gpu) | V·(M−1)/(M²·W_node) |

With SHARP the switch adds what all send and sends the sum back: each array goes up once and comes down once, however
many GPUs there are. That gains 2·(N−1)/N, 1.75 × for 8 GPUs; published measurements show about 30 %.

A *ragged* all-to-all sends to at most k of the parts (GPUs in one node, nodes otherwise): times min(k / parts, 1). That is
a mixture of experts with k experts per token.

**Task.** Write `cluster_time`.

**Small case.** bfloat16[1024, 16384], 33.6 MB, on H100. One node, all-gather: 7/8 · 33.6 MB / 450 GB/s = 65 µs. Two nodes:
the node level still needs 65 µs, between nodes 1/2 · 33.6 MB / 400 GB/s = 42 µs: 65 µs. Four nodes: max(65, 63) = 65. 32
nodes: 81 µs.

**In real systems** this is why two-node data parallelism is cheap, and experts are kept to few nodes.

**Read on.** *How To Scale Your Model*, "How to Think About GPUs".
"""

import math

from grader.exercise import Exercise
from grader.hardware import GPUS, all_gather_time, all_reduce_time, all_to_all_time, matmul_time, tree_time

exercise = Exercise(stars=2)


@exercise.function(
    hints=[
        "How many GPUs talk inside a node, and how many nodes? Each level has its own time.",
        "inside = min(gpus, node) and nodes = math.ceil(gpus / node); a level of one member takes no time.",
        "max((inside - 1) / (inside * gpu_egress), (nodes - 1) / (nodes * node_egress)) is the gather's time per byte.",
    ]
)
def cluster_time(kind, bytes, gpus, node, gpu_egress, node_egress, k):
    """Seconds of a collective on GPUs, bandwidth only; levels overlap.

    Args:
        kind: "all_gather", "reduce_scatter", "all_reduce", "sharp_all_reduce" or "all_to_all".
        bytes: V, the full logical array. gpus: how many talk, at most ``node`` or a multiple of it.
        node: GPUs in one node. gpu_egress, node_egress: bytes/s out of a GPU and out of a node.
        k: for an all-to-all, the most parts that one row has data for (GPUs in one node, nodes otherwise).
    """
    inside, nodes = min(gpus, node), math.ceil(gpus / node)
    if kind == "all_to_all":
        parts, egress = (nodes, node_egress) if nodes > 1 else (inside, gpu_egress)
        return bytes * (parts - 1) / (parts**2 * egress) * min(k / parts, 1)
    if kind == "sharp_all_reduce":
        return bytes / (min(gpu_egress, node_egress) if nodes > 1 else gpu_egress)
    slower = max((inside - 1) / (inside * gpu_egress), (nodes - 1) / (nodes * node_egress))
    return bytes * slower * (2 if kind == "all_reduce" else 1)


# -- questions ---------------------------------------------------------------------------------

ARRAY = {"I": [4096, 6144, 8192], "J": [14336, 20480, 28672]}
EXACT = "bandwidth only, exact"


@exercise.number(points=0.4, unit="us", params={"chip": ["A100", "H100", "B200"], **ARRAY}, model=EXACT)
def node_gather_time(chip, I, J):
    """`W` is bfloat16[{{ I }}, {{ J }}], sharded `W[I_X, J]` over the 8 GPUs of one {{ chip }} node. How long does its all-gather take?"""
    return all_gather_time(2 * I * J, 8, chip, topology="switch")


@exercise.number(
    points=0.4,
    unit="us",
    params={"chip": ["H100", "H200"], "M": [6, 8, 12], "I": [4608, 6144, 9216], "J": [14336, 20480, 28672]},
    model=EXACT + "; levels overlap, the slower one counts; the network between nodes gives each node its full egress",
)
def nodes_gather_time(chip, M, I, J):
    """`W` is bfloat16[{{ I }}, {{ J }}]. {{ chip }} nodes have 8 GPUs and 8 network cards of 400 Gb/s each. `W` is all-gathered over all GPUs
    of 2 nodes, then, in another job, over all GPUs of {{ M }} nodes. How long do the two all-gathers take together?"""
    return sum(tree_time(2 * I * J, [(8, GPUS[chip].egress), (nodes, 400e9)]) for nodes in (2, M))


@exercise.number(
    points=0.4,
    unit="us",
    params={"chip": ["H100", "B200"], **ARRAY},
    model="bandwidth only; the switches add and send the sum to all (SHARP), at what the hardware promises",
)
def sharp_reduce_time(chip, I, J):
    """All 8 GPUs of a {{ chip }} node hold a partial sum of a gradient, bfloat16[{{ I }}, {{ J }}]. How long does the all-reduce take?"""
    return all_reduce_time(2 * I * J, 8, chip, topology="switch", sharp=True)


@exercise.number(
    points=0.4,
    unit="us",
    params={"chip": ["H100", "B200"], "B": [4096, 8192, 16384], "D": [5120, 7168], "k": [2, 3, 5]},
    model="one switch, bandwidth only, exact for the dense part, V·(N-1)/(N²·W), times k / N",
)
def ragged_exchange_time(chip, B, D, k):
    """Tokens go to experts on the 8 GPUs of a {{ chip }} node, at most {{ k }} of them per token. Stored with a place for every expert, the
    array is bfloat16[{{ B }}, 8, {{ D }}]. How long does the ragged all-to-all take?"""
    return all_to_all_time(2 * B * 8 * D, 8, chip, topology="switch") * k / 8


@exercise.number(
    points=0.4,
    unit="token",
    params={"chip": ["H100", "B200"], "sheet": [1.98, 4.6], "N": [512, 1024], "E": [16, 32, 64], "k": [1, 2, 3]},
    where=lambda chip, sheet, N, E, k: round(GPUS[chip].bf16 / 1e12) == round(sheet * 500),
    model="per layer k·4·B·D·F / (N·C) of arithmetic, dense FLOP/s, hides gathers of V = E·4·D·F bytes in V / W_node, between nodes",
)
def gpu_least_batch(chip, sheet, N, E, k):
    """{{ N }} {{ chip }} GPUs in nodes of 8 train a mixture of {{ E }} experts, {{ k }} per token, with FSDP over all GPUs. The data sheet says
    {{ sheet }} PFLOP/s in bfloat16 "with sparsity". From how many tokens *per GPU* on does the communication hide?"""
    return E / k / matmul_time(1, chip) / 400e9
