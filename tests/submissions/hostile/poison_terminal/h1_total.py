import sys

sys.stderr.write("\x1b]0;owned\x07\x1b[2J")


def twice(n):
    raise ValueError("\x1b[31mred\x1b]8;;http://x\x07 \r\n::set-output")
