"""The compiler of TPUs that need not be present: its schedule of a program, and the checks on that schedule.

In: a program and a slice. Out: a ``wire.schedule.Schedule``, which the core judges. ``inside`` runs confined.
"""
