"""Publish the course: the students' release, or the solutions to read, on a branch or in a folder."""
