"""Devices that are no simulated ones: programs that were judged are run there as well, for their values."""
