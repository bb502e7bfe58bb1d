import sys

sys.setrecursionlimit(10**9)


def twice(n):
    return twice(n + 1)
