"""A network that moves chunks step by step: an independent test of the formulas in grader/hardware/times.py.

It has nodes, directed wires with a bandwidth, and messages. In one step every wire carries the chunks that the
schedule assigns to it. A step takes the time that its busiest wire needs. No code here divides by W.

A gather is a schedule that the network executes. A node may only send data that it holds, and at the end every node
must hold all data. A reduce-scatter executes a gather's schedule backwards with partial sums. Each sum must contain
one term from each node. The network routes an all-to-all greedily, one chunk per wire and step.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linprog

Node = int
Wire = Hashable
Chunk = tuple[int, int]
"""(owner, half): a shard is sent in two halves, so that an even ring can split its last step."""


@dataclass(frozen=True)
class Message:
    source: Node
    target: Node
    wires: tuple[Wire, ...]
    chunk: Chunk


Step = list[Message]


@dataclass
class Network:
    """Wires with equal bandwidth (bytes/s), and a clock (seconds)."""

    bandwidth: float
    clock: float = 0.0
    steps: int = 0
    sent: dict[Wire, float] = field(default_factory=dict)

    def step(self, loads: Iterable[tuple[Sequence[Wire], float]]) -> None:
        """Send each load (bytes) over its wires, all at once. Advance the clock by the time of the busiest wire."""
        busy: dict[Wire, float] = {}
        for wires, size in loads:
            for wire in wires:
                busy[wire] = busy.get(wire, 0.0) + size
        if busy:
            self.clock += max(busy.values()) / self.bandwidth
            for wire, size in busy.items():
                self.sent[wire] = self.sent.get(wire, 0.0) + size
        self.steps += 1


# -- moves to a neighbour ----------------------------------------------------------------------


def clockwise(n: int, i: Node) -> tuple[Node, tuple[Wire, ...]]:
    return (i + 1) % n, (("+", i),)


def anticlockwise(n: int, i: Node) -> tuple[Node, tuple[Wire, ...]]:
    return (i - 1) % n, (("-", i),)


def _message(move, n: int, i: Node, owner: int, half: int) -> Message:
    target, wires = move(n, i)
    return Message(i, target, wires, (owner % n, half))


# -- gather schedules --------------------------------------------------------------------------


def ring_whole_shards(n: int) -> Iterator[Step]:
    """Gather whole shards in both directions, in ⌊n/2⌋ steps. An even ring's opposite shard moves in one direction."""
    for t in range(1, n // 2 + 1):
        last = n % 2 == 0 and t == n // 2
        step = [_message(clockwise, n, i, i - t + 1, h) for i in range(n) for h in (0, 1)]
        if not last:
            step += [_message(anticlockwise, n, i, i + t - 1, h) for i in range(n) for h in (0, 1)]
        yield step


def ring_split_last(n: int) -> Iterator[Step]:
    """Gather as in ``ring_whole_shards``, but half of an even ring's opposite shard moves in each direction."""
    for t in range(1, n // 2 + 1):
        last = n % 2 == 0 and t == n // 2
        yield [
            *(_message(clockwise, n, i, i - t + 1, h) for i in range(n) for h in ((0,) if last else (0, 1))),
            *(_message(anticlockwise, n, i, i + t - 1, h) for i in range(n) for h in ((1,) if last else (0, 1))),
        ]


def one_way_ring(n: int) -> Iterator[Step]:
    for t in range(1, n):
        yield [_message(clockwise, n, i, i - t + 1, h) for i in range(n) for h in (0, 1)]


def line(n: int) -> Iterator[Step]:
    """Gather on a line. Every node forwards the last received data. No wire connects the two ends."""
    for t in range(1, n):
        right = [(i, i - t + 1) for i in range(n - 1) if i - t + 1 >= 0]
        left = [(i, i + t - 1) for i in range(1, n) if i + t - 1 < n]
        yield [
            *(_message(clockwise, n, i, owner, h) for i, owner in right for h in (0, 1)),
            *(_message(anticlockwise, n, i, owner, h) for i, owner in left for h in (0, 1)),
        ]


def switch(n: int) -> Iterator[Step]:
    """Gather through a switch: in step t each node sends to the t-th node after it, by one wire in and one out."""
    for t in range(1, n):
        yield [Message(i, (i + t) % n, (("up", i), ("down", (i + t) % n)), (i, h)) for i in range(n) for h in (0, 1)]


GATHERS = {
    "ring whole": ring_whole_shards,
    "ring": ring_split_last,
    "one_way_ring": one_way_ring,
    "line": line,
    "switch": switch,
}


# -- execution of schedules --------------------------------------------------------------------


def all_gather(network: Network, how: str, n: int, array_bytes: float) -> None:
    """Run the gather schedule ``how``, and assert that every node ends with all data."""
    whole = {(owner, half) for owner in range(n) for half in (0, 1)}
    held = [{(i, 0), (i, 1)} for i in range(n)]
    for step in GATHERS[how](n):
        for m in step:
            assert m.chunk in held[m.source], f"{m.source} cannot send {m.chunk} yet"
        for m in step:
            held[m.target].add(m.chunk)
        network.step((m.wires, array_bytes / (2 * n)) for m in step)
    assert all(h == whole for h in held)


def mesh_all_gather_loads(how: str, sizes: Sequence[int], array_bytes: float, bandwidth: float) -> list[list[float]]:
    """For each order in which the axes can be gathered, return how many seconds the wires of each axis are busy."""
    loads = []
    for order in itertools.permutations(range(len(sizes))):
        busy, held = [0.0] * len(sizes), array_bytes
        for axis in reversed(order):  # the axis gathered last carries the whole array, earlier axes carry parts
            one = Network(bandwidth)
            all_gather(one, how, sizes[axis], held)
            busy[axis], held = one.clock, held / sizes[axis]
        loads.append(busy)
    return loads


def reduce_scatter(network: Network, how: str, n: int, array_bytes: float) -> None:
    """Run the gather schedule ``how`` backwards with sums, and assert that each sum has one term from each node."""
    partial = [{(owner, half): Counter([i]) for owner in range(n) for half in (0, 1)} for i in range(n)]
    for step in reversed(list(GATHERS[how](n))):
        arriving = [(m, partial[m.target].pop(m.chunk)) for m in step]  # each partial sum is sent only once
        for m, terms in arriving:
            partial[m.source][m.chunk].update(terms)
        network.step((tuple(_back(w) for w in m.wires), array_bytes / (2 * n)) for m in step)
    once = Counter(range(n))
    assert all(partial[i] == {(i, 0): once, (i, 1): once} for i in range(n))


def _back(wire: Wire) -> Wire:
    """Return the wire in the opposite direction."""
    return ("back", wire)


def all_reduce(network: Network, how: str, n: int, array_bytes: float) -> None:
    reduce_scatter(network, how, n, array_bytes)
    all_gather(network, how, n, array_bytes)


# -- all-to-all --------------------------------------------------------------------------------


def all_to_all(network: Network, how: str, n: int, array_bytes: float) -> None:
    """Send 1/n² of the array from each node to each other node on the shortest route, one chunk per wire and step."""
    half = array_bytes / (2 * n * n)
    if how == "switch":
        for t in range(1, n):
            network.step(((("up", i), ("down", (i + t) % n)), 2 * half) for i in range(n))
        return
    routes = [r for a, b in itertools.permutations(range(n), 2) for r in _ways(how, n, a, b)]
    greedy(network, routes, half)


def moved(collective: str, how: str, n: int, size: float, bandwidth: float = 1.0) -> Network:
    """Run a collective on a new network, and return the network."""
    net = Network(bandwidth)
    globals()[collective](net, how, n, size)
    return net


def _ways(how: str, n: int, a: Node, b: Node) -> Iterator[list[Wire]]:
    """Yield the routes from ``a`` to ``b``: one for each half of a chunk."""
    for part in (0, 1):
        if how == "line":
            up = a < b
        elif how == "one_way_ring":
            up = True
        else:
            right = (b - a) % n
            up = part == 0 if 2 * right == n else 2 * right < n
        yield _walk(n, a, b, up)


def _walk(n: int, a: Node, b: Node, up: bool) -> list[Wire]:
    count = (b - a) % n if up else (a - b) % n
    return [("+" if up else "-", (a + (k if up else -k)) % n) for k in range(count)]


def torus_all_to_all(
    network: Network, sizes: Sequence[int], array_bytes: float, how: str | Sequence[str] = "ring"
) -> None:
    """Run an all-to-all on a mesh of rings and lines. Each chunk moves along the first axis, then the second, ..."""
    hows = [how] * len(sizes) if isinstance(how, str) else how
    nodes = list(itertools.product(*map(range, sizes)))
    routes = []
    for a, b in itertools.permutations(nodes, 2):
        ways = [list(_axis_ways(h, n, i, j)) for h, n, i, j in zip(hows, sizes, a, b, strict=True)]
        for part in (0, 1):
            # before it moves along axis k, a chunk has moved along all earlier axes
            routes.append([(k, b[:k], a[k + 1 :], w) for k, way in enumerate(ways) for w in way[part]])
    greedy(network, routes, array_bytes / (2 * len(nodes) ** 2))


def _axis_ways(how: str, n: int, a: Node, b: Node) -> Iterator[list[Wire]]:
    return _ways(how, n, a, b) if a != b else iter(([], []))


def greedy(network: Network, routes: Iterable[list[Wire]], size: float) -> None:
    """Send chunks along the routes. In each step a wire carries the waiting chunk with the longest remaining route."""
    waiting: dict[Wire, list[deque[Wire]]] = {}
    for route in routes:
        waiting.setdefault(route[0], []).append(deque(route))
    while waiting:
        moved = []
        for wire in list(waiting):
            chosen = max(waiting[wire], key=len)
            waiting[wire].remove(chosen)
            if not waiting[wire]:
                del waiting[wire]
            moved.append((wire, chosen))
        for _, route in moved:
            route.popleft()
            if route:
                waiting.setdefault(route[0], []).append(route)
        network.step(((wire,), size) for wire, _ in moved)


# -- gathers over several axes -----------------------------------------------------------------

Point = tuple[int, ...]


@dataclass(frozen=True)
class Axis:
    """An axis of a grid.

    Attributes:
        size: nodes along it.
        ring: whether the axis is a ring; otherwise it is a line.
        wires: number of pieces that one wire of the axis carries in a step.
    """

    size: int
    ring: bool
    wires: int = 1

    def reach(self, at: int, way: int, piece: int) -> int:
        """Return how many hops a piece moves in the direction ``way``. On even rings this depends on the piece."""
        if not self.ring:
            return at if way < 0 else self.size - 1 - at
        return self.size // 2 if (way > 0) == (piece % 2 == 0) else (self.size - 1) // 2


@dataclass(frozen=True)
class Move:
    """One piece that crosses one wire. ``left``: the longest remaining route of the piece and its copies, in hops."""

    source: Point
    target: Point
    piece: tuple[Point, int]
    stage: int  # index of this axis in the order in which the piece goes along the axes
    way: int
    togo: int  # hops that remain on this axis after this hop
    left: int


Waiting = dict[tuple[Point, Point, int], list[tuple[int, tuple[Point, int], Move]]]
"""Pieces that wait for each wire, the longest remaining route first.

On a ring of two, each direction has its own wire.
"""


def torus_all_gather(axes: Sequence[Axis], orders: Sequence[Sequence[int]]) -> list[list[Move]]:
    """Gather on a torus. Every node's shard has one piece for each order, and every piece reaches every node.

    A piece moves along the first axis of its order. All nodes reached send it along the second axis, and so on.

    Returns:
        The moves of each step. A wire carries as many pieces as it can, those with the longest remaining route first.
    """
    nodes = list(itertools.product(*(range(a.size) for a in axes)))
    held = {node: {(node, p) for p in range(len(orders))} for node in nodes}
    waiting: Waiting = {}
    for node in nodes:
        for p in range(len(orders)):
            _queue(waiting, axes, orders[p], node, (node, p), 0)
    steps = []
    while waiting:
        step = []
        for wire, queue in list(waiting.items()):
            first = queue[0][-1]
            for _ in range(min(axes[orders[first.piece[1]][first.stage]].wires, len(queue))):
                step.append(heapq.heappop(queue)[-1])
            if not queue:
                del waiting[wire]
        for m in step:
            assert m.piece in held[m.source] and m.piece not in held[m.target]
            held[m.target].add(m.piece)
            order = orders[m.piece[1]]
            if m.togo:
                _push(waiting, axes, order, m.target, m.piece, m.stage, m.way, m.togo)
            _queue(waiting, axes, order, m.target, m.piece, m.stage + 1)
        steps.append(step)
    assert all(len(pieces) == len(nodes) * len(orders) for pieces in held.values())
    return steps


def _queue(
    waiting: Waiting, axes: Sequence[Axis], order: Sequence[int], node: Point, piece: tuple[Point, int], stage: int
) -> None:
    """Send a piece in both directions along each axis of ``order``, beginning with the axis number ``stage``."""
    for k in range(stage, len(order)):
        for way in (1, -1):
            if reach := axes[order[k]].reach(node[order[k]], way, piece[1]):
                _push(waiting, axes, order, node, piece, k, way, reach)


def _push(
    waiting: Waiting, axes: Sequence[Axis], order: Sequence[int], node: Point, piece: tuple[Point, int],
    stage: int, way: int, reach: int,
) -> None:  # fmt: skip
    axis = order[stage]
    target = (*node[:axis], (node[axis] + way) % axes[axis].size, *node[axis + 1 :])
    left = reach + sum(axes[k].size for k in order[stage + 1 :])
    move = Move(node, target, piece, stage, way, reach - 1, left)
    heapq.heappush(waiting.setdefault((node, target, way), []), (-left, piece, move))


def mixed(orders: Sequence[Sequence[int]], shares: Sequence[float], pieces: int) -> list[Sequence[int]]:
    """Return the order of each piece of a shard. Each order gets a number of pieces in proportion to its share."""
    given = [0] * len(orders)
    for k in range(1, pieces + 1):
        behind = max(range(len(orders)), key=lambda i: shares[i] * k - given[i])
        given[behind] += 1
    return [order for order, count in zip(orders, given, strict=True) for _ in range(count)]


def busiest(axes: Sequence[Axis], orders: Sequence[Sequence[int]]) -> list[list[float]]:
    """Return the load of each axis for each order: the part of the array on the axis's wires, divided by ``wires``."""
    loads = []
    for order in orders:
        busy, part = [0.0] * len(axes), 1.0
        for k in reversed(order):  # the axis gathered last carries the whole array, earlier axes carry parts
            axis, before = axes[k], part / axes[k].size
            busy[k] = (part - before) / (axis.wires * (2 if axis.ring else 1))
            part = before
        loads.append(busy)
    return loads


def even(axes: Sequence[Axis]) -> tuple[list[tuple[int, ...]], list[float], float]:
    """Return all orders of the axes, the part of the array for each order, and the load of the busiest axis.

    A linear program chooses the parts that minimise the load of the busiest axis.
    """
    orders = list(itertools.permutations(range(len(axes))))
    loads, count = np.array(busiest(axes, orders)), len(axes)
    found = linprog(
        c=[*[0] * len(orders), 1], A_ub=np.c_[loads.T, -np.ones(count)], b_ub=np.zeros(count),
        A_eq=[[*[1] * len(orders), 0]], b_eq=[1],
    )  # fmt: skip
    assert found.success
    return orders, list(found.x[:-1]), found.fun


def backwards(steps: Sequence[Sequence[Move]], nodes: Iterable[Point], pieces: int) -> None:
    """Run a gather's steps backwards with sums: a reduce-scatter. Assert that each sum has one term from each node."""
    nodes = list(nodes)
    partial = {at: {(owner, p): Counter([at]) for owner in nodes for p in range(pieces)} for at in nodes}
    for step in reversed(steps):
        arriving = [(m, partial[m.target].pop(m.piece)) for m in step]  # each partial sum is sent only once
        for m, terms in arriving:
            partial[m.source][m.piece].update(terms)
    once = Counter(nodes)
    assert all(partial[at] == {(at, p): once for p in range(pieces)} for at in nodes)
