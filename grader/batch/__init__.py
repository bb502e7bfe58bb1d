"""Make reports from one submission or many, with sandboxed workers, and keep the reports in a folder.

An *ask* is one request to a submission. There are three kinds of asks:

- a call of a function on one mesh, with its inputs
- a plain function (one that needs no mesh), with its cases: the arguments of each call
- a question

A *plan* is all asks of an exercise. A *finding* is what the grader finds for one ask: an observation of a program, the
outcomes of a plain function, the answer to a question, or a fault (an error or an exceeded limit). The package
``judging`` turns findings into verdicts.

A *tier* is a level of sandbox isolation. A *source* is one file or notebook of a submission.
"""
