"""The program that ``shardlings`` and ``python -m grader`` start."""

from __future__ import annotations

from grader import stopping


def main() -> None:
    """Import the commands, which takes a while, and run the command that the user typed."""
    stopping.stop_at_once()
    from grader import cli

    cli.main()


if __name__ == "__main__":
    main()
