"""``course.yaml``, the exercises of its solutions, and what learners are given of them.

In: the folder of a course. Out: ``Course``, and the release that ``build`` writes.
"""
