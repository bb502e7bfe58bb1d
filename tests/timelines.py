"""Made-up timelines, for tests of code that draws timelines."""

from __future__ import annotations

from grader.clock.timeline import COMPUTE, CollectiveTime, LiveMemory, Loop, Span, Timeline

US = 1_000_000


def span(lane: str, kind: str, start: float, end: float, number: int = 0, **more: object) -> Span:
    """Return a span from ``start`` to ``end`` (in microseconds)."""
    what = {"matmul": "dot_general", "kernel": "add"}.get(kind, f"{kind} over {lane[:-1]}")
    return Span(lane, what, kind, round(start * US), round(end * US), number, **more)  # type: ignore[arg-type]


def timeline(*spans: Span, step: float | None = None, loops: tuple[Loop, ...] = (), **more: object) -> Timeline:
    last = max((s.end for s in spans), default=0) if step is None else round(step * US)
    busy = sum(s.duration for s in spans if s.lane == COMPUTE)
    matmuls = sum(s.duration for s in spans if s.kind == "matmul")
    collectives = {s.number: s for s in spans if s.lane != COMPUTE}
    found = tuple(
        CollectiveTime(n, s.kind, ("x",), s.bytes, 1, s.duration, s.duration // 4, s.duration - s.duration // 4)
        for n, s in collectives.items()
    )
    about = {
        "chip": "v5e",
        "shape": (2, 4),
        "axes": {"x": (0, 1)},
        "profile": "ideal",
        "critical": (0,),
        "flops": 0,
        "matmuls": matmuls,
    }
    memory = LiveMemory(3 << 20, 1 << 20, 1 << 20, 1 << 20, "dot_general, line 14", 14)
    given = {"collectives": found, **about, **more}
    return Timeline(step=last, busy=busy, spans=spans, loops=loops, memory=memory, **given)  # type: ignore[arg-type]


def ring(hops: int = 7, matmul: float = 5.4, hop: float = 41.9) -> Timeline:
    """Return the timeline of a collective matmul on a ring: each permute of a block overlaps a matmul."""
    spans = []
    for k in range(hops + 1):
        start = k * max(matmul, hop)
        spans.append(span(COMPUTE, "matmul", start, start + matmul, 2 * k, line=14, file="e9.py", flops=1 << 30))
        if k < hops:
            spans.append(span("x+", "permute", start, start + hop, 2 * k + 1, line=13, file="e9.py", bytes=1 << 20))
    return timeline(*spans)


def looped(rounds: int = 8, matmul: float = 10, hop: float = 30) -> Timeline:
    """Return the timeline of a loop without overlap: each round has a permute, then a matmul.

    The timeline draws only the rounds 1, 2 and the last.
    """
    each, spans = matmul + hop, []
    for k in sorted({1, 2, rounds}):
        start = 5 + (k - 1) * each
        spans.append(span("x+", "permute", start, start + hop, 1, line=20, file="e9.py", rounds=((k, rounds),)))
        spans.append(
            span(COMPUTE, "matmul", start + hop, start + each, 2, line=21, file="e9.py", rounds=((k, rounds),))
        )
    end = 5 + rounds * each
    loop = Loop(5 * US, round(end * US), rounds, round(each * US), 19, "e9.py")
    head = span(COMPUTE, "kernel", 0, 5, 0, line=18, file="e9.py")
    return timeline(head, *spans, step=end, loops=(loop,))
