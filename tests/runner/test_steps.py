"""A program runs for several steps. Some results of a step are arguments of the next step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grader.runner import execution
from grader.wire.frames import unpack_array
from grader.wire.messages import RunnerAnswer
from tests.runner.test_program import code_of

MESH = {"x": 2}
MODULE = """
module {{
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> ({results}) {{
    %0 = stablehlo.add %a, %b : tensor<4xf32>
    %1 = stablehlo.slice %0 [0:2] : (tensor<4xf32>) -> tensor<2xf32>
    return {returned}
  }}
}}"""
ARGS = [{"name": n, "shape": [4], "dtype": "float32", "spec": {"spec": ["x"]}} for n in ("a['w']", "b")]


def ask(steps: int, fed: list[list[int]]) -> Any:
    return {"args": ARGS, "cotangents": [], "mesh": MESH, "files": [], "steps": steps, "fed": fed}


def program(results: str = "tensor<4xf32>", returned: str = "%0 : tensor<4xf32>") -> bytes:
    return code_of(MODULE.format(results=results, returned=returned))


def values(header: RunnerAnswer, blobs: list[bytes]) -> list[np.ndarray]:
    """Return the whole result of each run and step."""
    rest, found = iter(blobs), []
    assert "outputs" in header, header
    for (about,) in header["outputs"]:
        whole = np.zeros(about["shape"], about["dtype"])
        for ((low, high),) in about["slices"]:
            whole[low:high] = unpack_array({"shape": [high - low], "dtype": about["dtype"]}, next(rest))
        found.append(whole)
    return found


def test_a_result_is_the_argument_of_the_next_step_and_others_are_fresh() -> None:
    a, b = np.zeros(4, np.float32), [np.full(4, 10.0**n, np.float32) for n in range(3)]
    runs = [[a, *b], [a + 5, *b]]
    found = values(*execution.execute(ask(3, [[0, 0]]), program(), runs))
    assert [v[0] for v in found] == [1, 11, 111, 6, 16, 116]


def test_cached_results_depend_on_steps_and_fed_arguments() -> None:
    a = np.ones(4, np.float32)
    assert len(values(*execution.execute(ask(1, []), program(), [[a, a]]))) == 1
    once = values(*execution.execute(ask(2, [[0, 0], [0, 1]]), program(), [[a, a]]))
    other = values(*execution.execute(ask(2, [[0, 0]]), program(), [[a, a, a]]))
    assert [v[0] for v in once] == [2, 4] and [v[0] for v in other] == [2, 3]


@pytest.mark.parametrize(
    ("results", "returned", "fed", "told"),
    [
        (
            "tensor<2xf32>",
            "%1 : tensor<2xf32>",
            [[0, 0]],
            "returned float32[2] for a['w'], the next step takes float32[4]",
        ),
        ("tensor<4xf32>", "%0 : tensor<4xf32>", [[1, 1]], "the program does not return b for the next step"),
    ],
)
def test_results_that_cannot_be_fed_back_are_refused(results: str, returned: str, fed: list, told: str) -> None:
    a = np.ones(4, np.float32)
    header, _ = execution.execute(ask(2, fed), program(results, returned), [[a, a, a]])
    assert "fault" in header and header["fault"]["kind"] == "refused" and header["fault"]["message"] == told


def test_all_results_together_stay_below_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "MAX_OUTPUT", 40)
    a = np.full(4, 3, np.float32)
    assert "outputs" in execution.execute(ask(2, [[0, 0], [0, 1]]), program(), [[a, a]])[0]
    header, _ = execution.execute(ask(3, [[0, 0], [0, 1]]), program(), [[a, a]])
    assert "fault" in header and header["fault"]["message"].startswith("the results of all devices and runs together")
