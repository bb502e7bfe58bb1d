"""``watch --browser``: a page beside the editor, with the checks and with pictures of the learner's own program.

In: the state of ``watch``, and the facts that ``explain`` gives. Out: HTML for one browser on this machine.
"""
