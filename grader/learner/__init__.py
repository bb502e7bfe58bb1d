"""LEARNER PYTHON RUNS HERE: a confined process loads one learner's file or notebook, and answers the grader's requests.

The file or notebook is called a *source*, and a request an *ask*. An ask is one of three requests: trace a task on one
mesh, call a plain function (a task that is not traced), or return the learner's answer to a question. The answer to an
ask is a traced program, a list of values, or a *fault* (an error of the learner's code).

The confined process can read only three parts of the grader's code: this folder, ``wire`` and ``sandbox``. This folder
has no checks, no answers to questions and no hidden inputs. Of the grader's other packages, it imports only ``wire``.
"""
