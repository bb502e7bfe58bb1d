"""The process that runs programs: it gets MLIR bytecode and inputs, and returns facts and the shards of results.

*Facts* are what the program's text shows without a run: collectives, bytes, FLOPs. Learner Python never runs in the
process that runs programs. So this package imports neither ``learner`` nor any module about exercises.
"""
