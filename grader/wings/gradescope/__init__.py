"""Gradescope: an autograder to upload, and what it runs there."""
