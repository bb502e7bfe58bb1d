"""``watch --browser``: a page beside the editor, with the checks and with pictures of the learner's own program.

This wing converts the state of ``watch`` and the facts of ``explain`` to HTML for one browser on this machine.
"""
