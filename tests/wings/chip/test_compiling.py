"""Available slices, the start of libtpu, and messages about missing parts. ``test_chips.py`` runs the compiler."""

from __future__ import annotations

import itertools
import re
import tomllib
from pathlib import Path

import pytest

from grader.batch.replies import compiled_of
from grader.clock import placed
from grader.common.observation import Fault
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.wings.chip.compiling import (
    INSTALL,
    OLDEST,
    UNTESTED,
    can_compile_for,
    code_of,
    compiler_problem,
    key_of,
    reading_digest,
    shipped_in,
    slice_of,
    topology_of,
)  # fmt: skip
from tests.commands import ROOT


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ("0.0.42", ""),
        ("0.0.42.1", ""),
        ("0.0.50", ""),
        ("", f"the TPU's compiler is not installed; {INSTALL}"),
        ("0.0.41", "libtpu 0.0.41 was not tested with this grader; pip install 'libtpu>=0.0.42,<0.0.51'"),
        ("0.0.51", "libtpu 0.0.51 was not tested with this grader; pip install 'libtpu>=0.0.42,<0.0.51'"),
        ("1.0", "libtpu 1.0 was not tested with this grader; pip install 'libtpu>=0.0.42,<0.0.51'"),
    ],
)
def test_a_version_that_was_not_tested_is_reported_with_what_to_install(version: str, problem: str) -> None:
    assert compiler_problem(version) == problem


def test_libtpu_bounds_are_those_of_the_tpu_extra() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["tpu"]
    (bounds,) = (one for one in extra if one.startswith("libtpu"))
    assert re.findall(r"\d+", bounds) == [str(n) for n in (*OLDEST, *UNTESTED)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("v5x:2x4", "unknown chip 'v5x'; did you mean 'v5p'? (known: v4p, v5p, v5e, v6e, 7x, v4)"),
        ("v5e:2x5", "v5e has no slice of 2x5; did you mean v5e:2x4? shardlings doctor lists the slices"),
        ("v5e:32x32", "v5e has no slice of 32x32"),
        ("v5e", "'v5e' is not a slice; write a chip and the sizes of its axes, such as \"v5e:2x4\""),
        ("v5e:", "is not a slice"),
        ("v5e:2x-4", "is not a slice"),
        ("v5e:2x4x99999999999", "is not a slice"),
        ("", "unknown chip ''"),
        (":2x4", "unknown chip ''"),
        ("H100:8", "H100 is a GPU: it has a switch, not a torus"),
        ("v3:2x2", "nothing is compiled for v3: the published clock rate of 940 MHz gives 1.23e14 FLOP/s"),
        ("tpu7x:2x2x3", "7x has no slice of 2x2x3; did you mean 7x:"),
        ("v5e:\uff12x4", "is not a slice"),
        ("v5e:0x8", "is not a slice"),
    ],
)
def test_an_unavailable_slice_is_reported_in_one_line(text: str, told: str) -> None:
    with pytest.raises(CourseError) as error:
        slice_of(text)
    assert told in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("chip", ["v4p", "v5p", "v5e", "v6e", "7x"])
def test_every_slice_that_is_listed_can_be_asked_for(chip: str) -> None:
    listed = can_compile_for(chip)
    assert len(listed) == len(set(listed)) > 5
    for text in listed[:60]:
        assert str(slice_of(text)) == text


def test_libtpu_gets_its_own_names_with_axes_of_size_1_last() -> None:
    told = topology_of(placed(slice_of("v4:1x2x2"), {"x": 4}))
    assert told["name"] == "v4:2x2x1" and told["options"] == {"chip_config_name": "megacore"}
    ring = [*told["chips"], told["chips"][0]]
    assert len({tuple(at) for at in told["chips"]}) == 4
    assert all(sum(abs(a - b) for a, b in zip(*pair, strict=True)) == 1 for pair in itertools.pairwise(ring))
    flat = topology_of(placed(slice_of("v5e:2x4"), {"x": 2, "y": 4}))
    assert flat["name"] == "v5e:2x4" and flat["options"] == {}
    assert flat["chips"] == [[x, y, 0] for x in range(2) for y in range(4)]
    two = topology_of(placed(slice_of("tpu7x:2x2x1"), {"x": 2, "y": 4}))
    assert two["name"] == "tpu7x:2x2x1" and sorted(two["chips"]) == [
        [x, y, 0, core] for x in range(2) for y in range(2) for core in range(2)
    ]
    assert topology_of(placed(slice_of("v5e:1x1"), {"x": 1}))["options"] == {"chips_per_host_bounds": (1, 1, 1)}


def test_a_cache_key_depends_on_program_and_settings() -> None:
    keys = {key_of(about, program) for about in ("a", "b") for program in (b"", b"x", b"y")}
    assert len(keys) == 6
    assert key_of("a", b"bc") != key_of("ab", b"c")


def test_the_digest_of_code_ignores_docstrings_and_comments() -> None:
    code = "class A:\n    x = 1\n\n    def f(self):\n        return 'text'\n"
    prose = '"""M."""\nclass A:\n    """C."""\n    x = 1  # why\n    def f(self):\n        """F."""\n        return "text"\n'
    assert code_of(code) == code_of(prose) != code_of(code.replace("'text'", "'other'"))
    assert code_of("def f():\n    'only prose'\n") == code_of("def f():\n    'other prose'\n")
    assert len(reading_digest()) == 64


def test_a_program_that_is_too_large_is_reported_in_gibibytes() -> None:
    fault = compiled_of({"too_large": [(21 * 2**30), 16 * 2**30]})
    assert isinstance(fault, Fault) and fault.kind == "memory" and fault.ran
    assert fault.message == "the program is too large for the chip: it needs 21 GiB of memory, and the chip has 16 GiB"
    huge = compiled_of({"too_large": [5120 * 2**30, int(15.75 * 2**30)]})
    assert isinstance(huge, Fault) and huge.message.endswith("it needs 5,120 GiB of memory, and the chip has 15.8 GiB")


def test_compiler_faults_are_the_learners_and_other_failures_the_graders() -> None:
    refused = compiled_of({"fault": {"kind": "broken", "message": "x", "line": 3, "file": "f.py"}})
    assert isinstance(refused, Fault) and refused.kind == "raised"
    ours = compiled_of({"broken": "KeyError"})
    assert isinstance(ours, Fault) and ours.kind == "broken" and "while it compiled" in ours.message


@pytest.mark.parametrize("content", [None, b"", b"rubbish", b"\xfd7zXZ\x00", b"{}"])
def test_damaged_shipped_data_are_ignored(tmp_path: Path, content: bytes | None) -> None:
    class At:
        root = tmp_path

    (tmp_path / "solutions").mkdir()
    if content is not None:
        (tmp_path / "solutions" / "compiled.json.xz").write_bytes(content)
    course: Course = At()  # type: ignore[assignment]
    assert shipped_in(course) == {}
