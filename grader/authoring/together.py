"""Try several submissions in one process, because starting a process and tracing its first program is slow.

Other submissions in the process may change a submission's result. If a result is not the expected one, the caller must
run this submission again, alone in a process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from grader.batch.grade import Grader
from grader.batch.running import collect
from grader.intake.submission import Chunk, Source
from grader.judging.plan import Ask
from grader.judging.seen import Answered, Finding

AT_ONCE = 12
"""The largest number of submissions in a batch."""
# Kinds of faults that only the submission itself can cause. Faults of other kinds may come from another submission in
# the process.
OWN_FAULTS = {"raised", "untraceable", "refused", "compile", "missing"}
# This code runs between two submissions, to remove all names that the first submission defined.
NOTHING_LEFT = (
    "for name in [name for name in globals() if not name.startswith('__')]:\n    del globals()[name]\ndel name\n"
)


def tried(grader: Grader, texts: Sequence[tuple[str, Sequence[Ask]]]) -> list[list[Answered]]:
    """Run several submissions in one process, and return each submission's answers to its requests.

    A submission's list of answers is empty if another submission may have changed the answers.

    Args:
        texts: (source code, requests) of each submission. A request is a call of a task with given inputs.
    """
    if not texts:
        return []
    chunks, ends = [], []
    for n, (text, _) in enumerate(texts):
        chunks += [Chunk(f"{n}.py", text), Chunk(f"after {n}", NOTHING_LEFT)]
        ends.append((str(n), f"{n}.py"))
    every = [[replace(ask, exercise=str(n)) for ask in asks] for n, (_, asks) in enumerate(texts)]
    in_order = sorted((ask for own in every for ask in own), key=lambda ask: ask.hidden_inputs)
    with grader.workers() as workers:
        # Send all programs to one runner, so that no job waits for the programs of another job.
        workers = workers.with_runner(grader.pool.sets.index(workers))
        answered, _ = collect(workers, Source("several", tuple(chunks), tuple(ends)), in_order)
    found = {a.ask: a.finding for a in answered}
    return [_own(asks, [found[ask] for ask in own]) for (_, asks), own in zip(texts, every, strict=True)]


def each_tried(grader: Grader, texts: Sequence[tuple[str, Sequence[Ask]]]) -> Iterator[list[Answered]]:
    """Run submissions in batches, and yield each submission's answers to its requests. Arguments: see ``tried``.

    If other submissions may have changed an answer, the submission runs again, alone in a process. A submission
    that ends its own process has an empty list of answers.
    """
    for start in range(0, len(texts), AT_ONCE):
        some = texts[start : start + AT_ONCE]
        for text, found in zip(some, tried(grader, some), strict=True):
            yield found or tried(grader, [text])[0]


def _own(asks: Sequence[Ask], findings: Sequence[Finding]) -> list[Answered]:
    """Return one submission's answers; [] if an answer is a fault that another submission may have caused."""
    faults = {f.fault.kind for f in findings if f.fault and not f.fault.ran}
    return [Answered(ask, f) for ask, f in zip(asks, findings, strict=True)] if faults <= OWN_FAULTS else []
