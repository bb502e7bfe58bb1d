"""Make the compiled texts of module 12: programs compiled for CPU and for TPU.

    python docs/make_hlo.py cpu       # with JAX 0.10 or 0.12: makes the texts that PROGRAMS lists for it
    python docs/make_hlo.py tpu       # needs jax[tpu] but no TPU; names of texts may follow

The first line of each text names the compiler. The script removes the tables of source lines, `metadata={...}`, and each
`backend_config={...}` that does not state how often a loop runs. The script keeps only the name from the line
`HloModule`. The texts are in `solutions/12_predict_profile/grading/hlo/`. `tests/test_keys_hlo.py` counts the
collectives again in the jaxprs.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

TEXTS = Path(__file__).parents[1] / "solutions/12_predict_profile/grading/hlo"


@dataclass(frozen=True)
class Program:
    """A program to compile.

    Attributes:
        make: a function that returns the program's function and arguments, for a mesh and sizes.
        options: settings of the compiler.
    """

    make: Callable[..., tuple[Callable[..., Any], list[Any]]]
    mesh: dict[str, int]
    sizes: tuple[int, ...]
    by: str  # platform and version of JAX: "cpu 0.10", "cpu 0.12" or "tpu 0.10"
    options: dict[str, Any] = field(default_factory=dict)


def step(mesh: Any, B: int, D: int, F: int) -> tuple[Callable[..., Any], list[Any]]:
    """Return a training step of two layers, sharded by data (x) and features (y); the compiler adds the collectives."""
    import jax
    import jax.numpy as jnp

    def train(h: Any, w1: Any, w2: Any) -> Any:
        def loss(w1: Any, w2: Any) -> Any:
            return jnp.sum((jnp.tanh(h @ w1) @ w2) ** 2)

        g1, g2 = jax.grad(loss, (0, 1))(w1, w2)
        return w1 - g1, w2 - g2

    x, y = mesh.axis_names[0], mesh.axis_names[-1]
    return train, [
        array(mesh, (B, D), (x, None)),
        array(mesh, (D, F), (None, y)),
        array(mesh, (F, D), (y, None)),
    ]


def layers(mesh: Any, B: int, D: int, L: int, steps: int) -> tuple[Callable[..., Any], list[Any]]:
    """Return L layers, repeated in a loop, that gather their weights over x one by one, and one sum over both axes."""
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import PartitionSpec as P

    def local(h: Any, ws: Any) -> Any:
        def layer(h: Any, w: Any) -> tuple[Any, None]:
            matmul = h @ lax.all_gather(w, "x", axis=0, tiled=True)
            return jnp.tanh(lax.all_gather(matmul, "y", axis=1, tiled=True)), None

        h = lax.pcast(h, "y", to="varying")
        h = lax.fori_loop(0, steps, lambda i, h: lax.scan(layer, h, ws)[0], h)
        return lax.psum(h.astype(jnp.float32).sum(), ("x", "y"))

    specs = (P("x"), P(None, "x", "y"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P()), [
        array(mesh, (B, D), specs[0], "bfloat16"),
        array(mesh, (L, D, D), specs[1], "bfloat16"),
    ]


def ring(mesh: Any, B: int, D: int, F: int) -> tuple[Callable[..., Any], list[Any]]:
    """Return a function that passes rows round a ring over y, multiplies them, and sums two arrays over x at once."""
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import PartitionSpec as P

    def local(a: Any, b: Any) -> Any:
        n = lax.axis_size("y")
        pairs = [(j, (j + 1) % n) for j in range(n)]

        def hop(_: Any, carry: Any) -> Any:
            a, total = carry
            return lax.ppermute(a, "y", pairs), total + jnp.tanh(a @ b)

        zero = lax.pcast(jnp.zeros((a.shape[0], b.shape[1]), a.dtype), ("x", "y"), to="varying")
        a, total = lax.fori_loop(0, n - 1, hop, (a, zero))
        return lax.psum((total + jnp.tanh(a @ b), a[:8]), "x")

    specs = (P(("x", "y")), P())
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=(P("y"), P("y"))), [
        array(mesh, (B, D), specs[0], "bfloat16"),
        array(mesh, (D, F), specs[1], "bfloat16"),
    ]


def prefetch(mesh: Any, B: int, D: int) -> tuple[Callable[..., Any], list[Any]]:
    """Return two layers; the second layer's gather over y can overlap the first layer's matmul."""
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import PartitionSpec as P

    def local(a: Any, w1: Any, w2: Any) -> Any:
        return jnp.tanh(a @ w1) @ lax.all_gather(w2, "y", tiled=True)

    specs = (P(("x", "y")), P(), P("y"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(("x", "y"))), [
        array(mesh, shape, spec, "bfloat16") for shape, spec in zip(((B, D), (D, D), (D, D)), specs, strict=True)
    ]


def exchange(mesh: Any, B: int, D: int, F: int) -> tuple[Callable[..., Any], list[Any]]:
    """Return an all-to-all over x and a reduce-scatter over y, beside a matmul."""
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import PartitionSpec as P

    def local(a: Any, w: Any, t: Any) -> Any:
        summed = lax.psum_scatter(t, "y", tiled=True)
        return jnp.tanh(a @ w), summed, lax.all_to_all(t, "x", 0, 1, tiled=True)

    both = P(("x", "y"))
    return jax.shard_map(local, mesh=mesh, in_specs=(both, P(), both), out_specs=(both, both, P("y", "x"))), [
        array(mesh, (B, D), both, "bfloat16"),
        array(mesh, (D, F), P(), "bfloat16"),
        array(mesh, (B, D), both, "bfloat16"),
    ]


def layouts(mesh: Any, B: int, D: int, F: int) -> tuple[Callable[..., Any], list[Any]]:
    """Return a function that doubles arrays of many layouts in place."""
    names = mesh.axis_names
    a, b = names[0], names[-1]
    specs = [(a, b), (b, a), ((a, b), None), (None, (b, a)), (None, names[1]), (None, None), (b, None, a)]
    if len(names) == 3:
        specs = [
            (names[1], b),
            (None, (b, a)),
            ((b, names[1]), a),
            (None, names[1]),
            (b, None, names[1]),
            ((a, b), None),
            ((b, a, names[1]), None),
        ]
    shapes = [(B, D, F)[: len(spec)] for spec in specs]
    return lambda *arrays: [2 * one for one in arrays], [
        array(mesh, shape, spec, "bfloat16") for shape, spec in zip(shapes, specs, strict=True)
    ]


ASYNC = {"xla_tpu_enable_async_collective_fusion": "false", "xla_tpu_enable_async_all_to_all": "true"}
WIDE, TALL, CUBE = {"x": 2, "y": 4}, {"x": 4, "y": 2}, {"x": 2, "z": 2, "y": 2}
PROGRAMS = {
    "step-cpu": Program(step, WIDE, (96, 40, 56), "cpu 0.12"),
    "step-cpu-2": Program(step, TALL, (104, 24, 72), "cpu 0.12"),
    "step-cpu-3": Program(step, CUBE, (88, 72, 48), "cpu 0.12"),
    "layers-cpu": Program(layers, WIDE, (48, 24, 6, 3), "cpu 0.10"),
    "layers-cpu-2": Program(layers, TALL, (40, 56, 9, 5), "cpu 0.10"),
    "ring-cpu": Program(ring, WIDE, (144, 40, 24), "cpu 0.10"),
    "exchange-cpu": Program(exchange, WIDE, (160, 48, 72), "cpu 0.10"),
    "layers-tpu": Program(layers, WIDE, (1536, 1024, 7, 3), "tpu 0.10"),
    "layers-tpu-2": Program(layers, TALL, (1280, 2048, 11, 4), "tpu 0.10"),
    "ring-tpu": Program(ring, WIDE, (2048, 1024, 512), "tpu 0.10"),
    "ring-tpu-2": Program(ring, TALL, (3072, 2048, 768), "tpu 0.10"),
    "prefetch-tpu": Program(prefetch, WIDE, (8192, 4096), "tpu 0.10"),
    "prefetch-tpu-2": Program(prefetch, TALL, (8192, 6144), "tpu 0.10"),
    "layouts-cpu": Program(layouts, WIDE, (40, 72, 24), "cpu 0.10"),
    "layouts-cpu-2": Program(layouts, TALL, (56, 104, 8), "cpu 0.10"),
    "layouts-cube": Program(layouts, CUBE, (24, 40, 12), "cpu 0.10"),
    "layouts-tpu": Program(layouts, TALL, (1024, 768, 512), "tpu 0.10"),
    "layouts-tpu-2": Program(layouts, CUBE, (512, 1536, 256), "tpu 0.10"),
    "exchange-tpu": Program(exchange, WIDE, (8192, 4096, 4096), "tpu 0.10", ASYNC),
    "exchange-tpu-2": Program(exchange, TALL, (8192, 2048, 6144), "tpu 0.10", ASYNC),
}


def array(mesh: Any, shape: tuple[int, ...], spec: Any, dtype: str = "float32") -> Any:
    """Return the shape, dtype and sharding of an array, without data."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, PartitionSpec(*spec)))


# -- removed parts -----------------------------------------------------------------------------


def shortened(text: str) -> str:
    """Return a text without tables of source lines and metadata, and with backend configurations of loops only."""
    lines = [line for line in text.splitlines() if not re.match(r"(\d+ [{\"]|File|Function|StackFrames)", line)]
    lines[0] = lines[0].split(",")[0]
    kept = (without(without(line, "metadata"), "backend_config", but="known_trip_count") for line in lines)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip() + "\n"


def without(line: str, attribute: str, but: str = "\0") -> str:
    """Return the line without ``, attribute={...}``, unless the attribute contains ``but``."""
    start = line.find(f", {attribute}={{")
    if start < 0:
        return line
    depth, quoted, end = 0, False, start
    for end in range(start, len(line)):
        if line[end] == '"' and line[end - 1] != "\\":
            quoted = not quoted
        depth += 0 if quoted else (line[end] == "{") - (line[end] == "}")
        if line[end] == "}" and not depth and not quoted:
            break
    return line if but in line[start:end] else line[:start] + line[end + 1 :]


# -- devices of the compilers ------------------------------------------------------------------


def devices(platform: str) -> tuple[list[Any], str]:
    """Return eight devices of a platform, or descriptions of absent devices, and the name of the compiler."""
    import jax

    made_by = f"jax {version('jax')}, jaxlib {version('jaxlib')}"
    if platform == "cpu":
        jax.config.update("jax_num_cpu_devices", 8)
        return jax.devices(), f"{made_by}, CPU"
    from jax.experimental import topologies

    described = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4")
    return list(described.devices), f"{made_by}, libtpu {version('libtpu')}, TPU v5e:2x4"


def main(platform: str, *chosen: str) -> None:
    os.environ |= {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1"}
    os.environ |= {"TPU_ACCELERATOR_TYPE": "v5litepod-8", "TPU_WORKER_HOSTNAMES": "localhost"}
    import jax
    import numpy as np

    there, made_by = devices(platform)
    for name, program in PROGRAMS.items():
        if chosen and name not in chosen:
            continue
        if program.by != f"{platform} {version('jax')[:4]}":
            continue
        mesh = jax.sharding.Mesh(np.array(there).reshape(*program.mesh.values()), tuple(program.mesh))
        function, arguments = program.make(mesh, *program.sizes)
        compiled = jax.jit(function).lower(*arguments).compile(compiler_options=program.options)
        axes = " ".join(f"{axis}={size}" for axis, size in program.mesh.items())
        text = f"// {name}: {made_by}; mesh {axes}\n{shortened(compiled.as_text() or '')}"
        (TEXTS / f"{name}.txt").write_text(text)
        print(name, len(text))


if __name__ == "__main__":
    main(*sys.argv[1:])
