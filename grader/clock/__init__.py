"""The clock: a program's operations laid out in time on a named chip, slice and mesh.

In: ``Operations`` of a program, and where it runs. Out: a ``Timeline``. Deterministic: whole picoseconds, and nothing depends
on names, hash seeds or the machine that computes it. ``docs/clock.md`` has every assumption and what it is wrong about.
"""
