import re


def twice(n):
    return bool(re.match("(a+)+$", "a" * 60 + "b"))
