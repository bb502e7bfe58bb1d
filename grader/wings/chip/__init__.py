"""Compile programs with the TPU compiler, which needs no TPU, and show or check the compiler's schedules.

The wing returns the ``wire.schedule.Schedule`` of a program on a slice, and the core judges the schedule. ``inside``
runs confined.
"""
