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

## Going further

Mixture-of-experts layers also use an all-to-all: it sends tokens to their experts.

**Compared with an all-gather.** On a ring an all-gather takes V / W, 186 µs in the small case. On a line and behind a
switch an all-gather takes V / W1. On rings and lines an all-to-all takes a quarter of the all-gather's time. Behind a
switch each chip sends less than V/N bytes over its own wire. So with more chips the same V takes less time.

**Several axes.** Each chunk travels along one axis, then along the next. The rings along an axis of n chips share the
array: each ring moves V · n / N bytes. Different chunks use different axes at the same time, so all axes work at once,
and the *longest* axis decides.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them" (question 10), "How to Think About
GPUs".
"""

import math

from grader.exercise import Exercise
from grader.hardware import GPUS, all_to_all_time

exercise = Exercise(stars=2)


@exercise.function(
    hints=[
        "How many chunks does the busiest wire carry, and how large is a chunk?",
        "On a line the middle wire carries the most chunks, because every chip on its left sends to every chip on its right. A wire of a ring carries half as many chunks.",
        "The busiest wire of an axis of n carries chunks(n) * share / n**2 bytes, with share = bytes * n / math.prod(sizes). The axis with the most bytes counts.",
    ]
)
def exchange_time(bytes, sizes, network, one_way_bandwidth):
    """Return the seconds of an all-to-all, bandwidth only, from the chunks on the busiest wire.

    Args:
        bytes: V, the bytes of the array that these chips hold together.
        sizes: tuple of the sizes of the axes; behind a switch, one number.
        network: "ring" (both ways), "one_way_ring", "line" or "switch".
        one_way_bandwidth: W1, bytes/s of one wire in one direction.
    """

    def chunks(n):
        across = (n // 2) * ((n + 1) // 2)
        return {"ring": across / 2, "one_way_ring": n * (n - 1) / 2, "line": across, "switch": n - 1}[network]

    total = math.prod(sizes)
    return max(chunks(n) / n**2 * bytes * n / total for n in sizes) / one_way_bandwidth


# -- questions ---------------------------------------------------------------------------------

ARRAY = {"I": [1536, 3072, 5120, 6144], "J": [4096, 7168, 10240]}


@exercise.number(
    points=0.25,
    unit="us",
    params={"chip": ["v4p", "v5p"], "N": [12, 16], "I": [1536, 3072, 4608, 6144], "J": [6144, 9216, 12288]},
    model="bidirectional ring, bandwidth only: V / (4·W), where W is the bandwidth of a link in both directions",
    hints=[
        "How far does a byte travel on a ring, on average?",
        "On average a byte travels a quarter of the ring, half as far as to the farthest chip. The question's model already contains this quarter, so V is the whole array.",
        "time = V / (4 · W) with V = 2 · I · J bytes",
    ],
)
def ring_exchange_time(chip, N, I, J):
    """`A` is bfloat16[{{ I }}, {{ J }}] on a ring of {{ N }} {{ chip }} chips. How long does the all-to-all
    `A[I_X, J] → A[I, J_X]` take?"""
    return all_to_all_time(2 * I * J, N, chip)


@exercise.number(
    points=0.25,
    unit="us",
    params={"chip": ["v5e", "v6e"], "X": [4, 8], "Y": [4, 8, 16], **ARRAY},
    where=lambda chip, X, Y, I, J: (X, Y) in {(4, 8), (8, 4), (8, 16)},
    model="bandwidth only, exact: V / (4·W) if the axis is a ring; on a line, the chunks that pass the middle wire set the time",
    hints=[
        "Is the axis of this slice a ring? And which wire carries the most chunks?",
        "An axis shorter than 16 chips is a line. Each of the X / 2 chips on one side of the busiest wire sends a chunk to each of the X / 2 chips on its other side.",
        "(X / 2)² chunks of V / X² bytes pass the middle wire in one direction: divide these bytes by W1",
    ],
)
def line_exchange_time(chip, X, Y, I, J):
    """On a {{ X }}x{{ Y }} slice of {{ chip }} with mesh axes x and y, `A` is bfloat16[{{ I }}, {{ J }}], whole along y. How long does
    the all-to-all over x, `A[I_X, J] → A[I, J_X]`, take?"""
    return all_to_all_time(2 * I * J, X, chip, topology="line", model="exact")


@exercise.number(
    points=0.25,
    unit="us",
    params={"chip": ["A100", "H100", "B200", "GB200 NVL72"], "N": [6, 18, 24],
            "I": [2304, 4608, 6912], "J": [4608, 9216, 11520]},
    where=lambda chip, N, I, J: (N == 6) == (GPUS[chip].node == 8),
    model="one switch, bandwidth only, exact: each GPU sends V/N² bytes to each other GPU at its egress bandwidth",
    hints=[
        "How many chunks does a GPU send, and how many of its chunks stay?",
        "A GPU sends N − 1 chunks at its own egress bandwidth, one to each other GPU of the collective.",
        "time = (N − 1) chunks · (V / N² bytes in a chunk) / egress with V = 2 · I · J bytes",
    ],
)  # fmt: skip
def switch_exchange_time(chip, N, I, J):
    """{{ N }} GPUs of one {{ chip }} node change `A`, bfloat16[{{ I }}, {{ J }}], from `A[I_X, J]` to `A[I, J_X]` with an all-to-all.
    How long does the all-to-all take?"""
    return all_to_all_time(2 * I * J, N, chip, topology="switch")


@exercise.number(
    points=0.25,
    unit="us",
    params={"chip": ["v4p", "v5p"], "X": [8, 12], "Y": [12, 16],
            "I": [7680, 9216, 12288, 15360], "J": [9216, 12288, 15360, 18432]},
    where=lambda chip, X, Y, I, J: X < Y < 2 * X,
    model="two rings, bandwidth only: V · (longer axis) / (4 · N · W), with N chips in all; W counts both directions of a link",
    hints=[
        "Which of the two axes is the bottleneck?",
        "The longer axis is the bottleneck: chunks travel farther along it. Each ring along it moves a part of the array.",
        "time = V · Y / (4 · X · Y · W) with V = 2 · I · J bytes; y is the longer axis",
    ],
)  # fmt: skip
def torus_exchange_time(chip, X, Y, I, J):
    """`A` is bfloat16[{{ I }}, {{ J }}] on {{ chip }} chips. Two axes, x={{ X }} and y={{ Y }}, wrap around. How long does the all-to-all
    over both axes, `A[I_XY, J] → A[I, J_XY]`, take?"""
    return all_to_all_time(2 * I * J, (X, Y), chip)
