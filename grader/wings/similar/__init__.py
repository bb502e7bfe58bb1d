"""Find unusually similar submissions in a class, for a person to review. Similarity affects no score.

The wing reads each student's source code. The wing finds pairs of students, and the passages that each pair shares. No
code is executed.
"""
