class Slow(Exception):
    def __str__(self):
        while True:
            pass


def twice(n):
    raise Slow
