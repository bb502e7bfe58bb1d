"""Make reports from submissions, for one and for many: the grader with its workers, and the folder of reports.

In: submissions and a course. Out: reports. An *ask* is one request to a submission: a call on one mesh with its inputs,
the cases of a plain function, or a question. A *plan* is all asks of an exercise, and a *finding* is what came back for
one ask. The grader starts sandboxes, sends them the asks, and passes the findings to ``judging``. A *tier* is a kind of
sandbox, by its strength.
"""
