"""Measure the references of docs/wings/chip.md on the chips of this machine.

    python docs/measure_chips.py v5e:2x4                       # on the eight chips of a v5litepod-8, into docs/measured.json
    python docs/measure_chips.py v5e:2x4 --only f1_            # only references whose names contain this
    python docs/measure_chips.py v5e:2x4 --backend cpu --processes 2 --smaller 64 --out /tmp/tried.json   # a trial without a chip

Then ``python docs/make_chip_tables.py tables`` puts the times into the table. Without ``--smaller``, each program must
equal the shipped program (by SHA-256). The file has ``{NAME: {"seconds", "low", "high", "devices", "jax"}}``: the
median of seven rounds, and the bounds of their middle half. Times of other backends than a TPU never reach the table.
Earlier times of other references stay in the file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from statistics import quantiles
from typing import Any

from make_chip_tables import MEASURED, REFERENCES, ROOT, SLICES, TWO_DEVICES, Asked, ask_of, slices_of, source_of

from grader.batch.grade import Grader
from grader.batch.running import collect
from grader.common.files import write_atomic
from grader.course.config import CourseError
from grader.course.loading import Course, load_course
from grader.wings.chip.compiling import name_of, shipped_in
from grader.wings.devices.backends import backend_of
from grader.wings.devices.devices import RealDevices
from grader.wire.schedule import Schedule


def asked(course: Course, on: str, only: str, smaller: int) -> Iterator[Asked]:
    """Yield the references on one slice, with sizes divided by ``smaller``.

    Raises CourseError if the mesh axes that cut a dimension do not divide its new size.
    """
    for name, listed in REFERENCES.items():
        for sized in listed if on in slices_of(name) else ():
            dims = {dim: max(1, size // smaller) if size > 64 else size for dim, size in sized.dims.items()}
            ask = ask_of(course, course.exercise(name), replace(sized, dims=dims), on)
            if only in (title := name_of(ask, on)):
                yield Asked(title, source_of(course.exercise(name)), ask, on)


def measured(
    course: Course, programs: Sequence[Asked], devices: RealDevices, shipped: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the seconds of each call. Calls that could not be measured are named on standard error and left out."""
    devices.times, found = True, {}
    with Grader(course, "none", devices=devices) as grader:
        for one in programs:
            with grader.pool.lent() as workers:
                (answer,), _ = collect(workers, one.source, [one.ask])
            seen, fault, was = answer.finding.observation, answer.finding.fault, shipped.get(one.name)
            if seen is None or isinstance(seen.measured, str) or not seen.measured:
                why = seen.measured if seen else fault.message if fault else "no program"
                sys.stderr.write(f"not measured: {one.name}: {why or 'no time came back'}\n")
            elif isinstance(was, Schedule) and was.program != seen.program:
                sys.stderr.write(
                    f"not measured: {one.name}: another program than the one that was compiled for the table\n"
                )
            else:
                low, typical, high = quantiles(seen.measured, n=4)
                about = {"devices": devices.text, "jax": version("jax")}
                found[one.name] = {"seconds": typical, "low": low, "high": high} | about
                sys.stderr.write(f"{typical:.3e} s  {one.name}\n")
    return found


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        description="Times of the references of docs/wings/chip.md on chips that are here."
    )
    parser.add_argument("on", choices=(*SLICES, TWO_DEVICES), help="what is here; its name in the table")
    parser.add_argument("--backend", default="tpu")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", default="", help="measure only references whose names contain this text")
    parser.add_argument(
        "--smaller", type=int, default=1, help="sizes divided by this: to try the command, not for the table"
    )
    parser.add_argument("--out", type=Path, default=MEASURED)
    ask = parser.parse_args(words)
    if ask.smaller < 1 or ask.processes < 1:
        parser.error("--smaller and --processes are at least 1")
    if ask.out == MEASURED and (ask.smaller > 1 or ask.backend != "tpu"):
        parser.error("what is tried goes elsewhere than the table's times: name a file with --out")
    try:
        course = load_course(ROOT / "course.yaml")
        programs = list(asked(course, ask.on, ask.only, ask.smaller))
        if not programs:
            parser.error(f"no name has {ask.only!r} in it")
        before = json.loads(ask.out.read_text(encoding="utf-8")) if ask.out.exists() else {}
        limits = course.config.limits
        devices = RealDevices(backend_of(ask.backend), "none", limits, course.config.devices, ask.processes)
    except (CourseError, ValueError) as error:
        sys.exit(f"measure_chips: {error}")
    found = measured(course, programs, devices, shipped_in(course))
    if not found:
        sys.exit("measure_chips: nothing was measured, nothing is written")
    write_atomic(ask.out, json.dumps(dict(sorted((before | found).items())), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
