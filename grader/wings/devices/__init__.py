"""Run programs on real devices too, after simulated devices, so that checks also judge the real devices' values."""
