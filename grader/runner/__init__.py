"""The process that runs programs: it gets MLIR bytecode and inputs, and returns facts and the shards of results.

*Facts* are what the program's text shows without running the program: collectives, bytes, FLOPs. Python code of
learners never runs in this process. So this package imports neither ``grader.learner`` nor modules about exercises.
"""
