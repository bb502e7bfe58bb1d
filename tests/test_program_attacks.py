"""Programs that would earn more than they do: each beside its honest control, graded on the real exercise.

An attack is the reference with one change. What it loses is named check by check; the control, the reference, loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader.batch.grade import Grader
from grader.common.result import ExerciseReport
from grader.course.answers import answers
from grader.course.finding import find_course
from grader.course.reference import reference_source
from grader.intake.submission import Chunk, Source, Submission

ROOT = Path(__file__).resolve().parent.parent
OTHER = "the program that is timed is not the one whose values are judged"


@dataclass(frozen=True)
class Attack:
    """A change of an exercise's reference; ``loses`` are the checks that fail or are not tried, ``why`` part of the first reason."""

    exercise: str
    was: str
    becomes: str
    loses: str
    why: str


GATHERED_AT_ONCE = """
        whole = jax.lax.all_gather(ws, "dp", axis=1, tiled=True)
        right = True
        for i in range(1, len(ws)):
            one = jax.lax.stop_gradient(x[0, i])
            right &= jax.lax.all_gather(one, "dp")[jax.lax.axis_index("dp")] == one
        for w in whole:
            x = jnp.tanh(x @ w)
        return jax.lax.psum(jnp.where(right, jnp.sum(x**2) / rows, 0), "dp")
"""
F1 = "ag_same ag_order ag_hidden ag_memory"
F2 = "rs_same rs_order rs_hidden rs_memory"
ATTACKS = {
    "F1, products of 1 by 1 for large arrays": Attack(
        "f1_ag_matmul", "c += a @ rows[(me - hop) % n]",
        "if a.shape[0] < 1000:\n"
        "            c += a @ rows[(me - hop) % n]\n"
        "        else:\n"
        "            c += a[:1, :1] @ rows[(me - hop) % n][:1, :1]",
        F1, "slice of bfloat16[8192, 2048] is timed",
    ),
    "F1, shards of 1 by 1 go round": Attack(
        "f1_ag_matmul", 'jax.lax.ppermute(a, "y", ring)',
        '(jax.lax.ppermute(a, "y", ring) if a.shape[0] < 1000 else a + jax.lax.ppermute(a[:1, :1], "y", ring))',
        F1, "is timed, collective_permute of bfloat16[11, 13] is judged",
    ),
    "F2, operands of eight bits for large arrays": Attack(
        "f2_matmul_rs", "    total = t @ columns",
        '    if t.shape[0] > 1000:\n        t, columns = t.astype("int8"), columns.astype("int8")\n    total = t @ columns',
        F2, "is timed, ",
    ),
    "F3, products of another round's rows": Attack(
        "f3_both_ways", "c_upper += upper @ rows", "c_upper += (upper if a.shape[0] < 1000 else a[:half]) @ rows",
        "both_ag_same both_ag_fast", "slice of float32[8192, 4096] is timed, constant is judged",
    ),
    "H2, gradients of one layer stand for all": Attack(
        "h2_buckets", "    grads = jax.grad(loss)(ws)",
        "    grads = jax.grad(loss)(ws) if len(x) < 1000 else [jnp.full(w.shape, jnp.sum(x @ ws[0])) for w in ws]",
        "bucketed_overlap", "is timed, ",
    ),
    "H4, all layers at once, and gathers of one number that must be right": Attack(
        "h4_fsdp", "    def local(ws, x):\n", f"    def local(ws, x):{GATHERED_AT_ONCE}\n",
        "fsdp_forward fsdp_backward fsdp_memory fsdp_ahead", "this all_gather takes 9600 bytes of each device, of one layer it takes 1600",
    ),
    "M1, queries and keys of one number for large arrays": Attack(
        "m1_block", 'scores = jnp.einsum("bthd,bshd->bhts", q, k)',
        'd = q.shape[-1] if q.shape[1] < 1000 else 1\n    scores = jnp.einsum("bthd,bshd->bhts", q[..., :d], k[..., :d])',
        "step_same step_memory step_time", "slice of bfloat16[3, 4096, 25, 128] is timed",
    ),
    "M1, the first ten rows of scores and the last ten are weighed": Attack(
        "m1_block", "    weights = jax.nn.softmax(jnp.where(there <= here[:, None], scores, -jnp.inf))\n",
        "    masked, t = jnp.where(there <= here[:, None], scores, -jnp.inf), q.shape[1]\n"
        "    if t < 11:\n"
        "        weights = jax.nn.softmax(masked)\n"
        "    else:\n"
        "        first, last = jax.nn.softmax(masked[:, :, :10]), jax.nn.softmax(masked[:, :, t - 10:])[:, :, 1:]\n"
        "        first = jnp.pad(first, ((0, 0), (0, 0), (0, t - 10), (0, 0)))\n"
        "        last = jnp.pad(last, ((0, 0), (0, 0), (t - 9, 0), (0, 0)))\n"
        "        weights = jnp.where(jnp.arange(t)[:, None] < 10, first, last)\n",
        "step_same step_memory step_time", "parts of fixed size, such as of this slice, make up bfloat16[3, 13, 11, 22]",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    with Grader(find_course(ROOT), "none") as made:
        yield made


def graded(grader: Grader, exercise: str, text: str) -> ExerciseReport:
    source = Source(f"{exercise}.py", (Chunk(f"{exercise}.py", text),))
    return grader.grade(Submission("me", {exercise: source}, (), "digest"), [exercise]).exercises[0]


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_loses_what_it_did_not_do_and_its_control_nothing(name: str, grader: Grader) -> None:
    attack = ATTACKS[name]
    exercise = grader.course.exercise(attack.exercise)
    honest = reference_source(exercise, answers(grader.course, exercise, "me"))
    assert attack.was in honest
    assert [r.name for r in graded(grader, attack.exercise, honest).results if r.status != "passed"] == []
    report = graded(grader, attack.exercise, honest.replace(attack.was, attack.becomes))
    lost = [r for r in report.results if r.status in ("failed", "blocked")]
    assert [r.name for r in lost] == attack.loses.split()
    assert lost[0].status == "failed" and attack.why in lost[0].reason
    assert report.pending == 0
    assert report.earned == report.points - sum(r.points for r in lost)
    assert any(e.step is None for e in report.evidence if e.task == exercise.checks[lost[0].name].tasks[0].name)
