"""Gradebooks and upload formats of other systems. Each optional dependency is imported in one place."""
