"""Runs in the confined process that compiles: a program in, the schedule that the compiler made of it out."""
