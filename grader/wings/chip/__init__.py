"""The compiler of TPUs that are not here: what it makes of a program, and what can be judged of that.

In: a program and a slice. Out: a ``wire.schedule.Schedule``, which the core judges. ``inside`` runs in the confined process.
"""
