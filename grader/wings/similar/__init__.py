"""Find unusually similar submissions in a class, for a person to review. Similarity affects no score.

In: source code, by student. Out: pairs of students, and the passages that each pair shares. No code is executed.
"""
