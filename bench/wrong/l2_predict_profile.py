from statistics import mean, median


def timed(
    log, compiled=True, queued=True, whole=True, clock="ready", key=lambda c: (c["bytes"], c["cut"]), skips_whole=False
):
    seen, before, out = set(), -1e9, {}
    for c in log:
        if skips_whole and not c["cut"]:
            continue
        first = key(c) not in seen
        seen.add(key(c))
        late = c["called"] < before
        before = c["ready"]
        if (first and compiled) or (late and queued) or (whole and not c["cut"]):
            continue
        start, end = (c["called"], c[clock]) if clock != "device" else (c["returned"], c["ready"])
        out.setdefault(c["bytes"], []).append(end - start)
    return [(n, out[n]) for n in sorted(out)]


def first_calls_too(log):
    """durations: compiling_timed"""
    return timed(log, compiled=False)


def until_it_returned(log):
    """durations: dispatch_timed"""
    return timed(log, clock="returned")


def since_it_returned(log):
    """durations: dispatch_left_out"""
    return timed(log, clock="device")


def queue_not_looked_at(log):
    """durations: warm_up_not_awaited"""
    return timed(log, queued=False)


def whole_arrays_too(log):
    """durations: whole_input_timed"""
    return timed(log, whole=False)


def once_for_each_size(log):
    """durations: compiled_once_for_a_size"""
    return timed(log, key=lambda c: c["bytes"])


def only_the_very_first(log):
    """durations: first_of_the_log_only"""
    return timed(log, key=lambda c: 0)


def whole_ones_dropped_first(log):
    """durations: whole_calls_passed_over"""
    return timed(log, skips_whole=True)


def one_median_each(log):
    """durations: reduced_to_a_median"""
    return [(n, median(seconds)) for n, seconds in timed(log)]


def line(xs, ys):
    mx, my = mean(xs), mean(ys)
    slope = sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sum((x - mx) ** 2 for x in xs)
    return my - slope * mx, slope


def fitted(measured, n, share=None, hops=None, of=median):
    if len(measured) < 2:
        raise ValueError("two sizes")
    share = (n - 1) / n if share is None else share
    at0, slope = line([v * share for v, _ in measured], [of(s) for _, s in measured])
    return at0 / (n - 1 if hops is None else hops), 1 / slope


def all_of_the_bytes(measured, devices):
    """fit: whole_array_crossed"""
    return fitted(measured, devices, share=1)


def alpha_not_divided(measured, devices):
    """fit: latency_of_all_hops"""
    return fitted(measured, devices, hops=1)


def n_hops(measured, devices):
    """fit: as_many_hops_as_devices"""
    return fitted(measured, devices, hops=devices)


def averages(measured, devices):
    """fit: mean_of_all_calls"""
    return fitted(measured, devices, of=mean)


def beta_turned_round(measured, devices):
    """fit: seconds_of_a_byte"""
    alpha, beta = fitted(measured, devices)
    return alpha, 1 / beta


def ends_of_the_line(measured, devices):
    """fit: through_two_sizes"""
    return fitted([measured[0], measured[-1]] if len(measured) > 1 else measured, devices)


def one_size_is_enough(measured, devices):
    """fit: one_size_fitted"""
    return fitted(measured, devices) if len(measured) > 1 else (0.0, measured[0][0] / median(measured[0][1]))


def bytes_over_seconds(measured, devices):
    """fit: no_latency"""
    if len(measured) < 2:
        raise ValueError("two sizes")
    rates = [v * (devices - 1) / devices / median(s) for v, s in measured]
    return 0.0, mean(rates)


def only_counted_calls_make_a_queue(log):
    """durations: whole_calls_passed_over"""
    seen, kept, last = set(), {}, None
    for c in log:
        key = c["bytes"], c["cut"]
        if key not in seen:
            seen.add(key)
            continue
        if not c["cut"]:
            continue
        if last is None or c["called"] >= last:
            kept.setdefault(c["bytes"], []).append(c["ready"] - c["called"])
        last = c["ready"]
    return sorted(kept.items())


def previous_returned(log):
    """durations: warm_up_not_awaited"""
    seen, kept = set(), {}
    for i, c in enumerate(log):
        new = (c["bytes"], c["cut"]) not in seen
        seen.add((c["bytes"], c["cut"]))
        waits = i and c["called"] < log[i - 1]["returned"]
        if not new and not waits and c["cut"]:
            kept.setdefault(c["bytes"], []).append(c["ready"] - c["called"])
    return [(n, kept[n]) for n in sorted(kept)]


def _line(points):
    n = len(points)
    mx, my = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    slope = sum((x - mx) * (y - my) for x, y in points) / sum((x - mx) ** 2 for x, _ in points)
    return my - slope * mx, slope


def slowest_calls(measured, devices):
    """fit: slowest_calls"""
    if len(measured) < 2:
        raise ValueError("two sizes")
    a, s = _line([(v, max(ts)) for v, ts in measured])
    return a / (devices - 1), (devices - 1) / devices / s


def every_call_one_point(measured, devices):
    """fit: mean_of_all_calls"""
    if len(measured) < 2:
        raise ValueError("two sizes")
    a, s = _line([((devices - 1) / devices * v, t) for v, ts in measured for t in ts])
    return a / (devices - 1), 1 / s


def _kept(log, key, seconds):
    seen, out, busy = set(), {}, float("-inf")
    for call in log:
        fresh = key(call) not in seen
        seen.add(key(call))
        waits = call["called"] < busy
        busy = max(busy, call["ready"])
        if fresh or not call["cut"] or waits:
            continue
        out.setdefault(call["bytes"], []).append(seconds(call))
    return sorted(out.items())


def only_the_very_first_compiles(log):
    """durations: first_of_the_log_only"""
    return _kept(log, lambda c: None, lambda c: c["ready"] - c["called"])


def compiles_once_for_each_size(log):
    """durations: compiled_once_for_a_size"""
    return _kept(log, lambda c: c["bytes"], lambda c: c["ready"] - c["called"])


def clock_starts_at_the_return(log):
    """durations: dispatch_left_out"""
    return _kept(log, lambda c: (c["bytes"], c["cut"]), lambda c: c["ready"] - c["returned"])


def _again_line(points):
    if len(points) < 2:
        raise ValueError("at least two sizes")
    mx = sum(x for x, _ in points) / len(points)
    my = sum(t for _, t in points) / len(points)
    slope = sum((x - mx) * (t - my) for x, t in points) / sum((x - mx) ** 2 for x, _ in points)
    return my - slope * mx, slope


def fits_the_means(measured, devices):
    """fit: mean_of_all_calls"""
    start, slope = _again_line([(v, sum(ts) / len(ts)) for v, ts in measured])
    return start / (devices - 1), (devices - 1) / devices / slope


def slope_is_the_bandwidth(measured, devices):
    """fit: whole_array_crossed"""
    start, slope = _again_line([(v, median(ts)) for v, ts in measured])
    return start / (devices - 1), 1 / slope


def intercept_is_alpha(measured, devices):
    """fit: latency_of_all_hops"""
    start, slope = _again_line([(v, min(ts)) for v, ts in measured])
    return start, (devices - 1) / devices / slope


def spread_of_a_sample(R, L, mean, std):
    """time_without_compiling: spread_by_one_less"""
    return (mean - std / R**0.5) * 1e-3


def one_set_of_hops(N, a, b, V):
    """all_reduce_predicted: reduced_by_the_hops_of_one_trip"""
    return (N - 1) * a * 1e-6 + 2 * (N - 1) / N * V * 1e6 / (b * 1e9)


def share_of_the_transfer(N, a, b, p):
    """latency_small_from: latency_against_bytes"""
    return N * a * 1e-6 * b * 1e9 * 100 / p
