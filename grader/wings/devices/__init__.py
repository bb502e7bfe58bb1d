"""Run programs on real devices after the simulated devices, so that checks also judge the real devices' values."""
