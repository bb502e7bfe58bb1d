"""shardlings: a course on sharded computation in JAX, and the grader that judges it."""

__version__ = "0.3.0.dev0"


class Mistake(Exception):
    """A user's mistake. Commands print the message, which is one line, and exit with code 2."""
