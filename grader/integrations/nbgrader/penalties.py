"""Late penalties by the plugin that nbgrader_config.py names."""

from __future__ import annotations

from typing import Any

from nbgrader.preprocessors import AssignLatePenalties

from grader.integrations.nbgrader import written


class Penalties:
    """Sets late penalties like nbgrader's AssignLatePenalties. ``parent`` is nbgrader's converter."""

    def __init__(self, parent: Any) -> None:
        late: Any = AssignLatePenalties(parent=parent)
        late.init_plugin()
        self._plugin = late.plugin_inst

    def set(self, submission: Any) -> str:
        """Set the penalties of a late submission, and return the reason why the plugin failed, or "".

        After a failure the gradebook has no stamp of the notebook, so the next run tries again. The caller must commit
        the changes.

        Args:
            submission: nbgrader's SubmittedAssignment, with current sums of scores.
        """
        for notebook in submission.notebooks:
            if not written.read(notebook).stamp:
                continue  # the student did not submit this notebook
            score, late = notebook.score, submission.total_seconds_late
            try:
                penalty = self._plugin.late_submission_penalty(str(submission.student_id), score, late)
                notebook.late_submission_penalty = None if penalty is None else min(max(penalty, 0), score)
            except Exception as error:  # the plugin may be the staff's own
                written.forget(notebook)
                name = type(self._plugin).__name__
                return f"{name} cannot compute the late penalty: {type(error).__name__}: {error}"
        return ""
