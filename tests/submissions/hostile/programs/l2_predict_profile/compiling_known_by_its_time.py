"""The program assumes that a call compiles if it returns late, and only then.

kind: guessed from other numbers
earns: 0 of 1.5
fails: timed_after_compiling timed_alone timed_while_moving
says: for log=
"""


def durations(log):
    found, free = {}, float("-inf")
    for call in log:
        if call["cut"] and call["returned"] - call["called"] < 0.02 and call["called"] >= free:
            found.setdefault(call["bytes"], []).append(call["ready"] - call["called"])
        free = call["ready"]
    return sorted(found.items())
