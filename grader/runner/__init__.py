"""The process that runs programs. In: a program as MLIR bytecode, and inputs. Out: facts, and the results' shards.

*Facts* are what the program's text shows without a run: collectives, bytes, FLOPs. Learner Python never runs here, so
neither ``learner`` nor any module that knows exercises may be imported.
"""
