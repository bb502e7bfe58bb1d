"""SECURITY.md names tests for each promise, these tests exist, and the document's numbers are those of the code."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from grader.authoring.leaks import IDIOM
from grader.batch.confined import SMALL
from grader.batch.runners import MOST_ASIDE
from grader.batch.workers import SLOW, SPARE, SPARE_EACH
from grader.judging.kinds import specs, tables
from grader.sandbox.allowance import backstop
from grader.sandbox.limits import Limits
from grader.wire import limits
from tests.attack import read_verdicts

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(\w+)::(\w+)`", TEXT)) - {("hostile", "test_x")})


@pytest.mark.parametrize(("module", "test"), NAMED)
def test_every_test_in_the_document_exists(module: str, test: str) -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob(f"test_{module}.py")]
    assert test in {node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_file_and_command_in_the_document_exists() -> None:
    paths = re.findall(r"`((?:grader|tests|bench|docs)/[\w./]+)`", TEXT)
    assert paths and [path for path in paths if not (ROOT / path).exists()] == []


def test_every_promise_names_a_test() -> None:
    section = TEXT.split("## Which test would fail")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20 and [row for row in rows if "::test_" not in row] == []


MIB = limits.MIB
NUMBERS = [
    f"it is ten times the limit of CPU time, plus {backstop(0):g} s",
    f"may wait for each other for {limits.STUCK_SECONDS:g} s",
    f"All answers of a submission's process together have at most {limits.MAX_ANSWER // MIB} MiB",
    f"holds at most {limits.MAX_SCRATCH // MIB} MiB and {limits.MAX_SCRATCH_FILES} entries, {Limits().file_mib} MiB per file",
    f"more than {limits.MAX_THREADS} threads",
    f"| {limits.READ_SECONDS:g} s of CPU time | one file |",
    f"| {limits.READ_SECONDS_TOTAL:g} s of CPU time | all files of one submission,",
    f"| {limits.MAX_READ // MIB} MiB | all files of a submission that the grader reads, together |",
    f"| {limits.MAX_READ // MIB} MiB | all `.zip` files of a submission together |",
    f"| {limits.MAX_CELLS:,} cells | a notebook |",
    f"| {limits.READ_MEMORY_MIB / 1024:g} GiB of address space | the process that parses |",
    f"a file of less than {SMALL:,} bytes",
    f"cuts or refuses texts of more than {limits.MAX_TEXT} characters",
    f"tables of at most {tables.LONGEST} characters and PartitionSpecs of at most {specs.LONGEST} characters",
    f"may be idle for only {limits.IDLE_SECONDS:g} s",
    f'takes longer than {SLOW:g} s, the output names the student ("sleeper: {SLOW:g} s so far")',
    f"at most {SPARE} additional submissions, or at most {min(SPARE, SPARE_EACH)} with `-j 1`",
    f"have waited for each other for {limits.WARN_SECONDS} s",
    f"at most {MOST_ASIDE} · N more processes",
    f"If all {MOST_ASIDE + 1} · N processes",
]


@pytest.mark.parametrize("phrase", NUMBERS)
def test_the_numbers_of_the_document_are_those_of_the_code(phrase: str) -> None:
    assert phrase in " ".join(TEXT.split())


def test_factors_that_the_document_writes_as_words() -> None:
    assert (backstop(1) - backstop(0), IDIOM) == (10, 3)
    assert "lines that occur in three or more exercises" in " ".join(TEXT.split())


def test_the_table_of_attacks_counts_the_corpus() -> None:
    verdicts = read_verdicts().values()
    every = Counter(v["class"] for v in verdicts)
    none = Counter(v["class"] for v in verdicts if v["control"].startswith("none"))
    rows = [f"| {kind} | {n} | {n - none[kind]} | {none[kind]} | 0 |" for kind, n in every.items()]
    total, without = every.total(), none.total()
    rows.append(f"| **all** | **{total}** | **{total - without}** | **{without}** | **0** |")
    assert "\n".join(rows) in TEXT
