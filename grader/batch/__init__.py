"""From a submission to its report, for one and for many: the grader with its workers, the folder of reports.

In: submissions and a course. Out: reports. Starts sandboxes, asks, and hands what comes back to ``judging``.
"""
