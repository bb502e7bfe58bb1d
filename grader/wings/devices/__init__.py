"""Real devices, on which the grader also runs programs to compare their values with those of simulated devices."""
