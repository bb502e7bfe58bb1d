"""Starting, confining and ending processes: tiers, filters, limits, the scratch folder, readable files.

A caller of this package chooses a worker's role (trace, run or read, see ``main``) and its limits, and sends requests.
The answers are frames, the messages of ``wire.frames``. Frames from a child process are not trusted, because learner
code runs in it. A *tier* is a kind of sandbox, see ``tiers``. Of the other packages in ``grader``, this package imports
only ``wire``. This package has no code about exercises.
"""
