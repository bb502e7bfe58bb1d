"""Several texts tried in one process: to start one, and to trace a first program in it, costs more than most texts do.

What a text comes to may have to do with its neighbours: whoever is surprised by it asks the text once more, alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from grader.batch.grade import Grader
from grader.common.observation import Fault
from grader.intake.submission import Chunk, Source
from grader.judging.plan import Ask
from grader.judging.seen import Answered

# Faults of a text itself; others may come of what another one did to the process that they share.
OWN_FAULTS = {"raised", "untraceable", "refused", "compile", "missing"}
# Between two texts: nothing is left of the first.
NOTHING_LEFT = (
    "for name in [name for name in globals() if not name.startswith('__')]:\n    del globals()[name]\ndel name\n"
)


def tried(grader: Grader, texts: Sequence[tuple[str, Sequence[Ask]]]) -> list[list[Answered]]:
    """What is asked of each of these texts, answered as if it were alone; nothing where that cannot be told."""
    if not texts:
        return []
    chunks, ends = [], []
    for n, (text, _) in enumerate(texts):
        chunks += [Chunk(f"{n}.py", text), Chunk(f"after {n}", NOTHING_LEFT)]
        ends.append((str(n), f"{n}.py"))
    every = [[replace(ask, exercise=str(n)) for ask in asks] for n, (_, asks) in enumerate(texts)]
    in_order = sorted((ask for own in every for ask in own), key=lambda ask: ask.secret)
    with grader.workers() as workers:
        # Jobs must not wait for each other's programs, of which few are equal.
        workers = workers.with_runner(grader.hosts.index(workers))
        answered, _ = workers.collect(Source("several", tuple(chunks), tuple(ends)), in_order)
    found = {a.ask: a.finding for a in answered}
    faults = [{f.kind for ask in own if isinstance(f := found[ask], Fault) and not f.ran} for own in every]
    return [
        [Answered(ask, found[mine]) for ask, mine in zip(asks, own, strict=True)] if kinds <= OWN_FAULTS else []
        for (_, asks), own, kinds in zip(texts, every, faults, strict=True)
    ]
