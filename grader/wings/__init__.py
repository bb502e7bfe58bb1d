"""What the course can do without: each wing is one folder with its own code and commands, and no part of the core imports it."""
