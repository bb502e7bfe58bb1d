"""The learners' file with results of the TPU compiler for each of the course's own programs.

For a learner's program that is identical to one of these programs, the grader can report a step time without a
compiler. For other programs, it reports none.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from grader.clock import Untimed, replayed
from grader.wire.frames import BadFrame
from grader.wire.schedule import Schedule, from_json

SHIPPED, PUBLISHED = "solutions/compiled.json.xz", "compiled.json"


@dataclass(frozen=True)
class Compiled:
    """The compiler's times, in picoseconds, and memory for one program on one slice (a group of connected chips).

    Attributes:
        step: total time.
        matmuls: time of matmuls.
        waiting: time when the core idles.
        held: bytes of a device's memory that the program occupies.
        by: versions of JAX and the compiler, such as "jax 0.10.2, libtpu 0.0.42.1".
        overlapped: for each kind of collective, the time that overlaps with compute, and the total time.
    """

    step: int
    matmuls: int
    waiting: int
    held: int
    by: str
    overlapped: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def published(root: Path, exercises: Mapping[str, Any]) -> str:
    """Return the text of the learners' file (``PUBLISHED``), or '' if the authors' file (``SHIPPED``) does not exist.

    The authors' file has the compiler's schedules. The learners' file has one line for each program. Raises ValueError
    if the authors' file cannot be read.
    """
    path = root / SHIPPED
    if not path.is_file():
        return ""
    try:
        data = json.loads(lzma.decompress(path.read_bytes()))
        found = dict(_all(data, exercises))
    except (OSError, lzma.LZMAError, BadFrame, AttributeError, TypeError, LookupError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}); make the file again: python docs/make_chip_tables.py"
        ) from None
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(asdict(one))}" for key, one in sorted(found.items()))
    return f"{{\n{lines}\n}}\n"


def _all(data: Mapping[str, Any], exercises: Mapping[str, Any]) -> Iterator[tuple[str, Compiled]]:
    for name, answer in data.items():
        title, _, on = name.rpartition(" on ")
        # Skip programs of misconceptions. Their titles, such as "waits as f1.ag ...", do not begin with an exercise's
        # name.
        if title.partition(".")[0] not in exercises or "schedule" not in answer:
            continue
        schedule = from_json(answer["schedule"])
        try:
            yield key_of(schedule.program, on), _of(schedule, on)
        except Untimed:
            continue


def _of(schedule: Schedule, on: str) -> Compiled:
    line = replayed(schedule, on)
    overlapped = {kind: (share.overlapped, share.overlapped + share.exposed) for kind, share in line.shares().items()}
    return Compiled(line.step, line.matmuls, line.idle, schedule.held, schedule.by, overlapped)


def key_of(program: str, on: str) -> str:
    """Return the key of a program's times and memory on the slice ``on``.

    ``program``: SHA-256 of the program's canonical form.
    """
    return f"{program} on {on}"


def compiled_of(root: Path, program: str, on: str) -> Compiled | None:
    """Return the published times and memory of a program on a slice; None if they are missing or damaged."""
    for path in (root / PUBLISHED, root / "exercises" / PUBLISHED):
        try:
            one = json.loads(path.read_text(encoding="utf-8"))[key_of(program, on)]
            overlapped = {str(kind): (int(under), int(every)) for kind, (under, every) in one["overlapped"].items()}
            numbers = {name: int(one[name]) for name in ("step", "matmuls", "waiting", "held")}
            return Compiled(**numbers, by=str(one["by"])[:100], overlapped=overlapped)
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            continue
    return None
