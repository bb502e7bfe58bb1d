"""# D6 Collectives on GPUs: nodes, switches, and the network between nodes

On a torus a chip sends only to its neighbours. Switches connect GPUs: inside a node a GPU sends to *any* other GPU at
its full egress bandwidth. Further switches connect the nodes. In a gather or a reduction both levels of links, inside
nodes and between nodes, work at the same time. So the slower level sets the time.

```
   leaf and spine switches: a fat tree, every node has its full egress
         |                   |
         | 400 GB/s          | 400 GB/s = 8 cards of 400 Gb/s, one per GPU
   +- node 0 -+        +- node 1 -+
   | switches |        | switches |   each GPU has 18 links of 25 GB/s:
   | g g .. g |        | g g .. g |   450 GB/s out and 450 GB/s in
   +----------+        +----------+   ("900 GB/s of NVLink" adds the two)
```

**Write** `cluster_time(kind, bytes, gpus, node, gpu_egress, node_egress, k)`. It returns seconds.

| | meaning |
|---|---|
| `kind` | `"all_gather"`, `"reduce_scatter"`, `"all_reduce"`, `"sharp_all_reduce"` or `"all_to_all"` |
| `bytes` | V |
| `gpus` | GPUs in the collective: at most `node`, or a multiple of `node` |
| `node` | GPUs in a node |
| `gpu_egress`, `node_egress` | Wg, Wn, bytes/s |
| `k` | for all-to-alls: see *ragged* below the checks |

**What is checked**

| check | one node | M nodes | small case |
|---|---|---|---|
| gathers and reductions inside one node and over 2 to 32 nodes, except all-reduces | V·(N−1)/(N·Wg) | V · max((d−1)/(d·Wg), (M−1)/(M·Wn)) | 65 µs, 81 µs |
| all-reduces | twice a gather's time | twice a gather's time | 130 µs |
| all-reduces over nodes whose switches add (SHARP) | V / Wg | V / min(Wg, Wn) | 75 µs |
| all-to-alls, dense and ragged, in one node and over many nodes | V·(N−1)/(N²·Wg) | V·(M−1)/(M²·Wn) | 8.2 µs |

A *ragged* all-to-all sends each row to at most k parts: GPUs in one node, or nodes if there are several. Multiply the
time of the dense all-to-all by min(k / parts, 1). There are N parts in one node, and M parts over many nodes.

**Symbols.** V: bytes of the full array. N: GPUs in the collective. M: nodes. d: GPUs of a node. Wg, Wn: egress
bandwidth, one-way, of a GPU and of a node. In the questions B, D and F are as in D5, C is the FLOP/s of a GPU, E is the
number of experts, and k is the number of experts of a token.

**Small case** (ideal times). H100 GPUs gather bfloat16[1024, 16384], 33.6 MB. Inside one node the all-gather takes 7/8
· 33.6 MB / 450 GB/s = 65 µs. Over 32 nodes it takes max(65 µs, 31/32 · 33.6 MB / 400 GB/s) = 81 µs.

## Going further

**More of the small case.** With two nodes, the level inside the nodes still needs 65 µs, and the level between them
needs 1/2 · 33.6 MB / 400 GB/s = 42 µs. So the time is 65 µs. With four nodes, the time is max(65, 63) = 65 µs.

**SHARP.** The switch adds the arrays of all GPUs and sends the sum back. Each GPU sends its array to the switch once
and receives the sum once, for any number of GPUs. So SHARP is faster by a factor of 2·(N−1)/N, 1.75 for 8 GPUs.
Published measurements show a gain of about 30 %.

**Ragged all-to-all.** A mixture of experts sends each token to only k experts.

**In real systems.** Data parallelism over two nodes is cheap, as the small case shows. Many models limit the experts of
a token to few nodes.

**Read on.** *How To Scale Your Model*, "How to Think About GPUs".
"""

import math

from grader.exercise import Exercise
from grader.hardware import GPUS, all_gather_time, all_reduce_time, all_to_all_time, matmul_time, tree_time

exercise = Exercise(stars=2)


@exercise.function(
    hints=[
        "How many GPUs of a node take part, and how many nodes? Each level has its own time.",
        "inside = min(gpus, node) and nodes = math.ceil(gpus / node); a level of one member takes no time.",
        "max((inside - 1) / (inside * gpu_egress), (nodes - 1) / (nodes * node_egress)) is the gather's time per byte.",
    ]
)
def cluster_time(kind, bytes, gpus, node, gpu_egress, node_egress, k):
    """Return the seconds of a collective on GPUs, bandwidth only; levels overlap.

    Args:
        kind: "all_gather", "reduce_scatter", "all_reduce", "sharp_all_reduce" or "all_to_all".
        bytes: V, the full logical array. gpus: GPUs in the collective, at most ``node`` or a multiple of ``node``.
        node: GPUs in one node. gpu_egress, node_egress: bytes/s out of a GPU and out of a node.
        k: for an all-to-all, the largest number of parts that one row has data for (GPUs in one node, nodes otherwise).
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


@exercise.number(
    points=0.4,
    unit="us",
    params={"chip": ["A100", "H100", "B200"], **ARRAY},
    model=EXACT,
    hints=[
        "How many bytes enter or leave one GPU?",
        "Each GPU sends its shard to 7 other GPUs, 7 / 8 of the array in all.",
        "time = 7 / 8 · V / egress with V = 2 · I · J bytes",
    ],
)
def node_gather_time(chip, I, J):
    """`A` is bfloat16[{{ I }}, {{ J }}], sharded `A[I_X, J]` over the 8 GPUs of one {{ chip }} node. How long does the all-gather take?"""
    return all_gather_time(2 * I * J, 8, chip, topology="switch")


@exercise.number(
    points=0.4,
    unit="us",
    params={"chip": ["H100", "H200"], "M": [6, 8, 12], "I": [4608, 6144, 9216], "J": [14336, 20480, 28672]},
    model=EXACT
    + "; levels overlap, so the slower level counts; the network between nodes gives each node its full egress",
    hints=[
        "How many bytes must enter one GPU, and how many must enter one node?",
        "Compare the time in a node, at a GPU's egress, with the time between nodes, at the egress of 8 cards of 400 Gb/s. The longer time counts.",
        "time = for each of the two jobs the longer of 7 / 8 · V / egress and (nodes − 1) / nodes · V / (400 GB/s). Add the times of the two jobs.",
    ],
)
def nodes_gather_time(chip, M, I, J):
    """`A` is bfloat16[{{ I }}, {{ J }}]. {{ chip }} nodes have 8 GPUs and 8 network cards of 400 Gb/s each. `A` is all-gathered over all GPUs
    of 2 nodes, then, in another job, over all GPUs of {{ M }} nodes. How long do the two all-gathers take together?"""
    return sum(tree_time(2 * I * J, [(8, GPUS[chip].egress), (nodes, 400e9)]) for nodes in (2, M))


@exercise.number(
    points=0.4,
    unit="us",
    params={"chip": ["H100", "B200"], **ARRAY},
    model="bandwidth only; the switches add and send the sum to all GPUs (SHARP), at a GPU's egress",
    hints=[
        "Which bytes does a GPU still send if the switches compute the sum?",
        "A GPU sends its array once and receives the sum once, at the same time. The GPU's egress sets the time.",
        "time = V / egress with V = 2 · I · J bytes, about half of the time without SHARP",
    ],
)
def sharp_reduce_time(chip, I, J):
    """Each of the 8 GPUs of a {{ chip }} node holds a partial sum of a gradient, bfloat16[{{ I }}, {{ J }}]. How long does the all-reduce take?"""
    return all_reduce_time(2 * I * J, 8, chip, topology="switch", sharp=True)


@exercise.number(
    points=0.4,
    unit="us",
    params={"chip": ["H100", "B200"], "B": [4096, 8192, 16384], "D": [5120, 7168], "k": [3, 6, 5]},
    model="one switch, bandwidth only: k / N times the exact time of the dense all-to-all, V·(N-1)/(N²·Wg)",
    hints=[
        "How long would the dense all-to-all take?",
        "The dense array has 8 parts for each token. Only some of these parts have data.",
        "time = (experts per token) / 8 · (time of the dense all-to-all, V · 7 / (64 · egress))",
    ],
)
def ragged_exchange_time(chip, B, D, k):
    """One {{ chip }} node has 8 experts, one on each GPU, and each token goes to at most {{ k }} of them. The dense array
    has {{ D }} numbers for each token and each expert: bfloat16[{{ B }}, 8, {{ D }}]. How long does the ragged all-to-all take?"""
    return all_to_all_time(2 * B * 8 * D, 8, chip, topology="switch") * k / 8


@exercise.number(
    points=0.4,
    unit="token",
    params={"chip": ["H100", "B200"], "sheet": [1.98, 4.6], "N": [512, 1024], "E": [32, 48, 64], "k": [3, 5, 10]},
    where=lambda chip, sheet, N, E, k: round(GPUS[chip].bf16 / 1e12) == round(sheet * 500),
    model="per layer, arithmetic takes k·4·B·D·F / (N·C), with dense FLOP/s; the overlapped gathers of V = E·4·D·F bytes between nodes take V / Wn",
    hints=[
        "Which peak rate counts: the rate with sparsity, or the rate without sparsity?",
        "Dense matmuls reach half of the rate that the data sheet gives with sparsity. Set the question's arithmetic time equal to its communication time. D and F cancel.",
        "B / N = (experts) / (experts per token) · C / (400 GB/s)",
    ],
)
def gpu_least_batch(chip, sheet, N, E, k):
    """{{ N }} {{ chip }} GPUs in nodes of 8, with 400 GB/s out of each node, train a mixture of {{ E }} experts with
    FSDP over all GPUs. Each token goes to {{ k }} experts. The data sheet says {{ sheet }} PFLOP/s in bfloat16 "with sparsity". What is the least number of tokens *per GPU* at which the communication is fully overlapped?"""
    return E / k / matmul_time(1, chip) / 400e9
