"""LEARNER PYTHON RUNS HERE: a confined process loads one learner's file or notebook, and answers the grader's requests.

The file or notebook is called a *source*, and a request an *ask*. There are three kinds of asks: trace a task on a
mesh, call a plain function (a task that is not traced), or return the learner's answer to a question. The process
answers an ask with a traced program, with values, or with a *fault* (an error of the learner's code).

The process can read only three parts of the grader's code: this folder, ``wire`` and ``sandbox``. None of them has
checks, answers to questions or hidden inputs. Of the grader's other packages, this folder imports only ``wire``.
"""
