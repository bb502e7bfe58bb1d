"""Try several submissions in one process, because starting a process and tracing its first program is slow.

Other submissions in the process may change a submission's result. A caller with a surprising result tries the
submission again, alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from grader.batch.grade import Grader
from grader.batch.running import collect
from grader.common.observation import Fault
from grader.intake.submission import Chunk, Source
from grader.judging.plan import Ask
from grader.judging.seen import Answered, Finding

# Kinds of faults that come from a submission itself. Other kinds may come from submissions that share the process.
OWN_FAULTS = {"raised", "untraceable", "refused", "compile", "missing"}
# This code runs between two submissions, to remove all names that the first one defined.
NOTHING_LEFT = (
    "for name in [name for name in globals() if not name.startswith('__')]:\n    del globals()[name]\ndel name\n"
)


def tried(grader: Grader, texts: Sequence[tuple[str, Sequence[Ask]]]) -> list[list[Answered]]:
    """Answer the asks of each submission as if it were alone, but in one process for all.

    Args:
        texts: (source code, asks) of each submission.

    Returns:
        Answers of each submission; an empty list if another submission may have changed its answers.
    """
    if not texts:
        return []
    chunks, ends = [], []
    for n, (text, _) in enumerate(texts):
        chunks += [Chunk(f"{n}.py", text), Chunk(f"after {n}", NOTHING_LEFT)]
        ends.append((str(n), f"{n}.py"))
    every = [[replace(ask, exercise=str(n)) for ask in asks] for n, (_, asks) in enumerate(texts)]
    in_order = sorted((ask for own in every for ask in own), key=lambda ask: ask.secret)
    with grader.workers() as workers:
        # Jobs must not wait for each other's programs, because few programs are equal.
        workers = workers.with_runner(grader.hosts.index(workers))
        answered, _ = collect(workers, Source("several", tuple(chunks), tuple(ends)), in_order)
    found = {a.ask: a.finding for a in answered}
    return [_own(asks, [found[ask] for ask in own]) for (_, asks), own in zip(texts, every, strict=True)]


def _own(asks: Sequence[Ask], findings: Sequence[Finding]) -> list[Answered]:
    """Return the answers of one submission; an empty list if a fault may come from another submission."""
    faults = {f.kind for f in findings if isinstance(f, Fault) and not f.ran}
    return [Answered(ask, f) for ask, f in zip(asks, findings, strict=True)] if faults <= OWN_FAULTS else []
