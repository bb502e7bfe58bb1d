"""The generated notebooks: they run in Jupyter, and their checks judge what the cells define."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
SOLVED = """
def matmul_local(a, b, *, mesh):
    return jax.shard_map(lambda a, b: a @ b, mesh=mesh, in_specs=(P("x", None), P(None, "y")), out_specs=P("x", "y"))(a, b)
"""

PROBE = """
import jax
from jax.sharding import PartitionSpec as P
{solved}
from grader.notebook import check, graded
check("c1_no_communication")
report = graded("c1", globals())
print([r.status for r in report.exercises[0].results if r.kind == "check"])
"""


STYLED = """
import numpy as np
from jax import set_mesh
mesh = jax.make_mesh((4, 2), ("x", "y"))
jax.set_mesh(mesh)
def matmul_local(a, b, *, mesh):
    with set_mesh(mesh):
        a = jax.lax.with_sharding_constraint(a, P("x", None))
        c = jax.shard_map(lambda a, b: a @ b, in_specs=(P("x", None), P(None, "y")), out_specs=P("x", "y"))(a, b)
    print(c.sharding, np.asarray(c)[0, 0])
    assert c.sharding.spec == P("x", "y")
    return c
"""
KEPT = """
assert jax.sharding.get_mesh() == mesh, "check changed the notebook's mesh"
"""


@pytest.mark.parametrize(("solved", "after"), [(SOLVED, ""), (STYLED, KEPT)], ids=["plain", "styled"])
def test_check_judges_the_callers_own_functions(solved: str, after: str) -> None:
    env = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(solved=solved) + after],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "['passed', 'passed', 'passed']"


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(ROOT.glob("exercises/*/*.ipynb")), ids=lambda p: p.stem)
@pytest.mark.filterwarnings("ignore")  # what Jupyter's own packages warn of is not ours
def test_every_notebook_runs_from_top_to_bottom(path: Path) -> None:
    """Fresh from the author, each check cell shows a report in which nothing is passed."""
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    checks = [c for c in book.cells if c.id.endswith("-check")]
    assert checks
    for cell in checks:
        (shown,) = cell.outputs
        assert "text/html" in shown["data"]
        assert "not written yet" in shown["data"]["text/html"]


EXPLAINED = """
import jax
from jax.sharding import PartitionSpec as P
{solved}
from grader.notebook import explain
explain("matmul_local", mesh={{"x": 2, "y": 4}}, on="v5e:2x4")
"""


def test_explain_tells_of_the_callers_own_functions() -> None:
    env = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", EXPLAINED.format(solved=SOLVED)],
        cwd=ROOT, env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = " ".join(done.stdout.split())
    assert "matmul_local on x=2, y=4" in told and "devices do not talk" in told
    assert "in time on v5e 2x4, x on slice axis 0, y on slice axis 1, profile ideal" in told


def test_explain_draws_the_timeline_below_the_cell(monkeypatch: pytest.MonkeyPatch, devices: int) -> None:
    import jax
    from jax.sharding import PartitionSpec as P

    from grader import notebook

    shown: list[str] = []
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(notebook, "in_notebook", lambda: True)
    monkeypatch.setattr(notebook, "show_html", shown.append)
    space: dict = {"jax": jax, "P": P}
    exec(SOLVED, space)
    notebook.explain("c1", space, mesh={"x": 8, "y": 1}, dims={"I": 4096, "J": 4096, "K": 4096}, on="v5e:2x4")
    (picture,) = shown
    assert picture.startswith("<figure") and picture.count("<svg") == 1 and "step " in picture
