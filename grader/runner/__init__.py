"""The process that runs programs. In: a program as MLIR bytecode, and inputs. Out: facts, and the devices' contents.

Learner Python never runs here, so neither ``learner`` nor any module that knows exercises may be imported.
"""
