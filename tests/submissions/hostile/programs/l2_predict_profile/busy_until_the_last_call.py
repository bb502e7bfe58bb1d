"""The device counts as busy only while calls of cut arrays run.

kind: busy all the time
earns: 1 of 1.5
fails: timed_alone
says: for log=
"""


def durations(log):
    """[(bytes, [seconds, ...]), ...]: sizes ascending, the seconds of each in the log's order; sizes of which no call counts are left out."""
    found, compiled, free = {}, set(), float("-inf")
    for call in log:
        key = call["bytes"], call["cut"]
        if call["cut"] and key in compiled and call["called"] >= free:
            found.setdefault(call["bytes"], []).append(call["ready"] - call["called"])
        compiled.add(key)
        free = call["ready"] if call["cut"] else free
    return sorted(found.items())
