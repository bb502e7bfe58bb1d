"""Workers give full points to honest code in many styles. If code runs for the learner, it also runs in grading."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.batch.grade import Grader
from grader.batch.workers import Workers
from grader.common.result import ExerciseReport
from grader.course.finding import find_course
from grader.intake.reading import read
from grader.intake.submission import Chunk, Source, Submission
from tests.sampled import sampled

ROOT = Path(__file__).resolve().parent.parent
IMPORTS = """\
import functools, os, time
from functools import partial
import numpy as np
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
"""


@pytest.fixture(scope="module")
def grader(workers: Workers) -> Grader:
    return Grader(find_course(ROOT), "none", here=workers)


def graded(grader: Grader, exercise: str, *cells: str) -> ExerciseReport:
    chunks = [Chunk(f"{exercise}.py", cells[0])] if len(cells) == 1 else [Chunk(f"cell {i}", c) for i, c in enumerate(cells, 1)]  # fmt: skip
    source = Source(f"{exercise}.py", tuple(chunks))
    return grader.grade(Submission("me", {exercise: source}, (), "digest"), [exercise]).exercises[0]


def lost(report: ExerciseReport) -> list[str]:
    """Return the checks that did not pass, with their reasons."""
    return [f"{r.name}: {r.reason} ({r.where})" for r in report.results if r.kind == "check" and r.status != "passed"]


def body(lines: str) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in lines.strip("\n").split("\n"))


# -- C1: A[I_X, J] B[J, K_Y] -> C[I_X, K_Y] ----------------------------------------------------

MAPPED = "jax.shard_map(lambda a, b: a @ b, mesh=mesh, in_specs=(P('x', None), P(None, 'y')), out_specs=P('x', 'y'))"
IN_A_TASK = {
    "set_mesh_in_a_with": f"with jax.set_mesh(mesh):\n    return {MAPPED}(a, b)",
    "set_mesh_as_a_statement": f"jax.set_mesh(mesh)\nreturn {MAPPED}(a, b)",
    "set_mesh_without_mesh_argument": f"with jax.set_mesh(mesh):\n    return {MAPPED.replace('mesh=mesh, ', '')}(a, b)",
    "use_mesh": f"with jax.sharding.use_mesh(mesh):\n    return {MAPPED}(a, b)",
    "sharding_set_mesh": f"with jax.sharding.set_mesh(mesh):\n    return {MAPPED}(a, b)",
    "with_mesh": f"with mesh:\n    return {MAPPED}(a, b)",
    "mesh_entered": f"mesh.__enter__()\nreturn {MAPPED}(a, b)",
    "set_mesh_within_jit": f"@jax.jit\ndef inner(a, b):\n    with jax.set_mesh(mesh):\n        return {MAPPED}(a, b)\nreturn inner(a, b)",
    "set_mesh_around_jit": f"with jax.set_mesh(mesh):\n    return jax.jit({MAPPED})(a, b)",
    "a_bare_spec_in_a_constraint": f"with jax.set_mesh(mesh):\n    a = lax.with_sharding_constraint(a, P('x', None))\n    return {MAPPED}(a, b)",
    "a_bare_spec_in_jit": f"with jax.set_mesh(mesh):\n    return jax.jit({MAPPED}, out_shardings=P('x', 'y'))(a, b)",
    "the_mesh_of_the_context": f"jax.set_mesh(mesh)\nmesh = jax.sharding.get_mesh()\nreturn {MAPPED}(a, b)",
    "the_abstract_mesh": f"with jax.set_mesh(mesh):\n    mesh = jax.sharding.get_abstract_mesh()\n    return {MAPPED}(a, b)",
    "print_sharding": f"c = {MAPPED}(a, b)\nprint(a.sharding, c.sharding, c.sharding.spec)\nreturn c",
    "assert_sharding": f"c = {MAPPED}(a, b)\nassert c.sharding == NamedSharding(mesh, P('x', 'y')), c.sharding\nassert a.sharding.spec == P('x', None)\nreturn c",
    "equivalent": f"c = {MAPPED}(a, b)\nassert c.sharding.is_equivalent_to(NamedSharding(mesh, P('x', 'y')), c.ndim)\nreturn c",
    "sharding_of_a_matmul": f"print((a @ b).sharding, jnp.dot(a, b).sharding)\nreturn {MAPPED}(a, b)",
    "sharding_of_the_arguments": f"spec = a.sharding.spec[0], b.sharding.spec[-1]\nreturn {MAPPED.replace(chr(39) + 'y' + chr(39) + '))', chr(39) + 'y' + chr(39) + '))').replace('P(' + repr('x') + ', ' + repr('y') + ')', 'P(*spec)')}(a, b)",
    "addressable_shards": f"c = {MAPPED}(a, b)\nfor s in c.addressable_shards:\n    print(s.device, s.index, s.data.shape, s.data)\nreturn c",
    "devices": f"c = {MAPPED}(a, b)\nprint(c.devices(), len(a.devices()), c.is_fully_replicated, c.is_fully_addressable, c.committed)\nassert len(c.devices()) == mesh.size\nreturn c",
    "block_until_ready": f"start = time.perf_counter()\nc = {MAPPED}(a, b).block_until_ready()\nprint(f'{{time.perf_counter() - start:.3f}} s')\nreturn c",
    "jax_block_until_ready": f"return jax.block_until_ready({MAPPED}(a, b))",
    "device_get": f"c = {MAPPED}(a, b)\nprint(jax.device_get(c)[0, 0], jax.device_get((a, b))[0].shape)\nreturn c",
    "asarray_in_a_print": f"c = {MAPPED}(a, b)\nprint(np.asarray(c), np.array(c).sum(), np.sum(c), float(c[0, 0]), c[0, 0].item(), int(c.sum()))\nreturn c",
    "its_own_test": f"c = {MAPPED}(a, b)\nnp.testing.assert_allclose(np.asarray(c), np.asarray(a) @ np.asarray(b), rtol=1e-3, atol=1e-3)\nassert jnp.allclose(c, a @ b, atol=1e-3)\nreturn c",
    "formatted": f"c = {MAPPED}(a, b)\nprint(f'{{c}} {{c.shape}} {{c.dtype}} {{c!r}} {{c[0, 0]:.3f}} {{jax.typeof(c)}}')\nreturn c",
    "typeof": f"print(jax.typeof(a), jax.typeof(a).sharding, a.aval, a.nbytes, a.itemsize)\nreturn {MAPPED}(a, b)",
    "visualized": f"c = {MAPPED}(a, b)\njax.debug.visualize_array_sharding(c)\njax.debug.print('{{}}', c)\nreturn c",
    "shapes_from_the_mesh": f"assert a.shape[0] % mesh.shape['x'] == 0 and mesh.devices.size == mesh.size == len(mesh.devices.flat)\nreturn {MAPPED}(a, b)",
    "device_put": f"a = jax.device_put(a, NamedSharding(mesh, P('x', None)))\nb = jax.device_put(b, NamedSharding(mesh, P(None, 'y')))\nreturn {MAPPED}(a, b)",
    "device_put_after": f"return jax.device_put({MAPPED}(a, b), NamedSharding(mesh, P('x', 'y')))",
    "device_put_of_a_tree": f"a, b = jax.device_put((a, b), (NamedSharding(mesh, P('x')), NamedSharding(mesh, P(None, 'y'))))\nreturn {MAPPED}(a, b)",
    "device_put_its_own_sharding": f"a = jax.device_put(a, a.sharding)\nreturn {MAPPED}(a, b)",
    "jit_with_shardings": f"ins = (NamedSharding(mesh, P('x', None)), NamedSharding(mesh, P(None, 'y')))\nreturn jax.jit({MAPPED}, in_shardings=ins, out_shardings=NamedSharding(mesh, P('x', 'y')))(a, b)",
    "jit_donates": f"return jax.jit({MAPPED}, donate_argnums=(0,))(a, b)",
    "jit_static": f"@partial(jax.jit, static_argnums=2)\ndef f(a, b, n):\n    return {MAPPED}(a, b) * n\nreturn f(a, b, 1)",
    "jit_static_names": f"@partial(jax.jit, static_argnames=('mesh',))\ndef f(a, b, mesh):\n    return {MAPPED}(a, b)\nreturn f(a, b, mesh=mesh)",
    "lowered_and_compiled": f"f = jax.jit({MAPPED})\nprint(f.lower(a, b).as_text()[:20])\nprint(f.lower(a, b).compile().as_text()[:20])\nprint(f.lower(a, b).compile().memory_analysis())\nreturn f(a, b)",
    "make_jaxpr": f"f = {MAPPED}\nprint(jax.make_jaxpr(f)(a, b))\nprint(jax.eval_shape(f, a, b))\nreturn f(a, b)",
    "a_mesh_like_it": f"mesh = Mesh(mesh.devices, mesh.axis_names)\nreturn {MAPPED}(a, b)",
    "a_mesh_made_of_all_devices": f"mesh = jax.make_mesh(tuple(mesh.shape.values()), tuple(mesh.shape), axis_types=(AxisType.Auto,) * len(mesh.shape))\nreturn {MAPPED}(a, b)",
    "mesh_utils": f"from jax.experimental import mesh_utils\nmesh = Mesh(mesh_utils.create_device_mesh(tuple(mesh.shape.values())), tuple(mesh.shape))\nreturn {MAPPED}(a, b)",
    "old_shard_map": f"from jax.experimental.shard_map import shard_map\nreturn {MAPPED.replace('jax.shard_map', 'shard_map').replace('mesh=mesh,', 'mesh=mesh, check_rep=False,')}(a, b)",
    "pjit": f"from jax.experimental.pjit import pjit\nreturn pjit({MAPPED})(a, b)",
    "pvary": f"def local(a, b):\n    zero = lax.pvary(jnp.zeros((a.shape[0], b.shape[1])), ('x', 'y'))\n    return lax.fori_loop(0, 1, lambda i, c: c + a @ b, zero)\nreturn {MAPPED.replace('lambda a, b: a @ b', 'local')}(a, b)",
    "pcast": f"def local(a, b):\n    zero = lax.pcast(jnp.zeros((a.shape[0], b.shape[1])), ('x', 'y'), to='varying')\n    return zero + a @ b\nreturn {MAPPED.replace('lambda a, b: a @ b', 'local')}(a, b)",
    "nested_in_parts": "def outer(a, b):\n    return jax.shard_map(lambda a, b: a @ b, in_specs=(P(), P(None, 'y')), out_specs=P(None, 'y'), axis_names={'y'})(a, b)\nreturn jax.shard_map(outer, mesh=mesh, in_specs=(P('x'), P()), out_specs=P('x'), axis_names={'x'})(a, b)",
    "partial": f"def local(a, b, *, precision):\n    return jnp.matmul(a, b, precision=precision)\nreturn {MAPPED.replace('lambda a, b: a @ b', 'partial(local, precision=lax.Precision.HIGHEST)')}(a, b)",
    "einsum": f"return {MAPPED.replace('a @ b,', 'jnp.einsum(' + repr('ij,jk->ik') + ', a, b),')}(a, b)",
    "named_scopes": f"with jax.named_scope('matmul'), jax.profiler.TraceAnnotation('c1'):\n    return {MAPPED}(a, b)",
    "profiled": f"with jax.profiler.trace('/tmp/a-profile'):\n    c = {MAPPED}(a, b)\n    c.block_until_ready()\nreturn c",
    "precision_in_a_context": f"with jax.default_matmul_precision('highest'):\n    return {MAPPED}(a, b)",
    "settings": f"jax.config.update('jax_default_matmul_precision', 'highest')\nreturn {MAPPED}(a, b)",
    "try_and_except": f"try:\n    print(a.sharding)\nexcept Exception as e:\n    print(e)\nreturn {MAPPED}(a, b)",
    "swallows_everything": f"try:\n    print(a.sharding, np.asarray(b))\nexcept:\n    pass\nreturn {MAPPED}(a, b)",
    "moved_and_deleted": f"c = {MAPPED}(a, b)\nc.copy_to_host_async()\nassert not c.is_deleted()\na.delete()\nreturn c",
    "layout_decides": f"if a.sharding.spec == P('x', None):\n    c = {MAPPED}(a, b)\nelse:\n    c = a\nif not c.sharding.is_equivalent_to(NamedSharding(mesh, P('x', 'y')), 2):\n    c = -c\nreturn c",
    "many_looks": f"for _ in range(5):\n    print(a.sharding, b.sharding)\nreturn {MAPPED}(a, b)",
    "logging": f"import logging, warnings\nlogging.warning('%s', a)\nwarnings.warn('careful')\nreturn {MAPPED}(a, b)",
    "ensure_compile_time_eval": f"with jax.ensure_compile_time_eval():\n    n = int(jnp.arange(3).sum())\nreturn {MAPPED}(a, b) * (n // 3)",
    "checked_by_tree": f"jax.tree.map(lambda x: print(x.sharding), (a, b))\nreturn {MAPPED}(a, b)",
    "numpy_constants": f"one = np.ones(()) * np.sqrt(1.0)\nreturn {MAPPED}(a, b) * jnp.asarray(one, a.dtype)",
    "one_device_put": f"scale = jax.device_put(jnp.ones(()), NamedSharding(mesh, P()))\nprint(scale.sharding)\nreturn {MAPPED}(a, b) * scale",
}  # fmt: skip


@pytest.mark.parametrize("style", sampled(12, IN_A_TASK))
def test_a_style_inside_a_task_gets_full_marks(grader: Grader, style: str) -> None:
    text = f"{IMPORTS}\ndef matmul_local(a, b, *, mesh):\n{body(IN_A_TASK[style])}"
    assert lost(graded(grader, "c1_no_communication", text)) == []


TASK = f"def matmul_local(a, b, *, mesh):\n    return {MAPPED}(a, b)\n"
CONSTRAINED = f"def matmul_local(a, b, *, mesh):\n    a = lax.with_sharding_constraint(a, P('x', None))\n    return {MAPPED}(a, b)\n"
MESH = "jax.make_mesh((4, 2), ('x', 'y'), axis_types=(AxisType.Auto,) * 2)"
AROUND_A_TASK = {
    "set_mesh_at_the_top": f"mesh = {MESH}\njax.set_mesh(mesh)\n{TASK}",
    "set_mesh_at_the_end": f"{TASK}\njax.set_mesh({MESH})\n",
    "explicit_mesh_at_the_top": f"jax.set_mesh(jax.make_mesh((4, 2), ('x', 'y')))\n{TASK}",
    "bare_specs_need_the_mesh_at_the_top": f"jax.set_mesh({MESH})\n{CONSTRAINED}",
    "other_axes_at_the_top": f"jax.set_mesh(jax.make_mesh((8,), ('data',)))\n{TASK}",
    "a_mesh_entered_at_the_top": f"{MESH}.__enter__()\n{CONSTRAINED}",
    "set_mesh_in_a_helper": f"def helper(mesh):\n    jax.set_mesh(mesh)\n    return mesh\ndef matmul_local(a, b, *, mesh):\n    mesh = helper(mesh)\n    return {MAPPED}(a, b)\n",
    "set_mesh_by_another_name": f"from jax import set_mesh\nfrom jax.sharding import set_mesh as use\ndef matmul_local(a, b, *, mesh):\n    with set_mesh(mesh), use(mesh):\n        return {MAPPED}(a, b)\n",
    "a_demo_at_the_top": f"{TASK}\nwith jax.set_mesh({MESH}) as _:\n    mesh = {MESH}\n    x = jax.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P('x')))\n    print(matmul_local(x, x, mesh=mesh).sharding)\n",
    "flags_first": f"import os\nos.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=4'\nos.environ['JAX_PLATFORMS'] = 'cuda'\n{TASK}",
    "flags_and_devices": f"os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=16'\nprint(jax.devices())\n{TASK}",
    "num_cpu_devices": f"jax.config.update('jax_num_cpu_devices', 16)\njax.config.update('jax_platforms', 'tpu')\njax.config.update('jax_platform_name', 'gpu')\n{TASK}",
    "x64": f"jax.config.update('jax_enable_x64', True)\nfrom jax import config\nconfig.update('jax_default_matmul_precision', 'float32')\n{TASK}",
    "settings_that_break_a_trace": f"jax.config.update('jax_disable_jit', True)\njax.config.update('jax_use_shardy_partitioner', False)\njax.config.update('jax_debug_nans', True)\n{TASK}",
    "distributed": f"jax.distributed.initialize()\n{TASK}",
    "unused_modules": f"import matplotlib.pyplot as plt\nimport not_there, einops_not_there as e\nfrom seaborn_not_there.deep import plot, table as t\nfrom star_not_there import *\n{TASK}",
    "modules_used_to_plot": f"import plot_not_there as plt\nplt.rcParams['figure.dpi'] = 100\nplt.style.use('dark')\nfig, ax = plt.subplots()\nax.plot([1])\n{TASK}",
    "annotations_of_absent_modules": f"from typing_not_there import Float, Array\ndef helper(a: Float[Array, 'i j'] | None) -> Float[Array, '']: ...\nclass Model(Float): ...\n{TASK}",
    "modules_that_may_be_missing": f"try:\n    import plot_not_there as plt\nexcept ImportError:\n    plt = None\nif plt is not None:\n    raise ValueError('it is there')\n{TASK}",
    "an_import_inside": f"def matmul_local(a, b, *, mesh):\n    import plot_not_there\n    from other_not_there.sub import thing\n    return {MAPPED}(a, b)\n",
    "a_dataclass": f"from dataclasses import dataclass\n@dataclass\nclass Config:\n    axis: 'str' = 'x'\n    files: 'list[str] | None' = None\n{TASK}",
    "names_that_we_use_too": f"files = faults = states = space = 1\nname = text = program = None\n{TASK}",
    "jitted": f"@partial(jax.jit, static_argnames='mesh')\n{TASK}",
    "a_class": f"class Solver:\n    def __call__(self, a, b, *, mesh):\n        return {MAPPED}(a, b)\nmatmul_local = Solver()\n",
    "a_partial": f"def general(a, b, scale, *, mesh):\n    return {MAPPED}(a, b) * scale\nmatmul_local = partial(general, scale=1)\n",
    "wrapped": f"def timed(f):\n    @functools.wraps(f)\n    def inner(*args, **kw):\n        start = time.time()\n        out = jax.block_until_ready(f(*args, **kw))\n        print(time.time() - start, out.sharding)\n        return out\n    return inner\n@timed\n{TASK}",
    "globals": f"def matmul_local(a, b, *, mesh):\n    global COUNT\n    COUNT = globals().get('COUNT', 0) + 1\n    assert COUNT < 50\n    return {MAPPED}(a, b)\n",
    "main": f"{TASK}\nif __name__ == '__main__':\n    raise SystemExit(1)\n",
    "exits": f"{TASK}\nimport sys\nsys.exit()\n",
}  # fmt: skip


@pytest.mark.parametrize("style", sampled(4, AROUND_A_TASK))
def test_a_style_around_a_task_gets_full_marks(grader: Grader, style: str) -> None:
    report = graded(grader, "c1_no_communication", f"{IMPORTS}\n{AROUND_A_TASK[style]}")
    assert lost(report) == []


# -- notebooks ---------------------------------------------------------------------------------

C3 = """
SPECS = (P(None, "x"), P("x", None))
def matmul_all_reduce(a, b, *, mesh):
    return jax.shard_map(lambda a, b: lax.psum(a @ b, "x"), mesh=mesh, in_specs=SPECS, out_specs=P())(a, b)
def matmul_reduce_scatter(a, b, *, mesh):
    local = lambda a, b: lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)
    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P(None, "x"))(a, b)
"""
C1 = """
SPECS = (P("x", None), P(None, "y"))
def matmul_local(a, b, *, mesh):
    return jax.shard_map(lambda a, b: a @ b, mesh=mesh, in_specs=SPECS, out_specs=P("x", "y"))(a, b)
"""
PUT_IN = C1.replace('SPECS = (P("x", None), P(None, "y"))', 'SPECS = {"in": [P("x", None), P(None, "y")]}').replace(
    "in_specs=SPECS", 'in_specs=tuple(SPECS["in"])'
)
MODULE = {"c1_no_communication": "03_matmuls", "c3_contracting": "03_matmuls"}
STUB = 'def matmul_local(a, b, *, mesh):\n    raise NotImplementedError("matmul_local")'


def book(path: Path, *cells: str) -> Submission:
    made = [{"cell_type": "code", "source": c, "metadata": {}, "outputs": [], "execution_count": None} for c in cells]
    path.write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return read(path, "me", MODULE)


@pytest.mark.parametrize(
    "cells",
    [
        (C1, 'check("c1_no_communication")', C3, 'check("c3_contracting")'),
        (C1, 'check("c1")', C3, 'check("c3")'),
        (
            C1,
            "from grader.notebook import check\ncheck('c1_no_communication')",
            "del SPECS",
            C3,
            'check("c3_contracting")',
        ),
        (
            "from grader.notebook import check, explain, show\n" + C1 + "\nshow(P('x'))\nexplain('c1')",
            'check("c1_no_communication")',
            C3,
            'check("c3_contracting")',
        ),
        (C1, 'check("c1_no_communication")', "from_here = matmul_local\n" + C3, 'check("c3_contracting")'),
        (
            STUB,
            'check("c1_no_communication")',
            C3,
            'check("c3_contracting")',
            C1,
        ),  # the function is below the cell with its check
        (PUT_IN, 'check("c1_no_communication")', "SPECS['in'][:] = [P(None, 'x'), P('x', None)]" + C3),
        (f"jax.set_mesh({MESH})", C1, 'check("c1_no_communication")', "jax.set_mesh(jax.make_mesh((8,), ('d',)))" + C3),
    ],
    ids=[
        "reused",
        "short_names",
        "deleted",
        "drawn",
        "kept_by_another_name",
        "solved_below",
        "changed_in_place",
        "meshes",
    ],
)
def test_an_exercise_of_a_notebook_is_graded_as_at_its_check(
    grader: Grader, tmp_path: Path, cells: tuple[str, ...]
) -> None:
    """In earlier versions, SPECS of a later exercise replaced SPECS of an earlier exercise, which then failed."""
    submission = book(tmp_path / "03_matmuls.ipynb", IMPORTS, *cells)
    report = grader.grade(submission, list(MODULE))
    assert [lost(e) for e in report.exercises] == [[], []]


# -- other exercises ---------------------------------------------------------------------------

BODIES = """
def all_gather_body(a, *, dim):
    print(a, a.shape, jax.typeof(a), f"{a}")
    jax.debug.print("{}", a)
    return jax.block_until_ready(lax.all_gather(a, "x", axis=dim, tiled=True))
def all_reduce_body(a):
    n = lax.axis_size("x") if hasattr(lax, "axis_size") else lax.psum(1, "x")
    assert n * 1 == n
    return lax.psum(a, ("x",)).block_until_ready()
@jax.jit
def reduce_scatter_body(a):
    return lax.psum_scatter(a, axis_name="x", scatter_dimension=1, tiled=True)
all_to_all_body = partial(lax.all_to_all, axis_name="x", split_axis=1, concat_axis=0, tiled=True)
"""
GATHERED = """
from jax.experimental.shard_map import shard_map
def step(out, moving, where):
    return lax.dynamic_update_index_in_dim(out, moving, where, 0)
def ring_all_gather(a):
    start = time.perf_counter()
    n = lax.psum(1, "x")
    me = lax.axis_index("x")
    print(n, me, a.shape, a.dtype, jax.typeof(a))
    assert isinstance(n, int) and a.ndim == 2
    out = step(jnp.zeros((n, *a.shape), a.dtype), a, me)
    for i in range(1, n):
        a = lax.ppermute(a, "x", [(j, (j + 1) % n) for j in range(n)]).block_until_ready()
        out = step(out, a, (me - i) % n)
    print(f"traced in {time.perf_counter() - start:.6f} s")
    return out.reshape(-1, *a.shape[1:])
"""
AUTO = """
def matmul_auto(a, b, *, mesh):
    with jax.set_mesh(mesh):
        c = lax.with_sharding_constraint(a @ b, P("x", "y"))
        print(c.sharding)
        c = lax.with_sharding_constraint(c, P("x", None))
    assert c.sharding.is_equivalent_to(NamedSharding(mesh, P("x")), 2)
    return c
def matmul_explicit(a, b, *, mesh):
    typed = Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Explicit,) * len(mesh.axis_names))
    with jax.set_mesh(typed):
        a = jax.sharding.reshard(a, P("x", None))
        b = jax.sharding.reshard(b, P(None, "y"))
        print(jax.typeof(a), jax.typeof(a @ b))
        return jax.sharding.reshard(a @ b, P("x", None))
def matmul_manual(a, b, *, mesh):
    jax.set_mesh(mesh)
    local = lambda a, b: lax.all_gather(a @ b, "y", axis=1, tiled=True)
    specs = (P("x", None), P(None, "y"))
    return jax.jit(jax.shard_map(local, in_specs=specs, out_specs=P("x", None), check_vma=False))(a, b)
"""
MATMULS = f"jax.config.update('jax_num_cpu_devices', 4)\n{C3}\nif jax.device_count() != 8:\n    raise ValueError\n"


@pytest.mark.parametrize(
    ("exercise", "text"),
    [
        ("b1_collectives", BODIES),
        ("e1_ring_all_gather", GATHERED),
        ("a6_three_modes", AUTO),
        ("c3_contracting", MATMULS),
    ],
)
def test_other_exercises_in_an_honest_style_get_full_marks(grader: Grader, exercise: str, text: str) -> None:
    assert lost(graded(grader, exercise, f"{IMPORTS}\n{text}")) == []


def test_an_absent_module_is_reported_in_the_notes_of_the_report(grader: Grader) -> None:
    report = graded(grader, "c1_no_communication", f"import plot_not_there\n{IMPORTS}\n{TASK}")
    assert lost(report) == []
    assert report.notes == [
        "c1_no_communication.py imports plot_not_there at line 1, which is not installed where your submission is graded"
    ]


def test_an_untraceable_style_is_reported_with_line_and_change(grader: Grader) -> None:
    text = f"{IMPORTS}\ndef matmul_local(a, b, *, mesh):\n    return jnp.asarray(np.asarray(a) @ np.asarray(b))\n"
    first = lost(graded(grader, "c1_no_communication", text))[0]
    assert "cannot be traced: it needs the values of an array" in first and "use jnp and jax.lax (line 10)" in first
