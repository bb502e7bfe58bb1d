"""``course.yaml``, the exercises of its solutions, and the files that learners get.

In: the folder of a course. Out: ``Course``, and the release that ``build`` writes.
"""
