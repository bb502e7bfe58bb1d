"""``watch --browser``: a page with the exercise, the checks, and pictures of the learner's own program.

The command ``watch`` checks an exercise whenever its file changes, and ``explain`` shows facts about a traced program.
This wing shows the results of both commands as HTML, to one browser on this machine.
"""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(
    options={"--browser": "options.BROWSER", "--port": "options.PORT", "--at": "options.AT"}, browser="loop.PageLoop"
)
