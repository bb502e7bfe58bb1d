"""Compile programs with the TPU compiler, which needs no TPU, and show the compiler's schedules.

For a program and a slice, this wing returns the compiler's schedule (``wire.schedule.Schedule``). The checks of
schedules are in other code of the grader. The code in the folder ``inside`` runs in a sandboxed process.
"""
