"""Compile programs with the TPU compiler, which needs no TPU, and show the compiler's schedules.

The code in the folder ``inside`` runs in a sandboxed process.
"""
