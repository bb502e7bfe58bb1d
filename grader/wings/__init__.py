"""Wings: optional parts of the grader, which the core never imports. Each wing is a folder with its own commands."""
