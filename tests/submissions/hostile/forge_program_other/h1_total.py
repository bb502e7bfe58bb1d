import io
import json
import os
import struct

import jax
import jax.numpy as jnp


def frame(header, blobs=()):
    text = json.dumps({**header, "blobs": [len(b) for b in blobs]}).encode()
    return struct.pack("<I", len(text)) + text + b"".join(blobs)


def total(a, *, mesh):
    sharding = jax.sharding.NamedSharding(mesh, jax.P("x"))
    other = jax.jit(lambda b: b.sum(0), keep_unused=True).lower(jax.ShapeDtypeStruct((4, 4), jnp.float32, sharding=sharding))
    code = io.BytesIO()
    other.compiler_ir("stablehlo").operation.write_bytecode(code)
    os.write(11, frame({"number": 0, "program": True}, [code.getvalue()]))
    os._exit(0)
