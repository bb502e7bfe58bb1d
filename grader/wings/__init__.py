"""Optional parts of the course: each wing is a folder with its own code and commands; the core imports none."""
