"""``watch --browser``: a page with the exercise, the checks, and pictures of the learner's own program.

The command ``watch`` checks an exercise whenever its file changes, and ``explain`` shows facts about a traced program.
This wing converts what both commands know to HTML, for one browser on this machine.
"""
