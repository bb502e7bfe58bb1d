def local_shape(shape, spec, mesh_shape):
    n = 1
    for size in mesh_shape.values():
        n *= size
    out = list(shape)
    for d, name in enumerate(spec):
        if name is not None:
            if out[d] % n:
                raise ValueError("uneven")
            out[d] //= n
    return tuple(out)


local_load_time = "0.0468 us"
