def twice(n):
    return 0
