"""Load a course from its folder, and make the files that learners get.

The package reads ``course.yaml`` and the exercises into a ``Course``, and makes the files that the command ``build``
writes.
"""
