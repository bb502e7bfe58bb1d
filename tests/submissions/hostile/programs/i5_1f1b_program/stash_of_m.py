"""The stash holds the inputs of all M micro-batches.

changes: honest_both_in_a_tick.py
kind: more kept than needed
earns: 3 of 4
fails: program_memory
says: the program holds 20.8 KiB per device at once
"""


def slots_of(devices, micro_batches):
    return micro_batches
