"""Gradebooks and upload formats of other systems. One place imports each optional dependency."""
