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

Check your work: shardlings check d6_gpu_network
Notes on all exercises of this module: see README.md, or run shardlings show 04_comm_times
The text "Going further" is below the code.
"""

import math


def cluster_time(kind, bytes, gpus, node, gpu_egress, node_egress, k):
    """Return the seconds of a collective on GPUs, bandwidth only; levels overlap.

    Args:
        kind: "all_gather", "reduce_scatter", "all_reduce", "sharp_all_reduce" or "all_to_all".
        bytes: V, the full logical array. gpus: GPUs in the collective, at most ``node`` or a multiple of ``node``.
        node: GPUs in one node. gpu_egress, node_egress: bytes/s out of a GPU and out of a node.
        k: for an all-to-all, the largest number of parts that one row has data for (GPUs in one node, nodes otherwise).
    """
    # TODO: write this function
    raise NotImplementedError("cluster_time")


# Question node_gather_time [us]
# `A` is bfloat16[8192, 28672], sharded `A[I_X, J]` over the 8 GPUs of one H100 node. How long
# does the all-gather take?
#
# Answer in us (a bare number), or with a unit.
# Model: bandwidth only, exact.
# Hardware: H100: 450 GB/s out of each GPU into its node's switch (8 GPUs per node); table
# 2026-11, from How To Scale Your Model of 2025-08-18.
node_gather_time = None  # TODO: your answer


# Question nodes_gather_time [us]
# `A` is bfloat16[9216, 20480]. H200 nodes have 8 GPUs and 8 network cards of 400 Gb/s each. `A`
# is all-gathered over all GPUs of 2 nodes, then, in another job, over all GPUs of 12 nodes. How
# long do the two all-gathers take together?
#
# Answer in us (a bare number), or with a unit.
# Model: bandwidth only, exact; levels overlap, so the slower level counts; the network between
# nodes gives each node its full egress.
# Hardware: H200: 450 GB/s out of each GPU into its node's switch (8 GPUs per node); table
# 2026-11, from How To Scale Your Model of 2025-08-18.
nodes_gather_time = None  # TODO: your answer


# Question sharp_reduce_time [us]
# Each of the 8 GPUs of a B200 node holds a partial sum of a gradient, bfloat16[4096, 28672]. How
# long does the all-reduce take?
#
# Answer in us (a bare number), or with a unit.
# Model: bandwidth only; the switches add and send the sum to all GPUs (SHARP), at a GPU's egress.
# Hardware: B200: 900 GB/s out of each GPU into its node's switch (8 GPUs per node); table
# 2026-11, from How To Scale Your Model of 2025-08-18.
sharp_reduce_time = None  # TODO: your answer


# Question ragged_exchange_time [us]
# One H100 node has 8 experts, one on each GPU, and each token goes to at most 5 of them. The
# dense array has 7168 numbers for each token and each expert: bfloat16[8192, 8, 7168]. How long
# does the ragged all-to-all take?
#
# Answer in us (a bare number), or with a unit.
# Model: one switch, bandwidth only: k / N times the exact time of the dense all-to-all,
# V·(N-1)/(N²·Wg).
# Hardware: H100: 450 GB/s out of each GPU into its node's switch (8 GPUs per node); table
# 2026-11, from How To Scale Your Model of 2025-08-18.
ragged_exchange_time = None  # TODO: your answer


# Question gpu_least_batch [token]
# 512 H100 GPUs in nodes of 8, with 400 GB/s out of each node, train a mixture of 32 experts with
# FSDP over all GPUs. Each token goes to 10 experts. The data sheet says 1.98 PFLOP/s in bfloat16
# "with sparsity". What is the least number of tokens *per GPU* at which the communication is
# fully overlapped?
#
# Answer in token (a bare number), or with a unit.
# Model: per layer, arithmetic takes k·4·B·D·F / (N·C), with dense FLOP/s; the overlapped gathers
# of V = E·4·D·F bytes between nodes take V / Wn.
# Hardware: H100: bf16 9.9e14 FLOP/s dense; table 2026-11, from How To Scale Your Model of
# 2025-08-18.
gpu_least_batch = None  # TODO: your answer


# ## Going further
#
# **More of the small case.** With two nodes, the level inside the nodes still needs 65 µs, and the level between them
# needs 1/2 · 33.6 MB / 400 GB/s = 42 µs. So the time is 65 µs. With four nodes, the time is max(65, 63) = 65 µs.
#
# **SHARP.** The switch adds the arrays of all GPUs and sends the sum back. Each GPU sends its array to the switch once
# and receives the sum once, for any number of GPUs. So SHARP is faster by a factor of 2·(N−1)/N, 1.75 for 8 GPUs.
# Published measurements show a gain of about 30 %.
#
# **Ragged all-to-all.** A mixture of experts sends each token to only k experts.
#
# **In real systems.** Data parallelism over two nodes is cheap, as the small case shows. Many models limit the experts of
# a token to few nodes.
#
# **Read on.** *How To Scale Your Model*, "How to Think About GPUs".
