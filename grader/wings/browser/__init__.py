"""``watch --browser``: a page with the exercise, the checks, and pictures of the learner's own program.

This wing converts the state of ``watch`` and the facts of ``explain`` to HTML for one browser on this machine.
"""
