"""Make reports from submissions, for one and for many: the grader with its workers, and the folder of reports.

In: submissions and a course. Out: reports. Starts sandboxes, sends them asks and passes their replies to ``judging``.
"""
