"""``course.yaml``, the exercises of its solutions, and the files that learners get.

The package reads the folder of a course, and makes a ``Course`` and the release that ``build`` writes.
"""
