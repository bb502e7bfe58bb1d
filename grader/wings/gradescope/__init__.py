"""Gradescope: an autograder to upload, and the program that Gradescope runs."""
