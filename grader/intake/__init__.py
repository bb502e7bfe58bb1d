"""Read submissions: folders, archives, notebooks, names, students.

The package turns a path into a ``Submission`` with the code for each exercise. It executes no submitted code, and must
not import JAX or the packages ``course`` and ``judging``.
"""
