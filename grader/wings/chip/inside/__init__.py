"""The code of the confined process that compiles: it gets a program and returns the compiler's schedule."""
