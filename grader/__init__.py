"""shardlings: a course on sharded computation in JAX, and the grader that judges it."""

__version__ = "0.2.0"
