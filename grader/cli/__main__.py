"""Entry point of ``python -m grader.cli``."""

from grader.cli import main

main()
