"""Publish the course on a branch or in a folder: the students' release, or the solutions."""
