"""The process that runs programs: it gets a program as MLIR bytecode and inputs, and returns facts and results' shards.

*Facts* are what the program's text shows without a run: collectives, bytes, FLOPs. Learner Python never runs in this
process. So this package imports neither ``learner`` nor any module about exercises.
"""
