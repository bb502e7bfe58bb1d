"""The course for people: what students get and the solutions to read, as texts; on a branch, or in a folder."""
