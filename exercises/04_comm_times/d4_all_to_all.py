"""# D4 How long an all-to-all takes

In an all-to-all every chip sends a different message to every other chip. The exchange moves a cut from one dimension
to another, `A[I_X, J] → A[I, J_X]`. Each chip holds V/N bytes and sends a *chunk* of V/N² bytes to each other chip. A
chunk for a far chip passes every wire on its route, so the busiest wire sets the time.

```
   line of 4: the middle wire carries     ring of 4, both ways: wire 0→1
   2·2 chunks to the right,               carries 0→1 whole, half of 0→2
   0→2 0→3 1→2 1→3,                       and half of 3→1 (opposite chips
   and 4 to the left                      send half each way round):
                                          1 + ½ + ½ = 2 = N²/8 chunks
   0 --- 1 === 2 --- 3                    3 --- 0 === 1 --- 2 --- (3)
```

**Write** `exchange_time(bytes, sizes, network, one_way_bandwidth)`. It returns seconds: (chunks on the busiest wire) ·
V/N² / W1. For several axes see the last check.

| | meaning |
|---|---|
| `bytes` | V |
| `sizes` | tuple of the axes' sizes; a tuple of one number for a switch |
| `network` | `"ring"` (both ways), `"one_way_ring"`, `"line"` or `"switch"` |
| `one_way_bandwidth` | W1, bytes/s |

**What is checked**

| check | chunks on the busiest wire | time, even N | small case |
|---|---|---|---|
| all-to-alls on rings that send both ways, even and odd N | ⌊N/2⌋·⌈N/2⌉ / 2 | V / (4·W) | 47 µs |
| all-to-alls on rings that send one way, even and odd N | N·(N − 1) / 2 | about V / (2·W1) | |
| all-to-alls on lines | ⌊N/2⌋·⌈N/2⌉ | V / (4·W1) | 93 µs |
| all-to-alls behind a switch | N − 1 | about V / (N·W1) | 4.1 µs |
| all-to-alls over two and three unequal axes | for each axis take its rule above, with n in place of N and V·n/N in place of V; the slowest axis sets the time | rings: V·n / (4·N·W) | |

**Symbols.** V: bytes of the array that these chips hold together. N: chips in the exchange. n, X, Y: chips along an axis. W1:
one-way bandwidth of a wire. W = 2·W1: both-way bandwidth.

**Small case** (ideal times). N=8 chips exchange bfloat16[1024, 8192], 16.8 MB. A v4p ring (W = 9.0e10 bytes/s) takes 47
µs. A v5e line (W1 = 4.5e10 bytes/s) takes 93 µs. An H100 node (W1 = 4.5e11 bytes/s) takes 7/64 · 16.8 MB / W1 = 4.1 µs.

Check your work: shardlings check d4_all_to_all
Notes on all exercises of this module: see README.md, or run shardlings show 04_comm_times
The text "Going further" is below the code.
"""

import math


def exchange_time(bytes, sizes, network, one_way_bandwidth):
    """Return the seconds of an all-to-all, bandwidth only, from the chunks on the busiest wire.

    Args:
        bytes: V, the bytes of the array that these chips hold together.
        sizes: tuple of the sizes of the axes; behind a switch, one number.
        network: "ring" (both ways), "one_way_ring", "line" or "switch".
        one_way_bandwidth: W1, bytes/s of one wire in one direction.
    """
    # TODO: write this function
    raise NotImplementedError("exchange_time")


# Question ring_exchange_time [us]
# `A` is bfloat16[3072, 12288] on a ring of 16 v4p chips. How long does the all-to-all `A[I_X, J]
# → A[I, J_X]` take?
#
# Answer in us (a bare number), or with a unit.
# Model: bidirectional ring, bandwidth only: V / (4·W), where W is the bandwidth of a link in both
# directions.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
ring_exchange_time = None  # TODO: your answer


# Question line_exchange_time [us]
# On a 4x8 slice of v5e with mesh axes x and y, `A` is bfloat16[1536, 10240], whole along y. How
# long does the all-to-all over x, `A[I_X, J] → A[I, J_X]`, take?
#
# Answer in us (a bare number), or with a unit.
# Model: bandwidth only, exact: V / (4·W) if the axis is a ring; on a line, the chunks that pass
# the middle wire set the time.
# Hardware: v5e: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 2D torus, wraps only on
# an axis of 16; table 2026-11, from How To Scale Your Model of 2025-02-04.
line_exchange_time = None  # TODO: your answer


# Question switch_exchange_time [us]
# 18 GPUs of one GB200 NVL72 node change `A`, bfloat16[6912, 9216], from `A[I_X, J]` to `A[I,
# J_X]` with an all-to-all. How long does the all-to-all take?
#
# Answer in us (a bare number), or with a unit.
# Model: one switch, bandwidth only, exact: each GPU sends V/N² bytes to each other GPU at its
# egress bandwidth.
# Hardware: GB200 NVL72: 900 GB/s out of each GPU into its node's switch (72 GPUs per node); table
# 2026-11, from How To Scale Your Model of 2025-08-18.
switch_exchange_time = None  # TODO: your answer


# Question torus_exchange_time [us]
# `A` is bfloat16[9216, 18432] on v4p chips. Two axes, x=8 and y=12, wrap around. How long does
# the all-to-all over both axes, `A[I_XY, J] → A[I, J_XY]`, take?
#
# Answer in us (a bare number), or with a unit.
# Model: two rings, bandwidth only: V · (longer axis) / (4 · N · W), with N chips in all; W counts
# both directions of a link.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
torus_exchange_time = None  # TODO: your answer


# ## Going further
#
# Mixture-of-experts layers also use an all-to-all: it sends tokens to their experts.
#
# **Compared with an all-gather.** On a ring an all-gather takes V / W, 186 µs in the small case. On a line and behind a
# switch an all-gather takes V / W1. On rings and lines an all-to-all takes a quarter of the all-gather's time. Behind a
# switch each chip sends less than V/N bytes over its own wire. So with more chips the same V takes less time.
#
# **Several axes.** Each chunk travels along one axis, then along the next. The rings along an axis of n chips share the
# array: each ring moves V · n / N bytes. Different chunks use different axes at the same time, so all axes work at once,
# and the *longest* axis decides.
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them" (question 10), "How to Think About
# GPUs".
