"""The text and the JSON of ``explain``: facts about a program."""

from __future__ import annotations

import io
import itertools
import json

import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from rich.console import Console

from grader.clock import ASYNCHRONOUS, Timeline, timeline
from grader.common.intervals import UNKNOWN, Interval
from grader.common.observation import Fault
from grader.reports.explained import Explained, Placed, as_data
from grader.reports.explained_text import apart_text, other_profile, print_explained, profiles_text, waits
from tests.clock.programs import read
from tests.seen import MESH, collective

A = Placed("a", (24, 32), "float32", (None, "x"), ((24, 8),))
OUT = Placed("result", (24, 30), "bfloat16", None, ((24, 8), (24, 6)))
HOP = collective("permute", "x", bytes=600, sent=600, line=61, file="e4.py", shift=1)
CHIPS = {"v3": "v3:4x2", "v4p": "v4p:2x2x2", "v5e": "v5e:2x4", "v5p": "v5p:2x2x2", "v6e": "v6e:2x4", "7x": "7x:1x2x2"}


def made(*collectives: object, **more: object) -> Explained:
    about = {"memory": 3 << 20, "flops": Interval.of(130), "dot_flops": Interval.of(100)}
    return Explained("e4", "gather", MESH, {"I": 24}, [A], [OUT], collectives, {"x": Interval(0, 600)}, **about | more)  # type: ignore[arg-type]


def printed(explained: Explained, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_explained(explained, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_every_fact_has_a_line() -> None:
    lines = [line.strip() for line in printed(made(HOP, HOP, HOP)).splitlines()]
    assert lines == [
        "gather on x=4, y=2 with I=24",
        "takes      a: float32[24, 32] as P(None, 'x'), each device [24, 8]",
        "gives      result: bfloat16[24, 30] as no PartitionSpec, each device [24, 8] or [24, 6]",
        "collective 3 × permute over x to the next device: a device contributes 600 B and sends 600 B each time: e4.py:61",
        "sends      0 B to 600 B from a device over x",
        "memory     3 MiB of temporaries on a device (XLA's figure)",
        "FLOPs      100 in matmuls, 30 in other operations, on a device",
    ]


def test_with_a_timeline_the_memory_on_a_tpu_is_estimated() -> None:
    line = "stored     about 24 MiB on a TPU, which may keep operands of matmuls in bfloat16"
    assert line in printed(made(HOP, stored=24 << 20)) and "stored" not in printed(made(HOP))
    assert as_data(made(HOP, stored=24 << 20))["memory"]["stored"] == 24 << 20
    assert as_data(made(HOP))["memory"]["stored"] is None


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (collective("all_gather", "x", "y", line=3, file="cell 2"), "all_gather over x,y: a device contributes 64 B and sends 64 B: cell 2, line 3"),
        (collective("all_reduce", "x", by_compiler=True, partial=True), "all_reduce over some of the devices along x: a device contributes 64 B and sends 64 B: added by the compiler"),
        (collective("permute", "x", shift=-1, line=1, file="a.py"), "permute over x to the previous device: a device contributes 64 B and sends 64 B: a.py:1"),
        (collective("permute", "x", shift=3, line=1, file="a.py"), "permute over x by +3: a device contributes 64 B and sends 64 B: a.py:1"),
        (collective("permute", "x", count=None, line=1, file="a.py"), "0 or more × permute over x: a device contributes 64 B and sends 64 B each time: a.py:1"),
    ],
)  # fmt: skip
def test_a_collective_in_words(one: object, text: str) -> None:
    assert f"collective {text}" in printed(made(one))


def test_no_line_is_wider_than_a_narrow_terminal() -> None:
    text = printed(made(HOP), 40)
    assert all(len(line.rstrip()) <= 40 for line in text.splitlines())
    assert "e4.py:61" in text.replace("\n", "")


def test_an_untraceable_program_is_shown_with_its_fault() -> None:
    fault = Fault("raised", "TypeError: no", 7, "e4.py")
    assert printed(Explained("e4", "gather", MESH, {}, fault=fault)) == (
        "gather on x=4, y=2\n  e4.py:7: TypeError: no\n"
    )


def test_markup_in_learners_text_is_not_interpreted() -> None:
    hostile = collective("permute", "x", line=1, file="[red]\x1b[31ma.py")
    assert "\x1b" not in printed(made(hostile)) and "[red]a.py:1" in printed(made(hostile))


def test_json_has_every_collective_and_null_where_there_is_no_bound() -> None:
    data = json.loads(json.dumps(as_data(made(HOP, collective("permute", "x", count=None), flops=UNKNOWN))))
    first, second = data["collectives"]
    assert first == {
        "kind": "permute", "axes": ["x"], "bytes": 600, "sent": 600, "rounds": 1, "count": 1, "line": 61, "file": "e4.py",
        "by_compiler": False, "shift": 1, "partial": False,
    }  # fmt: skip
    assert second["rounds"] == {"least": 0, "most": None}
    assert data["traffic"] == {"x": {"least": 0, "most": 600}}
    assert data["flops"] == {"matmuls": 100, "others": {"least": 0, "most": None}}
    assert data["results"][0] == {
        "name": "result", "shape": [24, 30], "dtype": "bfloat16", "spec": "no PartitionSpec", "local": [[24, 8], [24, 6]],
    }  # fmt: skip


def test_json_of_an_untraceable_program_has_only_the_fault() -> None:
    data = as_data(Explained("e4", "gather", MESH, {}, fault=Fault("raised", "no", 7, "e4.py")))
    assert data["fault"]["line"] == 7 and "collectives" not in data


def three_kinds(a, w):
    """Compute a matmul, a permute, a gather and a sum. The matmul does not need the other results."""
    sent = lax.ppermute(a[:64], "x", [(i, (i + 1) % 8) for i in range(8)])
    return a @ w, sent, lax.all_gather(a[:8], "x"), lax.psum(w[:64], "x")


def without_collectives(a, w):
    return a @ w, jnp.tanh(w)


def of(local, on: str, profile: str = "ideal") -> Timeline:
    shapes = [((8 * 1024, 2048), P("x", None)), ((2048, 2048), P())]
    return timeline(read(local, shapes, P("x")), on, profile=profile)


@pytest.mark.parametrize("chip", CHIPS)
def test_a_chips_profile_waits_for_the_kinds_that_its_compiler_does_not_overlap(chip: str) -> None:
    own = of(three_kinds, CHIPS[chip], chip)
    assert waits(own) == [kind for kind in ("permute", "all_gather", "all_reduce") if kind not in ASYNCHRONOUS[chip]]
    assert waits(of(three_kinds, CHIPS[chip])) == []


def test_the_text_on_two_profiles_does_not_depend_on_their_order() -> None:
    ideal, own = of(three_kinds, "v5p:2x2x2"), of(three_kinds, "v5p:2x2x2", "v5p")
    text = profiles_text(ideal, own)
    assert text == (
        "the step takes 19.112 us if every collective can overlap (as checks assume), "
        "and 28.112 us on v5p, where the core waits for all_gather and all_reduce"
    )
    assert profiles_text(own, ideal) == text


def test_equal_steps_give_no_text() -> None:
    for local in (without_collectives, lambda a, w: (lax.psum(w, "x"),) * 2):
        assert profiles_text(of(local, "v5e:2x4"), of(local, "v5e:2x4", "v5e")) == ""


@pytest.mark.parametrize(("profile", "other"), [("ideal", "v5e"), ("v5e", "ideal"), ("v4p", "ideal")])
def test_each_profile_is_compared_with_the_right_other_one(profile: str, other: str) -> None:
    assert other_profile(of(three_kinds, "v5e:2x4", profile)) == other


@pytest.mark.parametrize(
    ("matmuls", "other", "waiting", "text"),
    [
        (2, 0, 0, "matmuls take "),
        (0, 2, 1, "other kernels take "),
        (1, 0, 2, "the core waits for "),
        (-2, 1, 0, "matmuls take "),
        (0, 0, -2, "the core waits for "),
    ],
)
def test_the_text_names_the_part_that_differs_most_in_the_direction_of_the_step(
    matmuls: int, other: int, waiting: int, text: str
) -> None:
    """Change the clock's times of matmuls, other kernels and waiting by these microseconds."""
    clock = of(three_kinds, "v5p:2x2x2", "v5p")
    more = [10**6 * n for n in (matmuls, other, waiting)]
    compiled = clock.step + sum(more), clock.matmuls + more[0], clock.idle + more[2]
    found = apart_text(compiled, clock)
    assert found.startswith(f"most of the difference in step time: {text}") and found.endswith(" by the clock")


def test_equal_steps_have_no_part_that_differs() -> None:
    clock = of(three_kinds, "v5e:2x4")
    for moved in (0, 10**6):
        assert apart_text((clock.step, clock.matmuls - moved, clock.idle + moved), clock) == ""


def test_profiles_differ_in_nothing_but_what_the_core_waits_for() -> None:
    lines = [of(three_kinds, "v5e:2x4", profile) for profile in ASYNCHRONOUS]
    for one, other in itertools.combinations(lines, 2):
        assert (one.busy, one.matmuls, one.flops) == (other.busy, other.matmuls, other.flops)
        assert [(c.kind, c.each) for c in one.collectives] == [(c.kind, c.each) for c in other.collectives]
        if set(waits(one)) <= set(waits(other)):
            assert one.step <= other.step
