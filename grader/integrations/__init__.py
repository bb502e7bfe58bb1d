"""Gradebooks and upload formats of other systems."""
