"""The program counts the device as busy only during calls with cut arrays.

kind: busy all the time
earns: 1 of 1.5
fails: timed_alone
says: for log=
"""


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
        free = call["ready"] if call["cut"] else free
    return sorted(found.items())
