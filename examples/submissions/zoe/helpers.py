import jax

V4P = 9e10


def sharded(f, mesh, specs, out):
    return jax.shard_map(f, mesh=mesh, in_specs=specs, out_specs=out)
