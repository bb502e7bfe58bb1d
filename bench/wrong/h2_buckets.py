import jax
import jax.numpy as jnp


def fill(order, cap, close=True, before=True):
    out, now, used = [], [], 0
    for name, size in order:
        if before and now and used + size > cap:
            out.append(now)
            now, used = [], 0
        now.append(name)
        used += size
        if not before and used > cap:
            out.append(now)
            now, used = [], 0
    return out + [now] if now and close else out


def once(tensors, backwards=True, frozen=False):
    seen, order = set(), []
    for name, size, train in tensors[::-1] if backwards else tensors:
        if (train or frozen) and name not in seen:
            seen.add(name)
            order.append((name, size))
    return order


def as_the_model_runs(tensors, cap):
    """buckets: buckets_forward"""
    return fill(once(tensors, backwards=False), cap)


def at_its_first_gradient(tensors, cap):
    """buckets: buckets_tied_too_early"""
    return fill(once(tensors), cap)


def every_use(tensors, cap):
    """buckets: buckets_tied_twice"""
    return fill([(n, s) for n, s, t in reversed(tensors) if t], cap)


def frozen_and_all(tensors, cap):
    """buckets: buckets_frozen_too"""
    return fill(once(tensors, backwards=False, frozen=True)[::-1], cap)


def no_flush(tensors, cap):
    """buckets: buckets_last_not_sent"""
    return fill(once(tensors, backwards=False)[::-1], cap, close=False)


def closed_when_over(tensors, cap):
    """buckets: buckets_overfull"""
    return fill(once(tensors, backwards=False)[::-1], cap, before=False)


def names_of_a_set(tensors, cap):
    """buckets: buckets_by_name"""
    sizes = {n: s for n, s, t in tensors if t}
    return fill([(n, sizes[n]) for n in sorted(set(sizes))], cap)


def largest_first(tensors, cap):
    """buckets: buckets_packed_tightly"""
    bins = []
    for n, s in sorted(once(tensors, backwards=False), key=lambda one: one[1], reverse=True):
        for b in bins:
            if b[1] + s <= cap:
                b[0].append(n)
                b[1] += s
                break
        else:
            bins.append([[n], s])
    return [b[0] for b in bins]


def one_tensor_each(tensors, cap):
    """buckets: buckets_of_one"""
    return [[n] for n, _ in once(tensors, backwards=False)[::-1]]


def at_most_25_tensors(tensors, cap):
    """buckets: buckets_all_in_one"""
    names = [n for n, _ in once(tensors, backwards=False)[::-1]]
    return [names[i : i + 25] for i in range(0, len(names), 25)]


def local_grads(ws, x, y):
    def loss(ws):
        h = x
        for w in ws:
            h = jnp.tanh(jnp.dot(h, w))
        return ((h - y) ** 2).sum()

    return jax.grad(loss)(list(ws))


def copies_reduced(ws, x, y, *, plan):
    """bucketed_grads: bucketed_not_written_back"""
    grads = local_grads(ws, x, y)
    flats = [jnp.concatenate([grads[i].reshape(-1) for i in b]) for b in plan]
    flats = [jax.lax.psum(f, "dp") for f in flats]
    return [g + 0 * flats[0][0] for g in grads]


def averaged(ws, x, y, *, plan):
    """bucketed_grads: bucketed_mean"""
    grads = local_grads(ws, x, y)
    for b in plan:
        flat = jnp.concatenate([grads[i].ravel() for i in b])
        flat = jax.lax.psum(flat, "dp") / jax.lax.axis_size("dp")
        at = 0
        for i in b:
            grads[i] = flat[at : at + ws[i].size].reshape(ws[i].shape)
            at += ws[i].size
    return grads


def one_after_another(ws, x, y, *, plan):
    """bucketed_grads: bucketed_by_tensor"""
    grads = local_grads(ws, x, y)
    for b in plan:
        for i in b:
            grads[i] = jax.lax.psum(grads[i], "dp")
    return grads


def large_tensors_dropped(tensors, cap):
    """buckets: buckets_without_large_ones"""
    first = {}
    for at, (name, size, trains) in enumerate(tensors):
        if trains and size <= cap:
            first.setdefault(name, (at, size))
    out, room = [], 0
    for name, (_, size) in sorted(first.items(), key=lambda item: -item[1][0]):
        if size > room:
            out.append([])
            room = cap
        out[-1].append(name)
        room -= size
    return out


def cap_as_a_least_size(tensors, cap):
    """buckets: buckets_overfull"""
    seen, ready = set(), []
    for name, size, trains in tensors:
        if trains and name not in seen:
            seen.add(name)
            ready.insert(0, (name, size))
    out, now, total = [], [], 0
    for name, size in ready:
        now.append(name)
        total += size
        if total >= cap:
            out, now, total = [*out, now], [], 0
    return out + ([now] if now else [])


def _own(ws, x, y):
    def loss(ws):
        h = x
        for w in ws:
            h = jnp.tanh(h @ w)
        return jnp.sum((h - y) ** 2)

    return jax.grad(loss)(ws)


def one_by_one(ws, x, y, *, plan):
    """bucketed_grads: bucketed_by_tensor"""
    return [jax.lax.psum(g, "dp") for g in _own(ws, x, y)]


def returned_in_the_plan_s_order(ws, x, y, *, plan):
    """bucketed_grads: bucketed_as_planned"""
    grads, out = _own(ws, x, y), []
    for bucket in plan:
        flat = jax.lax.psum(jnp.concatenate([grads[i].ravel() for i in bucket]), "dp")
        for i in bucket:
            out.append(flat[: grads[i].size].reshape(grads[i].shape))
            flat = flat[grads[i].size :]
    return out


def mean_over_the_rows(ws, x, y, *, plan):
    """bucketed_grads: bucketed_mean"""
    grads, out = _own(ws, x, y), [None] * len(ws)
    rows = x.shape[0] * jax.lax.axis_size("dp")
    for bucket in plan:
        flat = jax.lax.psum(jnp.concatenate([grads[i].ravel() / rows for i in bucket]), "dp")
        at = 0
        for i in bucket:
            out[i] = flat[at : at + grads[i].size].reshape(grads[i].shape)
            at += grads[i].size
    return out
