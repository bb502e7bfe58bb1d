class Sticky:
    def __del__(self):
        while True:
            pass


def twice(n):
    Sticky()
    return 0
