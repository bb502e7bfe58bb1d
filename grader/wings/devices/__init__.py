"""Run programs on real devices too, after the simulated devices of a CPU, so that checks also judge the real devices'
values.
"""
