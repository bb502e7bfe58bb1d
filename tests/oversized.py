"""Submissions near every limit of size, depth and number.

``python -m tests.oversized --minutes N --seed S`` draws and grades many submissions. Each contains a right function,
so that grading uses every stage. No report may have pending points.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from grader.batch.confined import parsing
from grader.batch.grade import Grader
from grader.common.result import Report
from grader.intake.parsers import Parsers
from grader.intake.reading import read
from grader.intake.submission import Submission
from grader.sandbox.tiers import best_tier
from grader.wire.limits import MAX_CELLS, MAX_FILE
from tests.made_up import made_up

NAME = "x1_gather"
RIGHT = """\
import jax
from jax.sharding import PartitionSpec as P
def gather(a, *, mesh):
    local = lambda a: jax.lax.all_gather(a, "x", axis=0, tiled=True)
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)
"""
LETTERS = [
    "a",
    "é",
    "漢",
    "\U0001d54f",
    "\x01",
    "\x7f",
    "\u2028",
    '"',
    "\\",
    "\\ud800",
    "\0",
    "\r",
    "\ufeff",
    "\x1b[2J",
]
REPEATED = ["a\n", "a=1\n", "1+", "-", "not ", "(", "[", "{", "((", "a.", "a(", "lambda:", "f'{", "'''", "@a\n", "if a:\n ",
            "\\\n", "%time ", "!", "a?\n", "x = [", "9", "b'", "global a\n", "leaderboard_name = 'x'\n", "check('x1')\n",
            "def f(): pass\n", "gather_time = 1\n", "\t", " ", "\n", ";", "\u00e9=1\n", "class a: pass\n", "*a,"]  # fmt: skip


def some(rng: random.Random, most: int) -> int:
    """Draw a number from 0 to ``most`` + 1, often near ``most``."""
    return rng.choice([most, most - 1, most + 1, most // 2, int(most ** rng.random()), 1, 0])


def comment(rng: random.Random) -> str:
    letter = rng.choice(LETTERS)
    return "#" + letter * (some(rng, MAX_FILE) // len(letter.encode("utf-8")))


def text(rng: random.Random) -> str:
    letter = rng.choice(LETTERS)
    return f'text = "{letter * (some(rng, MAX_FILE) // len(letter.encode("utf-8")))}"'


def repeated(rng: random.Random) -> str:
    piece = rng.choice(REPEATED)
    return piece * (some(rng, rng.choice([200, 6_000, 100_000, MAX_FILE])) // len(piece))


def nested(rng: random.Random) -> str:
    opens, closes = rng.choice([("(", ")"), ("[", "]"), ("{1:", "}"), ("f(", ")"), ("(lambda: ", ")"), ("[*", "]")])
    depth = some(rng, rng.choice([90, 199, 1_000, 100_000]))
    return f"n = {opens * depth}0{closes * depth}"


def number(rng: random.Random) -> str:
    return f"gather_time = {rng.choice(['', '0x', '-', '1e', '1.'])}{'9' * some(rng, rng.choice([4_299, 100_000, MAX_FILE]))}"


def answer(rng: random.Random) -> str:
    piece = rng.choice(["'9' * {}", "[0] * {}", "'é' * {}", "'[' * {}", "10 ** {}", "'\\x00' * {}", "'\\ud800' * {}"])
    return f"gather_time = {piece.format(some(rng, rng.choice([4_000, 100_000, 2_000_000])))}"


PIECES: list[Callable[[random.Random], str]] = [comment, text, repeated, nested, number, answer]


def code(rng: random.Random) -> str:
    """Draw Python code with a right function before or after it, usually cut to the limit of one file."""
    parts = [rng.choice(PIECES)(rng) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    parts.insert(rng.choice([0, len(parts)]), RIGHT)
    whole = "\n".join(parts)
    return whole if rng.random() < 0.1 else whole[: MAX_FILE // 4 * rng.choice([1, 2, 4])]


def notebook(rng: random.Random) -> str:
    """Draw a notebook with many cells or large cells, or JSON that is not a notebook."""
    kind = rng.choice(["cells", "cells", "large", "deep", "outputs", "odd"])
    cell = {"cell_type": "code", "source": RIGHT, "metadata": {}, "outputs": []}
    cells: list[object] = [cell]
    if kind == "cells":
        piece = rng.choice(REPEATED)
        cells += [cell | {"source": piece}] * some(rng, rng.choice([100, MAX_CELLS, 100_000]))
    elif kind == "large":
        cells += [cell | {"source": rng.choice(PIECES)(rng)} for _ in range(rng.randrange(4))]
    elif kind == "outputs":
        cells += [cell | {"outputs": [{"text": rng.choice(LETTERS) * some(rng, 9_000_000)}]}]
    elif kind == "odd":
        cells += rng.choice(
            [[None], [[]] * 50_000, [{"cell_type": "code", "source": ["a\n"] * 100_000}], [{"source": 1}]]
        )
    whole = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    depth = some(rng, rng.choice([900, 100_000, 3_000_000]))
    return whole if kind != "deep" else whole[:-1] + f', "x": {"[" * depth}{"]" * depth}}}'


def hand_in(rng: random.Random, folder: Path) -> str:
    """Write a submission of a random kind, and return the kind."""
    kind = rng.choice(["code", "code", "code", "notebook", "notebook", "zip", "many files"])
    if kind == "code":
        (folder / f"{NAME}.py").write_text(code(rng), encoding="utf-8", errors="replace")
    elif kind == "notebook":
        (folder / f"{NAME}.ipynb").write_text(notebook(rng), encoding="utf-8", errors="replace")
    elif kind == "many files":
        for i in range(some(rng, 600)):
            (folder / f"{NAME} ({i}).py").write_text(RIGHT + "a = 1\n" * some(rng, 2_000))
    else:
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
            for i in range(some(rng, rng.choice([3, 600, 12_000]))):
                archive.writestr(f"{i}é/{NAME}.py", RIGHT if i else code(rng).encode("utf-8", "replace"))
        (folder / "work.zip").write_bytes(data.getvalue())
    return kind


def tried(grader: Grader, parsers: Parsers, seed: str) -> tuple[str, Submission, Report]:
    """Draw a submission from this seed, and grade it."""
    with tempfile.TemporaryDirectory() as folder:
        kind = hand_in(random.Random(seed), Path(folder))
        found = read(Path(folder), "ada", grader.course.module_of, frozenset(), parsers)
        return kind, found, grader.grade(found, [NAME])


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--minutes", type=float, default=1)
    asked.add_argument("--seed", default="1")
    options = asked.parse_args()
    until, tries, bad = time.monotonic() + 60 * options.minutes, 0, 0
    folder = tempfile.TemporaryDirectory()
    with folder, parsing() as parsers, Grader(made_up(Path(folder.name)), best_tier()) as grader:
        while time.monotonic() < until:
            seed, began = f"{options.seed}/{tries}", time.monotonic()
            kind, found, report = tried(grader, parsers, seed)
            took = time.monotonic() - began
            if report.broken or report.pending:
                bad += 1
                print(f"PENDING {seed} {kind}: {[r.reason for e in report.exercises for r in e.results]}", flush=True)
            if took > 30:
                print(f"slow {seed} {kind}: {took:.0f} s; {[str(n)[:150] for n in found.notes]}", flush=True)
            tries += 1
    print(f"{tries} submissions, {bad} pending")


if __name__ == "__main__":
    main()
