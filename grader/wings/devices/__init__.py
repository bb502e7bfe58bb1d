"""Real devices: programs that were judged on simulated devices run on them as well, for their values."""
