"""The generated notebooks run in Jupyter, and their checks judge the functions defined in their cells."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from grader.course.loading import load_course
from grader.course.notebooks import SETUP, setup
from grader.reports.pages import player
from tests.browser import CHROMIUM, chromium
from tests.made_up import made_up
from tests.sampled import sampled

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


@pytest.mark.parametrize(("solved", "after"), sampled(1, [(SOLVED, ""), (STYLED, KEPT)]), ids=["plain", "styled"])
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
    judged = ast.literal_eval(done.stdout.splitlines()[-1])
    exercise = load_course(ROOT / "course.yaml").exercise("c1_no_communication")
    assert judged == ["passed"] * len(exercise.checks) and not all(c.public for c in exercise.checks.values())


NOTEBOOKS = [
    pytest.param(path, id=path.stem, marks=() if path.stem == "07_autodiff" else pytest.mark.slow)
    for path in sorted(ROOT.glob("exercises/*/*.ipynb"))
]


@pytest.mark.parametrize("path", NOTEBOOKS)
@pytest.mark.filterwarnings("ignore")  # warnings of Jupyter's own packages
def test_every_notebook_runs_from_top_to_bottom(path: Path) -> None:
    """Run an unsolved notebook. It installs nothing and draws its examples. In its reports no check passes."""
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    cells = {c.id: c for c in book.cells}
    setup, hand = (cells[f"{path.stem}-{name}"].outputs for name in ("setup", "by-hand"))
    assert [o["text"] for o in setup] == ["devices for the checks: 8 simulated\n"]
    assert [shown_in(o).count("<svg") for o in hand] == [0, 0, 1, 1] and "CPU" in shown_in(hand[1])
    checks = [c for c in book.cells if c.id.endswith("-check")]
    assert checks
    for cell in checks:
        (shown,) = cell.outputs
        assert "not written yet" in shown_in(shown)


def shown_in(output: nbformat.NotebookNode) -> str:
    """Return the output of a cell, as HTML if there is any."""
    return output["text"] if output["output_type"] == "stream" else output["data"]["text/html"]


def run_setup(
    folder: Path, before: str = "", after: str = "", course: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    """Run a notebook's first cell, between ``before`` and ``after``. PYTHONPATH="" hides the grader's package."""
    text = f"{before}\n{SETUP.format(devices=8, course=course)}\n{after}"
    return subprocess.run(
        [sys.executable, "-c", text], cwd=folder, env=os.environ | env, capture_output=True, text=True, check=False
    )


MISSING = """
import builtins, subprocess, sys
own = builtins.__import__
def imported(name, *rest):
    if name.startswith("grader"):
        raise ModuleNotFoundError(name)
    return own(name, *rest)
builtins.__import__ = imported
subprocess.run = lambda words, **options: print("ran", *words[1:]) or subprocess.CompletedProcess(words, 1)
"""


def test_the_first_cell_installs_nothing_by_name_and_says_how(tmp_path: Path) -> None:
    done = run_setup(tmp_path, MISSING)
    assert "ran" not in done.stdout, "an index is asked for no name: whoever takes it there would run as the learner"
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.strip() == (
        "the course's checks cannot be installed here. Open this notebook in the folder that you were given, or "
        "put that folder's tool/ beside the notebook. Then run this cell again"
    )


def test_the_tool_beside_a_lone_notebook_is_a_folder_and_no_name_of_a_package(tmp_path: Path) -> None:
    """The cell must run ``pip install ./tool``, because ``pip install tool`` would install a package from an index."""
    (tmp_path / "tool" / "grader").mkdir(parents=True)
    (tmp_path / "tool" / "grader" / "notebook.py").touch()
    done = run_setup(tmp_path, MISSING)
    assert "ran -m pip install --quiet ./tool\n" in done.stdout and "--quiet tool\n" not in done.stdout


@pytest.mark.parametrize(("tool", "at"), [("tool", "../../tool"), (".", "../..")], ids=["student branch", "checkout"])
def test_the_first_cell_installs_the_tool_beside_the_course(tmp_path: Path, tool: str, at: str) -> None:
    """The cell finds the tool in the folder to which ``shardlings publish`` copies it, and in a checkout."""
    module = tmp_path / "exercises" / "01_layout"
    module.mkdir(parents=True)
    (tmp_path / tool / "grader").mkdir(parents=True)
    (tmp_path / tool / "grader" / "notebook.py").touch()
    done = run_setup(module, MISSING)
    ran = [line for line in done.stdout.splitlines() if line.startswith("ran")]
    assert ran == [f"ran -m pip install --quiet {at}"], done.stderr
    done = run_setup(module, MISSING.replace("words, 1)", "words, 0)") + INSTALLED)
    assert done.stdout.count("ran ") == 1, "what is installed is installed once"


# Code that pretends to install the tool. Afterwards the import succeeds.
INSTALLED = """
run = subprocess.run
def found(words, **options):
    builtins.__import__ = own
    return run(words, **options)
subprocess.run = found
"""


def test_a_notebook_that_was_opened_alone_fetches_its_course(tmp_path: Path) -> None:
    """As in Colab, no folder above the notebook has a course. The test replaces git by code that makes the folder."""
    repository = "https://github.com/who/what/tree/main/exercises"
    config = made_up(tmp_path / "course").root / "course.yaml"
    config.write_text(config.read_text() + f"repository: {repository}\n")
    cell = setup(load_course(config))
    cloned = "subprocess.run = lambda words, **o: print('ran', *words[1:]) or os.makedirs('what/exercises')"
    (alone := tmp_path / "content").mkdir()
    text = f"import os, subprocess\n{cloned}\n{cell}\nprint(os.getcwd())"
    for command in (["ran clone --quiet --depth 1 --branch main https://github.com/who/what what"], []):
        done = subprocess.run([sys.executable, "-c", text], cwd=alone, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)})  # fmt: skip
        lines = done.stdout.splitlines()
        assert [line for line in lines if line.startswith("ran")] == command, done.stderr
        assert lines[-1] == str((alone / "what" / "exercises").resolve())


@pytest.mark.parametrize(
    ("files", "platforms"),
    [((), "cpu"), (("/dev/accel0",), "cpu,tpu"), (("/dev/vfio/0",), "cpu,tpu"), (("/dev/nvidia0",), "cpu,cuda")],
    ids=["none", "TPU", "TPU v5 and later", "GPU"],
)
def test_the_first_cell_chooses_by_the_devices_that_are_there(tmp_path: Path, files: tuple, platforms: str) -> None:
    """The test pretends that some device files of drivers exist. JAX must not start on devices that do not exist."""
    (tmp_path / "jax.py").write_text(
        "import os\nprint(os.environ['JAX_PLATFORMS'], os.environ['XLA_FLAGS'])\nraise SystemExit"
    )
    (tmp_path / "grader").mkdir()
    (tmp_path / "grader" / "__init__.py").touch()
    (tmp_path / "grader" / "notebook.py").write_text("check = None")
    there = f"import fnmatch, glob\nglob.glob = lambda at: fnmatch.filter({list(files)!r}, at)"
    done = run_setup(tmp_path, there, PYTHONPATH="")
    assert done.stdout.split() == [platforms, "--xla_force_host_platform_device_count=8"], done.stderr


def test_the_first_cell_takes_simulated_devices_where_a_real_one_cannot_be_used(tmp_path: Path) -> None:
    """As in some virtual machines, a device file exists but no driver."""
    real = "import glob\nown = glob.glob\nglob.glob = lambda at: ['/dev/vfio/0'] if 'vfio' in at else own(at)"
    done = run_setup(ROOT, real, "print(jax.default_backend())")
    assert done.stdout.splitlines() == ["devices for the checks: 8 simulated", "cpu"], done.stderr


SHOWN = """
import jax, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from grader.notebook import show
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))
show(jax.device_put(np.ones((8, 6), "float32"), NamedSharding(mesh, P(("y", "x")))))
show(jax.device_put(np.float32(1), NamedSharding(mesh, P())), "a scalar")
for wrong in (np.ones(3), jax.numpy.ones(3)):
    try:
        show(wrong)
    except TypeError as error:
        print(error)
"""


def test_show_draws_the_devices_of_each_block() -> None:
    env = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", SHOWN], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0] == "float32 as P(('y', 'x')):"
    assert (
        lines[1] == "8 × 6 on mesh x=4, y=2"
        and any("│ x=1, y=0 │" in line for line in lines)
        and "all 8 devices" in done.stdout
    )
    told = [line for line in lines if line.startswith("show draws")]
    assert [line.split(";")[0].rsplit(" ", 1)[1] for line in told] == ["(ndarray)", "(SingleDeviceSharding)"]
    assert all("jax.device_put(a, NamedSharding(mesh, P(...)))" in line for line in told)


EXPLAINED = """
import jax
from jax.sharding import PartitionSpec as P
{solved}
from grader.notebook import explain
explain("matmul_local", mesh={{"x": 2, "y": 4}}, on="v5e:2x4")
"""


def test_explain_describes_the_callers_own_functions() -> None:
    env = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", EXPLAINED.format(solved=SOLVED)],
        cwd=ROOT, env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = " ".join(done.stdout.split())
    assert "matmul_local on x=2, y=4" in told and "devices do not communicate" in told
    assert "in time on v5e 2x4, x on slice axis 0, y on slice axis 1, profile ideal" in told


def test_explain_draws_what_devices_hold_and_the_timeline_below_the_cell(
    monkeypatch: pytest.MonkeyPatch, devices: int
) -> None:
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
    held, picture, roofline = shown
    assert (
        held.count("<svg") == 2 and "512:1024, 0:4096" in held
    )  # one grid for each argument; device 1 has rows 512 to 1023
    assert picture.startswith("<figure") and picture.count("<svg") == 1 and "step " in picture
    assert "roof of HBM" in roofline


RING_IN_A_NOTEBOOK = """
import jax
from jax.sharding import PartitionSpec as P
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
InteractiveShell.instance()
{solved}
from grader.notebook import check, explain
with capture_output() as seen:
    explain("e1_ring_all_gather", globals(), mesh={{"x": 4}})
print([one.data.get("text/html", "") for one in seen.outputs])
with capture_output() as seen:
    check("e1_ring_all_gather", globals())
print([one.data.get("text/html", "") for one in seen.outputs])
"""
RING = """
def ring_all_gather(a):
    n = jax.lax.axis_size("x")
    parts = [a]
    for _ in range(2 * n):
        parts.append(jax.lax.ppermute(parts[-1], "x", [(d, (d + 1) % n) for d in range(n)]))
    return jax.numpy.concatenate(parts)
"""


@pytest.fixture(scope="module")
def fragments() -> list[list[str]]:
    """Return the HTML that ``explain`` and ``check`` show for a ring all-gather with too many rounds."""
    env = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    words = [sys.executable, "-c", RING_IN_A_NOTEBOOK.format(solved=RING)]
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    return [ast.literal_eval(line) for line in done.stdout.splitlines()[-2:]]


def test_check_and_explain_show_the_same_moving_rounds_with_one_script_each(fragments: list[list[str]]) -> None:
    for shown in fragments:
        moving = [html for html in shown if "data-rounds=" in html]
        assert len(moving) == 1 and moving[0].count("<script>") == 1 and player() in moving[0]
        assert sum(html.count("<script") for html in shown) == 1 and "http" not in player().replace("http://www.w3", "")
        assert "round 1, line" in moving[0]  # notebook front ends that run no scripts show this table


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
@pytest.mark.parametrize("number", [0, 1], ids=["explain", "check"])
def test_rounds_move_in_a_notebook_where_scripts_run(fragments: list[list[str]], number: int, tmp_path: Path) -> None:
    (tmp_path / "book.html").write_text("".join(fragments[number]), encoding="utf-8")
    with chromium() as page:
        page.open(tmp_path / "book.html", 800)
        page.value("document.querySelector('[aria-label=\\'Round forward\\']').click()")
        assert page.value("document.querySelector('.player output').textContent").startswith("round 1, line ")
        assert page.value("document.querySelectorAll('.player').length") == 1 and page.told == []
