"""L2: checks, misconceptions and alternatives."""

from collections import defaultdict
from statistics import linear_regression, mean, median

import numpy as np

from grader.exercise import Scenario
from grader.expect import Failure, expect_outcomes
from l2_predict_profile import (
    all_reduce_predicted,
    durations,
    exercise,
    fit,
    latency_small_from,
    time_without_compiling,
)

# -- logs: one clock for all calls -----------------------------------------------------------------------


def logged(rng, calls):
    """Return the log of ``calls``, each (bytes, cut, whether it waits for the previous call).

    A compiled program may already be on disk, and any call may return late, so times do not show which call compiled.
    """
    now, free, known, log = float(rng.uniform(1, 9)), 0.0, set(), []
    for size, cut, waits in calls:
        called = (free if waits else now) + float(rng.choice([0, 2e-5, 3e-5]))
        compiling = 0.0 if (size, cut) in known else float(rng.uniform(*[(0.05, 0.4), (2e-4, 6e-4)][rng.integers(2)]))
        busy = 0.0 if rng.integers(4) else float(rng.uniform(2e-4, 0.1))  # other work on the host delays the return
        now = called + compiling + busy + float(rng.uniform(2e-5, 6e-5))
        run = (size / 3e9 + 2e-4) * float(rng.uniform(1, 1.3)) if cut else float(rng.uniform(1e-5, 4e-5))
        free = max(now, free) + run
        known.add((size, cut))
        log.append(
            {"bytes": size, "cut": cut, "called": round(called, 7), "returned": round(now, 7), "ready": round(free, 7)}
        )
    return {"log": log}  # fmt: skip


def sizes_of(rng, count):
    return [int(n) * 100_000 for n in rng.choice(range(3, 90), count, replace=False)]


def waited_for(rng):
    """Draw calls of several sizes. Every call waits for the previous call. One size is called only once."""
    for _ in range(12):
        a, b, c = sizes_of(rng, 3)
        calls = [a] * int(rng.integers(2, 6)) + [b] * int(rng.integers(2, 6)) + [a, c] + [b] * int(rng.integers(1, 3))
        yield logged(rng, [(size, True, True) for size in calls])


def queued(rng):
    """Draw a warm-up without a wait, loops that wait only at their end, and calls that follow a whole array without a
    wait."""
    for _ in range(12):
        a, b = sizes_of(rng, 2)
        busy = [[(size, False, True), (size, True, False), (size, True, True)] for size in (a, b)]
        warm, many = int(rng.integers(1, 3)), int(rng.integers(2, 5))
        first = [(a, True, True), *[(a, True, False)] * warm, *[(a, True, True)] * 2]
        then = [(b, True, True), (b, True, False), (b, True, True), *[(b, True, False)] * many, (b, True, True)]
        yield logged(rng, [*first, *then, *busy[0], *busy[1], (a, True, False), (a, True, True)])


def gathered_again(rng):
    """Draw a loop of ``x = gather(x)``: from the second round on, its input is whole. Also draw sizes that are first called
    with a whole array."""
    for _ in range(12):
        a, b = sizes_of(rng, 2)
        again = [(a, False, True)] * int(rng.integers(2, 4))
        fresh = [(b, False, True), (b, True, True), (b, False, True), *[(b, True, True)] * int(rng.integers(1, 4))]
        yield logged(rng, [(a, True, True), *again, *[(a, True, True)] * 2, *fresh])


def times(*rows):
    """Return a log from tuples (bytes, cut, called, returned, ready)."""
    return {"log": [dict(zip(("bytes", "cut", "called", "returned", "ready"), row, strict=True)) for row in rows]}


A, B = 4_000_000, 8_000_000
all_waited_for = exercise.cases(
    durations,
    public=[
        times((A, True, 1.0, 1.3116, 1.312), (A, True, 1.312, 1.3121, 1.3132), (A, True, 1.33, 1.3301, 1.3311)),
        times(
            (B, True, 1.0, 1.2, 1.25), (A, True, 1.3, 1.5, 1.51), (A, True, 1.6, 1.601, 1.612), (B, True, 1.7, 1.701, 1.724)
        ),
    ],
    hidden=waited_for,
)  # fmt: skip
some_queued = exercise.cases(
    durations,
    public=[
        times((A, True, 1.0, 1.2, 1.21), (A, True, 1.201, 1.202, 1.22), (A, True, 1.203, 1.204, 1.23), (A, True, 1.3, 1.301, 1.31)),
        times((A, True, 1.0, 1.2, 1.21), (A, True, 1.201, 1.202, 1.22)),
    ],
    hidden=queued,
)  # fmt: skip
some_whole = exercise.cases(
    durations,
    public=[
        times((A, True, 1.0, 1.2, 1.21), (A, False, 1.3, 1.4, 1.401), (A, False, 1.5, 1.501, 1.502), (A, True, 1.6, 1.601, 1.611))
    ],
    hidden=gathered_again,
)  # fmt: skip


# -- measured times -------------------------------------------------------------------------------------


def off_the_line(sizes, due):
    """Return factors for times, up to 8 % away from 1, for which a line through the first and last size is wrong.

    A least-squares line through all sizes does not move, with equal weights or with weights 1 / time.
    """
    lines = np.stack([due**-weight * powers for weight in (0, 2) for powers in (np.ones(len(sizes)), sizes)], axis=1)
    lines /= np.linalg.norm(lines, axis=0)
    ends = np.zeros(len(sizes))
    ends[[0, -1]] = due[0], -due[-1]
    left = ends - lines @ np.linalg.lstsq(lines, ends, rcond=None)[0]
    return 1 + 0.08 * (left / due) / np.max(np.abs(left / due))


def measured_on(rng, N, uneven=False):
    """Draw times on a ring of N with known α and β: small jitter, and one or two delayed calls in each size.

    Args: uneven: each size is also a few percent off the line.
    """
    alpha, beta = float(rng.uniform(2e-6, 3e-5)), 10 ** float(rng.uniform(9, 11))
    few, many = (0.3, 0.7, 1.3, 2.2, 3.6)[: int(rng.integers(3, 6))], (0.3, 0.34, 0.38, 0.8, 1.4, 2.1, 2.8, 3.2, 3.6)
    sizes = [int(N * alpha * beta * hops * float(rng.uniform(1, 1.03))) for hops in (many if uneven else few)]
    due = np.array([(N - 1) * (alpha + size / N / beta) for size in sizes])
    found = []
    for size, seconds in zip(sizes, due * off_the_line(np.array(sizes), due) if uneven else due, strict=True):
        calls = seconds * (1 + np.abs(rng.normal(0, 0.002, int(rng.integers(5, 9)))))
        calls[rng.choice(len(calls), int(rng.integers(1, 3)), replace=False)] *= float(rng.uniform(3, 12))
        found.append((size, [float(f"{seconds:.6g}") for seconds in calls]))
    return {"measured": found, "devices": N}


lines = exercise.cases(
    fit,
    public=[
        {"measured": [(4_000_000, [1.3e-3]), (8_000_000, [2.3e-3])], "devices": 4},
        {"measured": [(4_000_000, [1.3e-3, 9.1e-3, 1.3e-3]), (8_000_000, [2.3e-3] * 3), (12_000_000, [3.3e-3] * 3)], "devices": 4},
        {"measured": [(65_536, [2.1e-5, 2.1e-5, 2.1e-5])], "devices": 8},
    ],
    hidden=lambda rng: [*(measured_on(rng, int(N)) for N in rng.permutation([2, 3, 4, 6, 8, 3, 4, 6, 8, 16])),
                        *(measured_on(rng, N, uneven=True) for N in (3, 4, 8)),
                        {"measured": measured_on(rng, 4)["measured"][:1], "devices": 4}],
)  # fmt: skip


@exercise.check(all_waited_for, points=0.5, public=True)
def timed_after_compiling(seen):
    """durations: programs that wait for every call; the first call of each size compiles"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(some_queued, points=0.5, public=True, after=timed_after_compiling)
def timed_alone(seen):
    """durations: a warm-up and loops without waits"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(some_whole, points=0.5, public=True, after=timed_after_compiling)
def timed_while_moving(seen):
    """durations: some inputs are already whole"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(lines, points=1, public=True)
def fitted(seen):
    """fit: rings of 2 to 16 devices with delayed calls; ValueError for one size"""
    expect_outcomes(seen, rtol=0.05)


# -- what goes wrong -------------------------------------------------------------------------------------


def kept(log, counts, seconds=lambda call, before: call["ready"] - call["called"]):
    """Return the durations of the calls for which ``counts(call, before)`` is true."""
    found = {}
    for i, call in enumerate(log):
        if counts(call, log[:i]):
            found.setdefault(call["bytes"], []).append(seconds(call, log[:i]))
    return sorted(found.items())


def warm(call, before):
    return any((b["bytes"], b["cut"]) == (call["bytes"], call["cut"]) for b in before)


def alone(call, before):
    return not before or call["called"] >= before[-1]["ready"]


@exercise.misconception(of=durations, fails=timed_after_compiling, breaks="compiles: leave it out")
def compiling_timed(log):
    """You counted calls that compile. Such a call takes a hundred times as long as a later call. Leave out the first call
    of each size and layout."""
    return kept(log, lambda call, before: call["cut"] and alone(call, before))


@exercise.misconception(of=durations, fails=timed_after_compiling, breaks="the first call with a new pair")
def first_of_the_log_only(log):
    """You left out only the first call of the log. Each new size compiles again: leave out its first call."""
    return kept(log, lambda call, before: call["cut"] and before and alone(call, before))


@exercise.misconception(of=durations, fails=timed_while_moving, breaks="a new pair of `bytes` and `cut`")
def compiled_once_for_a_size(log):
    """You assumed that a size was compiled because it had been called with a different layout. A new layout compiles
    again."""
    return kept(
        log,
        lambda call, before: call["cut"] and alone(call, before) and any(b["bytes"] == call["bytes"] for b in before),
    )


@exercise.misconception(of=durations, fails=timed_after_compiling, breaks="compiles: leave it out")
def compiling_known_by_its_time(log):
    """You took calls that returned late for calls that compiled. A compiled program may already be on disk, and
    other work may delay any call. Leave out the first call of each size and layout."""
    return kept(
        log, lambda call, before: call["cut"] and alone(call, before) and call["returned"] - call["called"] < 0.02
    )


@exercise.misconception(of=durations, fails=timed_after_compiling, breaks="the time from `called` to `ready`")
def dispatch_timed(log):
    """You timed until the call returned. A call returns as soon as the work is queued. Time until the result is
    ready."""
    return kept(
        log,
        lambda call, before: call["cut"] and warm(call, before) and alone(call, before),
        lambda call, before: call["returned"] - call["called"],
    )


@exercise.misconception(of=durations, fails=timed_after_compiling, breaks="the time from `called` to `ready`")
def dispatch_left_out(log):
    """You started the clock when the call had returned. The device may start earlier: start the clock when the function
    is called."""
    return kept(
        log,
        lambda call, before: call["cut"] and warm(call, before) and alone(call, before),
        lambda call, before: call["ready"] - call["returned"],
    )


@exercise.misconception(
    of=durations, fails=timed_alone, breaks="leave out a call that was made before the previous call was ready"
)
def warm_up_not_awaited(log):
    """You counted calls that waited for the previous call, so their time includes part of that call's time. Count
    only calls that were made after the previous call was ready: it is not enough that the previous call had returned."""
    return kept(log, lambda call, before: call["cut"] and warm(call, before))


@exercise.misconception(
    of=durations, fails=timed_alone, breaks="leave out a call that was made before the previous call was ready"
)
def timed_from_a_free_device(log):
    """You timed queued calls from the moment when the device was free. This omits the time before the
    device starts a call. Leave such calls out."""
    return kept(
        log,
        lambda call, before: call["cut"] and warm(call, before),
        lambda call, before: call["ready"] - max(call["called"], before[-1]["ready"]),
    )


@exercise.misconception(of=durations, fails=timed_alone, breaks="a device runs one call at a time")
def whole_calls_passed_over(log):
    """You ignored some calls when you looked for queued calls: calls of whole arrays, or first calls. The device runs
    these calls, too. If your program made a call while one of them was running, the new call had to wait."""
    return durations([call for call in log if call["cut"]])


@exercise.misconception(form_of=whole_calls_passed_over)
def first_calls_passed_over(log):
    """Like `whole_calls_passed_over`, and first calls are ignored too."""

    def counts(call, before):
        earlier = [one for i, one in enumerate(before) if one["cut"] and warm(one, before[:i])]
        return call["cut"] and warm(call, before) and alone(call, earlier)

    return kept(log, counts)


@exercise.misconception(of=durations, fails=timed_while_moving, breaks="leave out calls with `cut` False")
def whole_input_timed(log):
    """You counted calls whose input was already whole. Nothing moves in such calls, for example in x = gather(x) from
    the second round on."""
    return kept(log, lambda call, before: warm(call, before) and alone(call, before))


@exercise.misconception(of=durations, fails=timed_after_compiling, breaks="[(bytes, [seconds, ...]), ...]")
def reduced_to_a_median(log):
    """You returned one number for each size. Return all durations of each size; `fit` combines them."""
    return [(size, median(seconds)) for size, seconds in durations(log)]


@exercise.misconception(of=durations, fails=timed_after_compiling, breaks="sizes ascending")
def sizes_in_the_order_of_the_log(log):
    """You listed the sizes in the order of their first calls. List them ascending."""
    calls = [call["bytes"] for call in log]
    return sorted(durations(log), key=lambda row: calls.index(row[0]))


@exercise.misconception(of=durations, fails=timed_after_compiling)
def sizes_without_seconds(log):
    """You listed a size without a call that counts. Leave this size out, because it has no durations."""
    found = dict.fromkeys(sorted({call["bytes"] for call in log}), ()) | dict(durations(log))
    return [(size, list(seconds)) for size, seconds in found.items()]


def typical(measured, of=median):
    return [size for size, _ in measured], [of(seconds) for _, seconds in measured]


def line(measured, of=median):
    if len(measured) < 2:
        raise ValueError("one size does not determine a slope")
    return linear_regression(*typical(measured, of))


def instead(mistaken):
    """Return a function for `gives`. It requires ``mistaken(devices, α, β)`` in place of the right α and β."""

    def gives(seen):
        for args, got, want in seen.outcomes:
            if want.error:
                continue
            due = mistaken(args["devices"], *want.value)
            if got.error or not np.allclose(got.value, due, rtol=0.06, atol=0):  # 0.05 is the check's tolerance
                raise Failure("this mistake gives different numbers")

    return gives


@exercise.misconception(
    of=fit, fails=fitted, gives=instead(lambda n, a, b: (a, b * n / (n - 1))), breaks="(N−1)·α + (N−1)/N · V/β"
)
def whole_array_crossed(measured, devices):
    """You let the whole array cross a link. A device already has its own part, so (N-1)/N of the array crosses."""
    slope, start = line(measured)
    return start / (devices - 1), 1 / slope


@exercise.misconception(
    of=fit, fails=fitted, gives=instead(lambda n, a, b: (a * (n - 1), b)), breaks="(N−1)·α + (N−1)/N · V/β"
)
def latency_of_all_hops(measured, devices):
    """You returned the time of an empty gather as α. An empty gather has N-1 hops: divide by N-1."""
    slope, start = line(measured)
    return start, (devices - 1) / devices / slope


@exercise.misconception(
    of=fit, fails=fitted, gives=instead(lambda n, a, b: (a * (n - 1) / n, b)), breaks="(N−1)·α + (N−1)/N · V/β"
)
def as_many_hops_as_devices(measured, devices):
    """You counted N hops. After N-1 hops every device has every part."""
    slope, start = line(measured)
    return start / devices, (devices - 1) / devices / slope


@exercise.misconception(
    of=fit, fails=fitted, gives=instead(lambda n, a, b: (a, b * n)), breaks="(N−1)·α + (N−1)/N · V/β"
)
def pieces_for_the_array(measured, devices):
    """You took V as one device's part. V counts the bytes of the whole array, so (N-1)/N · V crosses a link, not (N-1)
    · V."""
    slope, start = line(measured)
    return start / (devices - 1), (devices - 1) / slope


@exercise.misconception(of=fit, fails=fitted, gives=instead(lambda n, a, b: (a, 1 / b)))
def seconds_of_a_byte(measured, devices):
    """You returned seconds per byte. β is bytes per second, 1 / slope."""
    slope, start = line(measured)
    return start / (devices - 1), slope * devices / (devices - 1)


@exercise.misconception(of=fit, fails=fitted, breaks="use the median or the minimum of each size's times")
def mean_of_all_calls(measured, devices):
    """You fitted the line to each size's mean, or to all calls. One delayed call moves such a line: use the median or the minimum of each size's times."""
    slope, start = line(measured, mean)
    return start / (devices - 1), (devices - 1) / devices / slope


@exercise.misconception(form_of=mean_of_all_calls)
def line_through_all_calls(measured, devices):
    """Like `mean_of_all_calls`, with a line that is fitted to all calls."""
    line(measured)
    calls = [(size, [one]) for size, seconds in measured for one in seconds]
    slope, start = line(calls)
    return start / (devices - 1), (devices - 1) / devices / slope


@exercise.misconception(of=fit, fails=fitted, breaks="use the median or the minimum of each size's times")
def slowest_calls(measured, devices):
    """You used the slowest call of each size. Other work delayed it: use the median or the minimum."""
    slope, start = line(measured, max)
    return start / (devices - 1), (devices - 1) / devices / slope


def without_latency(seen):
    """For `gives`: require α = 0."""
    for _, got, want in seen.outcomes:
        if not want.error and (got.error or got.value[0] != 0):
            raise Failure("this mistake gives no latency")


@exercise.misconception(of=fit, fails=fitted, gives=without_latency, breaks="(N−1)·α + (N−1)/N · V/β")
def no_latency(measured, devices):
    """You divided bytes by seconds, as if hops cost nothing. Fit the slope and the value at 0: the line need not go through
    zero."""
    line(measured)
    sizes, seconds = typical(measured)
    return 0.0, sizes[-1] * (devices - 1) / devices / seconds[-1]


@exercise.misconception(of=fit, fails=fitted, breaks="least squares over all sizes")
def through_two_sizes(measured, devices):
    """You put the line through the first and the last size. Each size has a small error, which least squares over all
    sizes averages out."""
    line(measured)
    return fit([measured[0], measured[-1]], devices)


@exercise.misconception(of=fit, fails=fitted, breaks="(N−1)·α + (N−1)/N · V/β")
def smallest_for_latency(measured, devices):
    """You treated the smallest array as empty. The bytes of this array take time too: fit a line and use its value at 0
    bytes."""
    line(measured)
    sizes, seconds = typical(measured)
    return seconds[0] / (devices - 1), sizes[-1] * (devices - 1) / devices / (seconds[-1] - seconds[0])


def wrong_for_one_size(seen):
    """For `gives`: require that one size raises no ValueError, and that several sizes give the right numbers."""
    instead(lambda n, a, b: (a, b))(seen)
    if any(want.error and got.error == want.error for _, got, want in seen.outcomes):
        raise Failure("this mistake raises no error")


@exercise.misconception(of=fit, fails=fitted, gives=wrong_for_one_size, breaks="`ValueError` for fewer than two sizes")
def one_size_fitted(measured, devices):
    """You fitted a line to one size. Infinitely many lines go through one point: raise ValueError."""
    if len(measured) > 1:
        return fit(measured, devices)
    (size, seconds), *_ = measured
    return 0.0, size * (devices - 1) / devices / median(seconds)


@exercise.misconception(of=time_without_compiling)
def compiling_in_the_mean(mean, **rest):
    """You gave the mean, which includes the compilation in the first call. A spread larger than the mean shows that one
    run was much slower."""
    return mean * 1e-3


@exercise.misconception(of=time_without_compiling)
def every_call_a_run(R, L, mean, std):
    """You treated each call as a run. The spread is the standard deviation of the runs' means, and one run contains the slow call."""
    return (mean - std / (R * L - 1) ** 0.5) * 1e-3


@exercise.misconception(of=time_without_compiling)
def spread_by_one_less(R, mean, std, **rest):
    """You used the standard deviation with divisor R-1. With divisor R and one slow run, the mean is t + d/R and the
    spread is d·√(R-1)/R."""
    return (mean - std / R**0.5) * 1e-3


@exercise.misconception(of=all_reduce_predicted)
def reduced_as_gathered(**params):
    """You gave the time of an all-gather. An all-reduce goes round the ring twice: reduce-scatter, then all-gather."""
    return all_reduce_predicted(**params) / 2


@exercise.misconception(of=all_reduce_predicted)
def reduced_whole(N, a, b, V):
    """You sent the whole array round twice. On each trip (N-1)/N of the array crosses a link."""
    return 2 * ((N - 1) * a * 1e-6 + V * 1e6 / (b * 1e9))


@exercise.misconception(of=all_reduce_predicted)
def reduced_at_one_latency(N, a, b, V):
    """You counted α only once for each trip round the ring. α is the time of one hop, and each trip has N-1 hops."""
    return 2 * (a * 1e-6 + (N - 1) * V * 1e6 / N / (b * 1e9))


@exercise.misconception(of=all_reduce_predicted)
def reduced_by_the_hops_of_one_trip(N, a, b, V):
    """You counted the hops of one trip round the ring. An all-reduce goes round twice, with N-1 hops on each trip."""
    return (N - 1) * (a * 1e-6 + 2 * V * 1e6 / N / (b * 1e9))


@exercise.misconception(of=all_reduce_predicted)
def reduced_without_latency(N, b, V, **rest):
    """You counted only bytes. Each of the 2·(N-1) hops also costs α."""
    return 2 * (N - 1) * V * 1e6 / N / (b * 1e9)


@exercise.misconception(of=all_reduce_predicted)
def reduced_parts(N, a, b, V):
    """You let every hop carry the whole array. A hop carries V/N."""
    return 2 * (N - 1) * (a * 1e-6 + V * 1e6 / (b * 1e9))


@exercise.misconception(of=latency_small_from)
def latency_halved_from(p, **params):
    """You gave the size at which hops and bytes each take half of the time. Here hops take p % of the time."""
    return latency_small_from(p=50, **params)


@exercise.misconception(of=latency_small_from)
def latency_of_a_part(N, **params):
    """You gave the size of one device's part. The whole array has N parts."""
    return latency_small_from(N=1, **params)


@exercise.misconception(of=latency_small_from)
def latency_against_bytes(N, a, b, p):
    """You let hops take p % of the time of the bytes. Hops take p % of the whole time, so bytes take (100-p)/p times as
    long as hops."""
    return N * a * 1e-6 * b * 1e9 * 100 / p


@exercise.misconception(of=latency_small_from)
def latency_whole_array(N, a, b, p):
    """You let the whole array cross a link. Only (N-1)/N of the array crosses, so the array may be larger."""
    return (N - 1) * a * 1e-6 * b * 1e9 * (100 - p) / p


exercise.scenario(
    time_without_compiling,
    lambda R, L, mean, std: Scenario(most=mean * 1e-3),
    published=[9.8],  # a notebook's 27.9 ± 36.2 ms of 5 runs
)
exercise.scenario(all_reduce_predicted, lambda N, a, b, V: Scenario(rings=(N,), least=2 * (N - 1) * a * 1e-6))
exercise.scenario(latency_small_from, lambda N, a, b, p: Scenario(rings=(N,)))


# -- in other styles ------------------------------------------------------------------------------------


@exercise.alternative(of=durations)
def durations_by_pairs(log):
    """Compare each call with the previous call; find first calls by their index; sort sizes at the end."""
    first = {}
    for i, call in enumerate(log):
        first.setdefault((call["bytes"], call["cut"]), i)
    found = defaultdict(list)
    for i, (call, before) in enumerate(zip(log[1:], log, strict=False), 1):
        if call["cut"] and i != first[call["bytes"], True] and not call["called"] < before["ready"]:
            found[call["bytes"]].append(call["ready"] - call["called"])
    return [[size, found[size]] for size in sorted(found)]


@exercise.alternative(of=durations)
def durations_by_latest(log):
    """Group the durations by size. A call counts only if all earlier calls, of any size, are ready when it is made."""

    def counts(i):
        call, before = log[i], log[:i]
        known = [b for b in before if b["bytes"] == call["bytes"] and b["cut"] is call["cut"]]
        return call["cut"] and known and max(b["ready"] for b in before) <= call["called"]

    sizes = {log[i]["bytes"] for i in range(len(log)) if counts(i)}
    return [
        (size, [log[i]["ready"] - log[i]["called"] for i in range(len(log)) if counts(i) and log[i]["bytes"] == size])
        for size in sorted(sizes)
    ]


@exercise.alternative(of=fit)
def fit_of_the_least(measured, devices):
    """Use the minimum of each size, and solve for both parameters of the model at once."""
    if len(measured) <= 1:
        raise ValueError
    hops = devices - 1
    columns = np.array([[hops, hops / devices * size] for size, _ in measured])
    (alpha, per_byte), *_ = np.linalg.lstsq(columns, np.array([min(seconds) for _, seconds in measured]), rcond=None)
    return float(alpha), float(1 / per_byte)


@exercise.alternative(of=fit)
def fit_by_sums(measured, devices):
    """Compute the least squares by hand."""
    if len(measured) < 2:
        raise ValueError("fit needs two sizes")
    x = [size for size, _ in measured]
    y = [sorted(seconds)[len(seconds) // 2] for _, seconds in measured]
    x0, y0 = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - x0) * (b - y0) for a, b in zip(x, y, strict=True)) / sum((a - x0) ** 2 for a in x)
    return (y0 - slope * x0) / (devices - 1), (devices - 1) / devices / slope


@exercise.alternative(of=fit)
def fit_weighed(measured, devices):
    """Weight each size by 1 / time, so that short times count as much as long times."""
    if len(measured) < 2:
        raise ValueError("fit needs two sizes")
    x = np.array([size * (devices - 1) / devices for size, _ in measured])
    y = np.array([np.median(seconds) for _, seconds in measured])
    slope, start = np.polyfit(x, y, 1, w=1 / y)
    return start / (devices - 1), 1 / slope


@exercise.alternative(of=fit)
def fit_without_outliers(measured, devices):
    """One fit over all calls that took less than twice the minimum of their size."""
    if len(measured) < 2:
        raise ValueError("fit needs two sizes")
    calls = [(size, t) for size, seconds in measured for t in seconds if t < 2 * min(seconds)]
    slope, start = np.polyfit([size for size, _ in calls], [t for _, t in calls], 1)
    return start / (devices - 1), (devices - 1) / (devices * slope)
