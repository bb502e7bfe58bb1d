"""Real devices, which run programs in addition to simulated devices, so that the grader can compare the values."""
