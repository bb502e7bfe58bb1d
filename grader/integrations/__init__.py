"""One optional dependency, one place that imports it: gradebooks and upload formats of others."""
