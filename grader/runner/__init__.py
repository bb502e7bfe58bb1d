"""The running process. In: a program as MLIR bytecode, and inputs. Out: its facts, and what its devices hold.

No learner Python comes here, so neither ``learner`` nor anything that knows an exercise may be imported.
"""
