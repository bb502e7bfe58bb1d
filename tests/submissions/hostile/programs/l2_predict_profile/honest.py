"""The reference solution."""


def durations(log):
    """Return the durations of the calls that count, for each size.

    Args: log, a list of dicts with bytes, cut, called, returned and ready, one for each call.
    Returns: [(bytes, [seconds, ...]), ...], sizes ascending, the seconds of each size in the log's order. A size
    without a call that counts is left out.
    """
    found, compiled, free = {}, set(), float("-inf")
    for call in log:
        key = call["bytes"], call["cut"]
        if call["cut"] and key in compiled and call["called"] >= free:
            found.setdefault(call["bytes"], []).append(call["ready"] - call["called"])
        compiled.add(key)
        free = call["ready"]
    return sorted(found.items())
