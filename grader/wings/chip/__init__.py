"""Compile programs with the TPU compiler, which needs no TPU, and show or check the compiler's schedules.

For a program and a slice, this wing returns the compiler's schedule (``wire.schedule.Schedule``). The grader outside of
this wing checks the schedule. The code in the folder ``inside`` runs in a sandboxed process.
"""
