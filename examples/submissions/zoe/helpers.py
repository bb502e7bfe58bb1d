import jax

V5P = 1.8e11


def sharded(f, mesh, specs, out):
    return jax.shard_map(f, mesh=mesh, in_specs=specs, out_specs=out)
