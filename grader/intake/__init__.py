"""Read submissions (files, folders, archives and notebooks), and find their students.

The package turns a path into a ``Submission`` with the code for each exercise. It executes no submitted code, and must
not import JAX or the packages ``course`` and ``judging``.
"""
