"""The reference."""


def durations(log):
    """[(bytes, [seconds, ...]), ...]: sizes ascending, the seconds of each in the log's order; sizes of which no call counts are left out."""
    found, compiled, free = {}, set(), float("-inf")
    for call in log:
        key = call["bytes"], call["cut"]
        if call["cut"] and key in compiled and call["called"] >= free:
            found.setdefault(call["bytes"], []).append(call["ready"] - call["called"])
        compiled.add(key)
        free = call["ready"]
    return sorted(found.items())
