import itertools


def twice(n):
    return itertools.count()


megabytes = itertools.count()
